"""Care of the data: verify (is everything whole?), doctor (how are you, and what should I do?), maintain (D34)."""

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from recollect.engine import backup
from recollect.engine.build import backup_directory
from recollect.engine.core import Core
from recollect.engine.sql import care, spaces
from recollect.memories import summaries
from recollect.memories.rules.text import checksum
from recollect.memories.sql import jobs, vectors
from recollect.model import JobCounts
from recollect.store.migrations import HEAD
from recollect.store.standby import StandbyReport
from recollect.wording import counted

REINDEX_EVERY = timedelta(days=182)
A_DAY = timedelta(days=1)
MANY_CONNECTIONS = 0.8
MANY_PAGES = 100_000
FEW_FOUND = 0.9
LITTLE_DISK_BYTES = 1_000_000_000
# An hour's work of one machine and more.
MANY_WAITING = 250_000
MORE_MACHINES = " Several machines can share this: see `RECOLLECT_RAY` in docs/how-to/grow.md."
OTHER_LANGUAGES = (
    "For more languages, set RECOLLECT_EMBEDDER to ollama:bge-m3 (an Ollama server on this machine) or to "
    "openai:text-embedding-3-small (with RECOLLECT_EMBEDDING_API_KEY, or RECOLLECT_EMBEDDING_URL for a server like it)."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Verification:
    """What `verify` checked, and what it found wrong: fault -> ids."""

    texts: int
    faults: Mapping[str, list[UUID]] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        return not self.faults


@dataclass(frozen=True, kw_only=True, slots=True)
class SpaceReport:
    """One space as the doctor sees it."""

    slug: str
    jobs: JobCounts
    embedding_model: str | None
    failures: tuple[tuple[UUID, str], ...]
    # The active texts, and how many of them the embedder in use cannot read (D43).
    texts: int = 0
    unreadable: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkup:
    """What `doctor` saw, and what to do."""

    place: str
    server: care.ServerFacts
    revision: str
    rows_guarded: bool
    nodes: int
    born_at: datetime
    disk_free_bytes: int | None
    spaces: tuple[SpaceReport, ...]
    indexes: tuple[vectors.IndexState, ...]
    last_backup_at: datetime | None
    last_maintained_at: datetime | None
    advice: tuple[str, ...]
    # The standby that is read, where there is one.
    standby: StandbyReport | None = None
    # Worth knowing, and no fault.
    notes: tuple[str, ...] = ()

    @property
    def healthy(self) -> bool:
        return not self.advice


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """Figures of all spaces together, for whoever watches the server; vectors by model."""

    nodes: int
    jobs: JobCounts
    embeddings: Mapping[str, int]


async def ping(core: Core) -> None:
    """DatabaseProblem unless the database answers."""
    async with core.database.owner() as connection:
        await care.ping(connection)


async def totals(core: Core) -> Totals:
    async with core.database.owner() as connection:
        models = await care.stored_models(connection)
        return Totals(
            nodes=await care.count_nodes(connection),
            jobs=await care.job_counts(connection),
            embeddings={f"{model}/{dim}": number for model, dim, number in models},
        )


async def verify(core: Core) -> Verification:
    """Recompute every checksum, follow every reference, look at every vector."""
    wrong: list[UUID] = []
    checked = 0
    async with core.database.owner() as connection:
        async for batch in care.texts(connection):
            wrong += [id_ for id_, text, recorded in batch if checksum(text) != recorded]
            checked += len(batch)
        faults = await care.broken(connection)
    if wrong:
        faults["a text that does not match its checksum"] = wrong[:20]
    return Verification(texts=checked, faults=faults)


async def doctor(core: Core) -> Checkup:
    """A look at everything that can go wrong, each finding with what to do about it."""
    async with core.database.owner() as connection:
        server = await care.server_facts(connection)
        number = await care.count_nodes(connection)
        models = await care.stored_models(connection)
        maintained = await care.last_run(connection, "maintain")
        backed_up = await care.last_run(connection, "backup")
        all_spaces = await spaces.list_all(connection)
    reports = tuple([await _space_report(core, space.id, space.slug, space.embedding_model) for space in all_spaces])
    indexes = tuple([await vectors.index_state(core.database, model, dim) for model, dim, _ in models])
    checkup = Checkup(
        place=f"inside, in {core.server.home}" if core.server else "your server (DATABASE_URL)",
        server=server,
        revision=HEAD,
        rows_guarded=core.database.role is not None,
        nodes=number,
        born_at=min(space.created_at for space in all_spaces),
        disk_free_bytes=shutil.disk_usage(core.server.home).free if core.server else None,
        spaces=reports,
        indexes=indexes,
        last_backup_at=backed_up,
        last_maintained_at=maintained,
        advice=(),
        standby=await core.database.how_the_standby_is(),
    )
    return _with_advice(checkup, core)


async def maintain(core: Core, *, reindex: bool | None = None, with_backup: bool = True) -> dict[str, Any]:
    """The daily round: backup, vacuum, completed jobs cleared; the vector indexes anew every six months."""
    now = core.now()
    report: dict[str, Any] = {}
    if with_backup:
        directory = backup_directory(core.settings, core.server)
        dump = await backup.backup(core, directory / f"daily-{now:%Y-%m-%d}.dump", overwrite=True, make_directory=True)
        backup.rotate(directory, keep=core.settings.backup_keep)
        report["backup"] = str(dump.file)
    report["jobs_cleared"] = await _clear_jobs(core, now - timedelta(days=core.settings.job_keep_days))
    report["summaries_expired"] = sum([await summaries.expire(core, space) for space in await _space_ids(core)])
    await care.vacuum(core.database)
    async with core.database.owner() as connection:
        models = await care.stored_models(connection)
        last = await care.last_run(connection, "reindex")
        first = await care.last_run(connection, "maintain") is None
    if reindex or (reindex is None and not first and (last is None or last < now - REINDEX_EVERY)):
        report["reindexed"] = [
            model for model, dim, _ in models if await vectors.rebuild_index(core.database, model, dim)
        ]
    async with core.database.owner() as connection:
        home = await spaces.get(connection, "default")
        if "reindexed" in report or first:
            await care.note_run(connection, home.id, "reindex", {"models": report.get("reindexed", [])}, now)
        await care.note_run(connection, home.id, "maintain", report, now)
    return report


async def _space_report(core: Core, space_id: UUID, slug: str, model: str | None) -> SpaceReport:
    async with core.transaction(space_id) as db:
        unreadable, texts = await jobs.unreadable(db, model=model or core.embedder().model)
        return SpaceReport(
            slug=slug,
            jobs=await jobs.counts(db),
            embedding_model=model,
            failures=tuple(await jobs.failures(db, most=5)),
            texts=texts,
            unreadable=unreadable,
        )


async def _clear_jobs(core: Core, before: datetime) -> int:
    cleared = 0
    for space in await _space_ids(core):
        async with core.transaction(space) as db:
            cleared += await jobs.clear_completed(db, before=before)
    return cleared


async def _space_ids(core: Core) -> list[UUID]:
    async with core.database.owner() as connection:
        return [space.id for space in await spaces.list_all(connection)]


def _with_advice(checkup: Checkup, core: Core) -> Checkup:
    advice: list[str] = []
    for space in checkup.spaces:
        if space.jobs.failed:
            advice.append(
                f"{counted(space.jobs.failed, 'text')} of the space {space.slug} could not be embedded "
                f"({space.failures[0][1]}): mend that, then `recollect jobs retry --space {space.slug}`."
            )
        if space.jobs.waiting:
            shared = MORE_MACHINES if space.jobs.waiting >= MANY_WAITING and core.executor is None else ""
            texts = counted(space.jobs.waiting, "text") + f" of the space {space.slug}"
            wait = "waits" if space.jobs.waiting == 1 else "wait"
            advice.append(f"{texts} {wait} to be embedded: `recollect work`.{shared}")
    for index in checkup.indexes:
        if index.state != "ready" and index.rows >= core.settings.hnsw_min_rows:
            advice.append(f"The vector index {index.name} is {index.state}: `recollect work` builds it.")
    if checkup.disk_free_bytes is not None and checkup.disk_free_bytes < LITTLE_DISK_BYTES:
        advice.append("Less than 1 GB of disk is free where the database lives: make room.")
    if checkup.nodes and checkup.last_backup_at is None and checkup.born_at < core.now() - A_DAY:
        advice.append("There is no backup yet: `recollect maintain` makes one, and `recollect serve` does so daily.")
    if checkup.standby and checkup.standby.trouble:
        advice.append(
            f"The standby of DATABASE_READ_URL is not read: {checkup.standby.trouble}. Mend it, or unset the variable; "
            "until then the primary is read."
        )
    if not checkup.rows_guarded:
        advice.extend(core.database.notes)
    unread = [_unread(space) for space in checkup.spaces if space.unreadable]
    return replace(checkup, advice=tuple(advice), notes=(*unread, *_signs(checkup)))


def _signs(checkup: Checkup) -> Iterator[str]:
    """What says that it is time to grow (docs/how-to/grow.md)."""
    server = checkup.server
    if server.connections >= MANY_CONNECTIONS * server.most_connections:
        yield (
            f"{server.connections} of the {server.most_connections} connections that the database allows are in use: "
            "raise max_connections, or lower RECOLLECT_POOL_SIZE where many servers share it."
        )
    if server.pages_read >= MANY_PAGES and server.pages_found < FEW_FOUND * (server.pages_found + server.pages_read):
        share = server.pages_found / (server.pages_found + server.pages_read)
        yield (
            f"Of what the database looks for, it has {share:.0%} in memory: give it more (shared_buffers), or let a "
            "standby take the reading (docs/how-to/grow.md)."
        )


def _unread(space: SpaceReport) -> str:
    return (
        f"{space.unreadable:,} of {space.texts:,} texts of the space {space.slug} "
        f"({space.unreadable / space.texts:.1%}) have no vector, because {space.embedding_model} cannot read them: "
        f"they are found by their words alone. {OTHER_LANGUAGES}"
    )
