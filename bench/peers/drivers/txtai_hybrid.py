"""txtai: an embeddings database with content and words, written to its directory after each insertion."""

from collections.abc import Iterable, Sequence

from txtai import Embeddings

from bench.peers.drivers.driver import Driver, Memory


class Peer(Driver):
    def open(self) -> None:
        self.kept = str(self.directory / "index")
        settings = {
            "method": "external",
            "transform": lambda texts: self.embed(texts),
            "content": True,
            "hybrid": True,
            "autoid": "uuid4",
        }
        self.base = Embeddings(settings)
        if self.base.exists(self.kept):
            self.base.load(self.kept, config=settings)

    def add(self, memory: Memory, user: str) -> None:
        self.load([memory], user)

    def load(self, memories: Sequence[Memory], user: str) -> None:
        self.base.upsert([memory.text for memory in memories])
        self.base.save(self.kept)

    def search(self, question: str, user: str, limit: int) -> Iterable[str]:
        return [hit["text"] for hit in self.base.search(question, limit)]

    def close(self) -> None:
        self.base.close()
