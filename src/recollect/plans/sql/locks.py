"""Who waits for whom. One applying or undoing at a time in a space; and the graph of a space held by whoever writes it.

Those who only add edges hold the graph together; who takes something out of it (unlinks, archives, merges, undoes)
holds it alone, until the end of its transaction, and is counted. So what was true of the graph when the lock was taken
is true when it is written, and whoever decided something earlier sees by the count whether to look again (P17).
Recalls and their counting take neither: nobody who asks waits for a plan. The graph is held before any row is locked.
"""

import asyncpg

from recollect.errors import Busy
from recollect.store.database import Transaction

# For a while, and for this lock alone.
TAKE_TURN = """
WITH usual AS MATERIALIZED (SELECT current_setting('lock_timeout') AS bound)
SELECT set_config('lock_timeout', $2, true),
       pg_advisory_xact_lock(hashtextextended('recollect plan ' || $1::uuid, 0)),
       set_config('lock_timeout', bound, true) FROM usual
"""


async def take_turn(db: Transaction, *, wait_seconds: float = 30.0) -> None:
    """From here to the end of this transaction nobody else applies or undoes a plan of the space."""
    try:
        await db.run(TAKE_TURN, f"{wait_seconds * 1000:.0f}")
    except asyncpg.LockNotAvailableError as error:
        raise Busy("Another plan of this space is being applied: try again when it is done.") from error


async def hold_graph(db: Transaction) -> None:
    """From here to the end of this transaction nobody takes anything out of the graph."""
    await db.run("SELECT hold_graph($1, false)")


async def hold_graph_alone(db: Transaction) -> int:
    """From here to the end of this transaction nobody else writes the graph; returns how often something was taken out
    of it before."""
    return int(await db.fetchval("SELECT hold_graph($1, true)"))


async def losses(db: Transaction) -> int:
    """How often something was taken out of the graph so far."""
    return int(await db.fetchval("SELECT losses FROM graph_losses WHERE space_id = $1") or 0)
