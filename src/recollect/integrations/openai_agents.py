"""A session for the OpenAI Agents SDK: every item of a conversation is kept, and what was said can be recalled.

from agents import Agent, Runner
from recollect import AsyncRecollect
from recollect.integrations.openai_agents import RecollectSession

async with AsyncRecollect() as memory:
    await Runner.run(agent, "Hello", session=RecollectSession("linh", memory))
"""

from functools import partial
from typing import Any, cast

from recollect.integrations import lacking
from recollect.integrations.calls import Calls, Memory
from recollect.integrations.conversation import Conversation

try:
    from agents.items import TResponseInputItem
    from agents.memory.session import SessionABC
    from agents.memory.session_settings import SessionSettings, resolve_session_limit
except ModuleNotFoundError as missing:
    raise lacking("openai-agents", missing) from missing

OF = "openai_agents"


class RecollectSession(SessionABC):
    """The session of that id: a thread of the memory's space. Taking back and clearing archive."""

    def __init__(self, session_id: str, memory: Memory, *, session_settings: SessionSettings | None = None) -> None:
        self.session_id = session_id
        self.session_settings = session_settings
        self._calls = Calls(memory)
        self._conversation = Conversation(self._calls.engine, session_id, of=OF, reading=said)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        most = resolve_session_limit(limit, self.session_settings)
        if most is not None and most <= 0:
            return []
        return cast("list[TResponseInputItem]", await self._calls.acall(partial(self._conversation.turns, most)))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        await self._calls.acall(partial(self._conversation.add, items))

    async def pop_item(self) -> TResponseInputItem | None:
        return cast("TResponseInputItem | None", await self._calls.acall(self._conversation.pop))

    async def clear_session(self) -> None:
        await self._calls.acall(self._conversation.clear)


def said(item: Any) -> str:
    """What a message says; tool calls, their output and reasoning are kept, and not searched."""
    content = item.get("content") if item.get("type", "message") == "message" else None
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))
