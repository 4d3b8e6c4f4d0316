"""Duplicates: concepts that are the same idea twice become one, and what is doubtful becomes a question (C01-C29).

The rules find the pairs and the groups (rules/detection, rules/clusters); here each node that goes into another is a
decision of its own, with its links, so that a person may decline one and keep the rest. The absorbed node stays in the
store and points at its keeper; energy, weight, names and history are read over all that points there, and so come back
by themselves when a merge is undone. After the first pass only what changed since is compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import anyio.to_thread
import numpy as np

from recollect.concepts.rules import clusters
from recollect.concepts.rules.clusters import (
    ASK_FROM,
    ASK_FROM_DEGREE,
    ASK_FROM_ENERGY,
    MOST_MERGES,
    PRECISION,
    REVIEW,
    ConceptGroup,
    Decided,
    Linkage,
)
from recollect.concepts.rules.concepts import KnownConcepts, LastPass, ids_of, pair_of, state_of
from recollect.concepts.rules.detection import Blocks, ConceptColumns, FoundPairs, block, detect
from recollect.concepts.rules.detection.columns import Mask
from recollect.concepts.rules.detection.compare import Bounds
from recollect.concepts.rules.detection.detect import THRESHOLD, useful_dimensions
from recollect.concepts.rules.detection.keeper import Keep
from recollect.concepts.rules.evidence import weigh
from recollect.concepts.rules.never_merge import Apart
from recollect.concepts.rules.questions import questions_of
from recollect.concepts.rules.similarity import DOUBTS, WEIGHTS, Factors, compare
from recollect.graph.rules.merging import MergedLinks, united
from recollect.model import Metadata, Node, QuestionSide
from recollect.plan import Change, Decision, Draft, Look, Plan, Risk, Row, Waiting
from recollect.plans.policy import OVERLAP, REFUSED, Policy, Reader, newer_than
from recollect.ports import Executor
from recollect.providers.executors import LocalExecutor
from recollect.wording import counted, require

HERE = LocalExecutor(2)
ANSWERED = "as a person said"
MOST_FINDINGS = 1000
# With more left over than this, the next pass compares everything again.
MOST_LEFT_OVER = 5000
# Nothing was written before or will be after; beyond, a calendar ends and cannot be reckoned with.
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(3000, 1, 1, tzinfo=UTC)

Distinct = Mapping[tuple[str, str], str | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """From which estimated precision concepts merge, and from which probability they are asked about; which one stays,
    and how groups hold. `threshold` and `review` are marks of the score of C03: what reaches the first is surer, what
    reaches the second is always looked at. A `precision` of 0 leaves it all to the score.

    `ask_about` names the doubts that make a question of a pair; so do so many links, or so much energy. Types in
    `leave_types` are left alone. Only what came after some time is compared: no time is that of the last pass whose
    outcome is settled, "" compares everything with everything.
    """

    threshold: float = THRESHOLD
    review: float = REVIEW
    precision: float = PRECISION
    ask_from: float = ASK_FROM
    strategy: str = Keep.OLDER
    linkage: str = Linkage.COMPLETE
    most_merges: int = MOST_MERGES
    ask_about: tuple[str, ...] = tuple(sorted(DOUBTS))
    ask_from_links: int = ASK_FROM_DEGREE
    ask_from_energy: float = ASK_FROM_ENERGY
    leave_types: tuple[str, ...] = ("identity",)
    only_newer_than: str | None = None

    def __post_init__(self) -> None:
        require(0 < self.threshold <= 1, "threshold", "above 0 and at most 1")
        require(0 < self.review <= 1, "review", "above 0 and at most 1")
        require(0 <= self.precision <= 1, "precision", "from 0 to 1")
        require(0 <= self.ask_from <= 1, "ask_from", "from 0 to 1")
        require(self.strategy in tuple(Keep), "strategy", f"one of {', '.join(Keep)}")
        require(self.linkage in tuple(Linkage), "linkage", f"one of {', '.join(Linkage)}")
        require(self.most_merges >= 0, "most_merges", "0 or more")
        require(set(self.ask_about) <= set(DOUBTS), "ask_about", f"some of {', '.join(sorted(DOUBTS))}")
        require(self.ask_from_links >= 0, "ask_from_links", "0 or more")
        require(self.ask_from_energy >= 0, "ask_from_energy", "0 or more")
        _moment(self.only_newer_than)

    def rules(self) -> clusters.ClusterOptions:
        return clusters.ClusterOptions(
            threshold=self.threshold,
            review=min(self.review, self.threshold),
            precision=self.precision,
            ask_from=self.ask_from,
            linkage=Linkage(self.linkage),
            keep=Keep(self.strategy),
            ask=frozenset(self.ask_about),
            most_merges=self.most_merges,
            ask_from_degree=self.ask_from_links,
            ask_from_energy=self.ask_from_energy,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class One:
    """A concept on its way into another, or taking another in."""

    id: UUID
    name: str
    version: int
    metadata: Metadata
    created_at: datetime
    updated_at: datetime

    def row(self) -> Row:
        return {
            "metadata": self.metadata,
            "version": self.version,
            "created_at": self.created_at.isoformat(),
            "updated_at": self.updated_at.isoformat(),
        }


async def propose(reader: Reader, options: Options, now: datetime) -> Plan:
    concepts = await reader.concepts()
    changed = await _changed(reader, concepts, options)
    apart = apart_of(concepts, await reader.distinct_pairs(now))
    decided = await anyio.to_thread.run_sync(decide, concepts, changed, apart, options, reader.executor)
    taking_part = [concepts.ids[row] for group in decided.merges for row in group.rows]
    links = MergedLinks(await reader.edges_around(taking_part))
    draft = Draft()
    for number, group in enumerate(decided.merges):
        _merge(draft, links, concepts, group, number, now)
    _ask(draft, concepts, decided)
    return _plan(draft, concepts, changed, decided, options, now)


# -- which are compared


async def _changed(reader: Reader, concepts: KnownConcepts, options: Options) -> Mask | None:
    """The rows to compare with all others; None for all of them."""
    last: LastPass | None
    if options.only_newer_than is None:
        last = await reader.last_pass(POLICY.name, asdict(options))
    else:
        moment = _moment(options.only_newer_than)
        last = None if moment is None else LastPass(at=moment, again=[])
    if last is None or last.again is None:
        return None
    fresh = {*await reader.concepts_changed_since(last.at - OVERLAP), *last.again}
    return np.fromiter((id_ in fresh for id_ in concepts.ids), np.bool_, len(concepts.ids))


def _moment(time: str | None) -> datetime | None:
    moment = newer_than(time)
    return None if moment is None else min(max(moment, EARLIEST), LATEST)


def apart_of(concepts: KnownConcepts, distinct: Distinct) -> Apart:
    """What a person keeps apart: names for good; nodes for good, or while both are as they were when declined (P11)."""
    row_of = {id_: row for row, id_ in enumerate(concepts.ids)}
    names, ids = [], []
    for pair, state in distinct.items():
        nodes = ids_of(pair)
        if nodes is None:
            names.append(pair)
        elif all(id_ in row_of for id_ in nodes) and state in (None, _state(concepts, [row_of[id_] for id_ in nodes])):
            ids.append(nodes)
    return Apart(names=names, ids=ids)


def _state(concepts: KnownConcepts, rows: Sequence[int]) -> str:
    return state_of([concepts.columns.names[row] for row in rows], [concepts.versions[row] for row in rows])


def decide(
    concepts: KnownConcepts, changed: Mask | None, apart: Apart, options: Options, executor: Executor | None = None
) -> Decided:
    """Groups to merge and groups to ask about, over everything or around what changed."""
    kinds = {kind.casefold() for kind in options.leave_types}
    left_alone = np.fromiter((kind.casefold() in kinds for kind in concepts.types), np.bool_, len(concepts.types))
    columns = replace(concepts.columns, protected=concepts.columns.protected | left_alone)
    rules = options.rules()
    blocks = blocked(columns, rules.review)
    detected = found_around(columns, rules.review, changed, blocks, executor)
    taught = weigh(blocks, detected).above(rules.ask_from, rules.review) if rules.precision else None
    decided = clusters.decide(columns, detected, rules, apart, None if taught is None else taught.around(changed))
    return replace(decided, left_out=detected.left_out, unreached=0 if taught is None else taught.skipped)


def blocked(columns: ConceptColumns, threshold: float) -> Blocks:
    return block(columns, dimensions=useful_dimensions(columns, Bounds(threshold=threshold, weights=WEIGHTS)))


def found_around(
    columns: ConceptColumns, threshold: float, changed: Mask | None, blocks: Blocks, executor: Executor | None = None
) -> FoundPairs:
    """The pairs of what changed, and those of whatever is found with it: a group is judged by all its pairs (C29)."""
    if changed is None:
        return detect(columns, threshold, blocks=blocks, here=HERE, executor=executor)
    asked = changed
    while True:
        detected = detect(columns, threshold, changed=asked, blocks=blocks, here=HERE, executor=executor)
        wider = asked.copy()
        wider[detected.pairs.left] = wider[detected.pairs.right] = True
        if np.array_equal(wider, asked):
            return detected
        asked = wider


# -- merging


def _merge(
    draft: Draft, links: MergedLinks, concepts: KnownConcepts, group: ConceptGroup, number: int, now: datetime
) -> None:
    keeper = one_of(concepts, group.keeper)
    for row in group.absorbed:
        factors = _factors_of(concepts, group, row)
        absorb(
            draft,
            links,
            keeper,
            one_of(concepts, row),
            reason=group.reason,
            factors=factors,
            group=number,
            now=now,
        )


def one_of(concepts: KnownConcepts, row: int) -> One:
    return One(
        id=concepts.ids[row],
        name=concepts.columns.names[row],
        version=concepts.versions[row],
        metadata=concepts.metadata[row],
        created_at=concepts.created_at[row],
        updated_at=concepts.updated_at[row],
    )


def one_of_node(node: Node) -> One:
    return One(
        id=node.id,
        name=node.name or "",
        version=node.version,
        metadata=node.metadata,
        created_at=node.created_at,
        updated_at=node.updated_at,
    )


def _factors_of(concepts: KnownConcepts, group: ConceptGroup, row: int) -> Factors:
    """What led to this merge (C15): the keeper and the absorbed, compared."""
    ends = {group.keeper, row}
    for link in group.links:
        if {link.left, link.right} == ends:
            return link.factors
    return compare(concepts.columns.traits(group.keeper), concepts.columns.traits(row))


def absorb(
    draft: Draft,
    links: MergedLinks,
    keeper: One,
    absorbed: One,
    *,
    reason: str,
    factors: Factors,
    group: int,
    now: datetime,
    resting: bool = True,
) -> Decision:
    """Decide that one concept goes into another, with all that this changes. By hand also a pair that is kept apart for
    a while."""
    look = draft.look()
    _note_both(look, keeper, absorbed, resting=resting)
    look.edges_of(absorbed.id, [edge.id for edge in links.of(absorbed.id)])
    return draft.decide(
        "merge",
        absorbed.id,
        f"{_both_named(absorbed, keeper)}: {reason}",
        [
            retired(absorbed, keeper),
            enriched(draft, keeper, absorbed, now),
            *(
                Change(table="edges", id=moved.id, before=moved.before, after=moved.after)
                for moved in links.move(
                    absorbed.id, keeper.id, now, lambda edge: look.at("edges", edge, status="active")
                )
            ),
        ],
        score=factors.score,
        factors=told(keeper, absorbed, factors),
        group=group,
        look=look,
    )


def retired(absorbed: One, keeper: One) -> Change:
    return Change(
        table="nodes",
        id=absorbed.id,
        before={"status": "active", "merged_into": None},
        after={"status": "merged", "merged_into": str(keeper.id)},
    )


def enriched(draft: Draft, keeper: One, absorbed: One, now: datetime) -> Change | None:
    """What the absorbed one knows and the keeper does not; the older age (C13, C14)."""
    stored = keeper.row()
    seen = draft.row("nodes", keeper.id, stored) or stored
    metadata = united(seen["metadata"], absorbed.metadata)
    created_at = min(datetime.fromisoformat(seen["created_at"]), absorbed.created_at).isoformat()
    after: dict[str, Any] = {"created_at": created_at}
    if metadata != seen["metadata"]:
        after |= {"metadata": metadata, "version": seen["version"] + 1, "updated_at": now.isoformat()}
    return draft.patch("nodes", keeper.id, stored, after)


def _both_named(absorbed: One, keeper: One) -> str:
    """`same name` needs no saying twice."""
    return "same name" if absorbed.name == keeper.name else f"{absorbed.name!r} is {keeper.name!r}"


def _note_both(look: Look, keeper: One, absorbed: One, *, resting: bool) -> None:
    """The score speaks of both as they were seen (what the plan itself has added by then is no change), and nobody may
    keep them apart."""
    for concept in (keeper, absorbed):
        look.finds("nodes", concept.id, status="active", protected=False)
        look.reads("nodes", concept.id, {**concept.row(), "name": concept.name}, "name", "version")
    state = state_of([keeper.name, absorbed.name], [keeper.version, absorbed.version]) if resting else None
    look.not_apart("nodes", absorbed.id, pair_of(keeper.id, absorbed.id), state)


def told(keeper: One, absorbed: One, factors: Factors) -> Row:
    return {
        "pair": list(pair_of(keeper.id, absorbed.id)),
        "state": state_of([keeper.name, absorbed.name], [keeper.version, absorbed.version]),
        "keeper": str(keeper.id),
        "score": factors.score,
        "cosine": factors.cosine,
        "name": factors.name,
        "metadata": factors.metadata,
        "doubts": list(factors.doubts),
    }


# -- asking


def _ask(draft: Draft, concepts: KnownConcepts, decided: Decided) -> None:
    """Chains, middle scores and doubts are for a person to look at."""
    for group in decided.questions[:MOST_FINDINGS]:
        names = ", ".join(f"{concepts.columns.names[row]!r} ({str(concepts.ids[row])[:8]})" for row in group.rows[:5])
        more = f" and {len(group.rows) - 5} more" if len(group.rows) > 5 else ""
        draft.note("review", f"{names}{more} may be the same: {group.reason}", concepts.ids[group.keeper])
    if (left := len(decided.questions) - MOST_FINDINGS) > 0:
        draft.note("review", f"{counted(left, 'more group')} may be the same, less surely than those above")
    if decided.left_out:
        draft.note(
            "bounded", f"{counted(decided.left_out, 'pair')} not compared: too many are like each other, or of one name"
        )
    draft.questions += questions_of(concepts, decided, POLICY.name)


# -- answering


async def join(reader: Reader, groups: Sequence[Sequence[UUID]], _scores: Mapping[UUID, float], now: datetime) -> Draft:
    """What a person says is one becomes one, whatever speaks against it but the never-merge list and protection."""
    ids = sorted({id_ for group in groups for id_ in group})
    concepts = await reader.concepts(ids)
    distinct = await reader.distinct_pairs(now)
    apart = apart_of(concepts, {pair: state for pair, state in distinct.items() if state is None})
    links = MergedLinks(await reader.edges_around(ids))
    row_of = {id_: row for row, id_ in enumerate(concepts.ids)}
    draft = Draft()
    for number, group in enumerate(groups):
        taken = [row_of[group[0]]] if group[0] in row_of else []
        for id_ in group[1:]:
            if why := _unfit(concepts, apart, taken, row_of.get(id_)):
                draft.note(REFUSED, why, id_)
                continue
            row = row_of[id_]
            factors = compare(concepts.columns.traits(taken[0]), concepts.columns.traits(row))
            ends = one_of(concepts, taken[0]), one_of(concepts, row)
            absorb(draft, links, *ends, reason=ANSWERED, factors=factors, group=number, now=now)
            taken.append(row)
    return draft


def remember(left: QuestionSide, right: QuestionSide) -> tuple[str, str, str]:
    return *pair_of(left.id, right.id), state_of([left.name, right.name], [left.version, right.version])


def _unfit(concepts: KnownConcepts, apart: Apart, taken: Sequence[int], row: int | None) -> str | None:
    """Why a concept cannot go into another, whoever says so."""
    if row is None or not taken:
        return "one of them is there no longer"
    for end in (taken[0], row):
        if concepts.columns.protected[end]:
            return f"{concepts.columns.names[end]!r} is protected: take the protection off first"
    if concepts.types[row] != concepts.types[taken[0]]:
        return f"{concepts.columns.names[row]!r} is a {concepts.types[row]}: only concepts of one type merge"
    if apart.forbids(concepts.columns, [*taken, row]):
        return "they are on the never-merge list: `recollect never-merge remove` takes them off it"
    return None


def _plan(
    draft: Draft, concepts: KnownConcepts, changed: Mask | None, decided: Decided, options: Options, now: datetime
) -> Plan:
    merged, groups = len(draft.decisions), len(decided.merges)
    left_over = [str(concepts.ids[row]) for group in decided.postponed for row in group.rows]
    return draft.plan(
        title=f"Merge {counted(merged, 'duplicate concept')} into {counted(groups, 'other')}",
        now=now,
        summary={
            "concepts": len(concepts.ids),
            "compared": len(concepts.ids) if changed is None else int(changed.sum()),
            "merged": merged,
            "groups": groups,
            "review": len(decided.questions),
            "postponed": len(decided.postponed),
            "left_out": decided.left_out,
            "unreached": decided.unreached,
            "again": left_over if len(left_over) <= MOST_LEFT_OVER else None,
            "scope": {"concepts": len(concepts.ids)},
            "touched": {"concepts": merged + groups},
        },
    )


# -- at applying


async def recheck(reader: Reader, waiting: Sequence[Waiting], _options: Any, now: datetime) -> Mapping[int, str]:
    """Decisions between which a person has put a never-merge pair since."""
    distinct = await reader.distinct_pairs(now)
    apart = Apart(names=[pair for pair in distinct if ids_of(pair) is None])
    for_good = {pair for pair, state in distinct.items() if state is None}
    ends = {decision.number: (UUID(decision.factors["keeper"]), decision.subject) for decision in waiting}
    names = await reader.names_of({id_ for pair in ends.values() for id_ in pair}) if distinct else {}
    return {
        number: "it is on the never-merge list now"
        for number, pair in ends.items()
        if pair_of(*pair) in for_good or apart.parts_names([tuple(names.get(id_, ())) for id_ in pair])
    }


async def audit(reader: Reader, written: Sequence[Decision]) -> Sequence[str]:
    """Every absorbed id leads to a keeper. (Dangling edges are looked for after every group; no edge is a loop.)"""
    absorbed = [decision.subject for decision in written]
    keepers = await reader.keepers(absorbed)
    lost = [id_ for id_ in absorbed if keepers.get(id_, id_) == id_]
    return [f"{id_} does not lead to a keeper" for id_ in lost]


def tally(_summary: Row, applied: Sequence[Decision]) -> Mapping[str, int]:
    return {"merged": len(applied)}


POLICY = Policy(
    name="merge_duplicate_concepts",
    about="Concepts that are the same idea twice become one; doubtful ones become questions.",
    risk=Risk.HIGH,
    options=Options,
    propose=propose,
    short="duplicates",
    says="Merged {merged} duplicate pairs",
    tally=tally,
    every_minutes=10_080,
    quiet=True,
    together=500,
    recheck=recheck,
    asks_about="concept",
    join=join,
    remember=remember,
    audit=audit,
    audits_changes=False,
)
