"""The graph that comes with imported memories: what they are about become concepts, and all of it is linked.

Done once the memories are there. Both concepts and links are there once however often they are given, so an import that
is repeated adds nothing twice.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar
from uuid import UUID

from recollect.concepts import form
from recollect.concepts.sql import concepts
from recollect.engine.core import Core
from recollect.errors import InvalidInput
from recollect.graph import link
from recollect.graph.sql import edges
from recollect.memories.rules.pieces import UNTYPED, Relation, Thing
from recollect.memories.sql import nodes
from recollect.model import NewConcept, NewEdge, NewMemory

ABOUT = "about"
BY = "import"
BATCH = 1000

T = TypeVar("T")
Ends = tuple[UUID, UUID, str]


@dataclass(kw_only=True, slots=True)
class GatheredGraph:
    """What an import brought besides memories."""

    things: dict[str, Thing] = field(default_factory=dict)
    relations: dict[Relation, None] = field(default_factory=dict)
    # Texts, as they are stored, and what they are about.
    about: dict[str, list[str]] = field(default_factory=dict)

    def take(self, things: Iterable[Thing], relations: Iterable[Relation]) -> None:
        for thing in things:
            earlier = self.things.get(thing.name)
            # A relation names things without their type; whoever says more is believed.
            if earlier is None or earlier.type == UNTYPED:
                self.things[thing.name] = thing
        self.relations |= dict.fromkeys(relations)

    def note(self, text: str, names: Sequence[str]) -> None:
        noted = self.about.setdefault(text, [])
        noted += [name for name in names if name not in noted]


@dataclass(frozen=True, kw_only=True, slots=True)
class Woven:
    """How many concepts and links are new, and what could not be made."""

    concepts: int = 0
    links: int = 0
    problems: tuple[str, ...] = ()


async def weave(core: Core, space_id: UUID, gathered: GatheredGraph) -> Woven:
    """Make the concepts, and link memories and concepts."""
    formed, problems, new_concepts = dict[str, UUID](), list[str](), 0
    for thing in gathered.things.values():
        try:
            new = NewConcept(name=thing.name, node_type=thing.type, created_by=BY)
            concept = await form.form(core, space_id, new)
        except InvalidInput as problem:
            problems.append(f"{thing.name[:60]!r}: {problem.message}")
            continue
        formed[thing.name] = concept.concept.id
        new_concepts += concept.is_new
    links = 0
    for batch in _batches(await _wanted(core, space_id, gathered, formed)):
        linked = await _known(core, space_id, batch)
        fresh = [ends for ends in batch if ends not in linked]
        new_edges = [NewEdge(source=a, target=b, relation=relation, created_by=BY) for a, b, relation in fresh]
        await link.link_many(core, space_id, new_edges)
        links += len(fresh)
    return Woven(concepts=new_concepts, links=links, problems=tuple(problems))


async def foresee(core: Core, space_id: UUID, gathered: GatheredGraph) -> Woven:
    """What weaving would come to, with nothing written: a concept is there if one of its type bears its name."""
    there: dict[str, UUID] = {}
    async with core.transaction(space_id) as db:
        for thing in gathered.things.values():
            bearers = await concepts.bearers(db, thing.name, thing.type)
            if bearers:
                there[thing.name] = bearers[0].id
    links = await _wanted(core, space_id, gathered, there)
    linked = await _known(core, space_id, links)
    total = len(gathered.relations) + sum(len(names) for names in gathered.about.values())
    return Woven(concepts=len(gathered.things) - len(there), links=total - len(linked))


async def _wanted(core: Core, space_id: UUID, gathered: GatheredGraph, formed: Mapping[str, UUID]) -> list[Ends]:
    """The links between what is there by now: concepts among each other, memories with what they are about."""
    related = ((edge.source, edge.target, edge.relation) for edge in gathered.relations)
    links = [(formed[a], formed[b], relation) for a, b, relation in related if a in formed and b in formed]
    texts = await _ids(core, space_id, list(gathered.about))
    links += [
        (texts[text], formed[name], ABOUT)
        for text, names in gathered.about.items()
        for name in names
        if text in texts and name in formed
    ]
    # Names that lead to one concept are no link.
    return list(dict.fromkeys(ends for ends in links if ends[0] != ends[1]))


async def _ids(core: Core, space_id: UUID, texts: Sequence[str]) -> dict[str, UUID]:
    """Where each text is remembered, merges followed."""
    ids_by_text: dict[str, UUID] = {}
    for batch in _batches(texts):
        async with core.transaction(space_id) as db:
            twins = await nodes.existing(db, [NewMemory(text=text) for text in batch])
            ids = {text: twin.id for text, twin in zip(batch, twins, strict=True) if twin is not None}
            keepers = await nodes.keepers(db, list(ids.values()))
        ids_by_text |= {text: keepers.get(id_, id_) for text, id_ in ids.items()}
    return ids_by_text


async def _known(core: Core, space_id: UUID, links: Sequence[Ends]) -> set[Ends]:
    async with core.transaction(space_id) as db:
        return set(await edges.between(db, links)) if links else set()


def _batches(items: Sequence[T]) -> Iterator[list[T]]:
    rest = iter(items)
    while batch := list(islice(rest, BATCH)):
        yield batch
