"""Which decisions need which: what falls away together, what can be written together, and the same turned round."""

from collections.abc import Iterable, Mapping, Sequence


def falling_with(numbers: Iterable[int], needs: Mapping[int, Sequence[int]]) -> set[int]:
    """Some decisions and all that fall away with them, because they need one of them, however indirectly."""
    fallen = set(numbers)
    growing = True
    while growing:
        more = {number for number, needed in needs.items() if number not in fallen and fallen.intersection(needed)}
        growing = bool(more)
        fallen |= more
    return fallen


def levels(needs: Mapping[int, Sequence[int]]) -> dict[int, int]:
    """For each decision how many others must come before it, one after the other: those of one level can go together.

    A decision needs only such as have a lower number.
    """
    if not any(needs.values()):
        return dict.fromkeys(needs, 0)
    level_of: dict[int, int] = {}
    for number in sorted(needs):
        level_of[number] = max((level_of[needed] + 1 for needed in needs[number] if needed in level_of), default=0)
    return level_of


def turned_round(numbers: Iterable[int], needs: Mapping[int, Sequence[int]], beyond: int) -> dict[int, list[int]]:
    """Which decisions need which when some are taken back, the last first: what was needed waits for what needed it.

    A decision that takes back `n` has the number `beyond - n`.
    """
    turned: dict[int, list[int]] = {beyond - number: [] for number in numbers}
    for number, needed in needs.items():
        for earlier in needed:
            if beyond - earlier in turned and beyond - number in turned:
                turned[beyond - earlier].append(beyond - number)
    return turned
