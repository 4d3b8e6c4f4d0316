"""Looking after the database: what it is, how large it is, whether everything in it is whole (D34)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from sqlalchemy import func, select, text

from recollect.model import JobCounts
from recollect.store.connections import Connection
from recollect.store.database import SCHEMA, Database
from recollect.store.tables import nodes, runs

# Each query returns the ids of rows that are not as they must be; the database's own constraints guard most of this,
# so a finding means that somebody worked around them, or that the disk did.
INTEGRITY = {
    "a vector without its node": """
        SELECT DISTINCT e.node_id FROM embeddings e LEFT JOIN nodes n ON n.space_id = e.space_id AND n.id = e.node_id
         WHERE n.id IS NULL""",
    "a vector whose length is not the one recorded": """
        SELECT DISTINCT node_id FROM embeddings WHERE vector_dims(vector) <> dim""",
    "a vector that is not finite and of unit length": """
        SELECT DISTINCT node_id FROM embeddings WHERE NOT coalesce(l2_norm(vector) BETWEEN 0.98 AND 1.02, false)""",
    "a vector recallable against its node's state": """
        SELECT DISTINCT e.node_id FROM embeddings e JOIN nodes n ON n.space_id = e.space_id AND n.id = e.node_id
         WHERE e.recallable <> n.recallable""",
    "an index entry recallable against its node's state": """
        SELECT l.node_id FROM lexicon l JOIN nodes n ON n.space_id = l.space_id AND n.id = l.node_id
         WHERE l.recallable <> n.recallable""",
    "a memory with a vector that is not in the lexicon": """
        SELECT DISTINCT e.node_id FROM embeddings e
          LEFT JOIN lexicon l ON l.space_id = e.space_id AND l.node_id = e.node_id
         WHERE l.node_id IS NULL AND NOT EXISTS (  -- whose text was changed waits to be embedded and indexed anew
            SELECT FROM embedding_jobs j
             WHERE j.space_id = e.space_id AND j.node_id = e.node_id AND j.status IN ('pending', 'processing'))""",
    "an edge to a missing node": """
        SELECT e.id FROM edges e LEFT JOIN nodes s ON s.space_id = e.space_id AND s.id = e.source
          LEFT JOIN nodes t ON t.space_id = e.space_id AND t.id = e.target
         WHERE s.id IS NULL OR t.id IS NULL""",
    "a living edge at a node that was merged away": """
        SELECT e.id FROM edges e JOIN nodes n ON n.space_id = e.space_id AND n.id IN (e.source, e.target)
         WHERE e.status = 'active' AND n.status = 'merged'""",
    "a node merged into one that is missing": """
        SELECT n.id FROM nodes n LEFT JOIN nodes k ON k.space_id = n.space_id AND k.id = n.merged_into
         WHERE n.merged_into IS NOT NULL AND k.id IS NULL""",
    "a job without its node": """
        SELECT j.id FROM embedding_jobs j LEFT JOIN nodes n ON n.space_id = j.space_id AND n.id = j.node_id
         WHERE n.id IS NULL""",
    "a memory with neither vector nor job": """
        SELECT n.id FROM nodes n WHERE n.kind = 'memory' AND n.status <> 'merged'
           AND NOT EXISTS (SELECT FROM embeddings e WHERE e.space_id = n.space_id AND e.node_id = n.id)
           AND NOT EXISTS (SELECT FROM embedding_jobs j WHERE j.space_id = n.space_id AND j.node_id = n.id)""",
    "a journal entry without its decision": """
        SELECT c.row_id FROM changes c LEFT JOIN decisions d
            ON d.space_id = c.space_id AND d.plan_id = c.plan_id AND d.number = c.decision WHERE d.number IS NULL""",
}


async def count_nodes(connection: Connection) -> int:
    return int((await connection.execute(select(func.count()).select_from(nodes))).scalar_one())


async def texts(connection: Connection, *, batch: int = 2000) -> AsyncIterator[list[tuple[UUID, str, str]]]:
    """Every memory's id, text and recorded checksum, batch by batch."""
    statement = select(nodes.c.id, nodes.c.text, nodes.c.checksum).where(nodes.c.kind == "memory")
    async for part in await connection.stream(statement, batch=batch):
        yield [(row.id, row.text, row.checksum) for row in part]


async def broken(connection: Connection, *, most: int = 20) -> dict[str, list[UUID]]:
    """What is not whole, by kind of fault, with the first few ids of each."""
    faults = {}
    for fault, query in INTEGRITY.items():
        ids = list((await connection.execute(text(f"{query} LIMIT {most}"))).scalars())
        if ids:
            faults[fault] = ids
    return faults


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerFacts:
    """What the database says of itself."""

    version: str
    pgvector: str
    bytes: int
    dead_rows: int
    live_rows: int
    last_vacuum_at: datetime | None
    connections: int
    most_connections: int
    # Pages that were looked for, in all that time: found in the database's own memory, or read from outside it.
    pages_found: int
    pages_read: int


SERVER_FACTS = text("""
    SELECT current_setting('server_version') AS version,
           (SELECT extversion FROM pg_extension WHERE extname = 'vector') AS pgvector,
           pg_database_size(current_database()) AS bytes, t.dead_rows, t.live_rows, t.last_vacuum_at,
           (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend') AS connections,
           current_setting('max_connections')::int AS most_connections,
           blks_hit AS pages_found, blks_read AS pages_read
      FROM pg_stat_database,
           (SELECT coalesce(sum(n_dead_tup), 0)::int8 AS dead_rows, coalesce(sum(n_live_tup), 0)::int8 AS live_rows,
                   max(greatest(last_vacuum, last_autovacuum)) AS last_vacuum_at
              FROM pg_stat_user_tables WHERE schemaname = :schema) t
     WHERE datname = current_database()""")


async def server_facts(connection: Connection) -> ServerFacts:
    return ServerFacts(**(await connection.execute(SERVER_FACTS, {"schema": SCHEMA})).one()._mapping)


async def vacuum(database: Database) -> None:
    """VACUUM and ANALYZE our tables, beside running work."""
    async with database.alone() as connection:
        tables = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = $1", SCHEMA)
        for table in tables:
            await connection.execute(f'VACUUM (ANALYZE) {SCHEMA}."{table["tablename"]}"')


async def stored_models(connection: Connection) -> list[tuple[str, int, int]]:
    """Every model that has vectors: its name, their length, how many."""
    rows = await connection.execute(
        text("SELECT model, dim, count(*) AS number FROM embeddings GROUP BY model, dim ORDER BY model, dim")
    )
    return [(row.model, row.dim, row.number) for row in rows]


async def job_counts(connection: Connection) -> JobCounts:
    """The embedding jobs of all spaces, by state."""
    rows = await connection.execute(text("SELECT status, count(*) AS number FROM embedding_jobs GROUP BY status"))
    return JobCounts(**{row.status: row.number for row in rows})


async def ping(connection: Connection) -> None:
    await connection.execute(text("SELECT 1"))


async def note_run(
    connection: Connection, space_id: UUID, action: str, report: dict[str, object], now: datetime
) -> None:
    values = {"space_id": space_id, "action": action, "status": "completed", "report": report}
    await connection.execute(runs.insert().values(**values, started_at=now, finished_at=now))


async def last_run(connection: Connection, action: str) -> datetime | None:
    finished_at: datetime | None = (
        await connection.execute(select(func.max(runs.c.finished_at)).where(runs.c.action == action))
    ).scalar_one()
    return finished_at
