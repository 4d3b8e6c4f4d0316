"""Recollect by its Python door, each user a space of their own. `bare`: the texts alone, without thread and time."""

import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from bench.peers.drivers.driver import Driver, Embedder, Memory
from recollect import NewMemory, Recollect
from recollect.errors import NotFound
from recollect.ports import Vectors
from recollect.providers.minilm import MiniLMEmbedder


class Known(MiniLMEmbedder):
    """The model as it ships; what is in the table that all peers are given is taken from there."""

    def __init__(self, table: Embedder) -> None:
        super().__init__()
        self._table = table

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if all(text in self._table.known for text in texts):
            return self._table(texts)
        return await super().embed(texts)


class Peer(Driver):
    def open(self) -> None:
        self.memory = Recollect(home=self.directory / "home")
        self.memory._engine.core.embedders["minilm"] = Known(self.embed)
        self.spaces: dict[str, Recollect] = {}

    def add(self, memory: Memory, user: str) -> None:
        self.space(user).add(memory.text, **self.told(memory))

    def load(self, memories: Sequence[Memory], user: str) -> float:
        """Found by their words when they are stored, by their meaning when the call returns."""
        stored: list[float] = []
        made = [NewMemory(text=memory.text, **self.told(memory)) for memory in memories]
        self.space(user).add_many(made, progress=lambda _: stored.append(time.perf_counter()))
        return stored[-1]

    def told(self, memory: Memory) -> dict[str, Any]:
        if self.variant == "bare" or memory.created_at is None:
            return {}
        return {"thread": memory.thread, "created_at": datetime.fromisoformat(memory.created_at)}

    def search(self, question: str, user: str, limit: int) -> Iterable[str]:
        return [hit.node.text or "" for hit in self.space(user).recall(question, limit=limit, weak=True)]

    def space(self, user: str) -> Recollect:
        if user not in self.spaces:
            try:
                self.spaces[user] = self.memory.in_space(user)
            except NotFound:
                self.memory.add_space(user)
                self.spaces[user] = self.memory.in_space(user)
        return self.spaces[user]

    def processes(self) -> list[int]:
        server = self.directory / "home" / "postgres" / "data" / "postmaster.pid"
        return [*super().processes(), int(server.read_text().split()[0])]

    def close(self) -> None:
        self.memory.close()
