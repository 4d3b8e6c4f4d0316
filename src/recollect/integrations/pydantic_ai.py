"""Pydantic AI: a toolset with which an agent recalls, remembers and forgets, and the instructions when to.

from pydantic_ai import Agent
from recollect import AsyncRecollect
from recollect.integrations.pydantic_ai import RecollectToolset

async with AsyncRecollect() as memory:
    await Agent("openai:gpt-5", toolsets=[RecollectToolset(memory)]).run("What do I drink?")
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from recollect.doors.mcp.guide import INSTRUCTIONS
from recollect.doors.mcp.in_tools import in_tools
from recollect.errors import DuplicateText, ForgottenText, RecollectError
from recollect.integrations import lacking
from recollect.integrations.calls import Calls, Memory
from recollect.model import NodeFilter

try:
    from pydantic_ai import FunctionToolset, ModelRetry
except ModuleNotFoundError as missing:
    raise lacking("pydantic-ai", missing) from missing

T = TypeVar("T")


class RecollectToolset(FunctionToolset[Any]):
    """The tools `recall`, `remember`, `forget` and `restore` over a memory; `limit` is the most that a recall gives."""

    def __init__(self, memory: Memory, *, limit: int = 10, thread: str | None = None, id: str = "recollect") -> None:
        self._calls, self._limit, self._thread = Calls(memory), limit, thread
        self._engine = self._calls.engine
        super().__init__([self.recall, self.remember, self.forget, self.restore], id=id, instructions=INSTRUCTIONS)

    async def recall(self, question: str) -> str:
        """Search memory. Use it before you answer what may have come up before: people, preferences, decisions.

        Args:
            question: What you want to know, in plain words.
        """
        node_filter = NodeFilter(excluded=False)
        recalled = await self._ask(partial(self._engine.recall, question, limit=self._limit, wanted=node_filter))
        lines = [f"{hit.node.id}  {hit.node.created_at:%Y-%m-%d}  {hit.node.text}" for hit in recalled]
        return "\n".join(lines) or "Nothing is remembered about that."

    async def remember(self, text: str) -> str:
        """Remember one fact, preference, decision or lesson for later conversations. Not secrets or small talk.

        Args:
            text: A full sentence that can be understood on its own a year from now.
        """
        try:
            node = await self._ask(partial(self._engine.add, text, thread=self._thread))
        except ForgottenText as twin:
            return in_tools(twin.message)
        except DuplicateText as twin:
            return f"Remembered already, as {twin.existing_id}."
        return f"Remembered as {node.id}."

    async def forget(self, id: str, reason: str) -> str:
        """Archive what is wrong or outdated: out of recall, but kept; restore brings it back.

        Args:
            id: The id of the memory, as recall shows it.
            reason: Why it no longer holds.
        """
        node = await self._ask(partial(self._engine.forget, id, reason=reason))
        return f"Archived {node.id}: out of recall, but kept."

    async def restore(self, id: str) -> str:
        """Bring something archived back into recall.

        Args:
            id: The id of the memory.
        """
        node = await self._ask(partial(self._engine.restore, id))
        return f"{node.id} can be recalled again."

    async def _ask(self, work: Callable[[], Awaitable[T]]) -> T:
        """What a model asked wrongly, it is told and may try again."""
        try:
            return await self._calls.acall(work)
        except DuplicateText:
            raise
        except RecollectError as problem:
            raise ModelRetry(in_tools(str(problem))) from problem
