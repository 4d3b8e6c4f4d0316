"""Gather topics: the nodes that bear the same topic key, kept as metadata beside the graph (A20-A24).

No node or edge is made or altered. Each gathering replaces the last one as a whole; a topic that is found again keeps
its id.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import NAMESPACE_URL, UUID, uuid5

import anyio.to_thread

from recollect.graph.policies import targets
from recollect.graph.rules.arrays import EdgeColumns, as_uuids
from recollect.graph.rules.topics import FULL, KEYS, MIN_CLUSTER_SIZE, OVERLAP, GatheredTopics, gathered
from recollect.model import Topic
from recollect.plan import Change, Decision, Draft, Plan, Risk, Row, Waiting, checksum_of, patch
from recollect.plans.policy import Policy, Reader
from recollect.wording import counted, require


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """How many members make a topic, from which overlap of keys groups join (None: never), whole keys or prefixes."""

    min_cluster_size: int = MIN_CLUSTER_SIZE
    topic_overlap_threshold: float | None = OVERLAP
    key: str = FULL

    def __post_init__(self) -> None:
        overlap = self.topic_overlap_threshold
        require(self.min_cluster_size >= 1, "min_cluster_size", "1 or more")
        require(overlap is None or 0 < overlap <= 1, "topic_overlap_threshold", "above 0 and at most 1, or nothing")
        require(self.key in KEYS, "key", f"{' or '.join(KEYS)}")


async def propose(reader: Reader, options: Options, now: datetime) -> Plan:
    edges, last = await reader.edges(), await reader.topics()
    return await anyio.to_thread.run_sync(_plan, edges, last, options, now)


async def recheck(reader: Reader, decisions: Sequence[Waiting], options: Options, now: datetime) -> Mapping[int, str]:
    """A gathering rests on every edge there is: has it come to something else since, none of it is kept."""
    return await anyio.to_thread.run_sync(_outdated, await reader.edges(), decisions, options, now)


def _outdated(edges: EdgeColumns, decisions: Sequence[Waiting], options: Options, now: datetime) -> Mapping[int, str]:
    factors = {key: _factors(row) for key, row in _rows(edges, options, now).items()}
    if all(
        factors.get(earlier["key"], _let_go_of(earlier["key"])) == earlier
        for earlier in (decision.factors for decision in decisions)
    ):
        return {}
    return dict.fromkeys(
        (decision.number for decision in decisions), "the links that topics are gathered from have changed since"
    )


def _rows(edges: EdgeColumns, options: Options, now: datetime) -> dict[str, dict[str, Any]]:
    """What is found, by key."""
    topics = gathered(
        edges, min_size=options.min_cluster_size, overlap=options.topic_overlap_threshold, key=options.key
    )
    return {topic.key: _row(topic, edges, now) for topic in topics}


def _plan(edges: EdgeColumns, last: Sequence[Topic], options: Options, now: datetime) -> Plan:
    rows = _rows(edges, options, now)
    draft = Draft()
    _replace(draft, last, rows)
    return draft.plan(
        title=f"Gather {counted(len(rows), 'topic')}",
        now=now,
        summary=_summary(rows, draft),
    )


def _replace(draft: Draft, last: Sequence[Topic], rows: Mapping[str, dict[str, Any]]) -> None:
    """The last result goes and this one comes, in one group: whole, or not at all. The same again is no news."""
    topics = {topic.key: topic for topic in last}
    if {topic.key: _factors(_row_of(topic)) for topic in last} == {key: _factors(row) for key, row in rows.items()}:
        return
    for key in sorted(topics.keys() - rows.keys()):
        _let_go(draft, topics[key])
    for key, row in rows.items():
        if key in topics:
            _keep(draft, topics[key], row)
        else:
            _add(draft, key, row)


def _row(topic: GatheredTopics, edges: EdgeColumns, now: datetime) -> dict[str, Any]:
    return {
        "key": topic.key,
        "member_ids": sorted(map(str, as_uuids(edges.nodes[topic.members]))),
        "internal_edges": topic.internal_edges,
        "connectivity": topic.connectivity,
        "gathered_at": now.isoformat(),
    }


def _row_of(topic: Topic) -> dict[str, Any]:
    return {
        "key": topic.key,
        "member_ids": [str(member) for member in topic.member_ids],
        "internal_edges": topic.internal_edges,
        "connectivity": topic.connectivity,
        "gathered_at": topic.gathered_at.isoformat(),
    }


def id_of(key: str) -> UUID:
    """A topic that went and comes again is the same topic."""
    return uuid5(NAMESPACE_URL, f"recollect:topic:{key}")


def _add(draft: Draft, key: str, row: dict[str, Any]) -> None:
    topic = id_of(key)
    change = Change(table="topics", id=topic, before=None, after={"id": str(topic), **row})
    draft.decide(
        "gather", topic, f"{key} has {counted(len(row['member_ids']), 'member')}", [change], factors=_factors(row)
    )


def _keep(draft: Draft, topic: Topic, row: dict[str, Any]) -> None:
    """A topic found again among others that changed: at least the time of its gathering is new."""
    joined, left = _came_and_went(topic, row)
    reason = f"{topic.key} has {counted(len(row['member_ids']), 'member')}: {joined:,} came, {left:,} went"
    change = patch(table="topics", id=topic.id, before=_row_of(topic), after=row)
    draft.decide("gather", topic.id, reason, [change], factors=_factors(row))


def _came_and_went(topic: Topic, row: Row) -> tuple[int, int]:
    before, after = {str(member) for member in topic.member_ids}, set(row["member_ids"])
    return len(after - before), len(before - after)


def _let_go(draft: Draft, topic: Topic) -> None:
    row = {"id": str(topic.id), **_row_of(topic)}
    change = Change(table="topics", id=topic.id, before=row, after=None)
    reason = f"{topic.key} no longer has enough members of its own"
    draft.decide("drop", topic.id, reason, [change], factors=_let_go_of(topic.key))


def _let_go_of(key: str) -> Row:
    return {"key": key}


def _factors(row: Row) -> Row:
    """How it stands, and in short who its members are: what is asked again before it is written."""
    figures = {key: row[key] for key in ("key", "internal_edges", "connectivity")}
    return {"members": len(row["member_ids"]), **figures, "which": checksum_of(map(UUID, row["member_ids"]))}


def _summary(rows: Mapping[str, Row], draft: Draft) -> Row:
    """Nothing of the graph itself is in scope or touched: topics are metadata."""
    return {
        "topics": len(rows),
        "members": sum(len(row["member_ids"]) for row in rows.values()),
        "dropped": sum(decision.verb == "drop" for decision in draft.decisions),
        "scope": {},
        "touched": {},
    }


def metrics(summary: Row, measured: Row) -> Mapping[str, targets.Figure]:
    """A29: 3 to 10 topics after a month, in under 200 ms."""
    return {"topics": targets.within(summary["topics"], 3, 10), "seconds": targets.runtime(measured)}


def tally(summary: Row, _applied: Sequence[Decision]) -> Mapping[str, int]:
    """Topics that were found before are found again, whatever of them had to be written."""
    return {"topics": summary["topics"]}


POLICY = Policy(
    name="gather_topics",
    about="Linked memories that share a tag are listed together as a topic; their links stay as they are.",
    risk=Risk.LOW,
    options=Options,
    propose=propose,
    short="topics",
    says="Found {topics} topics",
    tally=tally,
    every_minutes=20_160,
    gated=True,
    recheck=recheck,
    rechecks_the_graph_alone=True,
    metrics=metrics,
)
