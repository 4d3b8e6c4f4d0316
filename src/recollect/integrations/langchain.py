"""LangChain: a retriever that recalls, and the messages of a chat kept as memories.

from recollect import Recollect
from recollect.integrations.langchain import RecollectChatMessageHistory, RecollectRetriever

memory = Recollect()
documents = RecollectRetriever(memory=memory, k=5).invoke("what does Linh drink?")
history = RecollectChatMessageHistory("linh", memory)
"""

from collections.abc import Sequence
from functools import partial
from typing import Any

from pydantic import ConfigDict

from recollect.doors.python import Recollect
from recollect.engine.engine import Engine
from recollect.integrations import lacking
from recollect.integrations.calls import Calls, Memory
from recollect.integrations.conversation import Conversation
from recollect.model import Hit, Mode, NodeFilter, Recall

try:
    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
    from langchain_core.chat_history import BaseChatMessageHistory
    from langchain_core.documents import Document
    from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
    from langchain_core.retrievers import BaseRetriever
except ModuleNotFoundError as missing:
    raise lacking("langchain", missing) from missing

OF = "langchain"


class RecollectRetriever(BaseRetriever):
    """What a memory knows about a question, as documents; each carries its id, score, relevance and time."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    memory: Recollect | Engine
    k: int = 5
    mode: Mode = Mode.NEUTRAL
    wanted: NodeFilter | None = None

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        calls = Calls(self.memory)
        return [as_document(hit) for hit in calls.call(partial(self._recall, calls.engine, query))]

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        calls = Calls(self.memory)
        return [as_document(hit) for hit in await calls.acall(partial(self._recall, calls.engine, query))]

    async def _recall(self, engine: Engine, query: str) -> Recall:
        return await engine.recall(query, limit=self.k, mode=self.mode, wanted=self.wanted)


class RecollectChatMessageHistory(BaseChatMessageHistory):
    """The messages of a chat, in a thread of the memory's space; `clear` archives them."""

    def __init__(self, session_id: str, memory: Memory) -> None:
        self.session_id = session_id
        self._calls = Calls(memory)
        self._conversation = Conversation(self._calls.engine, session_id, of=OF, reading=said)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]  # as the base class's own documentation does it
        return messages_from_dict(self._calls.call(self._conversation.turns))

    async def aget_messages(self) -> list[BaseMessage]:
        return messages_from_dict(await self._calls.acall(self._conversation.turns))

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        self._calls.call(partial(self._conversation.add, [message_to_dict(message) for message in messages]))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        await self._calls.acall(partial(self._conversation.add, [message_to_dict(message) for message in messages]))

    def clear(self) -> None:
        self._calls.call(self._conversation.clear)

    async def aclear(self) -> None:
        await self._calls.acall(self._conversation.clear)


def as_document(hit: Hit) -> Document:
    node = hit.node
    values = {"score": hit.score, "relevance": hit.relevance, "created_at": node.created_at.isoformat()}
    return Document(id=str(node.id), page_content=node.text or node.name or "", metadata={**node.metadata, **values})


def said(turn: Any) -> str:
    """What a person or the model says; what tools say is kept, and not searched."""
    if turn["type"] not in ("human", "ai", "chat"):
        return ""
    return str(messages_from_dict([turn])[0].text)
