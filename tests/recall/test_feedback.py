"""Feedback: a memory helped, or it did not."""

from uuid import uuid4

import anyio
import pytest

from recollect.engine.engine import Engine
from recollect.errors import InvalidInput, NotFound

pytestmark = pytest.mark.anyio


async def test_D40_judgements_are_counted_beside_uses(memory: Engine) -> None:
    node = await memory.add("Linh prefers green tea at home")
    answer = await memory.ask("Linh prefers green tea at home")
    assert [hit.node.id for hit in answer.recall] == [node.id]
    first = await memory.helped(node.id)
    assert (first.uses, first.judged, first.successes) == (1, 1, 1)
    second = await memory.helped(str(node.id)[:8], False)
    assert (second.uses, second.judged, second.successes) == (1, 2, 1)
    assert second.last_used_at == first.last_used_at


async def test_a_judgement_changes_nothing_else(memory: Engine) -> None:
    node = await memory.add("untouched", wait=False)
    await memory.helped(node.id)
    assert await memory.get(node.id) == node
    assert len(await memory.history(node.id)) == 1


async def test_a_judgement_of_what_a_recall_handed_out(memory: Engine) -> None:
    node, other = await memory.add("Linh prefers green tea at home"), await memory.add("unrelated zirconium")
    answer = await memory.ask("Linh prefers green tea at home")
    assert answer.id
    judged = await memory.helped(node.id, recall=str(answer.id)[:8])
    assert judged.successes == 1
    with pytest.raises(InvalidInput, match="did not hand out") as refused:
        await memory.helped(other.id, recall=answer.id)
    assert refused.value.field == "recall"
    with pytest.raises(NotFound, match="No recall is logged"):
        await memory.helped(node.id, recall=uuid4())


async def test_many_judgements_at_once_are_all_counted(memory: Engine) -> None:
    node = await memory.add("popular", wait=False)
    async with anyio.create_task_group() as group:
        for number in range(12):
            group.start_soon(memory.helped, node.id, number % 3 == 0)
    after = await memory.helped(node.id)
    assert (after.judged, after.successes) == (13, 5)


async def test_what_is_not_there_cannot_be_judged(memory: Engine) -> None:
    with pytest.raises(NotFound, match="Nothing is remembered under"):
        await memory.helped(uuid4())
    with pytest.raises(InvalidInput, match="is not an id"):
        await memory.helped("tea")
