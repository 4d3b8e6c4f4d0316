"""LlamaIndex with what it keeps by itself: a vector index, written to its directory after each insertion."""

from collections.abc import Iterable, Sequence
from typing import Any

from llama_index.core import StorageContext, VectorStoreIndex, load_index_from_storage
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.schema import TextNode

from bench.peers.drivers.driver import Driver, Memory


class Given(BaseEmbedding):
    """The embedder that all are given, as LlamaIndex takes one."""

    table: Any  # Embedder; pydantic wants to know no more

    def _get_text_embedding(self, text: str) -> list[float]:
        return list(self.table.lists([text])[0])

    def _get_query_embedding(self, query: str) -> list[float]:
        return list(self.table.lists([query])[0])

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._get_query_embedding(query)


class Peer(Driver):
    def open(self) -> None:
        model = Given(table=self.embed)
        if (self.directory / "docstore.json").exists():
            kept = StorageContext.from_defaults(persist_dir=str(self.directory))
            self.index: Any = load_index_from_storage(kept, embed_model=model)
        else:
            self.index = VectorStoreIndex([], embed_model=model)

    def add(self, memory: Memory, user: str) -> None:
        self.load([memory], user)

    def load(self, memories: Sequence[Memory], user: str) -> None:
        self.index.insert_nodes([TextNode(text=memory.text) for memory in memories])
        self.index.storage_context.persist(persist_dir=str(self.directory))

    def search(self, question: str, user: str, limit: int) -> Iterable[str]:
        return [hit.node.get_content() for hit in self.index.as_retriever(similarity_top_k=limit).retrieve(question)]
