"""What an administrator does: spaces, keys, backups, how the database is, what waits to be embedded, calibrating."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from recollect.engine import verbs
from recollect.engine.core import Core
from recollect.engine.sql import spaces
from recollect.errors import InvalidInput
from recollect.memories.rules.contract import checked_space_settings
from recollect.memories.sql import jobs
from recollect.model import ApiKey, JobCounts, Scope, Space

if TYPE_CHECKING:
    from recollect.engine import access, backup, care
    from recollect.recall import calibrate
    from recollect.store.distribute import Distribution


class Administration(ABC):
    """The verbs of an administrator; a part of `Engine`."""

    _space: Space | None

    @property
    @abstractmethod
    def core(self) -> Core: ...

    @property
    @abstractmethod
    def space(self) -> Space: ...

    # -- spaces

    async def spaces(self) -> Sequence[Space]:
        async with self.core.database.owner() as connection:
            return await spaces.list_all(connection)

    async def add_space(self, slug: str, settings: Mapping[str, Any] | None = None) -> Space:
        async with self.core.database.owner() as connection:
            return await spaces.add(connection, slug, checked_space_settings(settings or {}))

    async def set_space(self, slug: str, settings: Mapping[str, Any]) -> Space:
        """Change settings of a space: `tags` it registers besides the common ones; `strict_tags`: no others."""
        async with self.core.database.owner() as connection:
            space = await spaces.get(connection, slug)
            merged = checked_space_settings({**space.settings, **settings})
            return await spaces.change_settings(connection, space.id, merged)

    # -- keys

    async def add_key(
        self,
        name: str,
        *,
        scopes: Sequence[Scope],
        space: str | None = None,
        expires_at: datetime | None = None,
    ) -> tuple[ApiKey, str]:
        """Make an API key; the second part is the secret, shown this once."""
        return await verbs.access.add_key(self.core, name=name, scopes=scopes, space=space, expires_at=expires_at)

    async def keys(self) -> Sequence[ApiKey]:
        return await verbs.access.list_keys(self.core)

    async def revoke_key(self, prefix: str) -> ApiKey:
        return await verbs.access.revoke_key(self.core, prefix)

    async def authenticate(self, token: str | None, *, loopback: bool) -> "access.Caller":
        return await verbs.access.authenticate(self.core, token, loopback=loopback)

    async def sign_in(self, token: str) -> "access.Session":
        """Begin a browser's session with a key; its secret is shown this once."""
        return await verbs.access.sign_in(self.core, token)

    async def resume(self, session: str) -> "access.Caller | None":
        """Who signed in, while the session lasts."""
        return await verbs.access.resume(self.core, session)

    async def sign_out(self, session: str) -> None:
        await verbs.access.sign_out(self.core, session)

    async def needs_key(self) -> bool:
        """Whether a key was ever made, so that every request needs one."""
        return await verbs.access.needs_key(self.core)

    # -- care

    async def backup(self, file: str | Path, *, overwrite: bool = False) -> "backup.Backup":
        """Everything, all spaces, to one file."""
        return await verbs.backup.backup(self.core, Path(file), overwrite=overwrite)

    async def restore_backup(self, file: str | Path, *, overwrite: bool = False) -> int:
        """Bring back a backup, all or nothing; returns how many nodes there are now."""
        number = await verbs.backup.restore(self.core, Path(file), overwrite=overwrite)
        async with self.core.database.owner() as connection:  # the spaces are those of the backup now
            self._space = await spaces.get(connection, self.space.slug)
        return number

    async def distribute(self, *, shards: int = 32) -> "Distribution":
        """Spread the spaces of an empty database over the servers that Citus knows, all or nothing."""
        if not 1 <= shards <= 10_000:
            raise InvalidInput(f"{shards} shards are not possible: give 1 to 10,000.", field="shards")
        return await verbs.distribute.distribute(self.core.database, shards=shards)

    async def is_distributed(self) -> bool:
        """Whether the spaces are spread over several servers."""
        return self.core.database.distributed

    async def ping(self) -> None:
        """DatabaseProblem unless the database answers."""
        await verbs.care.ping(self.core)

    async def totals(self) -> "care.Totals":
        """How much there is in all spaces together: nodes, jobs by state, vectors by model."""
        return await verbs.care.totals(self.core)

    async def verify(self) -> "care.Verification":
        """Recompute every checksum, follow every reference, look at every vector."""
        return await verbs.care.verify(self.core)

    async def doctor(self) -> "care.Checkup":
        """How the database is, and what to do."""
        return await verbs.care.doctor(self.core)

    async def maintain(self, *, reindex: bool | None = None, with_backup: bool = True) -> dict[str, Any]:
        """The daily round: backup, vacuum, completed jobs cleared, indexes anew every six months."""
        return await verbs.care.maintain(self.core, reindex=reindex, with_backup=with_backup)

    # -- embedding

    async def work(self) -> int:
        """Embed what is waiting in this space; returns how many nodes were embedded."""
        return await verbs.embed.work(self.core, self.space.id)

    async def jobs(self) -> JobCounts:
        """Embedding jobs, by state."""
        async with self.core.transaction(self.space.id) as db:
            return await jobs.counts(db)

    async def job_failures(self) -> Sequence[tuple[UUID, str]]:
        async with self.core.transaction(self.space.id) as db:
            return await jobs.failures(db)

    async def retry_jobs(self) -> int:
        """Give failed embeddings another round of attempts."""
        return await verbs.embed.retry_failed(self.core, self.space.id)

    # -- calibrating

    async def measure_calibration(self) -> "calibrate.Measurement":
        """What a cosine of this embedder means on this space's own memories; nothing is changed."""
        return await verbs.calibrate.measure(self.core, self.space.id)

    async def use_calibration(self, measurement: "calibrate.Measurement") -> None:
        """Let this space's searches use a measured calibration."""
        await verbs.calibrate.use(self.core, self.space.id, measurement.model, measurement.proposed)
