"""Cases: adding, finding, listing, their outcomes, and the columns that policies read. Changing them is a plan's work.

How often a case was used and how well it did is derived by the function case_standings (migration 0004), over all that
was merged into it; nothing here adds it up a second time.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Select, TextClause, select, text

from recollect.cases.rules.cases import CaseColumns, CaseText, CaseVectors
from recollect.errors import NotFound
from recollect.memories.rules.text import checksum
from recollect.memories.sql.nodes import PARTS, of_category
from recollect.model import Case, CaseFilter, CaseOutcome, CasePage, CaseStatus, NewCase
from recollect.store.copying import copied, row_of, row_with_vector
from recollect.store.cursors import stretch
from recollect.store.database import Transaction
from recollect.store.tables import nodes

# What another bank knew of a case (uses, last access) is where it is counted on from.
ADD = """
WITH given AS (
    SELECT * FROM unnest($2::uuid[], $3::text[], $4::text[], $5::jsonb[], $6::text[], $7::text[], $8::timestamptz[],
                         $9::text[], $10::text[], $11::float8[], $12::text[], $13::int8[], $14::timestamptz[])
        AS g(id, query, checksum, metadata, source, source_id, created_at, response_text, category_path, success_rate,
             updated_by, uses, last_used_at)
), stored AS (
    INSERT INTO nodes (space_id, id, kind, subtype, text, checksum, metadata, source, source_id, created_at, updated_at)
    SELECT $1, id, 'case', 'case', query, checksum, metadata, source, source_id, created_at, created_at FROM given
    ON CONFLICT DO NOTHING RETURNING id
), answered AS (
    INSERT INTO cases (space_id, node_id, response_text, category_path, given_success_rate, updated_by)
    SELECT $1, g.id, g.response_text, g.category_path, g.success_rate, g.updated_by
      FROM given g JOIN stored s ON s.id = g.id RETURNING 1
), counted AS (
    INSERT INTO activity (space_id, node_id, uses, last_used_at)
    SELECT $1, g.id, g.uses, g.last_used_at FROM given g JOIN stored s ON s.id = g.id
     WHERE g.uses > 0 OR g.last_used_at IS NOT NULL RETURNING 1
), queued AS (
    INSERT INTO embedding_jobs (space_id, node_id, model, max_attempts, created_at, due_at)
    SELECT $1, s.id, m.model, $16, $17, $17 FROM stored s CROSS JOIN unnest($15::text[]) AS m(model) RETURNING 1
)
SELECT id FROM stored
"""
# What an import brought before: the same foreign id, else the same query with the same answer.
EXISTING = """
SELECT DISTINCT ON (g.number) g.number, n.id
  FROM unnest($2::int4[], $3::text[], $4::text[], $5::text[], $6::text[])
    AS g(number, source, source_id, checksum, response_text)
 CROSS JOIN LATERAL (
    (SELECT id, 1 AS rank FROM nodes WHERE space_id = $1 AND kind = 'case' AND source = g.source
        AND source_id = g.source_id LIMIT 1)
     UNION ALL
    (SELECT t.id, 2 FROM nodes t JOIN cases c ON c.space_id = $1 AND c.node_id = t.id
      WHERE t.space_id = $1 AND t.kind = 'case' AND t.checksum = g.checksum AND c.response_text = g.response_text
        AND g.source_id IS NULL LIMIT 1)) n
 ORDER BY g.number, n.rank
"""
GET_MANY = """
SELECT n.id, n.text, n.metadata, n.status, n.merged_into, n.protected, n.source, n.source_id, n.version, n.created_at,
       n.updated_at, c.response_text, c.category_path, c.updated_by, s.uses, s.success_rate, s.judged, s.last_used_at,
       r.archived_reason, r.archived_at
  FROM unnest($2::uuid[]) WITH ORDINALITY AS g(id, place)
 CROSS JOIN LATERAL (SELECT * FROM nodes WHERE space_id = $1 AND id = g.id AND kind = 'case' OFFSET 0) n
 CROSS JOIN LATERAL (SELECT * FROM cases WHERE space_id = $1 AND node_id = g.id OFFSET 0) c
  JOIN case_standings($1, $2) s ON s.case_id = n.id
  LEFT JOIN LATERAL (SELECT archived_reason, archived_at FROM case_archive a
                      WHERE a.space_id = $1 AND a.case_id = g.id AND n.status <> 'active'
                      ORDER BY archived_at DESC LIMIT 1) r ON true
 ORDER BY g.place
"""
TOUCH = """
INSERT INTO activity (space_id, node_id, last_used_at, uses) VALUES ($1, $2, $3, $4)
ON CONFLICT (space_id, node_id) DO UPDATE
   SET last_used_at = greatest(activity.last_used_at, excluded.last_used_at), uses = activity.uses + excluded.uses
"""
ADD_OUTCOME = """
INSERT INTO outcomes (space_id, node_id, success, error_type, milliseconds, created_at) VALUES ($1, $2, $3, $4, $5, $6)
"""
OUTCOMES = """
SELECT success, error_type, milliseconds, created_at FROM outcomes WHERE space_id = $1 AND node_id = $2
 ORDER BY created_at DESC LIMIT $3
"""
# Why cases fail: the error types of their last 100 outcomes each, and of those of the cases merged into them.
ERROR_TYPES = """
WITH RECURSIVE family AS (
    SELECT w.id AS keeper, w.id AS member FROM unnest($2::uuid[]) AS w(id)
     UNION ALL
    SELECT f.keeper, n.id FROM family f, LATERAL (
        SELECT id FROM nodes WHERE space_id = $1 AND merged_into = f.member OFFSET 0) n)
SELECT f.keeper AS id, o.error_type, count(*) AS times FROM family f CROSS JOIN LATERAL (
    SELECT success, error_type FROM outcomes WHERE space_id = $1 AND node_id = f.member
     ORDER BY created_at DESC LIMIT 100) o
 WHERE NOT o.success GROUP BY 1, 2 ORDER BY 1, 3 DESC, 2 NULLS LAST
"""
COUNTS = """
SELECT n.status, a.archived_reason, count(*) AS number FROM nodes n
  LEFT JOIN LATERAL (SELECT archived_reason FROM case_archive a WHERE a.space_id = $1 AND a.case_id = n.id
                      ORDER BY archived_at DESC LIMIT 1) a ON n.status <> 'active'
 WHERE n.space_id = $1 AND n.kind = 'case' GROUP BY 1, 2
"""
TOTALS = """
SELECT count(*) AS cases, coalesce(sum(s.uses), 0)::int8 AS uses, count(s.success_rate) AS rated,
       avg(s.success_rate) AS mean_rate, count(*) FILTER (WHERE s.success_rate < $2) AS warned,
       count(*) FILTER (WHERE NOT EXISTS (SELECT FROM embeddings e WHERE e.space_id = $1 AND e.node_id = s.case_id
            AND e.model = (SELECT embedding_model FROM spaces WHERE id = $1))) AS without_vector,
       count(*) FILTER (WHERE EXISTS (SELECT FROM embedding_jobs j WHERE j.space_id = $1 AND j.node_id = s.case_id
            AND j.model = (SELECT embedding_model FROM spaces WHERE id = $1) AND j.status = 'unreadable')) AS unreadable
  FROM case_standings($1, ARRAY(SELECT id FROM nodes WHERE space_id = $1 AND kind = 'case' AND status = 'active')) s
"""
WORST = """
SELECT s.case_id FROM case_standings($1, ARRAY(
    SELECT id FROM nodes WHERE space_id = $1 AND kind = 'case' AND status = 'active')) s
 WHERE s.success_rate < $2 ORDER BY s.success_rate, s.uses DESC, s.case_id LIMIT $3
"""
RETIRED_BY = """
SELECT d.plan_id, d.number FROM changes c
  JOIN decisions d ON d.space_id = $1 AND d.plan_id = c.plan_id AND d.number = c.decision
 WHERE c.space_id = $1 AND c.row_id = $2 AND c.table_name = 'nodes' AND d.status = 'applied'
   AND c.after->>'status' IN ('archived', 'merged') ORDER BY d.applied_at DESC LIMIT 1
"""


async def add_many(
    db: Transaction,
    new_cases: Sequence[NewCase],
    *,
    models: Sequence[str],
    max_attempts: int,
    now: datetime,
) -> list[UUID | None]:
    """Store a batch, each with its counts and its embedding jobs; None for those whose id is taken."""
    ids = [case.id or uuid4() for case in new_cases]
    first = {id_: number for number, id_ in reversed(list(enumerate(ids)))}  # an id given twice counts once
    columns = zip(*(_values(id_, new_cases[number], number, now) for id_, number in first.items()), strict=True)
    models_and_time = (list(models), max_attempts, now)
    stored = {row["id"] for row in await db.fetch(ADD, *columns, *models_and_time)} if ids else set()
    return [id_ if id_ in stored and first[id_] == number else None for number, id_ in enumerate(ids)]


def _values(id_: UUID, case: NewCase, number: int, now: datetime) -> tuple[Any, ...]:
    return (
        id_,
        case.query,
        checksum(case.query),
        json.dumps(case.metadata),
        case.source,
        case.source_id,
        # A batch arrives in its order: one microsecond apart, so that listings keep it.
        case.created_at or now + timedelta(microseconds=number),
        case.response_text,
        case.category_path,
        case.success_rate,
        case.updated_by,
        case.usage_count,
        case.last_accessed_at,
    )


async def existing(db: Transaction, new_cases: Sequence[NewCase]) -> list[UUID | None]:
    """For each case of a batch, the one that is there already."""
    rows = await db.fetch(
        EXISTING,
        list(range(len(new_cases))),
        [case.source for case in new_cases],
        [case.source_id for case in new_cases],
        [checksum(case.query) for case in new_cases],
        [case.response_text for case in new_cases],
    )
    there = {row["number"]: row["id"] for row in rows}
    return [there.get(number) for number in range(len(new_cases))]


# -- looking


async def get(db: Transaction, id_: UUID) -> Case:
    read = await get_many(db, [id_])
    if not read:
        raise NotFound(f"There is no case {id_}: `recollect cases` lists them.")
    return read[0]


async def get_many(db: Transaction, ids: Sequence[UUID]) -> list[Case]:
    """Some cases, in this order, from one look; what is no case is not among them."""
    return [_case(row) for row in await db.fetch(GET_MANY, list(ids))]


def _case(row: Any) -> Case:
    return Case(
        case_id=row["id"],
        query=row["text"],
        response_text=row["response_text"],
        category_path=row["category_path"],
        usage_count=row["uses"],
        success_rate=row["success_rate"],
        judged=row["judged"],
        last_accessed_at=row["last_used_at"],
        status=CaseStatus.ACTIVE if row["status"] == "active" else CaseStatus.ARCHIVED,
        merged_into=row["merged_into"],
        archived_reason=row["archived_reason"],
        archived_at=row["archived_at"],
        protected=row["protected"],
        version=row["version"],
        metadata=json.loads(row["metadata"]) if isinstance(row["metadata"], str) else row["metadata"],
        source=row["source"],
        source_id=row["source_id"],
        created_at=row["created_at"],
        updated_at=row["updated_at"],
        updated_by=row["updated_by"],
    )


async def list_page(db: Transaction, case_filter: CaseFilter, *, limit: int, cursor: str | None) -> CasePage:
    """A stretch of the cases that fit, newest first."""
    statement = _matching(db.space_id, case_filter)
    rows, more = await stretch(db, nodes, statement, limit=limit, cursor=cursor)
    return CasePage(items=tuple(await get_many(db, [row.id for row in rows])), next_cursor=more)


def _matching(space_id: UUID, case_filter: CaseFilter) -> Select[Any]:
    statement = select(nodes.c.id, nodes.c.created_at).where(nodes.c.space_id == space_id, nodes.c.kind == "case")
    if case_filter.status is CaseStatus.ACTIVE:
        statement = statement.where(nodes.c.status == "active")
    elif case_filter.status is CaseStatus.ARCHIVED:
        statement = statement.where(nodes.c.status != "active")
    if case_filter.category is not None:
        statement = statement.where(nodes.c.id.in_(of_category(space_id, case_filter.category)))
    if case_filter.success_below is not None:
        statement = statement.where(_rated(space_id, "<", case_filter.success_below))
    if case_filter.success_at_least is not None:
        statement = statement.where(_rated(space_id, ">=", case_filter.success_at_least))
    return statement


def _rated(space_id: UUID, sign: str, rate: float) -> TextClause:
    """Whether the rate of a case compares so; one that is not known does not."""
    space, bound = ("below_space", "below") if sign == "<" else ("least_space", "least")
    all_cases = f"ARRAY(SELECT id FROM nodes WHERE space_id = :{space} AND kind = 'case')"
    compared = f"SELECT s.case_id FROM case_standings(:{space}, {all_cases}) s WHERE s.success_rate {sign} :{bound}"
    return text(f"nodes.id IN ({compared})").bindparams(**{space: space_id, bound: rate})


# -- how they do


async def touch(db: Transaction, id_: UUID, at: datetime, *, uses: int = 0) -> None:
    """Note that somebody asked for a case at this moment, with or without a use."""
    await db.run(TOUCH, id_, at, uses)


async def add_outcome(db: Transaction, id_: UUID, outcome: CaseOutcome, now: datetime, *, uses: int) -> None:
    """An outcome is an access, and a use unless that was counted before (E35)."""
    at = outcome.created_at or now
    await db.run(ADD_OUTCOME, id_, outcome.success, outcome.error_type, outcome.milliseconds, at)
    await touch(db, id_, at, uses=uses)


async def outcomes_of(db: Transaction, id_: UUID, *, limit: int) -> list[CaseOutcome]:
    """How a case's own uses went, newest first."""
    return [CaseOutcome(**row) for row in await db.fetch(OUTCOMES, id_, limit)]


async def error_types(db: Transaction, ids: Sequence[UUID]) -> dict[UUID, list[tuple[str | None, int]]]:
    """Why cases fail, the commonest first; None where no type was said."""
    types_by_case: dict[UUID, list[tuple[str | None, int]]] = {}
    for row in await db.fetch(ERROR_TYPES, list(ids)):
        types_by_case.setdefault(row["id"], []).append((row["error_type"], row["times"]))
    return types_by_case


async def worst(db: Transaction, *, below: float, limit: int) -> list[UUID]:
    """The active cases with the lowest success rates, below a bound."""
    return [row["case_id"] for row in await db.fetch(WORST, below, limit)]


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseTotals:
    """The active cases together: how many, their uses and rates, how many do poorly or have no vector (yet).

    `unreadable` of those without a vector get none, because the model cannot read them.
    """

    cases: int
    uses: int
    rated: int
    mean_rate: float | None
    warned: int
    without_vector: int
    unreadable: int


async def totals(db: Transaction, *, warn_below: float) -> CaseTotals:
    return CaseTotals(**await db.fetchrow(TOTALS, warn_below))


async def counts(db: Transaction) -> Mapping[tuple[str, str | None], int]:
    """How many cases there are, by status and by the reason of their archiving."""
    rows = await db.fetch(COUNTS)
    return {(row["status"], row["archived_reason"]): row["number"] for row in rows}


async def retired_by(db: Transaction, id_: UUID) -> tuple[UUID, int] | None:
    """The plan and the number of the decision that archived or merged a case."""
    row = await db.fetchrow(RETIRED_BY, id_)
    return None if row is None else (row["plan_id"], row["number"])


# -- what policies read, in columns

COLUMNS = (
    ("id", "V16", "n.id"),
    ("uses", ">i8", "s.uses"),
    ("success_rate", ">f8", "coalesce(s.success_rate, 'NaN')"),
    ("last_used_at", ">f8", "date_part('epoch', coalesce(s.last_used_at, n.created_at))"),
    ("created_at", ">f8", "date_part('epoch', n.created_at)"),
    ("protected", "?", "n.protected"),
    ("version", ">i4", "n.version"),
    ("plain", "?", "c.success_rates = 'plain'"),
)
COPY_COLUMNS = f"""
SELECT {", ".join(of for _, _, of in COLUMNS)} FROM nodes n
  JOIN cases c ON c.space_id = $1 AND c.node_id = n.id
  JOIN case_standings($1, ARRAY(SELECT id FROM nodes WHERE space_id = $1 AND kind = 'case' AND status = 'active')) s
    ON s.case_id = n.id
 WHERE n.space_id = $1 ORDER BY n.id
"""
ACTIVE_VECTORS = """
  FROM embeddings e JOIN nodes n ON n.space_id = $1 AND n.id = e.node_id AND n.kind = 'case' AND n.status = 'active'
 WHERE e.space_id = $1 AND e.kind = 'case' AND e.model = (SELECT embedding_model FROM spaces WHERE id = $1)
   AND NOT EXISTS (SELECT FROM embedding_jobs j WHERE j.space_id = $1 AND j.node_id = e.node_id AND j.model = e.model
                      AND j.status <> 'completed')
"""
TEXTS = """
SELECT n.id, n.text AS query, c.response_text AS answer, c.category_path AS category FROM unnest($2::uuid[]) AS g(id)
 CROSS JOIN LATERAL (SELECT id, text FROM nodes WHERE space_id = $1 AND id = g.id OFFSET 0) n
 CROSS JOIN LATERAL (SELECT * FROM cases WHERE space_id = $1 AND node_id = g.id OFFSET 0) c
"""
WITHIN = f"""{PARTS}SELECT part.keeper, e.vector FROM part,
       LATERAL (SELECT vector FROM embeddings WHERE space_id = $1 AND node_id = part.id AND dim = $3
                   AND model = (SELECT embedding_model FROM spaces WHERE id = $1) OFFSET 0) e
 WHERE part.id <> part.keeper
"""


async def columns(db: Transaction) -> CaseColumns:
    """The active cases and how they stand."""
    rows = await copied(db, row_of((name, kind) for name, kind, _ in COLUMNS), COPY_COLUMNS)
    return CaseColumns(
        ids=np.ascontiguousarray(rows["id"]),
        uses=rows["uses"].astype(np.int64),
        success_rate=rows["success_rate"].astype(np.float64),
        last_used_at=rows["last_used_at"].astype(np.float64),
        created_at=rows["created_at"].astype(np.float64),
        protected=rows["protected"].astype(np.bool_),
        version=rows["version"].astype(np.int64),
        plain=rows["plain"].astype(np.bool_),
    )


async def vectors(db: Transaction) -> list[CaseVectors]:
    """The vectors of the active cases, each length for itself."""
    lengths = await db.fetch(f"SELECT DISTINCT e.dim {ACTIVE_VECTORS} ORDER BY 1")
    return [await _vectors(db, row["dim"]) for row in lengths]


async def texts(db: Transaction, ids: Sequence[UUID]) -> list[CaseText]:
    """What some cases say."""
    return [CaseText(**row) for row in await db.fetch(TEXTS, list(ids))]


async def vectors_within(db: Transaction, ids: Sequence[UUID], dim: int) -> dict[UUID, NDArray[np.float16]]:
    """The vectors, of one length, of what was merged into some cases, over however many steps."""
    absorbed = await db.fetch(WITHIN, ids, dim)
    rows: dict[UUID, list[NDArray[np.float16]]] = defaultdict(list)
    for row in absorbed:
        rows[row["keeper"]].append(row["vector"].to_numpy().astype(np.float16))
    return {keeper: np.vstack(vectors) for keeper, vectors in rows.items()}


async def _vectors(db: Transaction, dim: int) -> CaseVectors:
    query = f"SELECT e.node_id, e.vector {ACTIVE_VECTORS} AND e.dim = $2 ORDER BY e.node_id"
    rows = await copied(db, row_with_vector(dim), query, dim)
    return CaseVectors(ids=np.ascontiguousarray(rows["id"]), vectors=rows["vector"].astype(np.float16))
