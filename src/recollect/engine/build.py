"""Building an engine: settings, the database inside or yours, migrations, a backup before an upgrade (D41)."""

from contextlib import AsyncExitStack
from pathlib import Path

import anyio
import anyio.to_thread
from pydantic import SecretStr

from recollect.engine import backup
from recollect.engine.core import Clock, Core, log, utc_now
from recollect.errors import RecollectError
from recollect.providers.executors import make_executor
from recollect.settings import Settings
from recollect.store.embedded import EmbeddedServer
from recollect.store.prepare import open_database
from recollect.store.standby import ReadAt


async def build(settings: Settings, clock: Clock = utc_now) -> Core:
    """A ready Core; whatever was started is stopped again if a later step fails."""
    async with AsyncExitStack() as undo:
        # Before anything is started: a cluster that is named and not there is said at once.
        executor = await anyio.to_thread.run_sync(make_executor, settings.ray)
        server, dsn = await _reach(settings, undo)

        async def keep_a_copy(revision: str) -> None:
            file = backup_directory(settings, server) / f"before-upgrade-from-{revision}.dump"
            log.info("backing up before the upgrade", file=str(file))
            await backup.dump(dsn, file, overwrite=True, make_directory=True)

        database = await open_database(
            dsn, pool_size=settings.pool_size, before_upgrade=keep_a_copy, read_at=_read_at(settings)
        )
        undo.push_async_callback(database.close)
        for note in database.notes:
            log.warning(note)
        if settings.database_read_url is not None and database.standby is None:
            log.warning("DATABASE_READ_URL is not used: spaces that are spread over servers are read there")
        core = Core(settings=settings, database=database, server=server, now=clock, executor=executor)
        core.embedder()  # a setting that names no embedder is said at once, not at the first text
        undo.pop_all()
    return core


async def revive(core: Core) -> None:
    """Start the database inside again if it died; one that lives is left alone."""
    if core.server is None:
        return
    try:
        await anyio.to_thread.run_sync(core.server.start)
    except RecollectError as problem:
        log.warning("the database inside does not start", why=problem.message)


async def take_down(core: Core) -> None:
    """In order, and to the end: also where closing fails, and where whoever closes is cancelled."""
    with anyio.CancelScope(shield=True):
        try:
            await core.close()
        finally:
            if core.server:
                await anyio.to_thread.run_sync(core.server.release)


def backup_directory(settings: Settings, server: EmbeddedServer | None) -> Path:
    """Where automatic backups go: beside the database inside, else in the home directory of the settings."""
    if server is not None:
        return server.home / "backups"
    from platformdirs import user_data_path

    return (settings.home or user_data_path("recollect")) / "backups"


def _read_at(settings: Settings) -> ReadAt | None:
    if settings.database_read_url is None:
        return None
    return ReadAt(
        dsn=_address(settings.database_read_url),
        wait_seconds=settings.read_wait_seconds,
        lag_seconds=settings.read_lag_seconds,
    )


def _address(given: SecretStr) -> str:
    return given.get_secret_value().replace("postgresql+asyncpg://", "postgresql://")


async def _reach(settings: Settings, undo: AsyncExitStack) -> tuple[EmbeddedServer | None, str]:
    if settings.database_url is not None:
        return None, _address(settings.database_url)
    server = EmbeddedServer(settings.home, version=settings.pg_version, start_seconds=settings.pg_start_seconds)
    undo.callback(server.release)  # before it starts: an interrupt while it does must not leave it running
    dsn = await anyio.to_thread.run_sync(server.start)
    return server, dsn
