"""Concepts: stored, found by name or by nearness, and read together with all that was merged into them.

Every name of a concept, its own among them, is a row of `aliases` in the form in which names are compared. What was
merged keeps its rows and points at its keeper: a name, an id, energy and weight are followed there, never copied.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
from numpy.typing import NDArray
from pgvector import HalfVector

from recollect.concepts.rules import energy
from recollect.concepts.rules.concepts import ConceptCandidate, Wording
from recollect.concepts.rules.names import plain
from recollect.memories.sql import nodes
from recollect.model import Concept, NewConcept, Node, Variant
from recollect.store.database import Transaction

Vector = NDArray[np.float32]

# Up to so many concepts each is looked at; with more the index is walked, and stops where nothing nearer can come.
EXACT_UP_TO = 5_000
FIRST_LOOK, MOST_LOOKED_AT = 20, 2_000

# One writer of a type at a time, over all processes, from the look to the end of the transaction (C20). The rest is for
# the search that follows: what HNSW is asked for lies so near that a short walk finds it (all of 120 with minilm; with
# hashing, whose vectors lie badly for it, 0.88 with 40, 0.94 with 80, 0.98 with 120).
HOLD = """
SELECT pg_advisory_xact_lock(hashtextextended('recollect concepts ' || $1::uuid || ' ' || $2, 0)),
       set_config('hnsw.ef_search', '100', true), set_config('hnsw.iterative_scan', 'relaxed_order', true),
       set_config('hnsw.max_scan_tuples', '6000', true), set_config('plan_cache_mode', 'force_custom_plan', true),
       set_config('enable_sort', $3, true)
"""
INSERT = """
WITH given AS (
    SELECT * FROM unnest($2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::timestamptz[],
                         $9::text[], $10::text[], $11::float8[], $12::halfvec[])
        AS g(id, subtype, name, text, metadata, source, created_at, alias, energy, base_weight, vector)
), stored AS (
    INSERT INTO nodes (space_id, id, kind, subtype, name, text, metadata, source, created_at, updated_at)
    SELECT $1, id, 'concept', subtype, name, text, metadata::jsonb, source, created_at, $13 FROM given RETURNING 1
), named AS (
    INSERT INTO aliases (space_id, kind, subtype, alias, node_id, created_at)
    SELECT $1, 'concept', subtype, alias, id, $13 FROM given RETURNING 1
), charged AS (
    INSERT INTO activity (space_id, node_id, energy, base_weight)
    SELECT $1, id, energy::jsonb, base_weight FROM given WHERE energy <> '{}' OR base_weight IS NOT NULL
    RETURNING 1
), embedded AS (
    INSERT INTO embeddings (space_id, node_id, model, dim, vector, kind, recallable, created_at)
    SELECT $1, id, $14, vector_dims(vector), vector, 'concept', true, $13 FROM given WHERE vector IS NOT NULL
    RETURNING 1
)
INSERT INTO embedding_jobs (space_id, node_id, model, max_attempts, created_at, due_at)
SELECT $1, g.id, m.model, $16, $13, $13 FROM given g CROSS JOIN unnest($15::text[]) AS m(model)
 WHERE g.vector IS NULL OR m.model <> $14 RETURNING 1
"""
# LATERAL with OFFSET 0: each row is looked up by its key, however small the space is believed to be.
NODE_OF = """LATERAL (SELECT id, subtype, name, text, metadata, created_at, status FROM nodes
     WHERE space_id = $1 AND id = {id} OFFSET 0) n"""
# From what bears a name, or is near, up to what it was merged into, and from there down to all that it is made of.
WORDINGS = f"""
WITH RECURSIVE up AS (
    {{seeds}}
     UNION
    SELECT n.merged_into FROM up, LATERAL (
        SELECT merged_into FROM nodes WHERE space_id = $1 AND id = up.id AND merged_into IS NOT NULL OFFSET 0) n
), part AS (
    SELECT n.id AS keeper, n.id FROM up, LATERAL (
        SELECT id FROM nodes WHERE space_id = $1 AND id = up.id AND status = 'active' AND subtype = $2 OFFSET 0) n
     UNION
    SELECT part.keeper, n.id FROM part,
           LATERAL (SELECT id FROM nodes WHERE space_id = $1 AND merged_into = part.id OFFSET 0) n
)
SELECT part.keeper, n.id, n.name, n.text, n.metadata, n.created_at, e.vector,
       ARRAY(SELECT alias FROM aliases WHERE space_id = $1 AND node_id = n.id) AS names
  FROM part, {NODE_OF.format(id="part.id")}
  LEFT JOIN embeddings e ON e.space_id = $1 AND e.node_id = n.id AND e.model = $4
 ORDER BY part.keeper, n.id <> part.keeper, n.created_at LIMIT {MOST_LOOKED_AT}
"""
BY_NAME = """SELECT node_id AS id FROM aliases
     WHERE space_id = $1 AND kind = 'concept' AND subtype = $2 AND alias = $3"""
BY_ID = "SELECT g.id FROM unnest($3::uuid[]) AS g(id)"
FROM_VECTORS = """FROM embeddings
 WHERE space_id = $1 AND model = $2 AND dim = $3 AND kind = 'concept'"""
NEAR = f"""
SELECT n.id, n.subtype FROM near, {NODE_OF.format(id="near.node_id")} WHERE near.d <= $6
"""
DOWN = f"""{nodes.PARTS}SELECT part.keeper, part.id, n.name, n.text, n.source, n.created_at, a.energy, a.base_weight,
       ARRAY(SELECT alias FROM aliases WHERE space_id = $1 AND node_id = part.id) AS names
  FROM part,
       LATERAL (SELECT name, text, source, created_at FROM nodes WHERE space_id = $1 AND id = part.id OFFSET 0) n
  LEFT JOIN LATERAL (SELECT energy, base_weight FROM activity WHERE space_id = $1 AND node_id = part.id OFFSET 0) a
    ON true
"""
# Whether a concept, or something it has absorbed, was given with all of this before: then it is no news.
SAID = f"""{nodes.PARTS}SELECT EXISTS (
    SELECT FROM part,
           LATERAL (SELECT text, metadata, source FROM nodes WHERE space_id = $1 AND id = part.id OFFSET 0) n
      LEFT JOIN LATERAL (SELECT base_weight FROM activity WHERE space_id = $1 AND node_id = part.id OFFSET 0) a ON true
     WHERE ($3::uuid IS NULL OR part.id = $3)
       AND EXISTS (SELECT FROM aliases WHERE space_id = $1 AND node_id = part.id AND alias = $4)
       AND ($5::text IS NULL OR n.text = $5) AND ($6::float8 IS NULL OR a.base_weight = $6) AND n.metadata @> $7
       AND (n.source IS NOT DISTINCT FROM $8 OR ($5 IS NULL AND $6 IS NULL AND $7 = '{{}}')))
"""
HISTORY = """
SELECT d.subject AS id, d.applied_at, d.score FROM decisions d
 WHERE d.space_id = $1 AND d.subject = ANY($2) AND d.verb = 'merge' AND d.status = 'applied'
"""
LINKS = """
SELECT g.id, count(*) AS links FROM unnest($2::uuid[]) AS g(id), LATERAL (
    SELECT FROM edges WHERE space_id = $1 AND status = 'active' AND source = g.id
     UNION ALL SELECT FROM edges WHERE space_id = $1 AND status = 'active' AND target = g.id) e GROUP BY 1
"""
ADD_ENERGY = """
INSERT INTO activity AS a (space_id, node_id, energy) VALUES ($1, $2, $3)
ON CONFLICT (space_id, node_id) DO UPDATE SET energy = energy_added(a.energy, excluded.energy)
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConceptParts:
    """All that a keeper is made of: itself and what was merged into it, however indirectly."""

    members: list[UUID] = field(default_factory=list)
    given_names: dict[UUID, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)
    energies: list[Mapping[str, float]] = field(default_factory=list)
    weights: list[float] = field(default_factory=list)
    variants: list[Variant] = field(default_factory=list)


# -- storing


async def hold(db: Transaction, node_type: str, *, exactly: bool) -> None:
    """From here to the end of this transaction nobody else makes a concept of this type."""
    await db.run(HOLD, node_type, "on" if exactly else "off")


async def insert(
    db: Transaction,
    new_concepts: Sequence[tuple[UUID, NewConcept, Vector | None]],
    *,
    model: str,
    models: Sequence[str],
    max_attempts: int,
    now: datetime,
) -> None:
    """Store concepts with the vectors of `model` that are known; the others of `models` are jobs for a worker."""
    columns = [
        (
            id_,
            new.node_type,
            new.name,
            new.text,
            json.dumps(new.metadata),
            new.created_by,
            new.created_at or now,
            plain(new.name),
            json.dumps(dict(new.energy)),
            new.base_weight,
            None if vector is None else HalfVector(vector),
        )
        for id_, new, vector in new_concepts
    ]
    await db.run(INSERT, *zip(*columns, strict=True), now, model, list(models), max_attempts)


async def was_said(db: Transaction, id_: UUID, new: NewConcept) -> bool:
    """Whether nothing in a concept is news to one that is there, or to what that has absorbed. (Energy is counted.)"""
    columns = (plain(new.name), new.text, new.base_weight, json.dumps(new.metadata), new.created_by)
    return bool(await db.fetchval(SAID, [id_], new.id, *columns))


async def add_energy(db: Transaction, id_: UUID, given: Mapping[str, float]) -> None:
    """Add to the raw energy of a concept, entity by entity."""
    if given:
        await db.run(ADD_ENERGY, id_, json.dumps(dict(given)))


# -- what a new one may be


async def namesakes(db: Transaction, node_type: str, name: str, *, model: str) -> list[ConceptCandidate]:
    """The living concepts of a type that bear this very name, now, as an alias, or by what they absorbed (C32)."""
    return await _candidates(db, BY_NAME, node_type, plain(name), model)


async def near(
    db: Transaction,
    node_type: str,
    vector: Vector,
    *,
    model: str,
    at_least: float,
    exactly: bool,
) -> list[ConceptCandidate]:
    """The living concepts of a type one of whose vectors, their own or an absorbed one's, is at least so near."""
    dim = len(vector)
    distance = f"vector::halfvec({dim}) <=> $4"
    if exactly:  # MATERIALIZED keeps the planner from walking HNSW where a plain pass answers better
        source = f"""few AS MATERIALIZED (SELECT node_id, vector {FROM_VECTORS}),
            near AS MATERIALIZED (SELECT node_id, {distance} AS d FROM few ORDER BY d LIMIT $5)"""
    else:
        source = f"""near AS MATERIALIZED (SELECT node_id, {distance} AS d {FROM_VECTORS}
            ORDER BY {distance} LIMIT $5)"""
    most = FIRST_LOOK
    while True:
        given = (model, dim, HalfVector(vector), most, 1.0 - at_least)
        rows = await db.fetch(f"WITH {source} {NEAR}", *given)
        if len(rows) < most or most >= MOST_LOOKED_AT:
            ids = [row["id"] for row in rows if row["subtype"] == node_type]
            return await _candidates(db, BY_ID, node_type, ids, model) if ids else []
        most *= 10


async def _candidates(
    db: Transaction, seeds: str, node_type: str, sought: str | list[UUID], model: str
) -> list[ConceptCandidate]:
    parts: defaultdict[UUID, list[asyncpg.Record]] = defaultdict(list)
    for row in await db.fetch(WORDINGS.format(seeds=seeds), node_type, sought, model):
        parts[row["keeper"]].append(row)
    return [_candidate(rows) for rows in parts.values()]


def _candidate(rows: Sequence[asyncpg.Record]) -> ConceptCandidate:
    """A keeper and what it absorbed, the keeper first; then each other name it was given since."""
    wordings = [_wording(row, row["name"] or "") for row in rows]
    known_names = {plain(wording.name) for wording in wordings}
    more = [_wording(row, name) for row in rows for name in row["names"] if name not in known_names]
    return ConceptCandidate(
        id=rows[0]["keeper"],
        wordings=(*wordings, *more),
        metadata=dict(rows[0]["metadata"]),
        created_at=rows[0]["created_at"],
    )


def _wording(row: asyncpg.Record, name: str) -> Wording:
    vector = None if row["vector"] is None else unit(row["vector"].to_numpy())
    return Wording(name=name, text=row["text"], vector=vector)


def unit(vector: NDArray[Any]) -> Vector:
    """As it was before it was rounded to half precision: of length 1."""
    row = vector.astype(np.float32)
    length = float(np.linalg.norm(row))
    return row / length if length else row


# -- reading


async def bearers(db: Transaction, name: str, node_type: str | None = None) -> list[Node]:
    """The concepts that bear a name, as their own or as an alias; also such as were merged into others."""
    rows = await db.fetch(
        """SELECT DISTINCT node_id FROM aliases WHERE space_id = $1 AND kind = 'concept' AND alias = $2
              AND ($3::text IS NULL OR subtype = $3) LIMIT 1000""",
        *(plain(name), node_type),
    )
    by_id = await nodes.get_many(db, [row["node_id"] for row in rows])
    return sorted(by_id.values(), key=lambda node: (node.created_at, node.id))


async def names_of(db: Transaction, ids: Collection[UUID]) -> dict[UUID, frozenset[str]]:
    """Every name of some concepts, and of what was merged into them."""
    by_keeper = await parts(db, ids)
    return {keeper: frozenset(part.names) for keeper, part in by_keeper.items()}


async def parts(db: Transaction, ids: Collection[UUID]) -> dict[UUID, ConceptParts]:
    by_keeper: defaultdict[UUID, ConceptParts] = defaultdict(ConceptParts)
    for row in await db.fetch(DOWN, list(ids)):
        part = by_keeper[row["keeper"]]
        part.members.append(row["id"])
        part.given_names[row["id"]] = row["name"] or ""
        part.names.update(row["names"] or [plain(row["name"] or "")])
        part.energies.append(row["energy"] or {})
        if row["base_weight"] is not None:
            part.weights.append(row["base_weight"])
        if row["id"] != row["keeper"]:
            part.variants.append(_variant(row))
    return dict(by_keeper)


def _variant(row: asyncpg.Record) -> Variant:
    return Variant(
        id=row["id"],
        name=row["name"] or "",
        text=row["text"],
        base_weight=row["base_weight"],
        created_by=row["source"],
        created_at=row["created_at"],
    )


async def in_full(db: Transaction, concept_nodes: Sequence[Node]) -> list[Concept]:
    """Concepts with all they are made of, in the order given."""
    ids = [node.id for node in concept_nodes]
    made_of = await parts(db, ids)
    members = [id_ for part in made_of.values() for id_ in part.members]
    merged = {row["id"]: row for row in await db.fetch(HISTORY, members)}
    links = {row["id"]: row["links"] for row in await db.fetch(LINKS, ids)}
    return [_concept(node, made_of[node.id], merged, links.get(node.id, 0)) for node in concept_nodes]


def _concept(node: Node, part: ConceptParts, merged: Mapping[UUID, asyncpg.Record], links: int) -> Concept:
    summed = energy.summed(part.energies)
    absorbed = tuple(sorted((id_ for id_ in part.members if id_ != node.id), key=lambda id_: id_.bytes))
    weight, count = energy.running_mean([(value, 1) for value in part.weights])
    return Concept(
        id=node.id,
        node_type=node.subtype,
        name=node.name or "",
        text=node.text,
        metadata=_with_history(node, part, absorbed, merged),
        energy={entity: energy.shown(value) for entity, value in summed.items()},
        raw_energy=summed,
        base_weight=weight if count else None,
        aliases=tuple(sorted(part.names - {plain(node.name or "")})),
        absorbed=absorbed,
        links=links,
        protected=node.protected,
        status=node.status,
        version=node.version,
        created_by=node.source,
        created_at=node.created_at,
        updated_at=node.updated_at,
        variants=tuple(sorted(part.variants, key=lambda variant: (variant.created_at, variant.id.bytes))),
    )


def _with_history(
    node: Node, part: ConceptParts, absorbed: Sequence[UUID], merged: Mapping[UUID, asyncpg.Record]
) -> dict[str, Any]:
    """The metadata, with an entry for everything that was merged into it, directly or through others (C14, C17)."""
    merges = sorted((merged[id_] for id_ in absorbed if id_ in merged), key=lambda row: (row["applied_at"], row["id"]))
    if not merges:
        return node.metadata
    history = [
        {
            "merged_node_id": str(row["id"]),
            "merged_node_name": part.given_names[row["id"]],
            "merge_timestamp": row["applied_at"].isoformat(),
            "similarity_score": row["score"],
        }
        for row in merges
    ]
    return {**node.metadata, "merge_history": history}
