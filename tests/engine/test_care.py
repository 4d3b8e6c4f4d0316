"""Care of the data: backup and restore, verify, doctor, maintenance."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from recollect.engine import care
from recollect.engine.backup import rotate
from recollect.engine.engine import Engine
from recollect.engine.worker import work_forever
from recollect.errors import Conflict, DatabaseProblem, InvalidInput
from recollect.model import NewMemory
from recollect.settings import Settings
from recollect.store.embedded import EmbeddedServer
from tests.waiting import until_it_holds

pytestmark = pytest.mark.anyio


@pytest.fixture
async def own(new_home: Path, anyio_backend: str) -> AsyncIterator[Engine]:
    """An engine with a database of its own, since these tests look at the whole of it."""
    settings = Settings.load(home=new_home, embedder="hashing:32", pool_size=4)
    async with Engine(settings) as engine:
        yield engine


async def fill(engine: Engine) -> None:
    await engine.add_many([NewMemory(text=f"note {n}", metadata={"extra": {"n": n}}) for n in range(30)])
    node = await engine.add("edited")
    await engine.edit(node.id, metadata={"tags": ["ai"]})
    await engine.forget(node.id, reason="archived before the backup")


async def state(engine: Engine) -> list[object]:
    connection = await asyncpg.connect(engine.core.database.dsn)
    tables = ("spaces", "nodes", "embeddings", "embedding_jobs", "plans", "decisions", "changes")
    rows = [await connection.fetch(f"SELECT t::text FROM recollect.{table} t ORDER BY 1") for table in tables]
    await connection.close()
    return rows


async def test_D34_a_backup_restores_everything_exactly(own: Engine, tmp_path: Path) -> None:
    await fill(own)
    before = await state(own)
    made = await own.backup(tmp_path / "all.dump")
    assert made.bytes == made.file.stat().st_size > 1000
    assert made.file.stat().st_mode & 0o077 == 0
    await own.add("after the backup")
    with pytest.raises(Conflict, match=r"would replace what the database holds \(32 memories\)"):
        await own.restore_backup(made.file)
    assert await own.restore_backup(made.file, overwrite=True) == 31
    assert await state(own) == before
    assert (await own.verify()).whole
    assert len(await own.recall("note 7", weak=True)) == 20
    connection = await asyncpg.connect(own.core.database.dsn)
    with pytest.raises(asyncpg.IntegrityConstraintViolationError):
        await connection.execute("DELETE FROM recollect.nodes")
    await connection.close()


async def test_a_backup_is_not_overwritten_unasked(own: Engine, tmp_path: Path) -> None:
    file = tmp_path / "b.dump"
    await own.backup(file)
    with pytest.raises(Conflict, match="exists already: give another name, or --overwrite"):
        await own.backup(file)
    await own.backup(file, overwrite=True)
    assert list(tmp_path.iterdir()) == [file]


async def test_what_is_no_backup_changes_nothing(own: Engine, tmp_path: Path) -> None:
    await fill(own)
    before = await state(own)
    wrong, broken = tmp_path / "text.dump", tmp_path / "broken.dump"
    wrong.write_text("not a dump")
    whole = (await own.backup(tmp_path / "whole.dump")).file.read_bytes()
    broken.write_bytes(whole[: len(whole) * 2 // 3])
    with pytest.raises(InvalidInput, match="is not a backup made by `recollect backup`"):
        await own.restore_backup(wrong, overwrite=True)
    with pytest.raises(InvalidInput, match="cannot be read"):
        await own.restore_backup(tmp_path / "missing.dump", overwrite=True)
    with pytest.raises(DatabaseProblem, match=r"(nothing was changed|cannot be read as a backup)"):
        await own.restore_backup(broken, overwrite=True)
    assert await state(own) == before


async def test_a_backup_of_one_server_version_restores_into_another(own: Engine, tmp_path: Path) -> None:
    await fill(own)
    made = await own.backup(tmp_path / "from18.dump")
    texts = {node.text async for node in own.stream()}
    home = Path(str(own.settings.home) + "-16")
    settings = own.settings.model_copy(update={"home": home, "pg_version": 16})
    async with Engine(settings) as other:
        assert (await other.doctor()).server.version.startswith("16")
        await other.restore_backup(made.file)
        assert {node.text async for node in other.stream()} == texts
        assert (await other.verify()).whole


async def test_verify_finds_what_is_broken(own: Engine) -> None:
    await fill(own)
    assert (await own.verify()).texts == 31
    connection = await asyncpg.connect(own.core.database.dsn, server_settings={"search_path": "recollect,public"})
    await connection.execute("ALTER TABLE nodes DISABLE TRIGGER USER")
    damaged = await connection.fetchval("UPDATE nodes SET text = 'tampered' WHERE text = 'note 3' RETURNING id")
    await connection.execute("ALTER TABLE nodes ENABLE TRIGGER USER")
    vector = "UPDATE embeddings SET vector = '[0.5,0.5]' WHERE node_id = (SELECT id FROM nodes WHERE text = 'note 4')"
    await connection.execute(vector)
    of_note_5 = "WHERE node_id = (SELECT id FROM nodes WHERE text = 'note 5')"
    await connection.execute(f"UPDATE embeddings SET recallable = NOT recallable {of_note_5}")
    await connection.close()
    faults = (await own.verify()).faults
    assert faults["a text that does not match its checksum"] == [damaged]
    assert len(faults["a vector whose length is not the one recorded"]) == 1
    assert len(faults["a vector that is not finite and of unit length"]) == 1
    assert len(faults["a vector recallable against its node's state"]) == 1


async def test_what_waits_to_be_indexed_anew_is_whole(own: Engine) -> None:
    """Who verifies right after a text has changed is not told to restore a backup."""
    case = await own.cases.add("How do I reset my password?", "Settings, Security, Reset.")
    await own.cases.update(case.case_id, query="How do I set a new password?")
    (renamed,), _ = await own.plans.list()
    await own.undo(renamed.id)
    assert (await own.jobs()).pending == 1
    assert (await own.verify()).faults == {}


async def test_doctor_says_what_to_do(own: Engine) -> None:
    fresh = await own.doctor()
    assert fresh.healthy
    assert fresh.rows_guarded
    assert fresh.disk_free_bytes
    await own.add("waiting", wait=False)
    advice = " ".join((await own.doctor()).advice)
    assert "1 text of the space default waits to be embedded: `recollect work`" in advice
    assert "RECOLLECT_RAY" not in advice
    assert "backup" not in advice
    start = own.core.now()
    own.core.now = lambda: start + timedelta(days=2)
    assert any("There is no backup yet" in one for one in (await own.doctor()).advice)
    await own.work()
    await own.maintain()
    after = await own.doctor()
    assert after.healthy
    assert after.last_backup_at
    assert after.last_maintained_at


async def test_X01_doctor_names_the_sign_that_several_machines_would_help(
    own: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(care, "MANY_WAITING", 2)
    await own.add_many([NewMemory(text="tea"), NewMemory(text="rain")], wait=False)
    (advice,) = [one for one in (await own.doctor()).advice if "wait to be embedded" in one]
    assert advice.endswith("Several machines can share this: see `RECOLLECT_RAY` in docs/how-to/grow.md.")


async def test_D34_maintenance_backs_up_clears_jobs_and_reindexes_every_six_months(own: Engine) -> None:
    await fill(own)
    start = own.core.now()
    first = await own.maintain()
    assert Path(first["backup"]).exists()
    assert "reindexed" not in first
    assert first["jobs_cleared"] == 0
    own.core.now = lambda: start + timedelta(days=40)
    assert (await own.maintain())["jobs_cleared"] == 31
    own.core.now = lambda: start + timedelta(days=183)
    assert (await own.maintain())["reindexed"] == []
    assert (await own.doctor()).server.last_vacuum_at
    assert (await own.verify()).whole


def test_daily_backups_are_rotated(tmp_path: Path) -> None:
    for day in range(1, 11):
        (tmp_path / f"daily-2026-01-{day:02}.dump").touch()
    (tmp_path / "mine.dump").touch()
    (tmp_path / "daily-2026-01-09.dump.0a1b2c3d.partial").touch()
    being_written = tmp_path / "daily-2026-01-10.dump.0a1b2c3d.partial"
    being_written.touch()
    rotate(tmp_path, keep=7)
    kept = sorted(file.name for file in tmp_path.iterdir())
    assert kept == [*(f"daily-2026-01-{day:02}.dump" for day in range(4, 11)), being_written.name, "mine.dump"]


async def test_two_who_back_up_to_one_file_do_not_write_into_each_other(own: Engine, tmp_path: Path) -> None:
    """A daily round by hand beside that of a server: both were told of success, or one of a file that is not there."""
    await fill(own)
    file = tmp_path / "daily.dump"
    both = await asyncio.gather(*(own.backup(file, overwrite=True) for _ in range(3)), return_exceptions=True)
    assert not [problem for problem in both if isinstance(problem, BaseException)]
    assert list(tmp_path.iterdir()) == [file]
    assert await own.restore_backup(file, overwrite=True) == 31


async def test_what_is_no_file_is_not_replaced(own: Engine, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for write in (own.backup, own.export):
        with pytest.raises(InvalidInput, match="no file but a device or a pipe"):
            await write(pipe, overwrite=True)
        with pytest.raises(InvalidInput, match="is a folder"):
            await write(tmp_path, overwrite=True)
    assert pipe.is_fifo()


async def test_D41_an_upgrade_takes_a_backup_first(own: Engine, new_home: Path) -> None:
    await fill(own)
    connection = await asyncpg.connect(own.core.database.dsn)
    await connection.execute("UPDATE recollect.alembic_version SET version_num = '0000'")
    await connection.close()
    with pytest.raises(Exception, match="0000"):  # there is no such revision to upgrade from
        async with Engine(own.settings):
            pass
    backup = new_home / "backups" / "before-upgrade-from-0000.dump"
    assert backup.exists()
    with EmbeddedServer(new_home) as server:
        connection = await asyncpg.connect(server.url)
        await connection.execute("UPDATE recollect.alembic_version SET version_num = '0001'")
        await connection.close()


async def test_P06_the_worker_revives_the_database_inside_after_kill_dash_nine(own: Engine) -> None:
    await own.add("told before the crash")
    assert own.core.server
    of_server = own.core.server.data_directory / "postmaster.pid"
    killed = of_server.read_text().split()[0]
    os.kill(int(killed), signal.SIGKILL)
    working = asyncio.create_task(work_forever(own.core))
    try:
        # What the killed one had started may answer for a moment yet.
        await until_it_holds(lambda: asyncio.to_thread(lambda: killed not in of_server.read_text().split()[:1]))
        await until_it_holds(lambda: answers(own))
        assert await own.count() == 1
        node = await own.add("told after it", wait=True)
        assert node.id in {hit.node.id for hit in await own.recall("told after it")}
    finally:
        working.cancel()
        with suppress(asyncio.CancelledError):
            await working


async def answers(engine: Engine) -> bool:
    try:
        await engine.count()
    except DatabaseProblem:
        return False
    return True


async def test_a_backup_does_not_make_directories_and_is_remembered(own: Engine, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be written"):
        await own.backup(tmp_path / "typo" / "all.dump")
    assert not (tmp_path / "typo").exists()
    assert (await own.doctor()).last_backup_at is None
    await own.backup(tmp_path / "all.dump")
    assert (await own.doctor()).last_backup_at


async def test_a_restored_edge_is_not_taken_for_changed_again_and_again(own: Engine, tmp_path: Path) -> None:
    """A server that the backup did not come from counts its transactions from the beginning."""
    added = await own.add_many([NewMemory(text=f"stone {n}") for n in range(3)], wait=False)
    first = await own.graph.link(added.ids[0], added.ids[1])
    await own.graph.link(added.ids[1], added.ids[2])
    async with own.core.database.alone() as connection:
        await connection.execute("ALTER TABLE edges DISABLE TRIGGER edges_note_their_change")
        await connection.execute("UPDATE edges SET changed_in = 10::int8 ^ 15 WHERE id = $1", first.id)
        await connection.execute("ALTER TABLE edges ENABLE TRIGGER edges_note_their_change")
    made = await own.backup(tmp_path / "far-ahead.dump")
    await own.restore_backup(made.file, overwrite=True)
    async with own.core.database.alone() as connection:
        last, now = await connection.fetchrow(
            "SELECT max(changed_in), pg_snapshot_xmax(pg_current_snapshot())::text::int8 FROM edges"
        )
    assert 0 < last < now
    assert [edge.id for edge in await own.graph.edges(added.ids[0])] == [first.id]
