"""Conversations kept as memories: the session of the OpenAI Agents SDK and the chat history of LangChain."""

from typing import Any

import pytest
from agents import Agent, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.memory.session import Session
from agents.memory.session_settings import SessionSettings
from agents.models.interface import Model
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from recollect import AsyncRecollect, Recollect
from recollect.errors import InvalidInput
from recollect.integrations.langchain import RecollectChatMessageHistory, RecollectRetriever
from recollect.integrations.openai_agents import RecollectSession
from recollect.model import NodeFilter, Status
from recollect.settings import Settings
from tests.conftest import fresh_space

ITEMS: list[Any] = [
    {"role": "user", "content": "Is there green tea left?"},
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"where": "shelf"}'},
    {"type": "function_call_output", "call_id": "c1", "output": "two boxes"},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Two boxes.", "annotations": []}],
    },
    {"role": "user", "content": "ok"},
    {"role": "user", "content": "ok"},
    {"role": "user", "content": "Viết dài: " + "trà sen " * 900},
]


class Repeats(Model):
    """A model that says how many items it was given."""

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **kwargs: Any) -> ModelResponse:
        text = ResponseOutputText(text=f"I was given {len(input)}.", type="output_text", annotations=[])
        said = ResponseOutputMessage(id="m1", content=[text], role="assistant", status="completed", type="message")
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


@pytest.mark.anyio
async def test_a_session_keeps_its_items_in_order_and_apart(settings: Settings) -> None:
    async with AsyncRecollect(settings=await fresh_space(settings)) as memory:
        session, other = RecollectSession("linh", memory), RecollectSession("an", memory)
        assert isinstance(session, Session)
        await session.add_items(ITEMS[:3])
        await session.add_items(ITEMS[3:])
        await other.add_items(ITEMS)
        assert await session.get_items() == ITEMS
        assert await session.get_items(limit=2) == ITEMS[-2:]
        assert await session.get_items(limit=0) == []
        assert (
            await RecollectSession("linh", memory, session_settings=SessionSettings(limit=1)).get_items() == ITEMS[-1:]
        )
        assert await session.pop_item() == ITEMS[-1]
        await session.add_items(ITEMS[-1:])
        assert await session.get_items() == ITEMS

        hits = await memory.recall("green tea left")
        assert hits[0].node.thread in ("linh", "an")
        assert not any("call_id" in (hit.node.text or "") for hit in await memory.recall("two boxes", weak=True))

        with pytest.raises(InvalidInput, match="NUL"):
            await session.add_items([{"role": "user", "content": "good"}, {"role": "user", "content": "a\0b"}])
        assert await session.get_items() == ITEMS

        await session.clear_session()
        assert await session.get_items() == []
        assert await session.pop_item() is None
        assert await other.get_items() == ITEMS
        cleared = (await memory.list(NodeFilter(thread="linh", statuses=(Status.ARCHIVED,)))).items[0]
        plan = (await memory.history(cleared.id))[-1].plan_id
        assert plan is not None
        await memory.undo(plan)
        assert await session.get_items() == ITEMS


@pytest.mark.anyio
async def test_an_agent_remembers_its_last_run(settings: Settings) -> None:
    set_tracing_disabled(True)
    async with AsyncRecollect(settings=await fresh_space(settings)) as memory:
        session, agent = RecollectSession("linh", memory), Agent(name="host", model=Repeats())
        await Runner.run(agent, "Hello", session=session)
        again = await Runner.run(agent, "Hello", session=session)
        assert again.final_output == "I was given 3."
        assert len(await session.get_items()) == 4


MESSAGES = [
    SystemMessage("be brief"),
    HumanMessage("what is left of the tea?"),
    AIMessage("", tool_calls=[{"name": "look", "args": {"where": "shelf"}, "id": "c1"}]),
    ToolMessage("two boxes", tool_call_id="c1"),
    AIMessage([{"type": "text", "text": "Two boxes, 两盒。"}], response_metadata={"model": "x"}),
    HumanMessage("what is left of the tea?"),
]


def test_a_chat_history_keeps_every_message(here: Recollect) -> None:
    history = RecollectChatMessageHistory("linh", here)
    history.add_messages(MESSAGES)
    history.add_user_message("thanks")
    assert RecollectChatMessageHistory("linh", here).messages == [*MESSAGES, HumanMessage("thanks")]
    assert RecollectChatMessageHistory("an", here).messages == []
    history.clear()
    assert history.messages == []
    history.add_messages(MESSAGES)
    assert history.messages == MESSAGES


def test_a_model_speaks_with_its_history(here: Recollect) -> None:
    history, model = RecollectChatMessageHistory("s", here), FakeListChatModel(responses=["Tea.", "Always."])
    for question in ("What do I drink?", "Always?"):
        history.add_user_message(question)
        history.add_message(model.invoke(history.messages))
    assert [message.text for message in history.messages] == ["What do I drink?", "Tea.", "Always?", "Always."]


@pytest.mark.anyio
async def test_the_retriever_of_langchain_recalls(settings: Settings) -> None:
    async with AsyncRecollect(settings=await fresh_space(settings)) as memory:
        tea = await memory.add("Linh prefers tea, never coffee", metadata={"tags": ["life"]})
        await memory.add("the car needs new tyres")
        [found] = await RecollectRetriever(memory=memory, k=1).ainvoke("what does Linh prefer, tea?")
        assert (found.id, found.page_content, found.metadata["tags"]) == (str(tea.id), tea.text, ["life"])
        assert 0 < found.metadata["relevance"] <= 1
        history = RecollectChatMessageHistory("s", memory)
        await history.aadd_messages(MESSAGES)
        assert await history.aget_messages() == MESSAGES
        await history.aclear()


def test_the_retriever_of_langchain_works_without_await(here: Recollect) -> None:
    here.add("Linh prefers tea, never coffee")
    chain = RecollectRetriever(memory=here, wanted=NodeFilter(subtypes=("note",))) | (lambda found: len(found))
    assert chain.invoke("does Linh prefer tea") == 1
