"""Samples of what is remembered, to measure a calibration on."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.store.database import Transaction

Matrix = NDArray[np.float32]

SOME = """
SELECT n.id, n.text, e.vector FROM nodes n JOIN embeddings e ON e.space_id = $1 AND e.node_id = n.id AND e.model = $2
   AND e.passage = 0
 WHERE n.space_id = $1 AND n.recallable AND n.text IS NOT NULL ORDER BY random() LIMIT $3
"""

NEIGHBOURS = """
SELECT a.vector AS one, b.vector AS other
  FROM nodes n JOIN nodes m ON m.space_id = $1 AND m.thread = n.thread AND m.position = n.position + 1
  JOIN embeddings a ON a.space_id = $1 AND a.node_id = n.id AND a.model = $2 AND a.passage = 0
  JOIN embeddings b ON b.space_id = $1 AND b.node_id = m.id AND b.model = $2 AND b.passage = 0
 WHERE n.space_id = $1 AND n.thread IS NOT NULL AND n.recallable AND m.recallable ORDER BY random() LIMIT $3
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Some:
    """Some memories: their texts, and their vectors row by row."""

    texts: list[str]
    vectors: Matrix


async def some(db: Transaction, *, model: str, most: int) -> Some:
    """Memories drawn at random."""
    rows = await db.fetch(SOME, model, most)
    return Some(texts=[row["text"] for row in rows], vectors=_matrix([row["vector"] for row in rows]))


async def neighbours(db: Transaction, *, model: str, most: int) -> tuple[Matrix, Matrix]:
    """Pairs of memories that follow each other in a thread."""
    rows = await db.fetch(NEIGHBOURS, model, most)
    return _matrix([row["one"] for row in rows]), _matrix([row["other"] for row in rows])


def _matrix(vectors: list[object]) -> Matrix:
    rows = [vector.to_numpy().astype(np.float32) for vector in vectors]  # type: ignore[attr-defined]
    return np.stack(rows) if rows else np.zeros((0, 1), dtype=np.float32)
