"""Answers in few words: what fits into a budget of tokens, and a word on what did not.

The budget is of what a client may show its model, be it the text or the data; so each item costs what it costs as data,
the longer of the two.
"""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

from recollect.memories.rules.text import count_tokens, first_tokens

Item = TypeVar("Item", bound=BaseModel)

# Of several long texts each has its share, lest the first leave no room for the others.
SHARES = 3
LEAST_TOKENS = 20
# For what stands around the items: the words before and after them, and the shell of the data.
AROUND = 40
SHORT_ID = 8


def short(id_: object) -> str:
    return str(id_)[:SHORT_ID]


def clipped(text: str, most: int) -> str:
    """The beginning of a text that is too long, with a sign that there is more."""
    beginning = first_tokens(text, most)
    return text if beginning == text else f"{beginning.rstrip()} …"


def cost(item: BaseModel | str) -> int:
    return count_tokens(item if isinstance(item, str) else item.model_dump_json(exclude_none=True))


def fitting(items: Sequence[Item], budget: int, *, field: str) -> list[Item]:
    """The first items that fit; `field` names the text in them that may be cut short."""
    left = budget - AROUND
    share = left // max(1, min(len(items), SHARES))
    chosen: list[Item] = []
    for item in items:
        fitted = _cut(item, field, min(left, max(share, LEAST_TOKENS)))
        left -= cost(fitted)
        if left < 0:
            break
        chosen.append(fitted)
    return chosen


def fitting_lines(lines: Sequence[str], budget: int) -> list[str]:
    """The first lines that fit."""
    left = budget - AROUND
    chosen: list[str] = []
    for line in lines:
        left -= cost(line) + 3  # its quotes and comma, as data
        if left < 0:
            break
        chosen.append(line)
    return chosen


def _cut(item: Item, field: str, most: int) -> Item:
    text = str(getattr(item, field))
    beyond = cost(item) - count_tokens(text)
    return item.model_copy(update={field: clipped(text, max(1, most - beyond - 1))})
