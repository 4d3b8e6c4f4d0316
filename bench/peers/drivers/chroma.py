"""Chroma, kept on disk: a collection with vectors given."""

from collections.abc import Iterable, Sequence
from uuid import uuid4

import chromadb

from bench.peers.drivers.driver import Driver, Memory


class Peer(Driver):
    def open(self) -> None:
        client = chromadb.PersistentClient(path=str(self.directory))
        self.kept = client.get_or_create_collection(
            "memories", embedding_function=None, configuration={"hnsw": {"space": "cosine"}}
        )

    def add(self, memory: Memory, user: str) -> None:
        self.load([memory], user)

    def load(self, memories: Sequence[Memory], user: str) -> None:
        texts = [memory.text for memory in memories]
        self.kept.add(ids=[str(uuid4()) for _ in texts], documents=texts, embeddings=self.embed(texts))

    def search(self, question: str, user: str, limit: int) -> Iterable[str]:
        found = self.kept.query(query_embeddings=self.embed([question]), n_results=limit, include=["documents"])
        return list(found["documents"][0])
