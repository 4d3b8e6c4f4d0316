"""Many spaces on Citus (X04): the same schema and the same statements, spread over the workers of a real cluster.

The other tests run there too: `pytest --citus tests/memories`. What is here is what only a cluster can get wrong.
"""

import asyncio
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import asyncpg
import pytest

from recollect.engine.engine import Engine
from recollect.errors import Conflict, DatabaseProblem, NotFound, UnsuitableServer
from recollect.memories.sql import activity
from recollect.model import NewMemory, Status
from recollect.settings import Settings
from recollect.store.database import driver
from recollect.store.distribute import SPREAD, distribute
from recollect.store.embedded import EmbeddedServer
from recollect.store.prepare import downgrade, open_database, upgrade
from tests.citus import NODES, SHARD_OF, Cluster, new_database, placed_at, space_on
from tests.memories.rules.test_windows import long_note
from tests.waiting import until_it_holds

pytestmark = pytest.mark.anyio

WORKERS = range(1, NODES)


def engine_of(url: str) -> Engine:
    return Engine(Settings.load(database_url=url, embedder="hashing:64", pool_size=4))


@pytest.fixture
async def spread(citus_url: str) -> AsyncIterator[Engine]:
    """An engine on a database whose spaces are spread."""
    async with engine_of(citus_url) as engine:
        yield engine


async def test_X04_without_citus_it_is_said_what_is_missing(server: EmbeddedServer) -> None:
    async with engine_of(server.url) as engine:
        with pytest.raises(UnsuitableServer, match="has no Citus, which spreads spaces over servers: install it"):
            await engine.distribute()


async def test_X04_only_an_empty_database_is_distributed_and_only_once(cluster: Cluster) -> None:
    url = await new_database(cluster, "filled")
    async with engine_of(url) as engine:
        await engine.add("here first", wait=False)
        with pytest.raises(Conflict, match="only an empty one can be distributed: `recollect backup FILE`"):
            await engine.distribute(shards=2)
        assert not engine.core.database.distributed
    url = await new_database(cluster, "empty")
    async with engine_of(url) as engine:
        done = await engine.distribute(shards=2)
        assert (done.servers, done.shards, done.repeated) == (2, 2, False)
        await engine.add("after that", wait=False)
        again = await engine.distribute(shards=2)
        assert (again.shards, again.repeated) == (2, True)


DISTRIBUTING = """
import asyncio, sys
from recollect.store.database import driver
from recollect.store.prepare import downgrade, open_database, upgrade
from recollect.store.distribute import distribute
async def main():
    database = await open_database(sys.argv[1], pool_size=2)
    await distribute(database, shards=8)
asyncio.run(main())
"""


async def test_X04_whoever_is_killed_while_distributing_leaves_nothing_half_done(cluster: Cluster) -> None:
    url = await new_database(cluster, "killed")
    database = await open_database(url, pool_size=2)
    watching = await asyncpg.connect(url)
    under_way = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%create_distributed_table%' AND pid <> $1"
    program = await asyncio.create_subprocess_exec(sys.executable, "-c", DISTRIBUTING, url)
    try:
        mine = watching.get_server_pid()
        await until_it_holds(lambda: _is_true(watching, under_way, mine))
        program.kill()
        await program.wait()
        await until_it_holds(lambda: _is_true(watching, under_way, mine, wanted=False))
        assert await watching.fetchval("SELECT count(*) FROM pg_dist_partition") == 0
        assert (await distribute(database, shards=4)).shards == 4
        spread = await watching.fetchval("SELECT count(*) FROM pg_dist_partition WHERE partmethod = 'h'")
        assert spread == len(SPREAD)
    finally:
        if program.returncode is None:
            program.kill()
        await watching.close()
        await database.close()


async def _is_true(connection: asyncpg.Connection, query: str, *given: object, wanted: bool = True) -> bool:
    return bool(await connection.fetchval(query, *given)) is wanted


async def test_X04_every_kind_of_thing_is_kept_found_tidied_and_undone(spread: Engine) -> None:
    memory = await spread.in_space((await spread.add_space("walk")).slug)
    added = await memory.add_many(
        [NewMemory(text=text) for text in ("Linh drinks tea", "Bao grows coffee", "茶がすき")]
    )
    ids = [id_ for id_ in added.ids if id_ is not None]
    assert (await memory.recall("Linh drinks tea"))[0].node.text == "Linh drinks tea"
    assert (await memory.recall("茶がすき"))[0].node.text == "茶がすき"
    link = await memory.graph.link(ids[0], ids[1], "knows")
    assert [one.id for one in await memory.graph.edges(ids[0])] == [link.id]
    await memory.forget(ids[1])
    assert (await memory.get(ids[1])).status is Status.ARCHIVED
    plan = (await memory.history(ids[1]))[-1].plan_id
    assert plan is not None
    await memory.undo(plan)
    assert (await memory.get(ids[1])).status is Status.ACTIVE
    case = await memory.cases.add("printer jams", "open the tray")
    await memory.cases.record_outcome(case.case_id, True)
    assert (await memory.cases.get(case.case_id)).usage_count == 1
    concept = (await memory.concepts.add("Tea", "idea")).concept
    assert (await memory.concepts.add("tea", "idea")).concept.id == concept.id
    assert (await memory.verify()).whole
    assert (await memory.doctor()).nodes >= 5


async def test_X04_links_are_merged_used_taken_back_and_brought_again(spread: Engine) -> None:
    """Undo writes documents that it puts together from rows: Citus refuses to do both at once."""
    memory = await spread.in_space((await spread.add_space("links")).slug)
    a, b = [(await memory.add(text)).id for text in ("Linh drinks tea", "Bao grows coffee")]
    links = {(await memory.graph.link(a, b, relation, strength=0.5)).id for relation in ("knows", "extends")}
    merge = await memory.plans.propose("merge-edges")
    await memory.plans.apply(merge.id)
    (other,) = links - {merge.decisions[0].subject}
    undo = await memory.plans.undo(merge.id)
    await memory.graph.reinforce(other, "traversal")
    redo = await memory.plans.undo(undo.plan_id)
    keeper = next(edge for edge in await memory.graph.edges(a) if edge.id != other)
    assert keeper.activation_count == 1
    await memory.plans.undo(redo.plan_id)
    assert {edge.id: edge.activation_count for edge in await memory.graph.edges(a)} == {keeper.id: 0, other: 1}


async def test_X04_each_shard_shows_its_rows_to_their_own_space_alone(spread: Engine, cluster: Cluster) -> None:
    for node in WORKERS:
        one, other = [await space_on(spread, cluster, node, f"guard{node}{which}") for which in "ab"]
        for space in (one, other):
            await space.add(f"a secret of {space.space.slug}", wait=False)
        coordinator = await asyncpg.connect(cluster.url)
        shard = await coordinator.fetchval(SHARD_OF, one.space.id)
        await coordinator.close()
        # Not through Recollect, nor through the coordinator: the table itself, by the role that the engine works as.
        worker = await asyncpg.connect(cluster.url_of(node, user="recollect_app"))
        texts = f"SELECT text FROM recollect.nodes_{shard}"
        assert await worker.fetch(texts) == []
        await worker.execute(f"SET recollect.space = '{one.space.id}'")
        assert [row["text"] for row in await worker.fetch(texts)] == [f"a secret of {one.space.slug}"]
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await worker.execute(
                f"INSERT INTO recollect.lexicon_totals_{await _beside(cluster, 'lexicon_totals', one.space.id)}"
                f" (space_id) VALUES ('{other.space.id}')"
            )
        await worker.close()


async def _beside(cluster: Cluster, table: str, space_id: UUID) -> int:
    coordinator = await asyncpg.connect(cluster.url)
    found = await coordinator.fetchval(
        f"SELECT get_shard_id_for_distribution_column('recollect.{table}', $1::uuid)", space_id
    )
    await coordinator.close()
    return int(found)


async def test_X04_a_search_of_another_space_is_refused(spread: Engine) -> None:
    other = await spread.add_space("elsewhere")
    async with spread.core.transaction(spread.space.id) as db:
        raw = await driver(db)
        with pytest.raises(asyncpg.InsufficientPrivilegeError, match="no search in the space that was entered"):
            await raw.fetch("SELECT * FROM nodes_holding($1, '{}')", other.id)


async def test_X04_texts_are_permanent_on_every_shard(spread: Engine, cluster: Cluster) -> None:
    for node in WORKERS:
        memory = await space_on(spread, cluster, node, f"permanent{node}")
        kept = await memory.add("said once", wait=False)
        shard = await _beside(cluster, "nodes", memory.space.id)
        worker = await asyncpg.connect(cluster.url_of(node))  # as the owner, where the rows are
        for statement in (
            f"UPDATE recollect.nodes_{shard} SET text = 'said otherwise' WHERE id = '{kept.id}'",
            f"DELETE FROM recollect.nodes_{shard} WHERE id = '{kept.id}'",
            f"TRUNCATE recollect.nodes_{shard} CASCADE",
        ):
            with pytest.raises(asyncpg.PostgresError, match=r"permanent|never deleted|it is a shard"):
                await worker.execute(statement)
        await worker.close()
        assert (await memory.get(kept.id)).text == "said once"


async def test_X04_what_is_changed_is_counted_where_it_is(spread: Engine, cluster: Cluster) -> None:
    """A cached answer goes when its space changes, also by the owner's hand on a worker, and no other space's does."""
    here, there = [await space_on(spread, cluster, node, f"counted{node}") for node in WORKERS]
    versions = "SELECT space_id, version FROM recollect.space_versions"
    for memory in (here, there):
        await memory.add("something to find")
    coordinator = await asyncpg.connect(cluster.url)
    before = dict(await coordinator.fetch(versions))
    await coordinator.execute(
        "UPDATE recollect.nodes SET importance = 0.9 WHERE space_id = $1 AND kind = 'memory'", here.space.id
    )
    after = dict(await coordinator.fetch(versions))
    await coordinator.close()
    assert after[here.space.id] == before[here.space.id] + 1
    assert after[there.space.id] == before[there.space.id]


async def test_X04_backup_and_restore_keep_the_distribution(cluster: Cluster, tmp_path: Path) -> None:
    """Also the way of a filled database onto a cluster, and back."""
    file = tmp_path / "spread.dump"
    async with engine_of(await new_database(cluster, "origin")) as plain:
        node = await plain.add("moved to many servers")
        other = await plain.add("and linked")
        await plain.graph.link(node.id, other.id, "before")
        await plain.backup(file)
    async with engine_of(await new_database(cluster, "target")) as target:
        await target.distribute(shards=2)
        assert await target.restore_backup(file) == 2
        assert target.core.database.distributed
        assert (await target.recall("moved servers"))[0].node.id == node.id
        added = await target.add("and more of it")
        with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="permanent"):
            async with target.core.database.alone() as connection:
                await connection.execute("UPDATE nodes SET text = 'no' WHERE id = $1", node.id)
        await target.backup(tmp_path / "again.dump")
        assert await target.restore_backup(tmp_path / "again.dump", overwrite=True) == 3
        async with target.core.database.alone() as connection:
            spread = await connection.fetchval("SELECT count(*) FROM pg_dist_partition WHERE partmethod = 'h'")
        assert spread == len(SPREAD)
        assert (await target.get(added.id)).text == "and more of it"
        assert (await target.verify()).whole


async def test_X04_a_space_moves_to_another_server_while_people_read_and_write(
    spread: Engine, cluster: Cluster
) -> None:
    memory = await space_on(spread, cluster, 1, "moving")
    first = await memory.add("was here before the move")
    moved = asyncio.Event()
    written: list[UUID] = []

    async def write() -> None:
        while not moved.is_set():
            written.append((await memory.add(f"written meanwhile, {len(written)}", wait=False)).id)

    async def ask() -> None:
        while not moved.is_set():
            assert (await memory.recall("before the move"))[0].node.id == first.id

    coordinator = await asyncpg.connect(cluster.url)
    people = [asyncio.create_task(does()) for does in (write, ask, ask, ask)]
    try:
        await coordinator.execute(
            "SELECT citus_move_shard_placement($1, '127.0.0.1', $2, '127.0.0.1', $3, 'force_logical')",
            await coordinator.fetchval(SHARD_OF, memory.space.id),
            cluster.port + 1,
            cluster.port + 2,
        )
        moved.set()
        await asyncio.gather(*people)
        assert await placed_at(coordinator, memory.space.id) == cluster.port + 2
    finally:
        moved.set()
        await asyncio.gather(*people, return_exceptions=True)
        await coordinator.close()
    assert len(written) > 0
    assert {one.id for one in (await memory.list(limit=1000)).items} == {first.id, *written}
    assert (await memory.verify()).whole
    with pytest.raises(asyncpg.IntegrityConstraintViolationError, match="permanent"):
        async with spread.core.database.alone() as connection:
            await connection.execute("UPDATE nodes SET text = 'no' WHERE space_id = $1", memory.space.id)


async def test_X04_while_a_server_is_down_the_spaces_of_the_others_are_read_and_added_to_as_ever(
    spread: Engine, cluster: Cluster
) -> None:
    here, there = [await space_on(spread, cluster, node, f"killed{node}") for node in WORKERS]
    kept = [await memory.add(f"kept by {memory.space.slug}") for memory in (here, there)]
    cluster.kill(2)
    try:
        await until_it_holds(lambda: _is_silent(there, kept[1].id))  # its processes notice a little later
        with pytest.raises(DatabaseProblem):
            await there.get(kept[1].id)
        assert (await here.recall("kept by"))[0].node.id == kept[0].id
        assert (await here.list()).items[0].id == kept[0].id
        added = await here.add("written while the other server is down")
        assert (await here.recall("written while the other server is down"))[0].node == added
        assert len((await here.add_many([f"one of several, {number}" for number in range(3)])).ids) == 3
    finally:
        cluster.restart()
    await until_it_holds(lambda: _answers(there, kept[1].id))
    assert (await there.recall("kept by"))[0].node.id == kept[1].id


async def _is_silent(memory: Engine, id_: UUID) -> bool:
    return not await _answers(memory, id_)


async def _answers(memory: Engine, id_: UUID) -> bool:
    try:
        await memory.get(id_)
    except (DatabaseProblem, NotFound):
        return False
    return True


HANDED_ON = """
SELECT distribution_argument_index FROM pg_catalog.pg_dist_object
 WHERE classid = 'pg_proc'::regclass AND objid = 'recollect.note_recall'::regproc
"""


async def test_X04_a_recall_is_noted_by_the_worker_that_has_its_space(cluster: Cluster) -> None:
    """Where spaces were spread before the upgrade that hands it on, too."""
    async with engine_of(await new_database(cluster, "handed")) as engine:
        await engine.distribute(shards=2)
        database = engine.core.database
        await engine.add("The bus leaves at six.")
        for revision in (None, "0025", "head"):
            if revision == "0025":
                await downgrade(database, revision)
            elif revision:
                await upgrade(database, revision)
            await database.leave_connections()
            async with database.alone() as connection:
                assert (await connection.fetchval(HANDED_ON) == 0) == (revision != "0025")
        found = await engine.recall("When does the bus leave?")
        assert found.id is not None
        logged = (await engine.recalls()).items
        assert [(entry.id, entry.memory_ids) for entry in logged] == [(found.id, (found[0].node.id,))]
        async with engine.core.transaction(engine.space.id) as db:
            counted = await activity.get_many(db, [found[0].node.id])
        assert [use.uses for use in counted.values()] == [1]


async def test_X04_D47_long_texts_of_an_older_version_are_embedded_once_more(cluster: Cluster) -> None:
    async with engine_of(await new_database(cluster, "windows")) as engine:
        await engine.distribute(shards=2)
        database = engine.core.database
        await engine.add(long_note())
        await engine.add("The bus leaves at six.")
        await downgrade(database, "0026")
        await upgrade(database)
        assert (await engine.jobs()).pending == 1
        await engine.work()
        assert (await engine.jobs()).pending == 0
