"""mem0 without a language model (`infer=False`), over the local store that the variant names; vectors by loopback HTTP.

Over qdrant it searches by words too, with a list of stop words that fastembed would fetch from a model hub: it is given
one here.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.peers.drivers.driver import DIM, Driver, Memory
from bench.peers.drivers.loopback import serve_embedder

STOP_WORDS = """
a about after again all also am an and any are as at be because been before being but by can could did do does doing
down during each few for from further had has have having he her here hers him his how i if in into is it its itself
just me more most my no nor not now of off on once only or other our out over own same she should so some such than
that the their them then there these they this those through to too under until up very was we were what when where
which while who whom why will with would you your
"""


def give_stop_words(cache: Path) -> None:
    for name in ("bm25", "fast-bm25"):
        (cache / name).mkdir(parents=True, exist_ok=True)
        (cache / name / "english.txt").write_text("\n".join(STOP_WORDS.split()))
    os.environ["FASTEMBED_CACHE_PATH"] = str(cache)


class Peer(Driver):
    def open(self) -> None:
        give_stop_words(Path.home() / "fastembed")
        os.environ["MEM0_DIR"] = str(self.directory / "mem0")
        os.environ["OPENAI_API_KEY"] = "none is needed"
        from mem0 import Memory as Mem0

        self.memory = Mem0.from_config(
            {
                "vector_store": {"provider": self.variant, "config": self.store()},
                "embedder": {
                    "provider": "openai",
                    "config": {
                        "model": "minilm",
                        "embedding_dims": DIM,
                        "openai_base_url": serve_embedder(self.embed),
                    },
                },
                "history_db_path": str(self.directory / "history.db"),
            }
        )

    def store(self) -> dict[str, Any]:
        where: dict[str, Any] = {"collection_name": "memories", "path": str(self.directory / self.variant)}
        match self.variant:
            case "qdrant":
                return where | {"embedding_model_dims": DIM, "on_disk": True}
            case "faiss":
                return where | {"embedding_model_dims": DIM, "distance_strategy": "cosine"}
            case _:
                return where

    def add(self, memory: Memory, user: str) -> None:
        self.memory.add(memory.text, user_id=user, infer=False)

    def load(self, memories: Sequence[Memory], user: str) -> None:
        messages = [{"role": "user", "content": memory.text} for memory in memories]
        self.memory.add(messages, user_id=user, infer=False)

    def search(self, question: str, user: str, limit: int) -> Iterable[str]:
        return [
            hit["memory"] for hit in self.memory.search(question, filters={"user_id": user}, top_k=limit)["results"]
        ]
