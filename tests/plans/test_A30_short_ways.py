"""What a small plan takes is mostly messages to the database (A30), and the last of its groups ends it."""

import pytest

from recollect.engine.engine import Engine
from recollect.plan import PlanStatus
from tests.plans.test_plans import NOW, weak_triangles
from tests.recall.test_words import messages

pytestmark = pytest.mark.anyio

messages = messages


async def test_A30_a_plan_of_one_group_takes_at_most_44_messages_and_its_undo_30(
    memory: Engine, messages: list[int]
) -> None:
    memory.core.now = lambda: NOW
    for _ in range(2):  # statements are prepared once
        await weak_triangles(memory, 4)
        messages.clear()
        done = await memory.plans.run("prune", {"threshold": 0.6})
        applying = len(messages)
        assert done.outcome is not None
        assert done.outcome.applied >= 4
        messages.clear()
        await memory.plans.undo(done.plan.id)
        undoing = len(messages)
    assert 0 < applying <= 44
    assert 0 < undoing <= 30


async def test_P22_whoever_dies_after_the_last_group_leaves_a_plan_that_is_applied(memory: Engine) -> None:
    class Killed(BaseException):
        pass

    def die(done: int, total: int) -> None:
        if done == total:
            raise Killed

    memory.core.now = lambda: NOW
    await weak_triangles(memory, 2)
    plan = await memory.plans.propose("prune", {"threshold": 0.6})
    with pytest.raises(Killed):
        await memory.plans.apply(plan.id, progress=die)
    (run,) = await memory.plans.runs(plan.id)
    assert (run.status, run.report["done"], run.report["applied"]) == ("done", 2, 2)
    applied, _ = await memory.plans.list(status=PlanStatus.APPLIED)
    assert [one.id for one in applied] == [plan.id]
