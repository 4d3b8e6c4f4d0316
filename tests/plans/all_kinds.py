"""What P25 knows of a space: its rows as they are, what was given and used, and what must hold of them at every moment.

A model of its own, written the slow, obvious way: components by walking, use by adding up what the test itself used,
strength by the law of decay. It asks nothing of the code that it judges.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from math import exp
from typing import Any
from uuid import UUID

import asyncpg

Row = Mapping[str, Any]
Key = tuple[str, UUID]
KEYS = {
    "nodes": "id",
    "edges": "id",
    "activity": "node_id",
    "aliases": "id",
    "topics": "id",
    "cases": "node_id",
    "case_archive": "archive_id",
}
# What use moves by itself, and what the space counts for its own purposes.
USED = {
    "edges": {"strength", "activation_count", "reinforce_count", "last_activated_at", "last_reinforced_at"},
    "activity": {"uses", "recalled", "successes", "judged", "last_used_at", "energy", "decay_score"},
}
EVERY_ROW = " UNION ALL ".join(
    f"SELECT '{table}' AS name, {key} AS id, to_jsonb(t) - 'space_id' - 'changed_in' AS row FROM {table} t"
    f" WHERE space_id = $1"
    for table, key in KEYS.items()
)
# All at once, for it is asked after every step.
EVERYTHING = f"""
SELECT (SELECT jsonb_agg(jsonb_build_array(name, id, row)) FROM ({EVERY_ROW}) r) AS rows,
       (SELECT jsonb_agg(jsonb_build_array(id, policy, status, undoes, t.rows) ORDER BY created_at)
          FROM plans p LEFT JOIN (SELECT plan_id, jsonb_agg(row_id) AS rows FROM changes WHERE space_id = $1
                                   GROUP BY 1) t ON t.plan_id = p.id WHERE space_id = $1) AS plans,
       (SELECT jsonb_agg(jsonb_build_array(plan_id, number, status, note)) FROM decisions WHERE space_id = $1)
           AS decisions
"""
DECISIONS = """
SELECT d.plan_id, d.number, d.status, d.subject, d.factors, c.changes FROM decisions d
  LEFT JOIN LATERAL (SELECT jsonb_agg(jsonb_build_array(table_name, row_id, after) ORDER BY number) AS changes
                       FROM changes WHERE space_id = $1 AND plan_id = d.plan_id AND decision = d.number) c ON true
 WHERE d.space_id = $1 AND d.plan_id = ANY($2) AND d.status = 'applied' ORDER BY d.plan_id, d.number
"""


@dataclass(frozen=True, kw_only=True)
class World:
    """Every row that plans may change, and every plan, at one moment."""

    rows: Mapping[Key, Row]
    plans: Mapping[UUID, Row]
    applied: AbstractSet[tuple[UUID, int]] = frozenset()
    # Plans with something left to do.
    open: AbstractSet[UUID] = frozenset()
    # Why, by decision.
    failed: Mapping[tuple[UUID, int], str] = field(default_factory=dict)

    def table(self, name: str) -> dict[UUID, Row]:
        return {id_: row for (table, id_), row in self.rows.items() if table == name}

    @cached_property
    def nodes(self) -> dict[UUID, Row]:
        return self.table("nodes")

    @cached_property
    def edges(self) -> dict[UUID, Row]:
        return self.table("edges")

    @cached_property
    def living_edges(self) -> dict[UUID, Row]:
        return {id_: row for id_, row in self.edges.items() if row["status"] == "active"}

    @cached_property
    def standing(self) -> list[UUID]:
        """The plans that have done something which was not taken back since."""
        return [id_ for id_, plan in self.plans.items() if plan["status"] in ("applied", "partly_applied")]


async def look(connection: asyncpg.Connection, space_id: UUID) -> World:
    found = await connection.fetchrow(EVERYTHING, space_id)
    rows, plans, states = (json.loads(found[what] or "[]") for what in ("rows", "plans", "decisions"))
    decisions = {(UUID(plan), number): (status, note) for plan, number, status, note in states}
    return World(
        rows={(table, UUID(id_)): row for table, id_, row in rows},
        plans={UUID(one[0]): _plan(*one[1:]) for one in plans},
        applied={place for place, (status, _) in decisions.items() if status == "applied"},
        open={plan for (plan, _), (status, _) in decisions.items() if status == "proposed"},
        failed={place: note for place, (status, note) in decisions.items() if status == "failed"},
    )


def _plan(policy: str, status: str, undoes: str | None, touched: Iterable[str] | None) -> Row:
    return {
        "policy": policy,
        "status": status,
        "undoes": UUID(undoes) if undoes else None,
        "touched": [UUID(row) for row in touched or ()],
    }


@dataclass(frozen=True, kw_only=True)
class Decided:
    """A decision that was carried out: what it is about, and the columns that it has written, by row."""

    plan: UUID
    number: int
    subject: UUID
    factors: Row
    written: Sequence[tuple[Key, Row]]


async def decided(connection: asyncpg.Connection, space_id: UUID, plans: Iterable[UUID]) -> list[Decided]:
    return [
        Decided(
            plan=row["plan_id"],
            number=row["number"],
            subject=row["subject"],
            factors=json.loads(row["factors"]),
            written=[((table, UUID(id_)), after or {}) for table, id_, after in json.loads(row["changes"] or "[]")],
        )
        for row in await connection.fetch(DECISIONS, space_id, list(plans))
    ]


@dataclass(kw_only=True)
class Use:
    """How an edge was used, and how strong that would have made it had no plan ever touched it."""

    strength: float
    set_at: datetime
    decay_rate: float
    walked: int = 0
    reinforced: int = 0

    def at(self, moment: datetime) -> float:
        days = max(0.0, (moment - self.set_at).total_seconds() / 86_400)
        return self.strength * exp(-self.decay_rate * days)

    def use(self, gain: float, moment: datetime, *, walks: bool) -> None:
        self.strength, self.set_at = min(1.0, self.at(moment) + gain), moment
        self.walked += walks
        self.reinforced += 1


def strength_at(edge: Row, moment: datetime) -> float:
    """What a row says of the strength of an edge; never said is 1, and does not fade (A05)."""
    if edge["strength"] is None:
        return 1.0
    set_at = datetime.fromisoformat(edge["last_reinforced_at"] or edge["created_at"])
    return Use(strength=edge["strength"], set_at=set_at, decay_rate=edge["decay_rate"]).at(moment)


@dataclass(kw_only=True)
class Given:
    """What was given by hand: rows as they came in, uses of edges, energy of concepts, pairs that never become one."""

    rows: dict[Key, Row] = field(default_factory=dict)
    uses: dict[UUID, Use] = field(default_factory=dict)
    energy: Counter[str] = field(default_factory=Counter)
    never: set[frozenset[str]] = field(default_factory=set)

    def take(self, before: World, after: World) -> None:
        """Whatever came in between the two was given."""
        for key, row in after.rows.items():
            if key not in before.rows:
                self.rows[key] = row
        for id_, row in after.edges.items():
            if ("edges", id_) not in before.rows:
                self.follow(id_, row)

    def follow(self, id_: UUID, row: Row) -> None:
        made = datetime.fromisoformat(row["last_reinforced_at"] or row["created_at"])
        strength = 1.0 if row["strength"] is None else row["strength"]
        self.uses.setdefault(id_, Use(strength=strength, set_at=made, decay_rate=row["decay_rate"]))


# -- what must hold at every moment


def faults(world: World, given: Given) -> list[str]:
    """Everything that is wrong with a space (P12, P15): nothing."""
    failed = [f"P16: decision {number} failed, and was not stale: {why}" for (_, number), why in world.failed.items()]
    return [*failed, *_hanging(world), *_lost(world), *_wrongly_used(world, given), *_energy(world, given)]


def _hanging(world: World) -> Iterable[str]:
    nodes, places = world.nodes, Counter[tuple[str, ...]]()
    for id_, edge in world.living_edges.items():
        ends = [UUID(edge["source"]), UUID(edge["target"])]
        places[(edge["source"], edge["target"], edge["relation"])] += 1
        if ends[0] == ends[1]:
            yield f"the edge {id_} links a node to itself"
        for end in ends:
            if end not in nodes:
                yield f"the edge {id_} ends at {end}, which is not there"
            elif nodes[end]["status"] == "merged":
                yield f"the living edge {id_} hangs on {end}, which was merged away"
    yield from (f"{place} is there {times} times" for place, times in places.items() if times > 1)


def _lost(world: World) -> Iterable[str]:
    """What was merged leads to something that is not, and nothing leads in a circle."""
    for table in ("nodes", "edges"):
        rows = world.table(table)
        for id_, row in rows.items():
            if (row["status"] == "merged") != (row["merged_into"] is not None):
                yield f"the row {id_} of {table} is {row['status']} and merged into {row['merged_into']}"
            if _keeper(rows, id_) is None:
                yield f"the row {id_} of {table} leads nowhere"


def _keeper(rows: Mapping[UUID, Row], id_: UUID) -> UUID | None:
    met: set[UUID] = set()
    while id_ in rows and id_ not in met:
        met.add(id_)
        if rows[id_]["merged_into"] is None:
            return id_
        id_ = UUID(rows[id_]["merged_into"])
    return None


def _wrongly_used(world: World, given: Given) -> Iterable[str]:
    """Use is never lost: an edge counts its own and that of all that went into it."""
    edges = world.edges
    walked, reinforced = defaultdict[UUID, int](int), defaultdict[UUID, int](int)
    for id_, use in given.uses.items():
        if id_ in edges and (keeper := _keeper(edges, id_)) is not None:
            walked[keeper] += use.walked
            reinforced[keeper] += use.reinforced
    for id_, edge in edges.items():
        if edge["status"] == "merged":
            continue
        for column, counted in (("activation_count", walked), ("reinforce_count", reinforced)):
            if edge[column] != counted[id_]:
                yield f"the edge {id_} has {column} {edge[column]}, and was used {counted[id_]} times"


def _energy(world: World, given: Given) -> Iterable[str]:
    there: Counter[str] = Counter()
    for row in world.table("activity").values():
        there.update(row["energy"] or {})
    for entity in there | given.energy:
        if abs(there[entity] - given.energy[entity]) > 1e-6:
            yield f"{entity} has energy {there[entity]}, and {given.energy[entity]} was given"


def components(world: World) -> frozenset[frozenset[UUID]]:
    """The parts of the living graph that hang together, each with at least one edge (A06)."""
    living = {id_ for id_, node in world.nodes.items() if node["status"] == "active"}
    beside = defaultdict[UUID, set[UUID]](set)
    for edge in world.living_edges.values():
        a, b = UUID(edge["source"]), UUID(edge["target"])
        if {a, b} <= living:
            beside[a].add(b)
            beside[b].add(a)
    parts, met = set[frozenset[UUID]](), set[UUID]()
    for start in beside:
        if start in met:
            continue
        part, todo = {start}, [start]
        while todo:
            for one in beside[todo.pop()] - part:
                part.add(one)
                todo.append(one)
        met |= part
        parts.add(frozenset(part))
    return frozenset(parts)


# -- what a plan may have done


def done_wrong(decision: Decided, policy: str, seen: World, given: Given) -> list[str]:
    """Why a decision that was just carried out should not have been, by the world as it was right before (P16)."""
    found = []
    if frozenset(decision.factors.get("pair", ())) in given.never:
        found.append(f"decision {decision.number} merged a pair that a person keeps apart")
    if judge := JUDGES.get(policy):
        found += judge(decision, seen)
    return found


def _no_longer_parallel(decision: Decided, seen: World) -> Iterable[str]:
    living, mine = seen.living_edges, {id_ for (table, id_), _ in decision.written if table == "edges"}
    if not mine <= living.keys():
        yield f"decision {decision.number} merged edges that were not living"
        return
    ends = {frozenset((living[id_]["source"], living[id_]["target"])) for id_ in mine}
    if len(ends) > 1:
        yield f"decision {decision.number} merged edges that were not parallel"
        return
    (pair,) = ends
    beside = {id_ for id_, edge in living.items() if frozenset((edge["source"], edge["target"])) == pair}
    relations = {living[id_]["relation"] for id_ in beside}
    if "contradicts" in relations and len(relations) > 1:
        yield f"decision {decision.number} merged edges between ends that contradict each other"


def _not_active(decision: Decided, seen: World) -> Iterable[str]:
    for id_ in (UUID(decision.factors["keeper"]), decision.subject):
        if seen.nodes[id_]["status"] != "active":
            yield f"decision {decision.number} merged {id_}, which was {seen.nodes[id_]['status']}"


def _at_rest(decision: Decided, seen: World) -> Iterable[str]:
    """P17: once an archived end comes back, it would be alone."""
    edge = seen.edges[decision.subject]
    for end in ("source", "target"):
        if (status := seen.nodes[UUID(edge[end])]["status"]) != "active":
            yield f"P17: decision {decision.number} pruned an edge that ends at a node which was {status}"


JUDGES: dict[str, Callable[[Decided, World], Iterable[str]]] = {
    "merge_parallel_edges": _no_longer_parallel,
    "merge_duplicate_concepts": _not_active,
    "prune_weak_edges": _at_rest,
}


def not_as_shown(written: Mapping[tuple[Key, str], Any], after: World) -> list[str]:
    """Columns that a plan wrote which are not what it had shown; moments are written in more ways than one."""
    return [
        f"{table} {id_}: {column} is {there!r}, not {value!r}"
        for ((table, id_), column), value in written.items()
        if not column.endswith("_at") and column not in USED.get(table, ())
        if (there := after.rows.get((table, id_), {}).get(column)) != value
    ]


def differences(before: World, after: World, *, but: Iterable[Key] = ()) -> list[str]:
    """Rows that are not as they were, use aside, but for those that may differ."""
    allowed, found = set(but), []
    for key in before.rows.keys() | after.rows.keys():
        if key in allowed:
            continue
        one, other = (_plain(key[0], world.rows.get(key)) for world in (before, after))
        if one != other:
            found.append(f"{key[0]} {key[1]}: {_told(one, other)}")
    return found


def _plain(table: str, row: Row | None) -> Row | None:
    return None if row is None else {name: value for name, value in row.items() if name not in USED.get(table, ())}


def _told(one: Row | None, other: Row | None) -> str:
    if one is None or other is None:
        return "came" if one is None else "went"
    return ", ".join(f"{name} {one[name]!r} became {other[name]!r}" for name in one if one[name] != other[name])


# -- what must hold once everything is taken back


def not_given_back(world: World, given: Given, now: datetime) -> list[str]:
    """Every row that was given is as it was, with its use; what plans made is no part of the living any more."""
    found = []
    for key, row in given.rows.items():
        if _plain(key[0], row) != (there := _plain(key[0], world.rows.get(key))):
            found.append(f"{key[0]} {key[1]}: {_told(_plain(key[0], row), there)}")
    for (table, id_), row in world.rows.items():
        if (table, id_) not in given.rows and table in ("nodes", "edges") and row["status"] == "active":
            found.append(f"{table} {id_}, which a plan made, is still there")
        if (table, id_) not in given.rows and table in ("topics", "case_archive"):
            found.append(f"{table} {id_}, which a plan made, is still there")
    for id_, edge in world.living_edges.items():
        if (use := given.uses.get(id_)) is not None and edge["strength"] is not None:
            there_now = strength_at(edge, now)
            if abs(there_now - use.at(now)) > 1e-6:
                found.append(f"the edge {id_} has strength {there_now:.4f}; without any plan {use.at(now):.4f}")
    return found
