"""A batch: whatever can be accepted of it, and the rest refused by its position."""

from collections.abc import Callable, Iterable
from typing import TypeVar
from uuid import UUID

from recollect.errors import InvalidInput, RecollectError
from recollect.model import Refused

Given = TypeVar("Given")
Checked = TypeVar("Checked")


def each_checked(
    given: Iterable[Given], check: Callable[[Given], Checked], *, atomic: bool = False, first: int = 0
) -> tuple[dict[int, Checked], list[Refused]]:
    """What passes, by its position, and the refusals; with `atomic` the first refusal is that of them all."""
    good: dict[int, Checked] = {}
    refused: list[Refused] = []
    for position, item in enumerate(given, start=first):
        try:
            good[position] = check(item)
        except InvalidInput as problem:
            if atomic:
                raise
            refused.append(refusal(position, problem))
    return good, refused


def refusal(position: int, problem: RecollectError, existing: UUID | None = None) -> Refused:
    return Refused(position=position, code=problem.code, message=problem.message, existing_id=existing)
