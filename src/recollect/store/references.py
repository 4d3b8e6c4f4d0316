"""References: a whole id, or a beginning of one that only one row has."""

from uuid import UUID

from sqlalchemy import Table, select

from recollect.errors import Conflict, InvalidInput, NotFound
from recollect.store.database import Transaction

SHORTEST_PREFIX = 4


async def resolve(db: Transaction, table: Table, reference: str, *, several: str, missing: str) -> UUID:
    """The id of the row that a reference means; `missing` is what is said where there is none."""
    low, high = meant_by(reference)
    statement = select(table.c.id).where(table.c.space_id == db.space_id, table.c.id.between(low, high)).limit(2)
    ids = list((await db.execute(statement)).scalars())
    if not ids:
        raise NotFound(missing)
    if len(ids) > 1:
        raise Conflict(f"{reference} is the beginning of several {several}: give more of it.")
    return UUID(str(ids[0]))


def meant_by(reference: str) -> tuple[UUID, UUID]:
    """The first and the last id that begin like this."""
    digits = reference.replace("-", "").lower() if isinstance(reference, str) else ""
    is_hexadecimal = all(digit in "0123456789abcdef" for digit in digits)
    if is_hexadecimal and 0 < len(digits) < SHORTEST_PREFIX:
        raise InvalidInput(f"{reference!r} is too short: give at least the first 4 characters of the id.", field="id")
    if not digits or not is_hexadecimal or len(digits) > 32:
        raise InvalidInput(f"{reference!r} is not an id: give a UUID, or its first 4 or more characters.", field="id")
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
