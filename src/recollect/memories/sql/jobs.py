"""Embedding jobs: claimed in batches with SKIP LOCKED, so that any number of workers share the work."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from pgvector import HalfVector
from sqlalchemy import func, select, text

from recollect.memories.rules.windows import WHOLE, Window
from recollect.model import JobCounts
from recollect.ports import Vectors
from recollect.store import locks
from recollect.store.database import Transaction
from recollect.store.tables import embedding_jobs

# By ctid: the rows are locked, so they stay where they are, and no estimate can lead to a scan of the whole table.
CLAIM = text("""
UPDATE embedding_jobs j SET status = 'processing', attempts = j.attempts + 1, claimed_at = :now, claimed_by = :by
  FROM nodes n
 WHERE j.ctid = ANY (ARRAY(
           SELECT ctid FROM embedding_jobs
            WHERE space_id = :space AND model = :model AND status = 'pending' AND due_at <= :now
              AND (CAST(:only AS uuid[]) IS NULL OR node_id = ANY(CAST(:only AS uuid[])))
            ORDER BY created_at DESC LIMIT :most FOR UPDATE SKIP LOCKED))
   AND j.space_id = :space AND n.space_id = :space AND n.id = j.node_id
RETURNING j.id, j.node_id, j.attempts, j.max_attempts, n.kind, n.name, n.text, EXISTS (
              SELECT FROM lexicon l WHERE l.space_id = :space AND l.node_id = j.node_id) AS is_indexed
""")

# Nodes are locked for the moment, so that one archived just now cannot come back as recallable. First of all, in the
# order of the ids: whoever changes a node holds it before its jobs, and so nobody waits for each other in a circle.
HOLD = "SELECT FROM nodes WHERE space_id = $1 AND id = ANY($2) ORDER BY id FOR SHARE"
# A job that was queued anew meanwhile, because its text changed, is not finished by the vector of the old text.
# What the model cannot read comes without a vector: it keeps none, and its job says so for good (D43).
FINISH = """
UPDATE embedding_jobs j SET status = CASE WHEN g.is_read THEN 'completed' ELSE 'unreadable' END,
       completed_at = $4, error_message = NULL
  FROM unnest($2::uuid[], $3::bool[]) AS g(job_id, is_read) WHERE j.space_id = $1 AND j.id = g.job_id
RETURNING j.node_id
"""
# A long text comes with several vectors (D47); those that it had before and has no more go. A short text never had more
# than one.
SAVE = """
INSERT INTO embeddings (space_id, node_id, model, passage, starts, ends, dim, vector, kind, recallable, created_at)
SELECT n.space_id, n.id, $7, m.passage, m.starts, m.ends, $8, m.vector, n.kind, n.recallable, $9
  FROM unnest($2::uuid[], $3::int2[], $4::int4[], $5::int4[], $6::halfvec[])
       AS m(node_id, passage, starts, ends, vector) JOIN nodes n ON n.id = m.node_id
 WHERE n.space_id = $1
ON CONFLICT (space_id, node_id, model, passage)
DO UPDATE SET vector = excluded.vector, dim = excluded.dim, recallable = excluded.recallable,
              created_at = excluded.created_at, starts = excluded.starts, ends = excluded.ends
RETURNING 1
"""
DROP_OTHERS = """
DELETE FROM embeddings e
 WHERE e.space_id = $1 AND e.node_id = ANY($2) AND e.model = $3 AND NOT EXISTS (
       SELECT FROM unnest($4::uuid[], $5::int2[]) AS m(node_id, passage)
        WHERE m.node_id = e.node_id AND m.passage = e.passage)
"""

# A vector that joins an earlier one moves updated_at (D04); the first one does not.
RENEW = """
UPDATE nodes n SET updated_at = $3
 WHERE n.space_id = $1 AND n.id = ANY($2)
   AND EXISTS (SELECT FROM embeddings e WHERE e.space_id = $1 AND e.node_id = n.id)
"""

FAIL = text("""
UPDATE embedding_jobs
   SET status = CASE WHEN attempts < max_attempts THEN 'pending' ELSE 'failed' END,
       due_at = :due, claimed_at = NULL, error_message = :message
 WHERE space_id = :space AND id = ANY(CAST(:ids AS uuid[])) AND status = 'processing'
""")

# Of a worker that is gone, at once; of one that hangs, after a while (which is also all that is known of a worker that
# could not say who it is).
# Whose work is under way. It is asked before who lives: whoever takes a job later is not among them.
CLAIMED_BY = text("""
SELECT DISTINCT claimed_by FROM embedding_jobs
 WHERE space_id = :space AND status = 'processing' AND claimed_by IS NOT NULL
""")
RECLAIM = text("""
UPDATE embedding_jobs
   SET status = CASE WHEN attempts < max_attempts THEN 'pending' ELSE 'failed' END,
       claimed_at = NULL, error_message = 'its worker stopped half-way'
 WHERE space_id = :space AND status = 'processing'
   AND (claimed_at < :before OR claimed_by = ANY(CAST(:ended AS uuid[])))
""")

RELEASE = text("""
UPDATE embedding_jobs SET status = 'pending', attempts = attempts - 1, claimed_at = NULL
 WHERE space_id = :space AND id = ANY(CAST(:ids AS uuid[])) AND status = 'processing'
""")

RETRY_FAILED = text("""
UPDATE embedding_jobs SET status = 'pending', attempts = 0, due_at = :now, error_message = NULL
 WHERE space_id = :space AND status = 'failed'
""")

ENQUEUE_MISSING = text("""
INSERT INTO embedding_jobs (space_id, node_id, model, max_attempts, created_at, due_at)
SELECT :space, n.id, :model, :attempts, :now, :now FROM nodes n
 WHERE n.space_id = :space AND coalesce(n.text, n.name) IS NOT NULL AND n.status <> 'merged'
   AND NOT EXISTS (SELECT FROM embeddings e WHERE e.space_id = :space AND e.node_id = n.id AND e.model = :model)
   AND NOT EXISTS (SELECT FROM embedding_jobs j WHERE j.space_id = :space AND j.node_id = n.id AND j.model = :model)
 ORDER BY n.created_at DESC LIMIT :most
ON CONFLICT DO NOTHING
""")

# A node that a plan makes has no vector yet (one whose text a plan changes is queued anew by a trigger).
ENQUEUE_MADE = """
INSERT INTO embedding_jobs (space_id, node_id, model, max_attempts, created_at, due_at)
SELECT $1, c.row_id, m.model, $5, $6, $6 FROM changes c CROSS JOIN unnest($4::text[]) AS m(model)
 WHERE c.space_id = $1 AND c.plan_id = $2 AND c.decision = ANY($3) AND c.table_name = 'nodes' AND c.before IS NULL
   AND coalesce(c.after->>'text', c.after->>'name') IS NOT NULL
ON CONFLICT DO NOTHING
"""

UNFINISHED = text("""
SELECT status = 'failed' OR due_at > :now AS postponed, node_id, error_message FROM embedding_jobs
 WHERE space_id = :space AND model = :model AND node_id = ANY(CAST(:ids AS uuid[]))
   AND status NOT IN ('completed', 'unreadable')
""")

CLEAR = text("DELETE FROM embedding_jobs WHERE space_id = :space AND status = 'completed' AND completed_at < :before")


# The vectors of a text: of all of it, and of a long one also of its windows, in order (D47).
Passages = Mapping[Window, Vectors]


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One node to embed."""

    id: UUID
    node_id: UUID
    attempts: int
    max_attempts: int
    kind: str
    name: str | None
    text: str | None
    is_indexed: bool


async def claim(
    db: Transaction,
    *,
    model: str,
    most: int,
    now: datetime,
    by: UUID | None = None,
    only: Sequence[UUID] | None = None,
) -> list[Job]:
    """Take jobs, the newest first: what was said just now is asked for soonest. `by`: the lease of whoever does."""
    values = {
        "space": db.space_id,
        "model": model,
        "most": most,
        "now": now,
        "by": by,
        "only": None if only is None else list(only),
    }
    rows = await db.execute(CLAIM, values)
    return [Job(**row._mapping) for row in rows]


async def save(
    db: Transaction,
    done: Sequence[Job],
    all_passages: Sequence[Passages],
    *,
    model: str,
    dim: int,
    renewing: bool,
    now: datetime,
) -> None:
    """Store the vectors and finish their jobs. `renewing`: vectors of another model may be there already.

    What the model cannot read has none: its job ends as unreadable. Nodes whose text changed meanwhile still wait.
    """
    nodes = [job.node_id for job in done]
    await db.run(HOLD, nodes)
    if renewing:
        await db.run(RENEW, [node for node, passages in zip(nodes, all_passages, strict=True) if passages], now)
    ids, is_read = [job.id for job in done], [bool(passages) for passages in all_passages]
    finished = {row["node_id"] for row in await db.fetch(FINISH, ids, is_read, now)}
    made = {node: part for node, part in zip(nodes, all_passages, strict=True) if node in finished}
    columns = [*_columns(list(made), list(made.values()))]
    await db.run(SAVE, *columns, model, dim, now)
    others = [node for node, part in made.items() if not part or any(window != WHOLE for window in part)]
    if others:
        await db.run(DROP_OTHERS, others, model, *columns[:2])


def _columns(nodes: Sequence[UUID], all_passages: Sequence[Passages]) -> Iterator[list[Any]]:
    """The vectors as columns: whose each is, its number, from where to where it reaches, and the vector itself.

    The number of a text as a whole is 0; windows count from 1, whether or not the whole has a vector.
    """
    rows = [
        (node, 0 if part == WHOLE else number + (WHOLE not in passages), part.start, part.end, HalfVector(vector))
        for node, passages in zip(nodes, all_passages, strict=True)
        for number, (part, vector) in enumerate(passages.items())
    ]
    return ([row[column] for row in rows] for column in range(5))


async def fail(db: Transaction, failed: Sequence[Job], *, message: str, due: datetime) -> None:
    """Put jobs back until `due`, or give them up when they were tried often enough."""
    ids = [job.id for job in failed]
    await db.execute(FAIL, {"space": db.space_id, "ids": ids, "message": message[:2000], "due": due})


async def release(db: Transaction, claimed: Sequence[Job]) -> None:
    """Give claimed jobs back untried, when a worker stops."""
    await db.execute(RELEASE, {"space": db.space_id, "ids": [job.id for job in claimed]})


async def reclaim_stuck(db: Transaction, *, older_than: timedelta, now: datetime) -> int:
    working = list((await db.execute(CLAIMED_BY, {"space": db.space_id})).scalars())
    values = {"space": db.space_id, "before": now - older_than, "ended": await locks.ended(db, working)}
    return (await db.execute(RECLAIM, values)).rowcount


async def retry_failed(db: Transaction, now: datetime) -> int:
    return (await db.execute(RETRY_FAILED, {"space": db.space_id, "now": now})).rowcount


async def enqueue_missing(db: Transaction, *, model: str, max_attempts: int, most: int, now: datetime) -> int:
    """Jobs for nodes that lack a vector of this model, newest first (D35)."""
    values = {"space": db.space_id, "model": model, "attempts": max_attempts, "most": most, "now": now}
    return (await db.execute(ENQUEUE_MISSING, values)).rowcount


async def enqueue_made(
    db: Transaction,
    plan_id: UUID,
    numbers: Sequence[int],
    *,
    models: Sequence[str],
    max_attempts: int,
    now: datetime,
) -> None:
    """Jobs for the nodes that some decisions of a plan have made, in the transaction that made them."""
    await db.run(ENQUEUE_MADE, plan_id, list(numbers), list(models), max_attempts, now)


@dataclass(frozen=True, kw_only=True, slots=True)
class WaitingJobs:
    """Which of some nodes are not searchable yet: how many are being worked on, and which failed or were put off."""

    open: int
    postponed: dict[UUID, str]


async def waiting(db: Transaction, ids: Sequence[UUID], *, model: str, now: datetime) -> WaitingJobs:
    values = {"space": db.space_id, "model": model, "ids": list(ids), "now": now}
    rows = list(await db.execute(UNFINISHED, values))
    postponed = {row.node_id: row.error_message or "" for row in rows if row.postponed}
    return WaitingJobs(open=len(rows) - len(postponed), postponed=postponed)


async def unfinished(db: Transaction, *, model: str, now: datetime) -> tuple[list[UUID], dict[UUID, str]]:
    """The nodes of a space that are being worked on or wait; and those that failed or were put off, with the reason."""
    statement = text("""
        SELECT status = 'failed' OR due_at > :now AS postponed, node_id, error_message FROM embedding_jobs
         WHERE space_id = :space AND model = :model AND status NOT IN ('completed', 'unreadable')""")
    rows = list(await db.execute(statement, {"space": db.space_id, "model": model, "now": now}))
    return (
        [row.node_id for row in rows if not row.postponed],
        {row.node_id: row.error_message or "" for row in rows if row.postponed},
    )


async def counts(db: Transaction, *, model: str | None = None) -> JobCounts:
    statement = (
        select(embedding_jobs.c.status, func.count().label("number"))
        .where(embedding_jobs.c.space_id == db.space_id)
        .group_by(embedding_jobs.c.status)
    )
    if model is not None:
        statement = statement.where(embedding_jobs.c.model == model)
    return JobCounts(**{row.status: row.number for row in await db.execute(statement)})


async def failures(db: Transaction, *, most: int = 20) -> list[tuple[UUID, str]]:
    statement = (
        select(embedding_jobs.c.node_id, embedding_jobs.c.error_message)
        .where(embedding_jobs.c.space_id == db.space_id, embedding_jobs.c.status == "failed")
        .order_by(embedding_jobs.c.created_at)
        .limit(most)
    )
    return [(row.node_id, row.error_message or "") for row in await db.execute(statement)]


async def unreadable(db: Transaction, *, model: str) -> tuple[int, int]:
    """How many of the active texts of a space a model cannot read, and how many there are."""
    statement = text("""
        SELECT count(j.id) AS unreadable, count(*) AS texts
          FROM nodes n LEFT JOIN embedding_jobs j ON j.space_id = :space AND j.node_id = n.id AND j.model = :model
               AND j.status = 'unreadable'
         WHERE n.space_id = :space AND n.status = 'active' AND coalesce(n.text, n.name) IS NOT NULL""")
    row = (await db.execute(statement, {"space": db.space_id, "model": model})).one()
    return row.unreadable, row.texts


async def lacks_vectors(db: Transaction, *, model: str) -> bool:
    """Whether any recallable node still waits for its vector of this model (one that failed for good, or that the model
    cannot read, does not)."""
    missing = text("""
        SELECT EXISTS (SELECT FROM nodes n WHERE n.space_id = :space AND n.status = 'active' AND NOT n.exclude
           AND coalesce(n.text, n.name) IS NOT NULL AND NOT EXISTS (
               SELECT FROM embeddings e WHERE e.space_id = :space AND e.node_id = n.id AND e.model = :model)
           AND NOT EXISTS (
               SELECT FROM embedding_jobs j WHERE j.space_id = :space AND j.node_id = n.id AND j.model = :model
                  AND j.status IN ('failed', 'unreadable')))
    """)
    return bool((await db.execute(missing, {"space": db.space_id, "model": model})).scalar_one())


async def clear_completed(db: Transaction, *, before: datetime) -> int:
    return (await db.execute(CLEAR, {"space": db.space_id, "before": before})).rowcount
