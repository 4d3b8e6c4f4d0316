"""Reading at a standby (X03): a real one, made by pg_basebackup, that streams from a real primary."""

import shutil
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from itertools import count
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest
from structlog.testing import capture_logs

from recollect.doors.api.app import create_app
from recollect.engine.engine import Engine
from recollect.errors import DatabaseProblem
from recollect.model import NewMemory
from recollect.settings import Settings
from recollect.store import standby as standbys
from recollect.store.database import current_verb, driver, read
from recollect.store.embedded import EmbeddedServer
from recollect.store.standby import Lag, Writer, Writes, as_written, calling, position_of
from tests.conftest import open_directory
from tests.doors import test_api_support as support
from tests.doors.test_api_support import key_for, problem, visitor
from tests.standbys import Follower, followed, kill
from tests.waiting import until_it_holds

pytestmark = pytest.mark.anyio

Pair = tuple[EmbeddedServer, Follower]

MEMORIES = "/api/v1/memories"


@pytest.fixture(scope="module")
def pair(made_home: Path) -> Iterator[Pair]:
    directory = open_directory()
    subprocess.run(["cp", "-a", made_home, directory / "home"], check=True)
    with followed(directory / "home") as pair:
        yield pair
    shutil.rmtree(directory, ignore_errors=True)


@pytest.fixture(scope="module")
def follower(pair: Pair) -> Follower:
    return pair[1]


def settings_of(pair: Pair, **more: object) -> Settings:
    usual = {
        "embedder": "hashing:64",
        "pool_size": 4,
        "database_read_url": pair[1].url,
        "read_wait_seconds": 60.0,
        "read_lag_seconds": 600.0,
    }
    return Settings.load(database_url=pair[0].url, **{**usual, **more})


@pytest.fixture
async def memory(pair: Pair) -> AsyncIterator[Engine]:
    async with Engine(settings_of(pair)) as engine:
        yield await in_new_space(engine)


async def in_new_space(engine: Engine) -> Engine:
    await until_it_is_read(engine)
    name = f"space-{len(await engine.spaces())}"
    await engine.add_space(name)
    return await engine.in_space(name)


async def until_it_is_read(engine: Engine) -> None:
    async def is_read() -> bool:
        return (await engine.core.database.how_the_standby_is()).trouble is None  # type: ignore[union-attr]

    await until_it_holds(is_read)


async def where(memory: Engine) -> str:
    """Where a verb that only reads does so now."""

    async def ask() -> str:
        async with memory.core.transaction(memory.space.id) as db:
            follows = await (await driver(db)).fetchval("SELECT pg_is_in_recovery()")
        return "standby" if follows else "primary"

    return await read(ask)


# -- what is read there


async def test_X03_what_only_reads_is_read_at_the_standby_and_sees_the_writes_of_this_process(memory: Engine) -> None:
    node = await memory.add("Linh prefers tea, never coffee")
    assert await where(memory) == "standby"
    for number in range(20):
        again = await memory.edit(node.id, importance=number / 20)
        assert (await memory.get(node.id)).importance == again.importance
    assert [hit.node.id for hit in await memory.recall("Linh prefers tea")] == [node.id]
    assert [one.id for one in (await memory.list()).items] == [node.id]
    assert await where(memory) == "standby"


async def test_X03_every_verb_that_only_reads_does_so_at_the_standby(memory: Engine, tmp_path: Path) -> None:
    """Nothing of it writes, nor needs what a standby cannot do."""
    ids = (await memory.add_many(NewMemory(text=f"note {n} about gardens") for n in range(3))).ids
    await memory.graph.link(ids[0], ids[1], relation="near")
    await memory.concepts.add("Garden")
    case = await memory.cases.add("How to water?", "In the evening.")
    plan = await memory.plans.propose("prune")
    verbs = {
        "get": memory.get(ids[0]),
        "list": memory.list(),
        "count": memory.count(),
        "overview": memory.overview(),
        "labels": memory.labels(ids),
        "history": memory.history(ids[0]),
        "recall": memory.recall("gardens"),
        "recall by graph": memory.recall("gardens", graph=True),
        "export": memory.export(tmp_path / "out.jsonl"),
        "graph.edges": memory.graph.edges(ids[0]),
        "graph.neighbours": memory.graph.neighbours(ids[0]),
        "graph.look": memory.graph.look(),
        "graph.paths": memory.graph.paths(ids[0], ids[1]),
        "graph.components": memory.graph.components(),
        "graph.stats": memory.graph.stats(),
        "graph.topics": memory.graph.topics(),
        "graph.picture": memory.graph.picture(ids[0]),
        "graph.plan_picture": memory.graph.plan_picture(plan.id),
        "plans.get": memory.plans.get(plan.id),
        "plans.show": memory.plans.show(plan.id),
        "plans.list": memory.plans.list(),
        "plans.decisions": memory.plans.decisions(plan.id),
        "concepts.get": memory.concepts.get("Garden"),
        "concepts.list": memory.concepts.list(),
        "concepts.duplicates": memory.concepts.duplicates(),
        "concepts.kept_apart": memory.concepts.kept_apart(),
        "pages.list": memory.pages.list(),
        "cases.get": memory.cases.get(case.case_id),
        "cases.list": memory.cases.list(),
        "cases.search": memory.cases.search("How to water?"),
        "cases.outcomes": memory.cases.outcomes(case.case_id),
        "cases.reflection": memory.cases.reflection(),
        "cases.summary": memory.cases.summary(),
        "cases.health": memory.cases.health(),
    }
    seen = 0

    async def all_of_it_there(verb: object) -> None:
        nonlocal seen
        await verb  # type: ignore[misc]
        current = current_verb()
        assert current is not None
        assert current.at_standby
        seen += 1

    for verb in verbs.values():
        await read(lambda verb=verb: all_of_it_there(verb))  # type: ignore[misc]
    assert seen == len(verbs)


async def test_X03_row_level_security_and_reading_only_hold_there(memory: Engine) -> None:
    await memory.add("only here")
    other = await in_new_space(memory)

    async def look() -> tuple[int, str]:
        async with memory.core.transaction(other.space.id) as db:
            raw = await driver(db)
            assert await raw.fetchval("SELECT pg_is_in_recovery()")
            await raw.execute("SAVEPOINT before")
            with pytest.raises(asyncpg.ReadOnlySQLTransactionError):
                await raw.execute("DELETE FROM embedding_jobs")
            await raw.execute("ROLLBACK TO before")
            return await raw.fetchval("SELECT count(*) FROM nodes"), await raw.fetchval("SELECT current_user")

    assert await read(look) == (0, "recollect_app")


async def test_X03_what_recall_notes_goes_to_the_primary(memory: Engine) -> None:
    await memory.add("the key is with Mrs Okafor")
    found = await memory.recall("who has the key?")
    assert (await memory.recall_log(found.id)).user_query == "who has the key?"  # type: ignore[arg-type]


async def test_X03_a_verb_that_only_reads_cannot_write(memory: Engine) -> None:
    """Marked wrongly, it would fail everywhere, also where there is no standby."""
    with pytest.raises(Exception, match="read-only transaction"):
        await read(lambda: memory.add("not in passing"))


# -- own writes


async def test_X03_a_standby_that_holds_still_shows_nothing_old(pair: Pair, follower: Follower, memory: Engine) -> None:
    """The bound passes, and the primary is read; whoever wrote nothing still reads at the standby."""
    async with Engine(settings_of(pair, read_wait_seconds=0.05)) as writer, Engine(settings_of(pair)) as reader:
        writing, reading = await writer.in_space(memory.space.slug), await reader.in_space(memory.space.slug)
        await writing.add("the first")
        await until_it_is_read(writer)
        await until_it_is_read(reader)

        async def is_there() -> bool:
            return await reading.count() == 1

        await until_it_holds(is_there)
        await follower.hold_still()
        try:
            await writing.add("the second")
            assert await writing.count() == 2
            assert await where(writing) == "primary"
            assert await reading.count() == 1
            assert await where(reading) == "standby"
        finally:
            await follower.go_on()


async def test_X03_a_process_that_begins_sees_what_was_written_before(pair: Pair, follower: Follower) -> None:
    """As with one command after the other."""
    async with Engine(settings_of(pair)) as writer:
        writing = await in_new_space(writer)
        await follower.hold_still()
        try:
            await writing.add("before")
            async with Engine(settings_of(pair, read_wait_seconds=0.05)) as later:
                await until_it_is_read(later)
                assert await (await later.in_space(writing.space.slug)).count() == 1
        finally:
            await follower.go_on()


async def test_X03_a_caller_of_two_processes_sees_its_own_writes_by_its_position(
    pair: Pair, follower: Follower, memory: Engine
) -> None:
    async with Engine(settings_of(pair, read_wait_seconds=0.05)) as elsewhere:
        other = await elsewhere.in_space(memory.space.slug)
        await until_it_is_read(elsewhere)
        await follower.hold_still()
        try:
            with calling(Writer()) as caller:
                await memory.add("written here")
            with calling(Writer(after=caller.wrote)):
                assert await other.count() == 1
            assert await other.count() == 0
        finally:
            await follower.go_on()


async def test_X03_a_recall_by_graph_is_read_at_one_place(pair: Pair, follower: Follower, memory: Engine) -> None:
    """Else what an old state shows would be kept as that of a new version."""
    one, two = (await memory.add_many([NewMemory(text="red gardens here"), NewMemory(text="red gardens there")])).ids
    await memory.graph.link(one, two, relation="near")
    async with Engine(settings_of(pair, read_wait_seconds=0.05)) as elsewhere:
        other = await elsewhere.in_space(memory.space.slug)
        await until_it_is_read(elsewhere)
        await follower.hold_still()
        try:
            with calling(Writer()) as caller:
                await memory.forget(two)
            with calling(Writer(after=caller.wrote)):
                found = [hit.node.id for hit in await other.recall("red gardens", graph=True)]
                assert found == [one]
            assert two in [hit.node.id for hit in await other.recall("red gardens", graph=True)]
            with calling(Writer(after=caller.wrote)):
                assert [hit.node.id for hit in await other.recall("red gardens", graph=True)] == [one]
        finally:
            await follower.go_on()


async def test_X03_over_HTTP_an_answer_carries_the_position_and_a_browser_keeps_it(
    pair: Pair, follower: Follower
) -> None:
    """Two servers, of which the second wrote nothing itself."""
    impatient = settings_of(pair, read_wait_seconds=0.05)
    async with Engine(impatient) as here, Engine(impatient) as there:
        key = await key_for(here)
        apps = create_app(here), create_app(there)
        space = (await in_new_space(here)).space.slug
        await until_it_is_read(there)
        await follower.hold_still()
        try:
            async with visitor(apps[0], key=key) as one, visitor(apps[1], key=key) as other:
                one.headers["X-Recollect-Space"] = other.headers["X-Recollect-Space"] = space
                after = (await one.post(MEMORIES, json={"text": "written here"})).headers["X-Recollect-After"]
                assert (await other.get(MEMORIES)).json()["items"] == []
                seen = await other.get(MEMORIES, headers={"X-Recollect-After": after})
                assert len(seen.json()["items"]) == 1
                assert "X-Recollect-After" not in seen.headers
                wrong = await other.get(MEMORIES, headers={"X-Recollect-After": "yesterday"})
                assert "send the last one" in problem(wrong, 422, "invalid_input", field="X-Recollect-After")

                await one.post("/api/v1/session")
                for client in (one, other):
                    del client.headers["Authorization"]
                    client.headers["X-Recollect"] = "page"
                await one.post(MEMORIES, json={"text": "by a browser"})
                other.cookies = one.cookies
                assert len((await other.get(MEMORIES)).json()["items"]) == 2
        finally:
            await follower.go_on()
            await support.sql(pair[0].url, "DELETE FROM recollect.api_keys")


# -- trouble


async def test_X03_a_standby_that_dies_is_one_warning_and_no_error(pair: Pair, follower: Follower) -> None:
    async with Engine(settings_of(pair)) as engine:
        memory = await in_new_space(engine)
        node = await memory.add("still there")
        assert await where(memory) == "standby"
        with capture_logs() as logs:
            follower.stop()
            try:
                assert (await memory.get(node.id)).text == "still there"
                for _ in range(5):
                    assert [hit.node.id for hit in await memory.recall("still there")] == [node.id]
                assert await where(memory) == "primary"
                advice = (await memory.doctor()).advice
                assert any("standby" in one and "DATABASE_READ_URL" in one for one in advice)
            finally:
                follower.start()
            await until_it_is_read(engine)
        warnings = [line["event"] for line in logs if line["log_level"] == "warning"]
        assert warnings == ["the standby of DATABASE_READ_URL is not read, the primary is"]
        assert await where(memory) == "standby"


async def test_X03_a_look_that_breaks_off_half_way_is_begun_again_at_the_primary(memory: Engine) -> None:
    node = await memory.add("once more")
    places = []

    async def look() -> object:
        async with memory.core.transaction(memory.space.id) as db:
            raw = await driver(db)
            places.append(await raw.fetchval("SELECT pg_is_in_recovery()"))
            if places[-1]:  # as a conflict with what is replayed does
                await raw.execute("DO $$ BEGIN RAISE SQLSTATE '40001'; END $$")
            return await raw.fetchval("SELECT id FROM nodes")

    assert await read(look) == node.id
    assert places == [True, False]
    assert await where(memory) == "standby"


@pytest.mark.parametrize("address", ["postgresql://nobody@127.0.0.1:1/recollect", "no address at all"])
async def test_X03_an_unreachable_standby_is_done_without(pair: Pair, address: str) -> None:
    async with Engine(settings_of(pair, database_read_url=address)) as engine:
        memory = await engine.in_space("default")
        await memory.list()
        (advice,) = [one for one in (await memory.doctor()).advice if "DATABASE_READ_URL" in one]
        assert "does not answer" in advice


async def test_X03_a_primary_in_its_place_is_not_taken_for_a_standby(pair: Pair, database_url: str) -> None:
    for address in (pair[0].url, database_url):
        async with Engine(settings_of(pair, database_read_url=address)) as engine:
            report = await engine.core.database.how_the_standby_is()
            assert report is not None
            assert report.trouble is not None
            assert "follows no other server" in report.trouble


async def test_X03_the_doctor_tells_how_far_it_is_behind(memory: Engine) -> None:
    checkup = await memory.doctor()
    assert checkup.standby is not None
    assert checkup.standby.trouble is None
    assert checkup.standby.behind_bytes is not None


def test_X03_how_far_behind_is_told_by_positions_alone() -> None:
    lag = Lag()
    assert lag.seconds(0.0, 100, 100) == 0
    assert lag.seconds(1.0, 100, 100) == 0  # an idle primary makes nobody late
    assert lag.seconds(2.0, 200, 100) == 0
    assert lag.seconds(3.0, 300, 100) == 1
    assert lag.seconds(9.0, 400, 200) == 6
    assert lag.seconds(10.0, 400, 400) == 0


def test_X03_a_position_is_written_as_PostgreSQL_does() -> None:
    assert as_written(0x1_016B3748) == "1/16B3748"
    assert position_of(" 1/16b3748 ") == 0x1_016B3748
    assert [position_of(wrong) for wrong in ("", "1", "1/", "x/1", "1/123456789", "-1/1")] == [None] * 6


def test_X03_positions_of_many_spaces_take_bounded_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standbys, "MOST_SPACES", 3)
    writes, spaces = Writes(), [uuid4() for _ in range(9)]
    for position, space in enumerate(spaces, start=1):
        writes.note(space, position)
    assert all(writes.after(space) >= position for position, space in enumerate(spaces, start=1))


# -- failing over


async def write_on(memory: Engine, acknowledged: list[str], after_twenty: Callable[[], None]) -> None:
    for number in count():
        await memory.add(f"note {number}", wait=False)
        acknowledged.append(f"note {number}")
        if number == 20:
            after_twenty()


async def test_X03_a_promoted_standby_has_every_acknowledged_write(new_home: Path) -> None:
    """The primary is killed in the midst of writing, with synchronous_commit = remote_apply."""
    waits = "synchronous_standby_names = '*'\nsynchronous_commit = remote_apply\n"
    with followed(new_home, waits) as (server, follower):
        acknowledged: list[str] = []
        async with Engine(Settings.load(database_url=server.url, embedder="hashing:64", pool_size=4)) as memory:
            with pytest.raises(DatabaseProblem):
                await write_on(memory, acknowledged, lambda: kill(server))
        follower.promote()
        await follower.say("ALTER SYSTEM SET synchronous_standby_names = ''")  # it has none yet
        await follower.say("SELECT pg_reload_conf()")
        assert len(acknowledged) > 20
        async with Engine(Settings.load(database_url=follower.url, embedder="hashing:64", pool_size=4)) as memory:
            kept = {node.text async for node in memory.stream()}
            assert kept >= set(acknowledged)
            assert (await memory.verify()).whole
            await memory.add("and on it goes")
