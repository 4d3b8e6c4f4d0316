"""Pages: batches that come in, the pages there are, their links and aliases. Changing them is changes.py's."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

import numpy as np

from recollect.errors import Conflict, NotFound
from recollect.pages.rules.decisions import MergePlan
from recollect.pages.rules.page import PageFinding, WikiPage, normal_name
from recollect.pages.rules.stored import SOURCE, PageBatch, StoredPage, node_from, page_from, plan_from, planned_row
from recollect.ports import Vectors
from recollect.store.database import Transaction

NO_PAGE = "There is no page {}: `recollect pages list` shows them."

PAGES = f"""
SELECT id, subtype, name, text, checksum, metadata, status, version, updated_at, source_id FROM nodes
 WHERE space_id = $1 AND kind = 'page' AND source = '{SOURCE}' AND source_id IS NOT NULL AND status <> 'merged'
   AND ($2::uuid[] IS NULL OR id = ANY($2)) ORDER BY source_id
"""
EDGES = """
SELECT e.id, e.source, e.relation, e.target FROM edges e
  JOIN nodes n ON n.space_id = $1 AND n.id = e.source AND n.kind = 'page'
 WHERE e.space_id = $1 AND e.status = 'active'
"""
# A vector counts while it is that of the text as it is: none is waiting to be made anew.
VECTORS = """
SELECT e.node_id, e.vector FROM embeddings e
 WHERE e.space_id = $1 AND e.kind = 'page' AND e.model = $2 AND NOT EXISTS (
       SELECT FROM embedding_jobs j WHERE j.space_id = $1 AND j.node_id = e.node_id AND j.model = $2
          AND j.status <> 'completed')
"""
INCOMING = """
INSERT INTO incoming_pages (space_id, batch, page_id, place, path, text, planned)
SELECT $1, $2, * FROM unnest($3::text[], $4::int[], $5::text[], $6::text[], $7::jsonb[]) RETURNING 1
"""
# What became of each page of a batch, over all the plans that were made for it, the latest last.
FATES = """
SELECT d.factors->>'page_id' AS page_id, d.factors->>'result' AS result, d.status, d.note
  FROM plans p JOIN decisions d ON d.space_id = $1 AND d.plan_id = p.id
 WHERE p.space_id = $1 AND p.policy = 'merge_pages' AND p.options->>'batch' = $2
 ORDER BY p.created_at, d.number
"""
MEANT = f"""
SELECT DISTINCT n.id FROM nodes n LEFT JOIN aliases a ON a.space_id = $1 AND a.node_id = n.id AND a.kind = 'page'
 WHERE n.space_id = $1 AND n.kind = 'page' AND n.source = '{SOURCE}' AND n.status = 'active' AND
"""
MEANINGS = (
    "n.source_id = $2",
    "n.metadata->>'path' = $2",
    "lower(replace(n.source_id, '_', ' ')) = $2",
    "lower(replace(n.name, '_', ' ')) = $2",
    "lower(replace(a.alias, '_', ' ')) = $2",
)


# -- what comes in


async def save_batch(db: Transaction, batch: PageBatch, about: Mapping[str, Any], now: datetime) -> None:
    """Keep pages as they came in, with what is planned for each."""
    document = {**about, "label": batch.label, "findings": [asdict(finding) for finding in batch.findings]}
    await db.run(
        "INSERT INTO page_batches (space_id, id, about, created_at) VALUES ($1, $2, $3, $4)",
        batch.id,
        json.dumps(document),
        now,
    )
    rows = [
        (id, number, node.page.path, node.page.raw, json.dumps(planned_row(node, subgraph)))
        for number, (id, node, subgraph) in enumerate(_nodes(batch.plan))
        if node.page is not None
    ]
    if rows:
        await db.run(INCOMING, batch.id, *zip(*rows, strict=True))


def _nodes(plan: MergePlan) -> list[tuple[str, Any, Any]]:
    return [(id, node, subgraph) for subgraph in plan.subgraphs for id, node in subgraph.nodes.items()]


async def get_batch(
    db: Transaction,
    batch: UUID,
    page_ids: Sequence[str] | None = None,
    *,
    with_texts: bool = True,
) -> PageBatch:
    """A batch, or some of its pages; without their texts where only what is planned is asked."""
    about = await db.fetchval("SELECT about FROM page_batches WHERE space_id = $1 AND id = $2", batch)
    if about is None:
        raise NotFound(f"There is no batch of pages {batch}: `recollect pages import FOLDER` makes one.")
    document = _document(about)
    text = "text" if with_texts else "'' AS text"
    rows = await db.fetch(
        f"""SELECT page_id, path, {text}, planned FROM incoming_pages WHERE space_id = $1 AND batch = $2
              AND ($3::text[] IS NULL OR page_id = ANY($3)) ORDER BY place""",
        batch,
        page_ids,
    )
    nodes = [(node_from(_incoming(row), planned), planned) for row in rows for planned in [_document(row["planned"])]]
    findings = tuple(PageFinding(**finding) for finding in document.get("findings", ()))
    return PageBatch(id=batch, label=document.get("label", ""), plan=plan_from(nodes), findings=findings)


def _incoming(row: Any) -> WikiPage:
    planned = _document(row["planned"])
    return page_from(id=row["page_id"], type=planned["type"], name=planned["name"], path=row["path"], text=row["text"])


def _document(value: Any) -> dict[str, Any]:
    return dict(json.loads(value) if isinstance(value, str) else value)


async def fates(db: Transaction, batch: UUID) -> list[Mapping[str, Any]]:
    return [dict(row) for row in await db.fetch(FATES, str(batch))]


# -- what is there


async def all_pages(db: Transaction, ids: Sequence[UUID] | None = None) -> list[StoredPage]:
    """The pages there are, archived ones too; or some of them."""
    rows = await db.fetch(PAGES, None if ids is None else list(ids))
    return [_stored(row) for row in rows]


def _stored(row: Any) -> StoredPage:
    metadata = _document(row["metadata"])
    page = page_from(
        id=row["source_id"],
        type=row["subtype"],
        name=row["name"],
        path=metadata.get("path") or f"{row['name']}.md",
        text=row["text"],
    )
    columns = {name: row[name] for name in ("subtype", "name", "text", "checksum", "status", "version")}
    values = {**columns, "metadata": metadata, "updated_at": row["updated_at"].isoformat()}
    return StoredPage(node_id=row["id"], page=page, row=values)


async def edges(db: Transaction) -> dict[tuple[UUID, str, UUID], UUID]:
    """The living edges that begin at pages, by source, relation and target."""
    rows = await db.fetch(EDGES)
    return {(row["source"], row["relation"], row["target"]): row["id"] for row in rows}


async def aliases(db: Transaction) -> set[tuple[str, UUID]]:
    """The aliases of pages, each with the node it means."""
    rows = await db.fetch("SELECT alias, node_id FROM aliases WHERE space_id = $1 AND kind = 'page'")
    return {(row["alias"], row["node_id"]) for row in rows}


async def vectors(db: Transaction, model: str) -> dict[UUID, Vectors]:
    """The vectors of the pages that have one of this model, of the text as it is."""
    rows = await db.fetch(VECTORS, model)
    return {row["node_id"]: row["vector"].to_numpy().astype(np.float32) for row in rows}


async def meant(db: Transaction, reference: str) -> UUID | None:
    """The living page that a reference names: its id, its path, its name however written, an alias of it."""
    for meaning in MEANINGS:
        name = normal_name(reference) if "lower" in meaning else reference
        rows = await db.fetch(f"{MEANT} {meaning} LIMIT 2", name)
        if len(rows) > 1:
            raise Conflict(f"{reference} is the name of several pages: say its type too, as in Principle:{reference}.")
        if rows:
            return UUID(str(rows[0]["id"]))
    return None
