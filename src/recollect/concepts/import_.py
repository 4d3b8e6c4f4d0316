"""Importing concepts from CSV and JSON lines. Each is formed as if it were added by itself, so what is there already is
found again: an import that was interrupted is simply repeated. Refusals name their line."""

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal
from uuid import UUID

import anyio.to_thread

from recollect.concepts import form
from recollect.concepts.rules.tables import csv_concepts, jsonl_concepts
from recollect.engine.core import Core
from recollect.memories.sources import PlaceInFile, SourceLine, check, read_table
from recollect.model import NewConcept

Format = Literal["auto", "jsonl", "csv"]
Progress = Callable[[int], None]


@dataclass(kw_only=True, slots=True)
class ConceptImport:
    """What an import did, or in a rehearsal would do. `joined` were there already and gained what is new."""

    dry_run: bool
    made: int = 0
    there: int = 0
    joined: int = 0
    lines: list[SourceLine] = field(default_factory=list)

    @property
    def refused(self) -> tuple[SourceLine, ...]:
        return tuple(line for line in self.lines if line.what == "refused")

    def __str__(self) -> str:
        would_be = "would be " if self.dry_run else ""
        return (
            f"{self.made:,} {would_be}added, {self.joined:,} {would_be}joined to one that is there, "
            f"{self.there:,} there already, {len(self.refused):,} {would_be}refused"
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundConcept(PlaceInFile):
    """A concept that was read, and where."""

    concept: NewConcept


async def import_(
    core: Core,
    space_id: UUID,
    sources: Sequence[Path],
    *,
    format: Format = "auto",
    dry_run: bool = False,
    stdin: BinaryIO | bytes | None = None,
    progress: Progress | None = None,
) -> ConceptImport:
    """Bring in what files hold, or the standard input (`-`); a dry run only says what would happen."""
    stream = io.BytesIO(stdin) if isinstance(stdin, bytes) else stdin
    check(sources, format, stream)
    report = ConceptImport(dry_run=dry_run)
    rows: list[FoundConcept] = []
    for source in sources:
        rows += await anyio.to_thread.run_sync(_read, source, stream, format, report)
    concepts = [row.concept for row in rows]
    formed = await form.form_many(core, space_id, concepts, dry_run=dry_run, progress=progress)
    report.made, report.there, report.joined = formed.made, formed.there, formed.joined
    report.lines += [rows[refused.position].refused(refused.message) for refused in formed.refused]
    return report


def _read(source: Path, stdin: BinaryIO | None, format: Format, report: ConceptImport) -> list[FoundConcept]:
    """The concepts of one file; what cannot be read becomes lines of the report."""
    rows = read_table(source, stdin, format, report.lines, jsonl=jsonl_concepts, csv=csv_concepts)
    return [FoundConcept(concept=concept, file=str(source), line=line) for line, concept in rows]
