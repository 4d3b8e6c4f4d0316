"""Concepts compared: which one is meant, which are alike, why two are or are not one; merged or kept apart by hand."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

import anyio.to_thread
import numpy as np

from recollect.concepts.policies.merge_duplicate_concepts import POLICY, absorb, blocked, found_around, one_of_node
from recollect.concepts.rules.clusters import ClusterOptions, KnownPairs
from recollect.concepts.rules.concepts import KnownConcepts, ids_of, pair_of, state_of
from recollect.concepts.rules.detection import ConceptColumns, FoundPairs
from recollect.concepts.rules.evidence import weigh
from recollect.concepts.rules.never_merge import Apart
from recollect.concepts.rules.similarity import Factors, Traits, compare
from recollect.concepts.rules.why import Explanation, PairEstimate, why
from recollect.concepts.sql import concepts, never_merge
from recollect.engine.core import Core, Reference
from recollect.engine.sql import spaces
from recollect.errors import Conflict, InvalidInput, NotFound
from recollect.graph.rules.merging import MergedLinks
from recollect.graph.sql import edges
from recollect.memories.edit import checked_reason
from recollect.memories.sql import nodes
from recollect.model import KeptApart, Kind, Node, Status
from recollect.plan import Draft, HistoryEntry, Outcome, Plan
from recollect.plans import apply
from recollect.plans.sql import declined, journal, plans
from recollect.plans.sql.reader import StoreReader
from recollect.recall.sql import candidates
from recollect.store.database import Transaction

# In larger spaces `why` shows the score alone: to learn from all takes as long as a pass over them.
MOST_FOR_WHY = 20_000
BY_HAND = "two things, as a person said"


@dataclass(frozen=True, kw_only=True, slots=True)
class Duplicate:
    """Two concepts and how alike they are, laid open."""

    a: UUID
    b: UUID
    a_name: str
    b_name: str
    score: float
    factors: Factors


@dataclass(frozen=True, kw_only=True, slots=True)
class Why:
    """Why two nodes are, or are not, one; and what happened to them (C30)."""

    a: UUID
    b: UUID
    a_name: str
    b_name: str
    is_one: bool
    explanation: Explanation
    history: tuple[HistoryEntry, ...]

    def __str__(self) -> str:
        lines = [f"{self.a_name}  ~  {self.b_name}", str(self.explanation)]
        if self.is_one:
            lines.append("they are one already; `recollect history` names the plan that can be undone")
        lines += [f"{entry.at:%Y-%m-%d %H:%M}Z  {entry.verb}  {entry.reason}" for entry in self.history]
        return "\n".join(lines)


# -- which one is meant


async def find(db: Transaction, reference: Reference, node_type: str | None = None) -> Node:
    """The concept that a name, an alias or an id leads to, merges followed."""
    known = await bearers(db, reference, node_type)
    ends = await nodes.keepers(db, [node.id for node in known])
    found = await nodes.get_many(db, sorted(set(ends.values())))
    node = only(reference, list(found.values()))
    if node.kind is not Kind.CONCEPT:
        raise InvalidInput(f"{node.id} is a {node.kind}, not a concept.", field="reference")
    return node


async def bearers(db: Transaction, reference: Reference, node_type: str | None = None) -> list[Node]:
    """What a reference names: a name first, for a name may look like the beginning of an id."""
    if not isinstance(reference, UUID):
        named = await concepts.bearers(db, reference, node_type)
        if named:
            return named
    try:
        id_ = await nodes.resolve(db, str(reference))
    except (InvalidInput, NotFound):
        raise NotFound(f"There is no concept {str(reference)!r}: `recollect concepts` lists them.") from None
    return [await nodes.get(db, id_)]


def only(reference: Reference, found: Sequence[Node]) -> Node:
    """The one node that is meant: of several the living one, if there is one."""
    living = [node for node in found if node.status is Status.ACTIVE] or list(found)
    if len(living) == 1:
        return living[0]
    which = ", ".join(f"{str(node.id)[:8]} ({node.subtype})" for node in living[:5])
    raise Conflict(f"Several concepts are called {str(reference)!r}: say which by its id, one of {which}.")


async def traits_of(db: Transaction, found: Sequence[Node]) -> dict[UUID, Traits]:
    """Nodes as they are compared, by the model that search uses."""
    space = await spaces.by_id(db)
    ids = [node.id for node in found]
    known = await candidates.vectors_of(db, ids, model=space.embedding_model or "")
    return {
        node.id: Traits(
            name=node.name or "",
            vector=concepts.unit(known[node.id]) if node.id in known else None,
            metadata=node.metadata,
            has_text=bool(node.text),
            text=node.text,
        )
        for node in found
    }


# -- which are alike


async def duplicates(
    core: Core, space_id: UUID, *, threshold: float, node_type: str | None, limit: int
) -> list[Duplicate]:
    """Pairs that score at least the threshold, best first. It looks, and changes nothing (C01)."""
    async with core.database.snapshot(space_id) as db:
        known = await StoreReader(db).concepts()
    found = await anyio.to_thread.run_sync(_found, known.columns, threshold)
    pairs = [
        (left, right, factors)
        for left, right, factors in _pairs(known, found)
        if node_type in (None, known.types[left]) and factors.score >= threshold
    ]
    pairs.sort(key=lambda pair: (-pair[2].score, known.ids[pair[0]], known.ids[pair[1]]))
    return [_duplicate(known, *pair) for pair in pairs[:limit]]


def _found(columns: ConceptColumns, threshold: float) -> FoundPairs:
    return found_around(columns, threshold, None, blocked(columns, threshold))


def _pairs(known: KnownConcepts, found: FoundPairs) -> Iterator[tuple[int, int, Factors]]:
    """The pairs found, and each copy with the one that stands for it."""
    for place, (left, right, _) in enumerate(found.pairs):
        yield left, right, found.pairs.factors(known.columns, place)
    for first, *copies in (rows.tolist() for rows in found.copies):
        for row in copies:
            yield first, row, compare(known.columns.traits(first), known.columns.traits(row))


def _duplicate(known: KnownConcepts, left: int, right: int, factors: Factors) -> Duplicate:
    names = known.columns.names
    return Duplicate(
        a=known.ids[left],
        b=known.ids[right],
        a_name=names[left],
        b_name=names[right],
        score=factors.score,
        factors=factors,
    )


# -- why


async def why_of(core: Core, space_id: UUID, a: Reference, b: Reference, *, threshold: float) -> Why:
    """Two nodes compared: the factors, the bound that failed, what would change it, and what happened to them."""
    async with core.transaction(space_id) as db:
        one, other = [only(given, await bearers(db, given)) for given in (a, b)]
        if one.id == other.id:
            raise InvalidInput("These are the same node: give two.", field="b")
        known = await traits_of(db, [one, other])
        ends = await nodes.keepers(db, [one.id, other.id])
        is_same_type = (one.kind, one.subtype) == (other.kind, other.subtype)
        everything = await StoreReader(db).concepts() if is_same_type else None
        explanation = why(
            known[one.id],
            known[other.id],
            threshold=threshold,
            is_same_type=is_same_type,
            is_apart=await _are_apart(core, db, [one, other], resting=True),
            is_protected=one.protected or other.protected,
            estimate=await anyio.to_thread.run_sync(_estimate, everything, one.id, other.id),
        )
        return Why(
            a=one.id,
            b=other.id,
            a_name=_called(one),
            b_name=_called(other),
            is_one=ends[one.id] == ends[other.id],
            explanation=explanation,
            history=await _history(db, [one, other]),
        )


def _estimate(everything: KnownConcepts | None, one: UUID, other: UUID) -> PairEstimate | None:
    """How likely two living concepts are one, by what their space teaches; a large space is not asked for one pair."""
    if everything is None:
        return None
    columns, options = everything.columns, ClusterOptions()
    place = {id_: row for row, id_ in enumerate(everything.ids)}
    if one not in place or other not in place or len(columns) > MOST_FOR_WHY:
        return None
    blocks = blocked(columns, options.review)
    found = found_around(columns, options.review, None, blocks)
    evidence = weigh(blocks, found).above(options.ask_from, options.review)
    known = KnownPairs(columns, found, options, Apart(), evidence)
    ends = sorted((place[one], place[other]))
    (at,) = np.nonzero((evidence.pairs.left == ends[0]) & (evidence.pairs.right == ends[1]))
    if not len(at):
        return None
    told = evidence.told(int(at[0]))
    return PairEstimate(
        probability=float(known.certainty[at[0]]),
        least=options.precision,
        adds=told.adds,
        fields=told.fields,
        rivals=(told.rival_of_left, told.rival_of_right),
    )


async def _are_apart(core: Core, db: Transaction, found: Sequence[Node], *, resting: bool) -> bool:
    """Whether two of these are kept apart, by name or by id; `resting`: also where a declined merge rests for now."""
    pairs = await StoreReader(db).distinct_pairs(core.now())
    standing = [pair for pair, state in pairs.items() if resting or state is None]
    names = await concepts.names_of(db, [node.id for node in found])
    by_name = Apart(names=[pair for pair in standing if ids_of(pair) is None])
    by_id = {pair_of(one.id, other.id) for one in found for other in found if one.id != other.id}
    return by_name.parts_names([tuple(names[node.id]) for node in found]) or not by_id.isdisjoint(standing)


async def _history(db: Transaction, found: Sequence[Node]) -> tuple[HistoryEntry, ...]:
    entries = [entry for node in found for entry in await journal.history(db, node.id)]
    return tuple(sorted(entries, key=lambda entry: entry.at))


def _called(node: Node) -> str:
    return node.name or " ".join((node.text or "").split())[:60] or str(node.id)


# -- merging by hand


async def merge(
    core: Core, space_id: UUID, keep: Reference, others: Sequence[Reference], reason: str | None
) -> Outcome:
    """Merge concepts into the first one: a plan like any other, applied at once, to be undone like any other."""
    said = checked_reason(reason or "merged by hand")
    async with core.transaction(space_id) as db:
        found = [await find(db, one) for one in (keep, *others)]
        keeper, *absorbed = {node.id: node for node in found}.values()
        _refuse_unfit(keeper, absorbed)
        if await _are_apart(core, db, [keeper, *absorbed], resting=False):
            raise Conflict("They are on the never-merge list: `recollect never-merge remove` takes them off it.")
        plan = await _by_hand(core, db, keeper, absorbed, said)
        await plans.save(db, plan)
    return await apply.apply(core, space_id, plan.id)


async def _by_hand(core: Core, db: Transaction, keeper: Node, absorbed: Sequence[Node], reason: str) -> Plan:
    known = await traits_of(db, [keeper, *absorbed])
    links = MergedLinks(await edges.of_nodes(db, list(known)))
    draft, now = Draft(), core.now()
    for node in absorbed:
        factors = compare(known[keeper.id], known[node.id])
        one, into = one_of_node(node), one_of_node(keeper)
        absorb(draft, links, into, one, reason=reason, factors=factors, group=0, now=now, resting=False)
    title = f"Merge {', '.join(f'“{node.name}”' for node in absorbed)} into “{keeper.name}”"
    return draft.plan(policy=POLICY.name, title=title[:200], now=now)


def _refuse_unfit(keeper: Node, absorbed: Sequence[Node]) -> None:
    if not absorbed:
        raise InvalidInput("They are one concept already.", field="others")
    for node in (keeper, *absorbed):
        if node.status is not Status.ACTIVE:
            raise Conflict(f"{node.id} is {node.status}: restore it first.")
        if node.protected:
            raise Conflict(f"{node.name!r} is protected: take the protection off first.")
        if node.subtype != keeper.subtype:
            raise Conflict(
                f"{node.name!r} is a {node.subtype}, {keeper.name!r} a {keeper.subtype}: only one type merges."
            )


async def keep_apart(core: Core, space_id: UUID, a: Reference, b: Reference, *, never: bool) -> KeptApart:
    """Say that two concepts are two: until either changes or the wait for declined merges ends, or for good (P11)."""
    now = core.now()
    async with core.transaction(space_id) as db:
        one, other = [await find(db, given) for given in (a, b)]
        if one.id == other.id:
            raise InvalidInput("These are one concept: give two.", field="b")
        pair = pair_of(one.id, other.id)
        state = state_of([one.name or "", other.name or ""], [one.version, other.version])
        days = None if never else core.settings.declined_days
        await declined.keep_apart(db, [(*pair, state)], now=now, days=days, reason=BY_HAND)
        (kept,) = [one for one in await never_merge.list_all(db, now) if (one.a, one.b) == pair]
        return kept
