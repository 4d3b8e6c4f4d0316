"""Which passage of a long text a hit shows: the one that was found (D47)."""

from collections.abc import Sequence

from recollect.memories.rules.windows import Window, passage
from recollect.recall.rules import lexical

SHORT = 3


def passage_of(text: str, windows: Sequence[Window], *, question: str, nearest: bool) -> str:
    """What stands around the first window, which is the nearest; or, where words found the text, around the one that
    holds most of them."""
    words = lexical.words(question)
    chosen = 0 if nearest else by_words([window.of(text) for window in windows], words)[0]
    return passage(text, windows[chosen], windows).of(text)


def by_words(passages: Sequence[str], words: Sequence[str]) -> list[int]:
    """Which passages hold most of some stems, these first. A word counts the more, the fewer passages hold it; of
    equals the first.

    A stem is looked for without its last letter, which may be its own (`librari` of library).
    """
    folded = [lexical.fold(passage) for passage in passages]
    held = [0.0] * len(passages)
    for beginning in {word[:-1] if len(word) > SHORT else word for word in words}:
        holding = [index for index, passage in enumerate(folded) if beginning in passage]
        for index in holding:
            held[index] += 1 / len(holding)
    return sorted(range(len(passages)), key=lambda index: -held[index])
