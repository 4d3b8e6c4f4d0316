"""Which passage of a long text a hit shows: the one that was found (D47)."""

from collections.abc import Sequence

from recollect.memories.rules.windows import Window, passage
from recollect.recall.rules import lexical


def passage_of(text: str, windows: Sequence[Window], *, question: str, nearest: bool) -> str:
    """What stands around the first window, which is the nearest; or, where words found the text, around the one that
    holds most of them."""
    chosen = 0 if nearest else holding_most([window.of(text) for window in windows], lexical.words(question))
    return passage(text, windows[chosen], windows).of(text)


def holding_most(passages: Sequence[str], words: Sequence[str]) -> int:
    """A word counts the more, the fewer passages hold it; of equals the first.

    Stems are beginnings of words, so looking for them as they stand is enough.
    """
    folded = [lexical.fold(passage) for passage in passages]
    held = [0.0] * len(passages)
    for word in words:
        holding = [index for index, passage in enumerate(folded) if word in passage]
        for index in holding:
            held[index] += 1 / len(holding)
    return max(range(len(passages)), key=lambda index: (held[index], -index))
