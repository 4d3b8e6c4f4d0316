"""Tags: the registered ones, what can be a tag at all, and which known tag a new one was probably meant to be (G08).

Any word is a tag unless its space is strict. So a slip of the finger makes a new tag, and is not refused: whoever made
it is told which known tag looks like it. In doubt nothing is said: `film` is no `file`, and `wealth` no `health`.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from rapidfuzz.distance import OSA

TAGS = {
    "domain": ("ai", "code", "life", "finance", "health", "startup", "product", "psychology"),
    "format": ("video", "music", "repo", "file", "article"),
    "style": ("funny", "deep", "technical", "practical", "random"),
    "system": ("knowledge", "lesson", "important", "person"),
}
REGISTERED_TAGS = frozenset(tag for group in TAGS.values() for tag in group)
LONGEST_TAG = 100
WHAT_A_TAG_IS = f"a tag has 1 to {LONGEST_TAG} characters on one line, without control characters"
SHORTEST_COMPARED = 4
# Shorter words are too near to each other: two slips in them are more often another word.
SHORTEST_WITH_TWO_SLIPS = 9
_BREAKING = {"Cc", "Zl", "Zp", "Cs"}


def can_be_tag(tag: object) -> bool:
    return (
        isinstance(tag, str)
        and 0 < len(tag.strip()) <= len(tag) <= LONGEST_TAG
        and not any(unicodedata.category(character) in _BREAKING for character in tag)
    )


# -- tags as people write them in notes


def written_tags(value: Any) -> list[str]:
    """The tags of a note: a list, or words with commas (else spaces) between them, with or without #; each once."""
    if isinstance(value, str):
        value = re.split(r"[,;\n]+" if re.search(r"[,;]", value) else r"\s+", value)
    given = (_as_written(item) for item in _flat(value))
    return list(dict.fromkeys(tag for tag in given if tag))


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, list | Mapping):  # YAML takes {tea, cake} for a mapping
        for item in value:
            yield from _flat(item)
    elif value is not None:
        yield value


def _as_written(tag: Any) -> str:
    """`#Area/Health ` as `Area/Health`; a number, a date or a yes as the text it is."""
    text = str(tag).lower() if isinstance(tag, bool) else str(tag)
    return text.strip().lstrip("#").strip()


# -- slips


def notes_on(given: Iterable[str], *, registered: Collection[str], used: Collection[str]) -> dict[str, str]:
    """A sentence about each new tag that looks like a slip, by the tag."""
    known_tags = {*registered, *used}
    meant = {tag: likely_meant(tag, known_tags) for tag in dict.fromkeys(given) if tag not in known_tags}
    return {
        tag: f"The tag {tag!r} is new here and was kept; if you meant {likely!r}, change it with `recollect edit`."
        for tag, likely in meant.items()
        if likely is not None
    }


def likely_meant(tag: str, known_tags: Collection[str]) -> str | None:
    """The known tag that a new one is probably a misspelling of: a registered one first, then the nearest.

    What others used may be slips itself: `lessson` is `lesson`, though somebody wrote `Lessson` before."""
    if tag in known_tags:
        return None
    slips = {known_tag: _slips(_folded(tag), _folded(known_tag)) for known_tag in known_tags}
    likely = [
        (known_tag not in REGISTERED_TAGS, number, known_tag)
        for known_tag, number in slips.items()
        if number is not None
    ]
    return min(likely)[2] if likely else None


def tags_of(metadata: object) -> list[str]:
    """The tags that metadata names; what is no tag is left for the contract to refuse."""
    tags = metadata.get("tags") if isinstance(metadata, Mapping) else None
    return [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []


def _folded(tag: str) -> str:
    """As two tags are compared: `Machine Learning`, `machine-learning` and `machine_learning` are one."""
    return re.sub(r"[\s_-]+", "", unicodedata.normalize("NFKC", tag).casefold())


def _slips(a: str, b: str) -> int | None:
    """How many slips of the finger lie between two words; None where they are rather two different words."""
    if a == b:
        return 0
    shorter = min(len(a), len(b))
    most = 2 if shorter >= SHORTEST_WITH_TWO_SLIPS else 1
    if shorter < SHORTEST_COMPARED or re.findall(r"\d+", a) != re.findall(r"\d+", b):
        return None
    slips = OSA.distance(a, b, score_cutoff=most)
    if slips > most:
        return None
    swapped = sorted(a) == sorted(b)
    same_length = len(a) == len(b)
    # One letter for another is a slip in a longer word only, and hardly ever in its first letter.
    other_letter = same_length and not swapped and (shorter == SHORTEST_COMPARED or a[0] != b[0])
    return None if other_letter else slips
