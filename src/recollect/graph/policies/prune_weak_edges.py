"""Prune: edges that have grown weak and that nobody has walked for a while leave the graph (A02-A12).

Never one that a person made or protected, never the last edge of a node, never one that holds a component together.
Removals are decided weakest first, each looking at the graph as the removals before it leave it. A pruned edge stays
in the store, and undo brings it back.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import anyio.to_thread
import numpy as np

from recollect.graph.policies import targets
from recollect.graph.rules.arrays import (
    BRIDGE_RULES,
    COMPONENT,
    EdgeColumns,
    Flags,
    Ints,
    Numbers,
    Pruning,
    as_ids,
    as_uuids,
    prunable,
)
from recollect.plan import Change, Draft, LookAtMany, Plan, Risk, Row, Waiting
from recollect.plans.policy import Policy, Reader
from recollect.wording import counted, require

# So many findings are listed; the summary counts all.
LISTED = 1_000

# The same two rows for every decision: there may be hundreds of thousands.
ACTIVE: Row = {"status": "active"}
PRUNED: Row = {"status": "pruned"}

# Why a weak, idle edge stays, by rule.
KEPT_BECAUSE = {
    "protected": "it is protected",
    "user-made": "a person made it",
    "leaf": "one of its ends would be left without any edge",
    "splits": "its ends would no longer hang together",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """Below which strength and after how many idle days an edge goes; decisions are applied `batch` at a time."""

    threshold: float = 0.05
    min_inactive_days: float = 7.0
    bridge_rule: str = COMPONENT
    batch: int = 2000

    def __post_init__(self) -> None:
        require(0 <= self.threshold <= 1, "threshold", "between 0 and 1")
        require(0 <= self.min_inactive_days < np.inf, "min_inactive_days", "a number of days, 0 or more")
        require(self.bridge_rule in BRIDGE_RULES, "bridge_rule", f"{' or '.join(BRIDGE_RULES)}")
        require(self.batch >= 1, "batch", "1 or more")


@dataclass(frozen=True, kw_only=True, slots=True)
class FadingEdges:
    """The edges as they are at one moment, and what is asked of them; all are living, and so are both ends of each."""

    edges: EdgeColumns
    strength: Numbers
    idle_days: Numbers
    asked: LookAtMany = field(default_factory=lambda: LookAtMany("edges", ends="active"))


async def propose(reader: Reader, options: Options, now: datetime) -> Plan:
    return await anyio.to_thread.run_sync(_plan, await reader.edges(), options, now)


async def recheck(reader: Reader, decisions: Sequence[Waiting], options: Options, now: datetime) -> Mapping[int, str]:
    """The removals that would now isolate a node or split a component, because other edges went since."""
    return await anyio.to_thread.run_sync(_no_longer, await reader.edges(), decisions, options, now)


def _plan(edges: EdgeColumns, options: Options, now: datetime) -> Plan:
    look = _look(edges, now)
    fading = is_weak(look, options) & is_idle(look, options)
    pruning = prunable(edges, _weakest_first(look, fading & is_left_to_us(look)), bridge_rule=options.bridge_rule)
    staying = {**_kept_by_hand(look, fading), **pruning.kept}
    draft = Draft()
    _prune(draft, look, pruning, options)
    _note_kept(draft, look, staying)
    return draft.plan(
        title=f"Prune {len(pruning.removed):,} of {counted(len(edges), 'link')}",
        now=now,
        summary=_summary(edges, pruning, staying),
    )


def _look(edges: EdgeColumns, now: datetime) -> FadingEdges:
    return FadingEdges(edges=edges, strength=edges.strength_at(now), idle_days=edges.idle_days_at(now))


def is_weak(look: FadingEdges, options: Options) -> Flags:
    return look.asked.below("strength_below", look.strength, options.threshold)


def is_idle(look: FadingEdges, options: Options) -> Flags:
    """Inactive long enough; an edge of which nothing is known is not."""
    return look.asked.at_least("idle_days", look.idle_days, options.min_inactive_days)


def is_left_to_us(look: FadingEdges) -> Flags:
    """Neither protected nor made by a person."""
    asked, edges = look.asked, look.edges
    return asked.lacks("protected", edges.protected) & asked.lacks("created_by_not", edges.by_user, "user")


def _weakest_first(look: FadingEdges, candidates: Flags) -> Ints:
    """Ties by id: edges are ordered by it, and the sorting keeps that order."""
    places = np.flatnonzero(candidates)
    return places[np.argsort(look.strength[places], kind="stable")]


def _kept_by_hand(look: FadingEdges, fading: Flags) -> dict[str, Ints]:
    protected, by_user = look.edges.protected, look.edges.by_user
    return {
        "protected": np.flatnonzero(fading & protected),
        "user-made": np.flatnonzero(fading & by_user & ~protected),
    }


def _prune(draft: Draft, look: FadingEdges, pruning: Pruning, options: Options) -> None:
    stays = "its ends stay connected" if options.bridge_rule == COMPONENT else "its ends have other edges"
    for number, (edge, factors) in enumerate(_each(look, pruning.removed)):
        strength, idle = factors["strength"], factors["idle_days"]
        draft.decide(
            "prune",
            edge,
            f"strength {_under(strength, options.threshold)} < {options.threshold:g}, idle {idle:.0f} days, {stays}",
            [Change(table="edges", id=edge, before=ACTIVE, after=PRUNED)],
            score=strength,
            factors=factors,
            group=number // options.batch,
            look=look.asked.one(draft, edge),
        )


def _note_kept(draft: Draft, look: FadingEdges, staying: Mapping[str, Ints]) -> None:
    """What was weak and idle and stays: the weakest of them, each with its rule."""
    places = np.concatenate(list(staying.values()))
    rules = np.repeat(list(staying), [len(rows) for rows in staying.values()])
    shown = np.lexsort((places, look.strength[places]))[:LISTED]
    for (edge, factors), rule in zip(_each(look, places[shown]), rules[shown].tolist(), strict=True):
        was = f"strength {factors['strength']:.2g}, idle {factors['idle_days']:.0f} days"
        draft.note(rule, f"{was}, kept because {KEPT_BECAUSE[rule]}", edge)


def _each(look: FadingEdges, places: Ints) -> Iterator[tuple[UUID, Row]]:
    """Some edges, and what there is to say of each."""
    edges = look.edges
    source, target = edges.source[places], edges.target[places]
    names = edges.names_of(source, target)
    columns = (look.strength[places], look.idle_days[places], edges.relation[places], source, target)
    ids = as_uuids(edges.ids[places])
    for edge, strength, idle, relation, a, b in zip(ids, *(column.tolist() for column in columns), strict=True):
        yield (
            edge,
            {
                "strength": strength,
                "idle_days": idle,
                "relation": edges.relations[relation],
                "source": names[a],
                "target": names[b],
            },
        )


def _under(strength: float, threshold: float) -> str:
    """The strength in as few digits as still show that it is below the threshold."""
    short = f"{strength:.2g}"
    return short if float(short) < threshold else f"{strength:.6g}"


def _summary(edges: EdgeColumns, pruning: Pruning, staying: Mapping[str, Ints]) -> Row:
    total, pruned = len(edges), len(pruning.removed)
    return {
        "total": total,
        "pruned": pruned,
        "kept": total - pruned,
        "kept_by": {rule: len(places) for rule, places in staying.items()},
        "scope": {"edges": total},
        "touched": {"edges": pruned},
    }


def _no_longer(edges: EdgeColumns, decisions: Sequence[Waiting], options: Options, now: datetime) -> dict[int, str]:
    """Decisions whose edge has recovered, gone, or lost an end are left to their premises: such an edge stays."""
    look = _look(edges, now)
    places = edges.places_of(as_ids([decision.subject for decision in decisions]))
    numbers = {row: decision.number for row, decision in zip(places.tolist(), decisions, strict=True)}
    candidates = np.zeros(len(edges), dtype=np.bool_)
    candidates[places[places >= 0]] = True
    candidates &= is_weak(look, options) & is_idle(look, options) & is_left_to_us(look)
    staying = prunable(edges, _weakest_first(look, candidates), bridge_rule=options.bridge_rule).kept
    return {
        numbers[row]: f"other edges went since: {KEPT_BECAUSE[rule]}"
        for rule, rows in staying.items()
        for row in rows.tolist()
    }


def metrics(summary: Row, measured: Row) -> Mapping[str, targets.Figure]:
    """A29: 5 to 15 % pruned a cycle, 10 to 20 KB freed, in under 200 ms."""
    return {
        "pruned_share": targets.within(targets.share(summary["pruned"], summary["total"]), 0.05, 0.15),
        "freed_bytes": targets.within(measured["freed_bytes"], 10_000, 20_000),
        "seconds": targets.runtime(measured),
    }


POLICY = Policy(
    name="prune_weak_edges",
    about="Weak links that nobody used and that hold nothing together leave the graph.",
    risk=Risk.LOW,
    options=Options,
    propose=propose,
    short="prune",
    says="Pruned {pruned} edges",
    every_minutes=1440,
    gated=True,
    recheck=recheck,
    rechecks_the_graph_alone=True,
    metrics=metrics,
)
