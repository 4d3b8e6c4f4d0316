"""`memory.pages`: a wiki that other wikis can be merged into; import, show, apply, compare, export."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from recollect.engine.core import Face, Reference
from recollect.errors import InvalidInput
from recollect.model import Page as Stretch
from recollect.pages import apply as page_applying
from recollect.pages import import_ as page_import
from recollect.pages import look
from recollect.pages.apply import Merged
from recollect.pages.files import PagesWritten
from recollect.pages.import_ import How, JudgeName, PageImport, Scope
from recollect.pages.look import PageView, Version
from recollect.pages.rules.decisions import MergePlan
from recollect.pages.rules.page import Format
from recollect.pages.rules.similarity import Scores
from recollect.plan import Plan
from recollect.plans.apply import Progress, Started
from recollect.store.database import reads
from recollect.wording import check_limit


class Pages(Face):
    """Pages, their links and their versions."""

    async def import_folder(
        self,
        folder: str | Path,
        *,
        scope: Scope = "subgraph",
        judge: JudgeName | None = None,
        hidden: bool = False,
        scores: Scores | None = None,
        created_by: str = "user",
        progress: Progress | None = None,
    ) -> PageImport:
        """Read a wiki or a vault of notes and propose to merge it into the pages there are. Nothing is changed yet.

        `judge` decides about pairs in between: a model (where one is configured), a person (they are taken as new, and
        named), or the thresholds alone. `scores` supplies what is compared otherwise.
        """
        how = How(scope=scope, judge=judge, scores=scores, created_by=created_by, progress=progress)
        return await page_import.import_folder(self.core, self.space_id, Path(folder), how, hidden=hidden)

    async def import_texts(
        self,
        files: Iterable[tuple[str, str]],
        *,
        label: str = "pages",
        scope: Scope = "subgraph",
        judge: JudgeName | None = None,
        scores: Scores | None = None,
        created_by: str = "user",
    ) -> PageImport:
        """The same for pages that are handed over: each a path, as it would have in a folder, and a text."""
        how = How(scope=scope, judge=judge, scores=scores, created_by=created_by)
        return await page_import.import_texts(self.core, self.space_id, files, how, label=label)

    async def merge_plan(self, plan: Reference) -> MergePlan:
        """What a plan does with each page, sub-graph by sub-graph, and how far it is."""
        return await page_applying.merge_plan(self.core, self.space_id, await self._plan(plan))

    async def plan_md(self, plan: Reference) -> str:
        """The same as the file plan.md, which can be read, edited and handed back."""
        return await page_applying.plan_md(self.core, self.space_id, await self._plan(plan))

    async def write_plan_md(self, plan: Reference, file: str | Path) -> None:
        await page_applying.write_plan_md(self.core, self.space_id, await self._plan(plan), Path(file))

    async def revise(
        self, plan: Reference, text: str | None = None, *, decline: Sequence[int] = (), by: str = "user"
    ) -> Plan:
        """The plan as its edited file says it: a new one takes the place of the old where something was changed."""
        id_ = await self._plan(plan)
        return await page_applying.revised(self.core, self.space_id, id_, text=text, decline=decline, by=by)

    async def apply(
        self,
        plan: Reference,
        *,
        plan_md: str | None = None,
        decline: Sequence[int] = (),
        file: str | Path | None = None,
        by: str = "user",
        progress: Progress | None = None,
        started: Started | None = None,
    ) -> Merged:
        """Carry a merge out: as the text of its plan.md says it, without what is declined, tried again where the audit
        objects. `file` is where the statuses are kept current."""
        return await page_applying.apply(
            self.core,
            self.space_id,
            await self._plan(plan),
            text=plan_md,
            decline=decline,
            file=None if file is None else Path(file),
            by=by,
            progress=progress,
            started=started,
        )

    @reads
    async def get(self, reference: Reference) -> PageView:
        """A page with its links, back-links and history; by id (`Principle:Loading`), name, path, alias or UUID."""
        return await look.get(self.core, self.space_id, reference)

    @reads
    async def versions(self, reference: Reference) -> Sequence[Version]:
        """Every text the page has had, oldest first."""
        return await look.versions(self.core, self.space_id, reference)

    @reads
    async def diff(self, reference: Reference, first: int | None = None, second: int | None = None) -> str:
        """What changed between two versions (the last two, if none are named), as a unified diff."""
        return await look.diff(self.core, self.space_id, reference, first, second)

    @reads
    async def list(self, *, type: str | None = None, limit: int = 50, cursor: str | None = None) -> Stretch:
        """A stretch of the pages, newest first."""
        check_limit(limit)
        return await look.list_pages(self.core, self.space_id, type=type, limit=limit, cursor=cursor)

    @reads
    async def export(self, folder: str | Path, *, format: Format | None = None) -> PagesWritten:
        """Write every page below a folder: as it came, or all in one format (`wiki`, `markdown`).

        A page that cannot be written there is named, and the others are written.
        """
        if format not in (None, "wiki", "markdown"):
            raise InvalidInput(f"There is no format {format!r}: it is wiki or markdown.", field="format")
        return await look.export(self.core, self.space_id, Path(folder), format=format)

    async def _plan(self, reference: Reference) -> Any:
        return (await self._engine.plans.get(reference, decisions=False)).id
