"""Persisted summaries: off by default, proposed, approved, expiring, and never taken for what was said."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from recollect.engine.engine import Engine
from recollect.errors import Conflict, InvalidInput
from recollect.memories import summaries
from recollect.model import Mode, Status
from recollect.settings import Settings
from tests.conftest import fresh_space

pytestmark = pytest.mark.anyio

LONG = "the red kettle of Ana " + "and all that happened with it " * 400


@pytest.fixture
async def summing(settings: Settings, anyio_backend: str) -> AsyncIterator[Engine]:
    allowed = settings.model_copy(update={"summaries": True})
    async with Engine(await fresh_space(allowed)) as engine:
        yield engine


async def test_D39_summaries_are_off_by_default(memory: Engine) -> None:
    node = await memory.add(LONG)
    with pytest.raises(InvalidInput, match="set RECOLLECT_SUMMARIES=true"):
        await memory.summarise(node.id, "Ana's kettle")
    assert await memory.count() == 1


async def test_D38_D39_a_summary_waits_for_approval_and_is_found_only_where_asked_for(summing: Engine) -> None:
    node = await summing.add(LONG)
    summary = await summing.summarise(node.id, "Ana's red kettle, in short")
    assert (summary.is_summary, summary.status) == (True, Status.ARCHIVED)
    assert summary.metadata["parent_id"] == str(node.id)
    assert summary.metadata["extra"]["generated_by"] == "system"
    assert len(await summing.recall("red kettle", include_summaries=True)) == 1
    await summing.approve_summary(summary.id)
    assert summary.id not in {hit.node.id for hit in await summing.recall("red kettle")}
    assert summary.id in {hit.node.id for hit in await summing.recall("red kettle", include_summaries=True)}
    for mode in (Mode.RECALL, Mode.CHALLENGE):
        found = await summing.recall("Ana's red kettle in short", mode=mode, include_summaries=True)
        assert summary.id not in {hit.node.id for hit in found}
    assert [one.id for one in await summing.summaries(node.id)] == [summary.id]


async def test_D39_approval_and_expiry_are_plans(summing: Engine) -> None:
    node = await summing.add(LONG)
    later = summing.core.now() + timedelta(days=1)
    summary = await summing.summarise(node.id, "in short", expires_at=later)
    await summing.approve_summary(summary.id)
    assert await summaries.expire(summing.core, summing.space.id) == 0
    summing.core.now = lambda: later + timedelta(hours=1)
    assert await summaries.expire(summing.core, summing.space.id) == 1
    assert (await summing.get(summary.id)).status is Status.ARCHIVED
    entries = await summing.history(summary.id)
    assert [entry.reason for entry in entries[1:]] == ["summary approved", "summary expired"]
    assert entries[-1].plan_id
    await summing.undo(entries[-1].plan_id)
    assert (await summing.get(summary.id)).status is Status.ACTIVE


async def test_D39_all_that_have_expired_go_however_many_there_are(
    summing: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the newest thousand were looked at, and the oldest expire first."""
    monkeypatch.setattr(summaries, "LOOKED_AT_ONCE", 1)
    later = summing.core.now() + timedelta(days=1)
    for number in range(3):
        node = await summing.add(f"{number} {LONG}")
        summary = await summing.summarise(node.id, f"in short, {number}", expires_at=later)
        await summing.approve_summary(summary.id)
    summing.core.now = lambda: later + timedelta(hours=1)
    assert await summaries.expire(summing.core, summing.space.id) == 3


async def test_D31_D39_an_approved_summary_stands_in_for_what_would_fill_the_budget(summing: Engine) -> None:
    node = await summing.add(LONG)
    summary = await summing.summarise(node.id, "a tale of household goods")
    await summing.approve_summary(summary.id)
    plain = await summing.recall("red kettle of Ana", budget_tokens=100)
    assert len(plain) == 0
    found = await summing.recall("red kettle of Ana", budget_tokens=100, include_summaries=True)
    assert found[0].node.id == summary.id


async def test_D39_what_cannot_be_summarised_or_approved(summing: Engine) -> None:
    node = await summing.add(LONG)
    summary = await summing.summarise(node.id, "in short")
    with pytest.raises(InvalidInput, match="A summary of a summary"):
        await summing.summarise(summary.id, "shorter still")
    with pytest.raises(Conflict, match="there is nothing to approve"):
        await summing.approve_summary(node.id)
