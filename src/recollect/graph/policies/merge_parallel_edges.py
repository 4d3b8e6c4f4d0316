"""Merge edges: several edges between the same two nodes become one stronger edge (A13-A19).

The strongest keeps its id, relation and direction, and remembers the others, which stay in the store as merged into
it. Ends that contradict each other and are linked otherwise too are left to a person.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import anyio.to_thread
import numpy as np

from recollect.graph.policies import targets
from recollect.graph.rules.arrays import EdgeColumns, parallel_edges
from recollect.graph.rules.lists import Lists
from recollect.graph.rules.merging import EdgeMerge, merged_edges, needs_review
from recollect.model import Edge
from recollect.plan import Change, Decision, Draft, Look, Plan, Risk, Row, patch
from recollect.plans.policy import Policy, Reader
from recollect.wording import require

# So many edges are read in full at once.
READ = 20_000

Distinct = Mapping[tuple[str, str], str | None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """Whether contradictions go to review (off: merged like all others); pairs are applied `batch` at a time."""

    review_contradictions: bool = True
    batch: int = 2000

    def __post_init__(self) -> None:
        require(self.batch >= 1, "batch", "1 or more")


async def propose(reader: Reader, options: Options, now: datetime) -> Plan:
    edges = await reader.edges()
    apart = await reader.distinct_pairs(now)
    groups = await anyio.to_thread.run_sync(parallel_edges, edges)
    draft = Draft()
    for stretch in _stretches(groups):
        full = await reader.edges_in_full([edges.id_of(row) for places in stretch for row in places])
        pairs = [[full[edges.id_of(row)] for row in places] for places in stretch]
        await anyio.to_thread.run_sync(_merge_all, draft, pairs, apart, options, now)
    return _plan(draft, edges, options, now)


def _stretches(groups: Lists) -> Iterator[list[list[int]]]:
    """The groups, as many at a time as can be read in full without filling the memory."""
    stretch: list[list[int]] = []
    edges = 0
    for number in range(len(groups)):
        stretch.append(np.sort(groups[number]).tolist())
        edges += len(stretch[-1])
        if edges >= READ:
            yield stretch
            stretch, edges = [], 0
    if stretch:
        yield stretch


def _merge_all(draft: Draft, pairs: Sequence[Sequence[Edge]], apart: Distinct, options: Options, now: datetime) -> None:
    for group in pairs:
        if options.review_contradictions and needs_review([edge.relation for edge in group]):
            _note_contradiction(draft, group)
        elif not is_kept_apart(group, apart):
            _merge(draft, group, options, now)


def is_kept_apart(group: Sequence[Edge], apart: Distinct) -> bool:
    """P11: a person said so for good, or of these very edges."""
    ends = ends_of(group[0])
    return ends in apart and apart[ends] in (None, state_of(group))


def ends_of(edge: Edge) -> tuple[str, str]:
    """The ends as a pair to keep apart: of edges, which says nothing about merging the nodes."""
    low, high = sorted((f"edges of {edge.source}", f"edges of {edge.target}"))
    return low, high


def state_of(group: Sequence[Edge]) -> str:
    """Which edges there are: once that changes, a declined merge may be offered again."""
    return " ".join(sorted(str(edge.id) for edge in group))


def _merge(draft: Draft, group: Sequence[Edge], options: Options, now: datetime) -> None:
    look = draft.look()
    merge = merged_edges([look.at("edges", edge, status="active", ends="active") for edge in group], now)
    _note_that_they_are_all(look, group)
    winner = merge.winner.id
    draft.decide(
        "merge",
        winner,
        _reason(merge),
        [
            patch(table="edges", id=winner, before=merge.before, after=merge.after),
            *(_absorbed(edge, winner) for edge in merge.absorbed),
        ],
        score=merge.after["strength"],
        factors=_factors(group, merge),
        group=len(draft.decisions) // options.batch,
        look=look,
    )


def _absorbed(edge: Edge, winner: UUID) -> Change:
    return Change(
        table="edges",
        id=edge.id,
        before={"status": "active", "merged_into": None},
        after={"status": "merged", "merged_into": str(winner)},
    )


def _note_that_they_are_all(look: Look, group: Sequence[Edge]) -> None:
    """These edges, and no others, join the two; and nobody wants them to stay apart."""
    first = look.at("edges", group[0])
    low, high = sorted((first.source, first.target))
    look.edges_between(low, high, [edge.id for edge in group])
    look.not_apart("edges", first.id, ends_of(first), state_of(group))


def _reason(merge: EdgeMerge) -> str:
    edges = (merge.winner, *merge.absorbed)
    winner, *others = (f"{edge.relation} {merge.strengths[edge.id]:.2f}" for edge in edges)
    lent = f"{winner} takes in {', '.join(others)}, strength {merge.after['strength']:.2f}"
    return f"{len(edges)} edges between the same ends: {lent}"


def _factors(group: Sequence[Edge], merge: EdgeMerge) -> Row:
    return {
        "pair": list(ends_of(group[0])),
        "state": state_of(group),
        "edges": len(group),
        "strengths": {str(edge): strength for edge, strength in merge.strengths.items()},
    }


def _note_contradiction(draft: Draft, group: Sequence[Edge]) -> None:
    relations = ", ".join(sorted({edge.relation for edge in group}))
    draft.note("review", f"the same ends are linked as {relations}: a person should look", group[0].id)


def _plan(draft: Draft, edges: EdgeColumns, options: Options, now: datetime) -> Plan:
    touched = sum(decision.factors["edges"] for decision in draft.decisions)
    merged = touched - len(draft.decisions)
    return draft.plan(
        title=f"Merge {touched:,} parallel links into {len(draft.decisions):,}",
        now=now,
        summary={
            "total_before": len(edges),
            "total_after": len(edges) - merged,
            "edges_merged": merged,
            "review": len(draft.findings),
            "scope": {"edges": len(edges)},
            "touched": {"edges": touched},
        },
    )


def metrics(summary: Row, measured: Row) -> Mapping[str, targets.Figure]:
    """A29: under 5 % merged a cycle, in under 200 ms."""
    return {
        "merged_share": targets.under(targets.share(summary["edges_merged"], summary["total_before"]), 0.05),
        "seconds": targets.runtime(measured),
    }


def tally(_summary: Row, applied: Sequence[Decision]) -> Mapping[str, int]:
    return {"edges_merged": sum(decision.factors["edges"] - 1 for decision in applied)}


POLICY = Policy(
    name="merge_parallel_edges",
    about="Several links between the same two memories become one stronger link.",
    risk=Risk.LOW,
    options=Options,
    propose=propose,
    short="merge-edges",
    says="Merged {edges_merged} edges",
    tally=tally,
    every_minutes=10_080,
    gated=True,
    metrics=metrics,
)
