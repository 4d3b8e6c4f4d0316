"""LlamaIndex: a retriever, and a memory block that keeps what leaves the short-term memory and recalls what fits.

from llama_index.core.memory import Memory
from recollect import AsyncRecollect
from recollect.integrations.llama_index import RecollectMemoryBlock, RecollectNodeRetriever

async with AsyncRecollect() as memory:
    chat = Memory.from_defaults(memory_blocks=[RecollectMemoryBlock(memory=memory)])
"""

from functools import partial
from typing import Any

from recollect.doors.python import Recollect
from recollect.engine.engine import Engine
from recollect.errors import KNOWN_TEXT, InvalidInput
from recollect.integrations import lacking
from recollect.integrations.calls import Calls, Memory
from recollect.model import ContentType, Hit, Mode, NewMemory, NodeFilter, Recall

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.llms.types import ChatMessage, MessageRole
    from llama_index.core.memory import BaseMemoryBlock
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ModuleNotFoundError as missing:
    raise lacking("llama-index", missing) from missing

SAID_BY = (MessageRole.USER, MessageRole.ASSISTANT)


class RecollectNodeRetriever(BaseRetriever):
    """What a memory knows about a question, as nodes with their scores."""

    def __init__(
        self, memory: Memory, *, top_k: int = 5, mode: Mode = Mode.NEUTRAL, wanted: NodeFilter | None = None
    ) -> None:
        super().__init__()
        self._calls = Calls(memory)
        self._recall = partial(self._calls.engine.recall, limit=top_k, mode=mode, wanted=wanted)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [as_node(hit) for hit in self._calls.call(partial(self._recall, query_bundle.query_str))]

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [as_node(hit) for hit in await self._calls.acall(partial(self._recall, query_bundle.query_str))]


class RecollectMemoryBlock(BaseMemoryBlock[str]):
    """Keeps the messages that the short-term memory lets go of, and gives back those that the last question is about.

    What else is known in the space is recalled with them. `thread` is where the messages go; the session's id, else.
    """

    name: str = "memories"
    description: str | None = "What was said earlier, and what else is remembered."
    priority: int = 1
    memory: Recollect | Engine
    limit: int = 8
    budget_tokens: int | None = None
    thread: str | None = None

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        asked = next(
            (message.content for message in reversed(messages or []) if message.role is MessageRole.USER), None
        )
        if not asked or not asked.strip():
            return ""
        calls = Calls(self.memory)
        hits: Recall = await calls.acall(
            partial(calls.engine.recall, asked, limit=self.limit, budget_tokens=self.budget_tokens)
        )
        return "\n".join(f"- {hit.node.created_at:%Y-%m-%d}: {hit.node.text}" for hit in hits)

    async def _aput(self, messages: list[ChatMessage]) -> None:
        new = [
            self._as_memory(message)
            for message in messages
            if message.role in SAID_BY and (message.content or "").strip()
        ]
        calls = Calls(self.memory)
        added = await calls.acall(partial(calls.engine.add_many, new))
        for refused in added.refused:
            if refused.code not in KNOWN_TEXT:  # what is known is kept once
                raise InvalidInput(refused.message)

    def _as_memory(self, message: ChatMessage) -> NewMemory:
        session = message.additional_kwargs.get("session_id")
        return NewMemory(
            text=message.content or "",
            subtype=ContentType.CONVERSATION,
            metadata={"extra": {"role": message.role.value}},
            thread=self.thread or (str(session) if session else None),
        )


def as_node(hit: Hit) -> NodeWithScore:
    node = hit.node
    metadata = {**node.metadata, "relevance": hit.relevance, "created_at": node.created_at.isoformat()}
    return NodeWithScore(
        node=TextNode(id_=str(node.id), text=node.text or node.name or "", metadata=metadata), score=hit.score
    )
