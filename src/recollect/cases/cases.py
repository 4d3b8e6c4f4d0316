"""`memory.cases`: questions with the answers given, and how each use went (the files beside this do it)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

from recollect.cases import add as case_adding
from recollect.cases import import_ as case_import
from recollect.cases import look, tidy
from recollect.cases.add import Changes
from recollect.cases.import_ import CaseImport, Format
from recollect.cases.look import CaseHealth, Reflection, Summary
from recollect.cases.rules.cases import checked_category, checked_rate
from recollect.cases.tidy import Consolidation
from recollect.engine.core import Face, Reference
from recollect.errors import InvalidInput, NotFound
from recollect.memories import edit
from recollect.model import (
    Added,
    Case,
    CaseFilter,
    CaseHits,
    CaseOutcome,
    CasePage,
    CaseStatus,
    Metadata,
    NewCase,
)
from recollect.plan import HistoryEntry
from recollect.plans.apply import Progress
from recollect.store.database import reads


class Cases(Face):
    """Questions, the answers given, and how well they did."""

    # -- adding and changing

    async def add(
        self,
        query: str,
        response_text: str,
        category_path: str | None = None,
        *,
        usage_count: int = 0,
        success_rate: float | None = None,
        last_accessed_at: datetime | None = None,
        metadata: Metadata | None = None,
        created_at: datetime | None = None,
        id: UUID | None = None,
        source: str | None = None,
        source_id: str | None = None,
        updated_by: str | None = None,
        wait: bool = True,
    ) -> Case:
        """Add a case. Returns when it can be found; `wait=False` returns when it is stored."""
        case = NewCase(
            query=query,
            response_text=response_text,
            category_path=category_path,
            usage_count=usage_count,
            success_rate=success_rate,
            last_accessed_at=last_accessed_at,
            metadata={} if metadata is None else metadata,
            created_at=created_at,
            id=id,
            source=source,
            source_id=source_id,
            updated_by=updated_by,
        )
        return await case_adding.add(self.core, self.space_id, case, wait=wait)

    async def add_many(self, cases: Sequence[NewCase], *, wait: bool = True, atomic: bool = False) -> Added:
        """Add many: the good are stored, the bad reported; `atomic` adds all or none."""
        return await case_adding.add_many(self.core, self.space_id, cases, wait=wait, atomic=atomic)

    async def import_(
        self,
        sources: Sequence[str | Path],
        *,
        format: Format = "auto",
        source: str = "import",
        fractions: bool = False,
        update: bool = False,
        dry_run: bool = False,
        stdin: BinaryIO | bytes | None = None,
        wait: bool = True,
        progress: case_import.Progress | None = None,
    ) -> CaseImport:
        """Bring in CSV or JSON lines. `fractions` says that success rates go from 0 to 1; it is never guessed."""
        options = case_import.CaseImportOptions(
            format=format, source=source, fractions=fractions, update=update, dry_run=dry_run
        )
        paths = [Path(source_path) for source_path in sources]
        return await case_import.import_(
            self.core, self.space_id, paths, options, stdin=stdin, wait=wait, progress=progress
        )

    async def update(
        self,
        case: Reference,
        *,
        query: str | None = None,
        response_text: str | None = None,
        category_path: str | None = None,
        protected: bool | None = None,
        updated_by: str | None = None,
        reason: str | None = None,
        if_version: int | None = None,
        wait: bool = True,
    ) -> Case:
        """A new version of a case; what it said before stays in its history, and undoing the plan brings it back."""
        return await case_adding.update(
            self.core,
            self.space_id,
            await self._id(case),
            Changes(query=query, response_text=response_text, category_path=category_path, protected=protected),
            updated_by=updated_by,
            reason=reason,
            if_version=if_version,
            wait=wait,
        )

    # -- looking

    @reads
    async def get(self, case: Reference) -> Case:
        """A case, by its id or a unique beginning of it; an archived one is shown, with a warning in the log."""
        return await look.get(self.core, self.space_id, await self._id(case))

    @reads
    async def list(
        self,
        *,
        status: CaseStatus | str | None = CaseStatus.ACTIVE,
        category: str | None = None,
        success_below: float | None = None,
        success_at_least: float | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> CasePage:
        """Cases, newest first: of a status (None: all), of a category and those below it, by success rate."""
        case_filter = CaseFilter(
            status=None if status is None else _status(status),
            category=checked_category(category),
            success_below=checked_rate(success_below),
            success_at_least=checked_rate(success_at_least),
        )
        return await look.list_page(self.core, self.space_id, case_filter, limit=limit, cursor=cursor)

    @reads
    async def search(self, query: str, *, category: str | None = None, limit: int = look.LIMIT) -> CaseHits:
        """The cases that answer a question, best first. Each hit counts as a use."""
        return await look.search(self.core, self.space_id, query, category=category, limit=limit)

    @reads
    async def history(self, case: Reference) -> Sequence[HistoryEntry]:
        """What happened to a case: every version, archiving and restoring, when, why, and by which plan."""
        return await edit.history(self.core, self.space_id, await self._id(case))

    # -- how they do

    async def record_outcome(
        self,
        case: Reference,
        success: bool,
        *,
        error_type: str | None = None,
        milliseconds: float | None = None,
        at: datetime | None = None,
        search: UUID | str | None = None,
    ) -> Case:
        """Say how a use went; the last 100 make the success rate, once there are 10.

        It counts as a use. Give the `id` of the search that found the case, and its hit is not counted twice.
        """
        outcome = CaseOutcome(success=success, error_type=error_type, milliseconds=milliseconds, created_at=at)
        return await look.record_outcome(self.core, self.space_id, await self._id(case), outcome, search=search)

    @reads
    async def outcomes(self, case: Reference, *, limit: int = 100) -> Sequence[CaseOutcome]:
        """How a case's own uses went, newest first."""
        return await look.outcomes(self.core, self.space_id, await self._id(case), limit=limit)

    @reads
    async def reflection(self, *, warn_below: float = look.WARN_BELOW, limit: int = 20) -> Reflection:
        """Success rates, the cases that fail too often, and the commonest reasons."""
        return await look.reflection(self.core, self.space_id, warn_below=warn_below, limit=limit)

    @reads
    async def summary(self) -> Summary:
        """The bank at a glance: what is active, what rests and why, what waits, what was done last."""
        return await look.summary(self.core, self.space_id)

    @reads
    async def health(self) -> CaseHealth:
        """Whether the bank needs somebody, and for what."""
        return await look.health(self.core, self.space_id)

    # -- tidying

    async def consolidate(
        self,
        options: Mapping[str, Any] | None = None,
        *,
        dry_run: bool = False,
        by: str = "user",
        progress: Progress | None = None,
    ) -> Consolidation:
        """Retire what fails, merge what repeats, shelve what nobody asks for; or only say what would be done."""
        return await tidy.run(self.core, self.space_id, options, dry_run=dry_run, by=by, progress=progress)

    async def archive(self, case: Reference, *, reason: str | None = None) -> Case:
        """Take a case out of the bank by hand; `restore` brings it back."""
        return await tidy.archive(self.core, self.space_id, await self._id(case), reason=reason)

    async def restore(self, case: Reference, *, by: str = "user") -> Case:
        """Bring an archived case back; one that was merged is taken out of its keeper, each with its own counts."""
        try:
            id_ = await self._id(case)
        except (NotFound, InvalidInput) as error:
            raise NotFound(tidy.NOT_FOUND) from error
        return await tidy.restore(self.core, self.space_id, id_, by=by)

    async def _id(self, case: Reference) -> UUID:
        try:
            return await self.node_id(case)
        except NotFound:
            raise NotFound(f"There is no case {case}: `recollect cases` lists them.") from None


def _status(name: str) -> CaseStatus:
    try:
        return CaseStatus(name)
    except ValueError:
        raise InvalidInput(f"A case is {' or '.join(CaseStatus)}, not {name!r:.60}.", field="status") from None
