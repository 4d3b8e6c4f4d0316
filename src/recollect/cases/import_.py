"""Importing cases from CSV and JSON lines: nothing twice, however often it is begun; refusals name their line.

What is there already is recognised by its foreign id, else by its query and answer. It is left alone, or with `update`
brought to what the file says. Success rates are percent; that a file holds fractions is said, never guessed.
"""

import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import BinaryIO, Literal
from uuid import UUID

import anyio.to_thread

from recollect.cases import add, sql
from recollect.cases.add import Changes
from recollect.cases.rules.cases import checked
from recollect.cases.rules.tables import csv_cases, jsonl_cases
from recollect.engine.core import Core
from recollect.engine.sql import spaces
from recollect.errors import InvalidInput
from recollect.memories import embed
from recollect.memories.sources import PlaceInFile, SourceLine, check, read_table
from recollect.model import NewCase

Format = Literal["auto", "jsonl", "csv"]
Progress = Callable[[int], None]

BATCH = 1000
PERHAPS_FRACTIONS = (
    "Every success rate is at most 1: they were taken as percent. If they are fractions, import with --fractions."
)


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseImportOptions:
    """`source` is where foreign ids come from; `fractions` says that success rates go from 0 to 1."""

    format: Format = "auto"
    source: str = "import"
    fractions: bool = False
    update: bool = False
    dry_run: bool = False


@dataclass(kw_only=True, slots=True)
class CaseImport:
    """What an import did, or in a rehearsal would do."""

    dry_run: bool
    added: int = 0
    already_there: int = 0
    updated: int = 0
    lines: list[SourceLine] = field(default_factory=list)
    postponed: Mapping[str, int] = field(default_factory=dict)

    @property
    def refused(self) -> tuple[SourceLine, ...]:
        return tuple(line for line in self.lines if line.what == "refused")

    def __str__(self) -> str:
        would_be = "would be " if self.dry_run else ""
        return (
            f"{self.added:,} {would_be}added, {self.updated:,} {would_be}updated, "
            f"{self.already_there:,} there already, {len(self.refused):,} {would_be}refused"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundCase(PlaceInFile):
    """A case that was read, and where."""

    case: NewCase


async def import_(
    core: Core,
    space_id: UUID,
    sources: Sequence[Path],
    options: CaseImportOptions,
    *,
    stdin: BinaryIO | bytes | None = None,
    wait: bool = True,
    progress: Progress | None = None,
) -> CaseImport:
    """Bring in what files hold, or the standard input (`-`); a dry run only says what would happen."""
    stream = io.BytesIO(stdin) if isinstance(stdin, bytes) else stdin
    check(sources, options.format, stream)
    report = CaseImport(dry_run=options.dry_run)
    rates: list[float] = []
    for source in sources:
        records = await anyio.to_thread.run_sync(_read, source, stream, options, report)
        rates += [record.case.success_rate for record in records if record.case.success_rate is not None]
        for first in range(0, len(records), BATCH):
            await _take(core, space_id, records[first : first + BATCH], options, report)
            if progress:
                progress(first + len(records[first : first + BATCH]))
    if rates and max(rates) <= 1 and not options.fractions:
        report.lines.append(SourceLine(what="note", file=str(sources[0]), message=PERHAPS_FRACTIONS))
    if wait and not options.dry_run:
        report.postponed = Counter((await embed.finish(core, space_id)).values())
    return report


# -- reading


def _read(source: Path, stdin: BinaryIO | None, options: CaseImportOptions, report: CaseImport) -> list[FoundCase]:
    """The cases of one file; what cannot be read becomes lines of the report."""
    jsonl, csv = (partial(read, fractions=options.fractions) for read in (jsonl_cases, csv_cases))
    rows = read_table(source, stdin, options.format, report.lines, jsonl=jsonl, csv=csv)
    return [FoundCase(case=_named(case, options), file=str(source), line=line) for line, case in rows]


def _named(case: NewCase, options: CaseImportOptions) -> NewCase:
    """A foreign id is one of its source."""
    return replace(case, source=case.source or options.source) if case.source_id is not None else case


# -- storing


async def _take(
    core: Core, space_id: UUID, batch: Sequence[FoundCase], options: CaseImportOptions, report: CaseImport
) -> None:
    good = await _fitting(core, space_id, batch, report)
    async with core.transaction(space_id) as db:
        there = await sql.existing(db, [record.case for record in good])
    ids_there = {position: id_ for position, id_ in enumerate(there) if id_ is not None}
    fresh = _once([record for position, record in enumerate(good) if position not in ids_there], report)
    report.added += len(fresh) if options.dry_run else await _add(core, space_id, fresh, report)
    for position, id_ in ids_there.items():
        await _meet(core, space_id, id_, good[position].case, options, report)


async def _fitting(core: Core, space_id: UUID, batch: Sequence[FoundCase], report: CaseImport) -> list[FoundCase]:
    """The cases that pass the contract."""
    async with core.transaction(space_id) as db:
        contract = core.contract(await spaces.by_id(db))
    good: list[FoundCase] = []
    for row in batch:
        try:
            good.append(replace(row, case=checked(row.case, contract, core.now())))
        except InvalidInput as problem:
            report.lines.append(row.refused(problem.message))
    return good


def _once(batch: Sequence[FoundCase], report: CaseImport) -> list[FoundCase]:
    """Of rows that are the same, the first."""
    first: dict[object, FoundCase] = {}
    for record in batch:
        case = record.case
        key = (case.source, case.source_id) if case.source_id is not None else (case.query, case.response_text)
        first.setdefault(key, record)
    report.already_there += len(batch) - len(first)
    return list(first.values())


async def _add(core: Core, space_id: UUID, fresh: Sequence[FoundCase], report: CaseImport) -> int:
    added = await add.add_many(core, space_id, [record.case for record in fresh], wait=False)
    report.lines += [fresh[refused.position].refused(refused.message) for refused in added.refused]
    return len(added.ids)


async def _meet(
    core: Core, space_id: UUID, id_: UUID, case: NewCase, options: CaseImportOptions, report: CaseImport
) -> None:
    """A case that is there already: left alone, or brought to what the file says."""
    async with core.transaction(space_id) as db:
        there = await sql.get(db, id_)
    same = (there.query, there.response_text) == (case.query, case.response_text)
    if not options.update or (same and case.category_path in (None, there.category_path)):
        report.already_there += 1
        return
    report.updated += 1
    if not options.dry_run:
        edit = Changes(query=case.query, response_text=case.response_text, category_path=case.category_path)
        await add.update(core, space_id, id_, edit, updated_by=case.updated_by, reason="import", wait=False)
