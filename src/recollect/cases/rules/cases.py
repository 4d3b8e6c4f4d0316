"""Cases: what is checked before one is stored, and many of them in columns, as the policies look at them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.errors import InvalidInput
from recollect.memories.rules.contract import (
    LONGEST_NAME,
    Contract,
    checked_id,
    checked_metadata,
    checked_name,
    checked_text,
    checked_time,
    parsed_time,
    refuse,
)
from recollect.memories.rules.text import is_storable
from recollect.model import CaseOutcome, NewCase

SECONDS_A_DAY = 86_400
MOST_USES = 2**53
# What other banks call these fields, in the order of preference.
ALSO_KNOWN_AS = {
    "question": "query",
    "response": "response_text",
    "answer": "response_text",
    "category": "category_path",
    "uses": "usage_count",
    "last_used_at": "last_accessed_at",
    "case_id": "source_id",
}
FIELDS = tuple(field.name for field in fields(NewCase))


# -- one case, checked


def checked(case: NewCase, contract: Contract, now: datetime) -> NewCase:
    """The case as it will be stored, or InvalidInput saying what is wrong with it."""
    return replace(
        case,
        query=checked_part("query", case.query, contract),
        response_text=checked_part("response_text", case.response_text, contract),
        category_path=checked_category(case.category_path),
        usage_count=_checked_uses(case.usage_count),
        success_rate=checked_rate(case.success_rate),
        last_accessed_at=_moment("last_accessed_at", case.last_accessed_at, now),
        metadata=checked_metadata(case.metadata, contract),
        created_at=checked_time(case.created_at, now),
        id=checked_id(case.id),
        source=checked_name("source", case.source),
        source_id=checked_name("source_id", case.source_id),
        updated_by=checked_name("updated_by", case.updated_by),
    )


def case_from_mapping(fields: Mapping[str, Any], *, fractions: bool = False) -> NewCase:
    """A case from JSON or from the cells of a table.

    Success rates are percent; only `fractions` makes them 0 to 1: what is meant is never guessed from the numbers.
    """
    if not isinstance(fields, Mapping):
        refuse("case", f"a case is an object with a query and a response_text, not {_shown(fields)}")
    named = _named(fields)
    for field in ("query", "response_text"):
        if named.get(field) is None:
            refuse(field, f"a case needs a {field}")
    if isinstance(named.get("id"), str):
        named["id"] = _uuid(named["id"])
    for field in ("created_at", "last_accessed_at"):
        named[field] = parsed_time(field, named.get(field))
    if fractions and named.get("success_rate") is not None:
        named["success_rate"] = _as_percent(named["success_rate"])
    return NewCase(**{name: value for name, value in named.items() if value is not None})


def _named(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields by the names they have here."""
    named: dict[str, Any] = {}
    for name, value in fields.items():
        own = ALSO_KNOWN_AS.get(name, name)
        if own not in FIELDS:
            refuse(name, f"{name!r:.60} is not a field of a case; the fields are {', '.join(FIELDS)}")
        if own in named:
            refuse(name, f"{own} is given twice: say it once")
        named[own] = value
    return named


def checked_part(field: str, text: object, contract: Contract) -> str:
    """A query or an answer: like the text of a memory."""
    try:
        return checked_text(text, contract)
    except InvalidInput as problem:
        raise InvalidInput(problem.message.replace("The text", f"The {field}", 1), field=field) from None


def checked_category(path: object) -> str | None:
    """`billing/refunds`: a path of names, without a slash at either end."""
    if path is None:
        return None
    if not isinstance(path, str) or len(path) > LONGEST_NAME or not is_storable(path):
        refuse("category_path", f"a category is a path like billing/refunds, not {_shown(path)}")
    return "/".join(part.strip() for part in path.split("/") if part.strip()) or None


def checked_rate(rate: object) -> float | None:
    if rate is None:
        return None
    if not _is_number(rate) or not 0 <= float(rate) <= 100:  # type: ignore[arg-type]
        refuse("success_rate", f"a success rate is percent, from 0 to 100, not {_shown(rate)}")
    return float(rate)  # type: ignore[arg-type]


def checked_outcome(outcome: CaseOutcome, now: datetime) -> CaseOutcome:
    if not isinstance(outcome.success, bool):
        refuse("success", f"success is true or false, not {_shown(outcome.success)}")
    spent = outcome.milliseconds
    if spent is not None and not (_is_number(spent) and 0 <= spent < math.inf):
        refuse("milliseconds", f"milliseconds is a number from 0, not {_shown(spent)}")
    return replace(
        outcome,
        error_type=checked_name("error_type", outcome.error_type),
        milliseconds=None if spent is None else float(spent),
        created_at=_moment("created_at", outcome.created_at, now),
    )


def _checked_uses(uses: object) -> int:
    if not isinstance(uses, int) or isinstance(uses, bool) or not 0 <= uses <= MOST_USES:
        refuse("usage_count", f"usage_count is a whole number from 0, not {_shown(uses)}")
    return uses


def _moment(field: str, moment: datetime | None, now: datetime) -> datetime | None:
    try:
        return checked_time(moment, now)
    except InvalidInput as problem:
        raise InvalidInput(problem.message.replace("Created_at", field, 1), field=field) from None


def _as_percent(rate: object) -> float:
    if not _is_number(rate) or not 0 <= float(rate) <= 1:  # type: ignore[arg-type]
        refuse("success_rate", f"success rates are said to be fractions, from 0 to 1, and {_shown(rate)} is none")
    # 0.29 is 29 percent, not 28.999999999999996.
    return round(100 * float(rate), 10)  # type: ignore[arg-type]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _uuid(value: str) -> UUID:
    try:
        return UUID(value)
    except ValueError:
        refuse("id", f"{_shown(value)} is not a UUID; an id of your own belongs in source_id")


def _shown(value: object) -> str:
    return f"{value!r:.60}"


# -- many cases, in columns


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseColumns:
    """The active cases at one moment, place by place, ordered by id; times in seconds since 1970.

    `success_rate` is percent, NaN where it is not known. `last_used_at` is when it was made where it was never used.
    """

    ids: NDArray[np.void]
    uses: NDArray[np.int64]
    success_rate: NDArray[np.float64]
    last_used_at: NDArray[np.float64]
    created_at: NDArray[np.float64]
    protected: NDArray[np.bool_]
    version: NDArray[np.int64]
    # Whether its rate is combined plainly with those of the cases merged into it.
    plain: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.ids)

    def id_of(self, row: int) -> UUID:
        return UUID(bytes=self.ids[row].tobytes())

    def idle_days_at(self, now: datetime) -> NDArray[np.float64]:
        """Whole microseconds divided once, so that exactly 7 days are 7.0."""
        microseconds = np.rint((now.timestamp() - self.last_used_at) * 1_000_000)
        idle: NDArray[np.float64] = microseconds / (SECONDS_A_DAY * 1_000_000)
        return idle


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseText:
    """What a case says."""

    id: UUID
    query: str
    answer: str
    category: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseVectors:
    """Vectors of one length, as they are stored (float16), and the ids of their cases."""

    ids: NDArray[np.void]
    vectors: NDArray[np.float16]
