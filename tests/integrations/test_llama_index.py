"""LlamaIndex: the retriever, and the memory block inside LlamaIndex's own memory."""

import pytest
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory
from sqlalchemy.ext.asyncio import create_async_engine

from recollect import AsyncRecollect, Recollect
from recollect.integrations.llama_index import RecollectMemoryBlock, RecollectNodeRetriever
from recollect.model import NodeFilter
from recollect.settings import Settings
from tests.conftest import fresh_space


@pytest.mark.anyio
async def test_a_block_keeps_what_short_term_memory_lets_go_and_recalls_it(settings: Settings) -> None:
    async with AsyncRecollect(settings=await fresh_space(settings)) as memory:
        await memory.add("Linh prefers tea, never coffee")
        short_term = create_async_engine("sqlite+aiosqlite:///:memory:")
        chat = Memory.from_defaults(
            session_id="linh",
            token_limit=60,
            chat_history_token_ratio=0.5,
            token_flush_size=20,
            memory_blocks=[RecollectMemoryBlock(memory=memory)],
            tokenizer_fn=str.split,
            async_engine=short_term,
        )
        for number in range(8):
            await chat.aput(
                ChatMessage(role="user", content=f"Parcel {number} arrives on shelf {number} at noon today")
            )
            await chat.aput(
                ChatMessage(role="assistant", content=f"Noted, parcel {number} stands on shelf {number} now")
            )
        kept = (await memory.list(NodeFilter(thread="linh", subtypes=("conversation",)))).items
        assert 0 < len(kept) < 16
        assert {node.metadata["extra"]["role"] for node in kept} == {"user", "assistant"}
        await chat.aput(ChatMessage(role="user", content="Does Linh prefer tea?"))
        given = "\n".join(message.content or "" for message in await chat.aget())
        assert "Linh prefers tea, never coffee" in given
        await short_term.dispose()


@pytest.mark.anyio
async def test_a_block_without_a_question_recalls_nothing_and_keeps_what_is_known_once(settings: Settings) -> None:
    async with AsyncRecollect(settings=await fresh_space(settings)) as memory:
        block = RecollectMemoryBlock(memory=memory, thread="own")
        assert await block.aget() == ""
        turns = [ChatMessage(role="user", content="ok"), ChatMessage(role="tool", content="42")]
        await block.aput([*turns, *turns, ChatMessage(role="user", content="  ")], session_id="s")
        assert [(node.text, node.thread) for node in (await memory.list()).items] == [("ok", "own")]


def test_the_retriever_of_llama_index_recalls(here: Recollect) -> None:
    tea = here.add("Linh prefers tea, never coffee", metadata={"tags": ["life"]})
    here.add("the car needs new tyres")
    [found] = RecollectNodeRetriever(here, top_k=1).retrieve("does Linh prefer tea")
    assert (found.node.node_id, found.text, found.metadata["tags"]) == (str(tea.id), tea.text, ["life"])
    assert found.score is not None
