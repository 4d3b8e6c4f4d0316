"""The living concepts of a space as columns: what a pass over all of them compares, each with what it has absorbed.

Vectors come as one binary COPY, whose rows all have the same length; the rest is a row a concept.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
from numpy.typing import NDArray

from recollect.concepts.rules.concepts import KnownConcepts, LastPass
from recollect.concepts.rules.detection import ConceptColumns
from recollect.plans.sql import looks
from recollect.store.copying import copied, row_with_vector
from recollect.store.database import Transaction

CONCEPTS = """
SELECT id, subtype, coalesce(name, '') AS name, nullif(metadata, '{}') AS metadata, version, protected, created_at,
       updated_at, nullif(btrim(text), '') AS text
  FROM nodes WHERE space_id = $1 AND kind = 'concept' AND status = 'active' AND ($2::uuid[] IS NULL OR id = ANY($2))
 ORDER BY id
"""
MERGED = """
SELECT id, merged_into FROM nodes WHERE space_id = $1 AND kind = 'concept' AND status = 'merged'
"""
VECTORS = """
SELECT node_id, vector FROM embeddings WHERE space_id = $1 AND kind = 'concept' AND dim = $3 AND model = $2
   AND ($4::uuid[] IS NULL OR node_id = ANY($4))
"""
MODEL = """
SELECT s.embedding_model AS model, e.dim FROM spaces s, LATERAL (
    SELECT dim FROM embeddings WHERE space_id = $1 AND kind = 'concept' AND model = s.embedding_model LIMIT 1) e
 WHERE s.id = $1
"""
ACTIVITY = """
SELECT a.node_id, (SELECT sum(value::float8) FROM jsonb_each_text(a.energy)) AS energy, a.base_weight
  FROM activity a WHERE a.space_id = $1 AND (a.energy <> '{}' OR a.base_weight IS NOT NULL)
"""
DEGREES = """
SELECT id, count(*) AS links FROM (
    SELECT source AS id FROM edges WHERE space_id = $1 AND status = 'active'
     UNION ALL SELECT target FROM edges WHERE space_id = $1 AND status = 'active') e GROUP BY 1
"""
# Only names that somebody keeps apart: no other is asked for.
NAMES = """
SELECT node_id, alias FROM aliases WHERE space_id = $1 AND kind = 'concept'
   AND alias IN (SELECT a FROM never_merge WHERE space_id = $1 UNION SELECT b FROM never_merge WHERE space_id = $1)
"""
CHANGED = """
SELECT id FROM nodes WHERE space_id = $1 AND kind = 'concept' AND updated_at >= $2
 UNION SELECT node_id FROM embeddings WHERE space_id = $1 AND kind = 'concept' AND created_at >= $2
 UNION SELECT c.row_id FROM decisions d JOIN changes c ON c.space_id = $1 AND c.plan_id = d.plan_id
          AND c.decision = d.number AND c.table_name = 'nodes'
        WHERE d.space_id = $1 AND d.applied_at >= $2
"""
LAST_PASS = f"""
SELECT id, created_at, summary->'again' AS again FROM {looks.SAID}
 WHERE policy = $2 AND options - 'only_newer_than' = $3::jsonb - 'only_newer_than'
   AND coalesce(options->>'only_newer_than', '') = ''
   AND (applied_at IS NOT NULL OR status = 'declined' OR counts = '{{}}')
 ORDER BY created_at DESC LIMIT 1
"""
UNDONE = """
SELECT row_id FROM decisions d JOIN changes c ON c.space_id = $1 AND c.plan_id = $2 AND c.decision = d.number
 WHERE d.space_id = $1 AND d.plan_id = $2 AND d.status IN ('stale', 'failed') AND c.table_name = 'nodes'
"""


async def read(db: Transaction, only: Sequence[UUID] | None = None) -> KnownConcepts:
    """Everything that duplicates are found by; of all living concepts, or of some."""
    rows = await db.fetch(CONCEPTS, only)
    ids: list[UUID] = [row["id"] for row in rows]
    home = _homes(ids, await db.fetch(MERGED))
    energy, weight = await _activity(db, home, len(ids))
    types, metadata = [row["subtype"] for row in rows], [_metadata(row) for row in rows]
    columns = ConceptColumns.of(
        ids=ids,
        names=[row["name"] for row in rows],
        types=types,
        vectors=await _vectors(db, ids, only),
        has_text=np.array([row["text"] is not None for row in rows], np.bool_),
        metadata=metadata,
        created=np.array([row["created_at"].timestamp() for row in rows], np.float64),
        energy=energy,
        degree=_placed(home, await db.fetch(DEGREES), "links", len(ids)),
        weight=weight,
        protected=np.array([row["protected"] for row in rows], np.bool_),
        aliases=await _aliases(db, home),
        texts=[row["text"] for row in rows],
    )
    return KnownConcepts(
        columns=columns,
        ids=ids,
        types=types,
        metadata=metadata,
        versions=[row["version"] for row in rows],
        created_at=[row["created_at"] for row in rows],
        updated_at=[row["updated_at"] for row in rows],
    )


def _metadata(row: asyncpg.Record) -> dict[str, Any]:
    return dict(row["metadata"]) if row["metadata"] else {}


def _homes(living: Sequence[UUID], merged: Iterable[asyncpg.Record]) -> dict[UUID, int]:
    """For each concept, living or merged, the place of the living one that it is now part of."""
    home = {id_: index for index, id_ in enumerate(living)}
    into = {row["id"]: row["merged_into"] for row in merged}
    for id_ in into:
        path = [id_]
        while path[-1] in into and path[-1] not in home and len(path) <= len(into):
            path.append(into[path[-1]])
        if (index := home.get(path[-1])) is not None:
            home.update(dict.fromkeys(path, index))
    return home


async def _activity(
    db: Transaction, home: Mapping[UUID, int], count: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The summed energy and the mean weight of each, over all it is made of."""
    energy, weight, weighed = np.zeros(count), np.zeros(count), np.zeros(count)
    for row in await db.fetch(ACTIVITY):
        if (index := home.get(row["node_id"])) is None:
            continue
        energy[index] += row["energy"] or 0.0
        if row["base_weight"] is not None:
            weight[index] += row["base_weight"]
            weighed[index] += 1
    return energy, weight / np.maximum(weighed, 1)


def _placed(home: Mapping[UUID, int], rows: Iterable[asyncpg.Record], column: str, count: int) -> NDArray[np.int64]:
    placed = np.zeros(count, np.int64)
    for row in rows:
        if (index := home.get(row["id"])) is not None:
            placed[index] += row[column]
    return placed


async def _aliases(db: Transaction, home: Mapping[UUID, int]) -> dict[int, list[str]]:
    aliases: defaultdict[int, list[str]] = defaultdict(list)
    for row in await db.fetch(NAMES):
        if (index := home.get(row["node_id"])) is not None:
            aliases[index].append(row["alias"])
    return dict(aliases)


async def _vectors(db: Transaction, ids: Sequence[UUID], only: Sequence[UUID] | None) -> NDArray[np.float32] | None:
    """The vectors of the model that search uses; a row of zeros where there is none."""
    used = await db.fetchrow(MODEL)
    if used is None or not ids:
        return None
    rows = await copied(db, row_with_vector(used["dim"]), VECTORS, used["model"], used["dim"], only)
    row_of = {id_.bytes: at for at, id_ in enumerate(ids)}
    at = np.fromiter((row_of.get(id_.tobytes(), -1) for id_ in rows["id"]), np.int64, len(rows))
    matrix = np.zeros((len(ids), used["dim"]), np.float32)
    matrix[at[at >= 0]] = rows["vector"][at >= 0].astype(np.float32)
    return matrix


async def changed_since(db: Transaction, moment: datetime) -> set[UUID]:
    return {row["id"] for row in await db.fetch(CHANGED, moment)}


async def last_pass(db: Transaction, policy: str, options: Mapping[str, Any]) -> LastPass | None:
    last = await db.fetchrow(LAST_PASS, policy, json.dumps(options))
    if last is None:
        return None
    if last["again"] is None:
        return LastPass(at=last["created_at"], again=None)
    undone = await db.fetch(UNDONE, last["id"])
    return LastPass(at=last["created_at"], again=[*map(UUID, last["again"]), *(row["row_id"] for row in undone)])
