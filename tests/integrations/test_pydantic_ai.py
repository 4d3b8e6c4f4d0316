"""Pydantic AI: an agent with a model that does as it is told, and a real memory."""

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from recollect import AsyncRecollect, Recollect
from recollect.integrations.pydantic_ai import RecollectToolset
from recollect.model import Status
from recollect.settings import Settings
from tests.conftest import fresh_space


def does(*calls: tuple[str, dict[str, Any]]) -> tuple[FunctionModel, list[str], list[AgentInfo]]:
    """A model that calls these tools one after the other, and what it hears."""
    heard: list[str] = []
    infos: list[AgentInfo] = []

    def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        infos.append(info)
        last = messages[-1]
        assert isinstance(last, ModelRequest)
        heard.extend(str(part.content) for part in last.parts if isinstance(part, ToolReturnPart | RetryPromptPart))
        done = len(heard)
        return ModelResponse(parts=[ToolCallPart(*calls[done]) if done < len(calls) else TextPart("done")])

    return FunctionModel(answer), heard, infos


@pytest.mark.anyio
async def test_an_agent_recalls_remembers_and_forgets(settings: Settings) -> None:
    async with AsyncRecollect(settings=await fresh_space(settings)) as memory:
        tea = await memory.add("Linh prefers tea, never coffee")
        model, heard, infos = does(
            ("recall", {"question": "does Linh prefer tea"}),
            ("remember", {"text": "Linh is allergic to peanuts"}),
            ("remember", {"text": "Linh is allergic to peanuts"}),
            ("forget", {"id": "ffffffff", "reason": "no"}),
            ("forget", {"id": str(tea.id), "reason": "she drinks coffee now"}),
            ("remember", {"text": str(tea.text)}),
            ("restore", {"id": str(tea.id)}),
        )
        toolset = RecollectToolset(memory, thread="linh")
        await Agent(model, toolsets=[toolset], retries=3).run("go")
        assert str(tea.text) in heard[0]
        assert heard[1].startswith("Remembered as")
        assert heard[2].startswith("Remembered already")
        assert "ffffffff" in heard[3]
        assert "recollect " not in heard[3]
        assert heard[4].startswith("Archived")
        assert "was forgotten" in heard[5]
        assert heard[6].endswith("can be recalled again.")
        assert (await memory.history(tea.id))[-2].reason == "she drinks coffee now"
        assert (await memory.get(tea.id)).status is Status.ACTIVE
        assert {node.thread for node in (await memory.list()).items} == {None, "linh"}
        assert "Recall before you answer" in (infos[0].instructions or "")
        assert {tool.name for tool in infos[0].function_tools} == {"recall", "remember", "forget", "restore"}
        assert all(tool.description for tool in infos[0].function_tools)


def test_an_agent_runs_over_a_memory_without_await(here: Recollect) -> None:
    here.add("Linh prefers tea, never coffee")
    model, heard, _ = does(("recall", {"question": "does Linh prefer tea"}))
    asyncio.run(Agent(model, toolsets=[RecollectToolset(here)]).run("go"))
    assert "Linh prefers tea" in heard[0]
