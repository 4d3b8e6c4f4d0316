"""What older versions stored is carried over word for word, goes on working, and what they changed can be undone (S08).

tests/store/old_homes.py makes the databases, with the versions of then.
"""

from pathlib import Path

import pytest

from recollect.engine.engine import Engine
from recollect.model import Kind, NodeFilter, Status
from recollect.settings import Settings
from recollect.store.embedded import EmbeddedServer
from tests.store.old_homes import FORGOTTEN, HOMES, OTHER_PAGE, PAGE, TEXTS

pytestmark = pytest.mark.anyio
OLD = sorted(HOMES.glob("*.dump"))


def test_S08_there_are_homes_of_older_versions() -> None:
    assert len(OLD) >= 2


@pytest.mark.parametrize("old", OLD, ids=lambda file: file.stem)
async def test_S08_an_upgrade_carries_everything_and_what_was_done_can_be_undone(old: Path, new_home: Path) -> None:
    with EmbeddedServer(new_home) as server:
        async with Engine(Settings.load(database_url=server.url, embedder="hashing:16")) as engine:
            await engine.restore_backup(old)
            await engine.work()
            await _is_all_there(engine)
            await _goes_on_working(engine)
            await _can_be_undone(engine)
            assert (await engine.verify()).faults == {}


async def _is_all_there(engine: Engine) -> None:
    assert (await engine.verify()).faults == {}
    active = await engine.list(NodeFilter(kinds=(Kind.MEMORY,)))
    assert {node.text for node in active.items} == set(TEXTS)
    assert all(node.metadata["extra"] == {"place": {"n": 1.5}} for node in active.items)
    (gone,) = (await engine.list(NodeFilter(kinds=(Kind.MEMORY,), statuses=(Status.ARCHIVED,)))).items
    assert gone.text == FORGOTTEN
    assert "moved" in [entry.reason for entry in await engine.history(gone.id)]
    assert (await engine.concepts.get("ML")).name == "Machine Learning", "it was merged, and its name is known still"
    assert {page.name: page.text for page in (await engine.pages.list()).items} == {"heron": PAGE, "tea": OTHER_PAGE}
    assert [case.query for case in (await engine.cases.list()).items] == ["Where is the invoice?"]
    assert (await (await engine.in_space("team")).list()).items[0].text == "Only for the team"
    assert [(key.name, key.space) for key in await engine.keys()] == [("a key", "team")]
    assert not next(one for one in await engine.schedules.list() if one.name == "prune_weak_edges").enabled


async def _goes_on_working(engine: Engine) -> None:
    assert (await engine.recall("jasmine tea"))[0].node.text == TEXTS[0]
    assert (await engine.recall("Nẵng"))[0].node.text == TEXTS[1]
    waiting = [plan for plan in (await engine.plans.list())[0] if plan.status == "proposed"]
    assert [plan.policy for plan in waiting] == ["merge_parallel_edges"]
    assert (await engine.plans.apply(waiting[0].id)).status == "applied"


async def _can_be_undone(engine: Engine) -> None:
    """All of it, the latest first: then nothing is left but what was added."""
    applied = [plan for plan in (await engine.plans.list())[0] if plan.status == "applied" and plan.policy != "undo"]
    assert len(applied) >= 6
    for plan in applied:
        assert (await engine.undo(plan.id)).status == "applied", plan.title
    assert len((await engine.list(NodeFilter(kinds=(Kind.MEMORY,)))).items) == len(TEXTS) + 1
    assert (await engine.concepts.get("ML")).name == "ML"
    assert (await engine.graph.stats()).edges == 4
