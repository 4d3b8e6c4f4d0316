"""LangGraph's SQLite store: values below a namespace, with an index over their text."""

from collections.abc import Iterable, Sequence
from uuid import uuid4

from bench.peers.drivers.driver import DIM, Driver, Memory
from bench.peers.drivers.extensions import allow_extensions

allow_extensions()

from langgraph.store.base import PutOp  # noqa: E402
from langgraph.store.sqlite import SqliteStore  # noqa: E402


class Peer(Driver):
    def open(self) -> None:
        index = {"dims": DIM, "embed": self.embed.lists, "fields": ["text"]}
        self.made = SqliteStore.from_conn_string(str(self.directory / "store.db"), index=index)
        self.store = self.made.__enter__()
        self.store.setup()

    def add(self, memory: Memory, user: str) -> None:
        self.store.put(("memories", user), str(uuid4()), {"text": memory.text})

    def load(self, memories: Sequence[Memory], user: str) -> None:
        self.store.batch([PutOp(("memories", user), str(uuid4()), {"text": memory.text}) for memory in memories])

    def search(self, question: str, user: str, limit: int) -> Iterable[str]:
        return [hit.value["text"] for hit in self.store.search(("memories", user), query=question, limit=limit)]

    def close(self) -> None:
        self.made.__exit__(None, None, None)
