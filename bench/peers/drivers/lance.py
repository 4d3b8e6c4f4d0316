"""LanceDB: one table, searched by words and vectors together, fused by its own reranker."""

from collections.abc import Iterable, Sequence

import lancedb
import pyarrow as pa
from lancedb.rerankers import RRFReranker

from bench.peers.drivers.driver import DIM, Driver, Memory

SCHEMA = pa.schema([("text", pa.string()), ("vector", pa.list_(pa.float32(), DIM))])


class Peer(Driver):
    def open(self) -> None:
        base = lancedb.connect(self.directory)
        is_new = "memories" not in base.table_names()
        self.table = base.create_table("memories", schema=SCHEMA, exist_ok=True)
        if is_new:
            self.table.create_fts_index("text")

    def add(self, memory: Memory, user: str) -> None:
        texts = [memory.text]
        self.table.add(
            [{"text": text, "vector": vector} for text, vector in zip(texts, self.embed(texts), strict=True)]
        )

    def load(self, memories: Sequence[Memory], user: str) -> None:
        texts = [memory.text for memory in memories]
        self.table.add(
            [{"text": text, "vector": vector} for text, vector in zip(texts, self.embed(texts), strict=True)]
        )
        self.table.optimize()

    def search(self, question: str, user: str, limit: int) -> Iterable[str]:
        wanted = self.table.search(query_type="hybrid").vector(self.embed([question])[0]).text(question)
        return [row["text"] for row in wanted.rerank(RRFReranker()).limit(limit).to_list()]
