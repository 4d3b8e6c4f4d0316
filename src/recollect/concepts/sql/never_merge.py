"""Pairs that a person keeps apart (C21): added, listed, taken off the list. Declined merges rest here too (P11)."""

from collections.abc import Sequence
from datetime import datetime

from recollect.concepts.rules.names import plain
from recollect.model import KeptApart
from recollect.store.database import Transaction

# Other matters that rest in the same table (merges of edges) are named otherwise.
OF_NODES = "a NOT LIKE 'edges of %'"


async def add(db: Transaction, pairs: Sequence[tuple[str, str]], *, reason: str | None, now: datetime) -> int:
    """Keep names apart for good; returns how many pairs were not kept apart for good already."""
    rows = [tuple(sorted((plain(a), plain(b)))) for a, b in pairs]
    added = await db.fetch(
        """INSERT INTO never_merge AS m (space_id, a, b, reason, created_at)
           SELECT DISTINCT ON (g.a, g.b) $1, g.a, g.b, $4::text, $5::timestamptz
             FROM unnest($2::text[], $3::text[]) AS g(a, b)
           ON CONFLICT (space_id, a, b) DO UPDATE SET until = NULL, state = NULL, reason = excluded.reason
            WHERE m.until IS NOT NULL RETURNING a""",
        *([a for a, _ in rows], [b for _, b in rows], reason, now),
    )
    return len(added)


async def remove(db: Transaction, name: str, other: str) -> bool:
    a, b = sorted((plain(name), plain(other)))
    gone = await db.run("DELETE FROM never_merge WHERE space_id = $1 AND a = $2 AND b = $3", a, b)
    return gone != "DELETE 0"


async def list_all(db: Transaction, now: datetime) -> list[KeptApart]:
    rows = await db.fetch(
        f"""SELECT a, b, reason, until, created_at FROM never_merge WHERE space_id = $1 AND {OF_NODES}
               AND (until IS NULL OR until > $2) ORDER BY until IS NOT NULL, a, b""",
        now,
    )
    return [KeptApart(**row) for row in rows]


async def partners(db: Transaction, names: Sequence[str], now: datetime) -> frozenset[str]:
    """The names that must never become one with any of these."""
    rows = await db.fetch(
        """SELECT b AS name FROM never_merge WHERE space_id = $1 AND a = ANY($2) AND (until IS NULL OR until > $3)
            UNION SELECT a FROM never_merge WHERE space_id = $1 AND b = ANY($2) AND (until IS NULL OR until > $3)""",
        *(list(names), now),
    )
    return frozenset(row["name"] for row in rows)
