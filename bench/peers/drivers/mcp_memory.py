"""mcp-memory-service: its SQLite-vec storage, searched by words and vectors together; vectors over loopback HTTP.

Its refusing of texts that are alike is off: it is on by default, and would keep a share of every set out of the store.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from bench.peers.drivers.driver import Driver, Memory
from bench.peers.drivers.extensions import allow_extensions
from bench.peers.drivers.loopback import serve_embedder


class Peer(Driver):
    def open(self) -> None:
        allow_extensions()
        os.environ["MCP_EXTERNAL_EMBEDDING_URL"] = f"{serve_embedder(self.embed)}/embeddings"
        os.environ["MCP_SEMANTIC_DEDUP_ENABLED"] = "false"
        os.environ["MCP_MEMORY_BASE_DIR"] = str(self.directory)
        from mcp_memory_service.models.memory import Memory as Kept
        from mcp_memory_service.storage.sqlite_vec import SqliteVecMemoryStorage
        from mcp_memory_service.utils.hashing import generate_content_hash

        self.made: Callable[[str], Any] = lambda text: Kept(content=text, content_hash=generate_content_hash(text))
        self.loop = asyncio.new_event_loop()
        self.storage = SqliteVecMemoryStorage(str(self.directory / "memories.db"))
        self.loop.run_until_complete(self.storage.initialize())

    def add(self, memory: Memory, user: str) -> None:
        stored, why = self.loop.run_until_complete(self.storage.store(self.made(memory.text)))
        if not stored:
            raise RuntimeError(why)

    def load(self, memories: Sequence[Memory], user: str) -> None:
        self.loop.run_until_complete(self.storage.store_batch([self.made(memory.text) for memory in memories]))

    def search(self, question: str, user: str, limit: int) -> Iterable[str]:
        found = self.loop.run_until_complete(self.storage.retrieve_hybrid(question, n_results=limit))
        return [hit.memory.content for hit in found]

    def close(self) -> None:
        self.loop.run_until_complete(self.storage.close())
