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
    bearing = await bearers(db, reference, node_type)
    ends = await nodes.keepers(db, [node.id for node in bearing])
    keepers = await nodes.get_many(db, sorted(set(ends.values())))
    node = only(reference, list(keepers.values()))
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


def only(reference: Reference, bearing: Sequence[Node]) -> Node:
    """The one node that is meant: of several the living one, and of those the one spelled like this."""
    living = [node for node in bearing if node.status is Status.ACTIVE] or list(bearing)
    spelled = [node for node in living if node.name == reference]
    if len(living) == 1 or len(spelled) == 1:
        return (spelled or living)[0]
    choices = ", ".join(f"{str(node.id)[:8]} ({node.subtype})" for node in living[:5])
    raise Conflict(f"Several concepts are called {str(reference)!r}: say which by its id, one of {choices}.")


async def traits_of(db: Transaction, compared: Sequence[Node]) -> dict[UUID, Traits]:
    """Nodes as they are compared, by the model that search uses."""
    space = await spaces.by_id(db)
    ids = [node.id for node in compared]
    vectors = await candidates.vectors_of(db, ids, model=space.embedding_model or "")
    return {
        node.id: Traits(
            name=node.name or "",
            vector=concepts.unit(vectors[node.id]) if node.id in vectors else None,
            metadata=node.metadata,
            has_text=bool(node.text),
            text=node.text,
        )
        for node in compared
    }


# -- which are alike


async def duplicates(
    core: Core, space_id: UUID, *, threshold: float, node_type: str | None, limit: int
) -> list[Duplicate]:
    """Pairs that score at least the threshold, best first. It looks, and changes nothing (C01)."""
    async with core.database.snapshot(space_id) as db:
        everything = await StoreReader(db).concepts()
    detected = await anyio.to_thread.run_sync(_found, everything.columns, threshold)
    pairs = [
        (left, right, factors)
        for left, right, factors in _pairs(everything, detected)
        if node_type in (None, everything.types[left]) and factors.score >= threshold
    ]
    pairs.sort(key=lambda pair: (-pair[2].score, everything.ids[pair[0]], everything.ids[pair[1]]))
    return [_duplicate(everything, *pair) for pair in pairs[:limit]]


def _found(columns: ConceptColumns, threshold: float) -> FoundPairs:
    return found_around(columns, threshold, None, blocked(columns, threshold))


def _pairs(everything: KnownConcepts, detected: FoundPairs) -> Iterator[tuple[int, int, Factors]]:
    """The pairs found, and each copy with the one that stands for it."""
    for index, (left, right, _) in enumerate(detected.pairs):
        yield left, right, detected.pairs.factors(everything.columns, index)
    for first, *copies in (rows.tolist() for rows in detected.copies):
        for row in copies:
            yield first, row, compare(everything.columns.traits(first), everything.columns.traits(row))


def _duplicate(everything: KnownConcepts, left: int, right: int, factors: Factors) -> Duplicate:
    names = everything.columns.names
    return Duplicate(
        a=everything.ids[left],
        b=everything.ids[right],
        a_name=names[left],
        b_name=names[right],
        score=factors.score,
        factors=factors,
    )


# -- why


async def why_of(core: Core, space_id: UUID, a: Reference, b: Reference, *, threshold: float) -> Why:
    """Two nodes compared: the factors, the bound that failed, what would change it, and what happened to them."""
    async with core.transaction(space_id) as db:
        left, right = [only(given, await bearers(db, given)) for given in (a, b)]
        if left.id == right.id:
            raise InvalidInput("These are the same node: give two.", field="b")
        traits = await traits_of(db, [left, right])
        ends = await nodes.keepers(db, [left.id, right.id])
        is_same_type = (left.kind, left.subtype) == (right.kind, right.subtype)
        everything = await StoreReader(db).concepts() if is_same_type else None
        explanation = why(
            traits[left.id],
            traits[right.id],
            threshold=threshold,
            is_same_type=is_same_type,
            is_apart=await _are_apart(core, db, [left, right], resting=True),
            is_protected=left.protected or right.protected,
            estimate=await anyio.to_thread.run_sync(_estimate, everything, left.id, right.id),
        )
        return Why(
            a=left.id,
            b=right.id,
            a_name=_called(left),
            b_name=_called(right),
            is_one=ends[left.id] == ends[right.id],
            explanation=explanation,
            history=await _history(db, [left, right]),
        )


def _estimate(everything: KnownConcepts | None, left: UUID, right: UUID) -> PairEstimate | None:
    """How likely two living concepts are one, by what their space teaches; a large space is not asked for one pair."""
    if everything is None:
        return None
    columns, options = everything.columns, ClusterOptions()
    row_of = {id_: row for row, id_ in enumerate(everything.ids)}
    if left not in row_of or right not in row_of or len(columns) > MOST_FOR_WHY:
        return None
    blocks = blocked(columns, options.review)
    detected = found_around(columns, options.review, None, blocks)
    evidence = weigh(blocks, detected).above(options.ask_from, options.review)
    known_pairs = KnownPairs(columns, detected, options, Apart(), evidence)
    ends = sorted((row_of[left], row_of[right]))
    (at,) = np.nonzero((evidence.pairs.left == ends[0]) & (evidence.pairs.right == ends[1]))
    if not len(at):
        return None
    pair = evidence.told(int(at[0]))
    return PairEstimate(
        probability=float(known_pairs.certainty[at[0]]),
        least=options.precision,
        adds=pair.adds,
        fields=pair.fields,
        rivals=(pair.rival_of_left, pair.rival_of_right),
    )


async def _are_apart(core: Core, db: Transaction, compared: Sequence[Node], *, resting: bool) -> bool:
    """Whether two of these are kept apart, by name or by id; `resting`: also where a declined merge rests for now."""
    pairs = await StoreReader(db).distinct_pairs(core.now())
    standing = [pair for pair, state in pairs.items() if resting or state is None]
    names = await concepts.names_of(db, [node.id for node in compared])
    by_name = Apart(names=[pair for pair in standing if ids_of(pair) is None])
    by_id = {pair_of(left.id, right.id) for left in compared for right in compared if left.id != right.id}
    return by_name.parts_names([tuple(names[node.id]) for node in compared]) or not by_id.isdisjoint(standing)


async def _history(db: Transaction, compared: Sequence[Node]) -> tuple[HistoryEntry, ...]:
    entries = [entry for node in compared for entry in await journal.history(db, node.id)]
    return tuple(sorted(entries, key=lambda entry: entry.at))


def _called(node: Node) -> str:
    return node.name or " ".join((node.text or "").split())[:60] or str(node.id)


# -- merging by hand


async def merge(
    core: Core, space_id: UUID, keep: Reference, others: Sequence[Reference], reason: str | None
) -> Outcome:
    """Merge concepts into the first one: a plan like any other, applied at once, to be undone like any other."""
    checked = checked_reason(reason or "merged by hand")
    async with core.transaction(space_id) as db:
        merging = [await find(db, reference) for reference in (keep, *others)]
        keeper, *absorbed = {node.id: node for node in merging}.values()
        _refuse_unfit(keeper, absorbed)
        if await _are_apart(core, db, [keeper, *absorbed], resting=False):
            raise Conflict("They are on the never-merge list: `recollect never-merge remove` takes them off it.")
        plan = await _by_hand(core, db, keeper, absorbed, checked)
        await plans.save(db, plan)
    return await apply.apply(core, space_id, plan.id)


async def _by_hand(core: Core, db: Transaction, keeper: Node, absorbed: Sequence[Node], reason: str) -> Plan:
    traits = await traits_of(db, [keeper, *absorbed])
    links = MergedLinks(await edges.of_nodes(db, list(traits)))
    draft, now = Draft(), core.now()
    for node in absorbed:
        factors = compare(traits[keeper.id], traits[node.id])
        leaving, into = one_of_node(node), one_of_node(keeper)
        absorb(draft, links, into, leaving, reason=reason, factors=factors, group=0, now=now, resting=False)
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
        left, right = [await find(db, given) for given in (a, b)]
        if left.id == right.id:
            raise InvalidInput("These are one concept: give two.", field="b")
        pair = pair_of(left.id, right.id)
        state = state_of([left.name or "", right.name or ""], [left.version, right.version])
        days = None if never else core.settings.declined_days
        await declined.keep_apart(db, [(*pair, state)], now=now, days=days, reason=BY_HAND)
        (entry,) = [entry for entry in await never_merge.list_all(db, now) if (entry.a, entry.b) == pair]
        return entry
