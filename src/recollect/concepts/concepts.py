"""`memory.concepts`: named ideas, each there once; why two are taken for one, and how to keep them two.

form.py makes them, compare.py compares them, policies/merge_duplicate_concepts.py merges those that are the same.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import BinaryIO
from uuid import UUID

from recollect.concepts import compare, form, growth
from recollect.concepts import import_ as concept_import
from recollect.concepts.compare import Duplicate, Why
from recollect.concepts.growth import Ticked
from recollect.concepts.rules.concepts import checked_concept_name, checked_energy
from recollect.concepts.rules.detection.detect import THRESHOLD
from recollect.concepts.rules.names import plain
from recollect.concepts.rules.never_merge import NEVER_MERGE_EXAMPLE
from recollect.concepts.sql import concepts, never_merge
from recollect.engine.core import Face, Reference
from recollect.errors import InvalidInput, NotFound
from recollect.memories import edit
from recollect.memories.sql import nodes
from recollect.model import Concept, Formed, FormedMany, KeptApart, Kind, Metadata, NewConcept, NodeFilter
from recollect.plan import Outcome
from recollect.store.database import reads
from recollect.wording import check_limit

MOST_PAIRS = 10_000


class Concepts(Face):
    """Named ideas."""

    async def add(
        self,
        name: str,
        node_type: str = "concept",
        *,
        text: str | None = None,
        energy: Mapping[str, float] | None = None,
        base_weight: float | None = None,
        metadata: Metadata | None = None,
        created_by: str | None = None,
        created_at: datetime | None = None,
        id: UUID | None = None,
        threshold: float = THRESHOLD,
    ) -> Formed:
        """Make a concept; one of its type that is the same beyond doubt is returned instead, with the reason."""
        new = NewConcept(
            name=name,
            node_type=node_type,
            text=text,
            energy=energy or {},
            base_weight=base_weight,
            metadata=metadata or {},
            created_by=created_by,
            created_at=created_at,
            id=id,
        )
        return await form.form(self.core, self.space_id, new, threshold=threshold)

    async def add_many(
        self,
        concepts: Sequence[form.HandedIn],
        *,
        threshold: float = THRESHOLD,
        atomic: bool = False,
        progress: form.Progress | None = None,
    ) -> FormedMany:
        """Make many, each as `add` would after those before it: the good are stored, the bad reported; `atomic` makes
        all or none."""
        return await form.form_many(
            self.core, self.space_id, concepts, threshold=threshold, atomic=atomic, progress=progress
        )

    async def import_(
        self,
        sources: Sequence[str | Path],
        *,
        format: concept_import.Format = "auto",
        dry_run: bool = False,
        stdin: BinaryIO | bytes | None = None,
        progress: form.Progress | None = None,
    ) -> concept_import.ConceptImport:
        """Bring in CSV or JSON lines: name, type, text; every other column is a field of the metadata."""
        paths = [Path(source) for source in sources]
        return await concept_import.import_(
            self.core, self.space_id, paths, format=format, dry_run=dry_run, stdin=stdin, progress=progress
        )

    @reads
    async def get(self, reference: Reference, node_type: str | None = None) -> Concept:
        """A concept by name, alias or id; what was merged leads to its keeper."""
        async with self.core.transaction(self.space_id) as db:
            node = await compare.find(db, reference, node_type)
            (concept,) = await concepts.in_full(db, [node])
            return concept

    async def resolve(self, reference: Reference, node_type: str | None = None) -> UUID:
        """The id of the concept that a name, an alias or an id leads to."""
        async with self.core.transaction(self.space_id) as db:
            return (await compare.find(db, reference, node_type)).id

    async def add_energy(
        self, reference: Reference, energy: Mapping[str, float], node_type: str | None = None
    ) -> Concept:
        """Add energy by entity; it is summed as given, and bent only where it is shown."""
        given = checked_energy(energy)
        async with self.core.transaction(self.space_id) as db:
            node = await compare.find(db, reference, node_type)
            await concepts.add_energy(db, node.id, given)
            (concept,) = await concepts.in_full(db, [node])
            return concept

    async def protect(self, reference: Reference, protected: bool = True, *, reason: str | None = None) -> Concept:
        """Say that tidying leaves a concept alone, or no longer."""
        id_ = await self.resolve(reference)
        await edit.set_protected(self.core, self.space_id, id_, protected, reason=reason)
        return await self.get(id_)

    # -- duplicates

    @reads
    async def duplicates(
        self, *, threshold: float = THRESHOLD, node_type: str | None = None, limit: int = 100
    ) -> Sequence[Duplicate]:
        """Pairs of concepts that score at least the threshold, best first. It looks, and changes nothing (C01)."""
        form.check_threshold(threshold)
        check_limit(limit, MOST_PAIRS)
        return await compare.duplicates(self.core, self.space_id, threshold=threshold, node_type=node_type, limit=limit)

    async def merge(self, keep: Reference, *others: Reference, reason: str | None = None) -> Outcome:
        """Merge concepts by hand into the first one, at once; `undo` takes it back like any other plan."""
        if not others:
            raise InvalidInput("A merge needs the concept that stays and at least one other.", field="others")
        return await compare.merge(self.core, self.space_id, keep, others, reason)

    @reads
    async def why(self, a: Reference, b: Reference, *, threshold: float = THRESHOLD) -> Why:
        """Why two nodes are, or are not, taken for one: the factors, the bound that failed, a remedy, the history."""
        form.check_threshold(threshold)
        return await compare.why_of(self.core, self.space_id, a, b, threshold=threshold)

    # -- what stays two

    async def keep_apart(self, a: str, b: str, *, reason: str | None = None) -> Sequence[KeptApart]:
        """Never merge concepts of these names, whoever bears them, now or as an absorbed name. Returns the list."""
        return await self.keep_all_apart([(a, b)], reason=reason)

    async def keep_all_apart(
        self, pairs: Sequence[tuple[str, str]] = NEVER_MERGE_EXAMPLE, *, reason: str | None = None
    ) -> Sequence[KeptApart]:
        """The same for many pairs; without any, those of the shipped example."""
        named = [(checked_concept_name(a), checked_concept_name(b)) for a, b in pairs]
        for a, b in named:
            if plain(a) == plain(b):
                raise InvalidInput(f"{a!r} and {b!r} are the same name: a pair needs two.", field="b")
        checked = None if reason is None else edit.checked_reason(reason)
        async with self.core.transaction(self.space_id) as db:
            await never_merge.add(db, named, reason=checked, now=self.core.now())
            return await never_merge.list_all(db, self.core.now())

    async def set_apart(self, a: Reference, b: Reference, *, never: bool = False) -> KeptApart:
        """Say that these two are two: while both stay as they are and for some days, or `never` to be asked again."""
        return await compare.keep_apart(self.core, self.space_id, a, b, never=never)

    @reads
    async def kept_apart(self) -> Sequence[KeptApart]:
        """The never-merge list; declined merges that rest for a while stand at its end."""
        async with self.core.transaction(self.space_id) as db:
            return await never_merge.list_all(db, self.core.now())

    async def let_merge(self, a: str, b: str) -> Sequence[KeptApart]:
        """Take a pair off the never-merge list. Returns the list."""
        async with self.core.transaction(self.space_id) as db:
            if not await never_merge.remove(db, a, b):
                raise NotFound(f"{a!r} and {b!r} are not on the never-merge list: `recollect never-merge` shows it.")
            return await never_merge.list_all(db, self.core.now())

    async def tick(self) -> Sequence[Ticked]:
        """Look through the concepts, or bring their merging forward, if the graph has grown enough since (C18).

        A server does this by itself; who uses the engine without one may call it now and then.
        """
        return await growth.look(self.core, self.space_id)

    # Last, since in the body of a class its name hides the list of Python.

    @reads
    async def list(
        self, *, node_type: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> tuple[Sequence[Concept], str | None]:
        """A stretch of the concepts, newest first; and the cursor to go on with."""
        check_limit(limit)
        node_filter = NodeFilter(kinds=(Kind.CONCEPT,), subtypes=() if node_type is None else (node_type,))
        async with self.core.transaction(self.space_id) as db:
            page = await nodes.list_page(db, node_filter, limit=limit, cursor=cursor)
            return await concepts.in_full(db, page.items), page.next_cursor
