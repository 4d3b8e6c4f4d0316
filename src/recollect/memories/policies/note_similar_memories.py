"""Probably the same: memories whose texts say nearly the same are shown together, for a person to judge.

A memory is never merged away: its text stays as it was said. What is proposed is a `similar` link from each to the
oldest of its group, so that whoever finds one finds the others; and the groups are named as questions. Links that are
there, or once were, are left alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import anyio.to_thread
import numpy as np

from recollect.concepts.rules import clusters
from recollect.concepts.rules.clusters import ConceptGroup
from recollect.concepts.rules.detection import ConceptColumns, detect
from recollect.concepts.rules.similarity import WEIGHTS
from recollect.graph.policies.link_similar import RELATION, Nodes, is_linked, recheck, similar_edge, unlinked
from recollect.graph.rules.arrays import EdgeColumns, as_text
from recollect.graph.rules.neighbours import NearPairs
from recollect.plan import Change, Draft, Plan, Risk
from recollect.plans.policy import Policy, Reader
from recollect.ports import Executor
from recollect.providers.executors import LocalExecutor
from recollect.wording import counted, require

EXPLANATION = "probably the same"
HERE = LocalExecutor(2)


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """From which raw cosine two texts are probably the same, and how many groups are named at most."""

    min_similarity: float = 0.95
    most_groups: int = 1000

    def __post_init__(self) -> None:
        require(0.5 <= self.min_similarity <= 1, "min_similarity", "from 0.5 to 1")
        require(self.most_groups >= 1, "most_groups", "1 or more")

    @property
    def threshold(self) -> float:
        """On the scale of the detector, for which texts are concepts without names and metadata."""
        return WEIGHTS.cosine * self.min_similarity + WEIGHTS.without_cosine


async def propose(reader: Reader, options: Options, now: datetime) -> Plan:
    ids, vectors, created_at = await reader.vectors(kinds=("memory",))
    order = np.argsort(as_text(ids))
    nodes = Nodes(ids=ids[order], vectors=vectors[order], created_at=created_at[order])
    ever = await reader.edges(retired=True)
    return await anyio.to_thread.run_sync(_plan, nodes, ever, options, now, reader.executor)


def _plan(nodes: Nodes, ever: EdgeColumns, options: Options, now: datetime, executor: Executor | None) -> Plan:
    groups = list(groups_of(nodes, options, executor))[: options.most_groups]
    draft = Draft()
    for group in groups:
        _note(draft, nodes, group, options)
    for number, row, keeper in _unlinked(nodes, groups, ever):
        _link(draft, nodes, row, keeper, number, now)
    memories_are = counted(len(draft.decisions), "memory that is", "memories that are")
    return draft.plan(
        title=f"Link {memories_are} probably the same as another",
        now=now,
        summary={
            "memories": len(nodes.ids),
            "groups": len(groups),
            "linked": len(draft.decisions),
            # Links are added: nothing that exists is touched.
            "scope": {},
            "touched": {},
        },
    )


def groups_of(nodes: Nodes, options: Options, executor: Executor | None = None) -> Iterator[ConceptGroup]:
    """Memories that say nearly the same, the oldest first. None is certain: a text has no name to go by."""
    texts = ConceptColumns.of(
        ids=[nodes.id_of(row) for row in range(len(nodes.ids))],
        names=[""] * len(nodes.ids),
        vectors=nodes.vectors,
        has_text=np.ones(len(nodes.ids), np.bool_),
        created=nodes.created_at,
    )
    if not len(texts):
        return
    threshold = options.threshold
    pairs = detect(texts, threshold, here=HERE, executor=executor)
    yield from clusters.decide(texts, pairs, clusters.ClusterOptions(threshold=threshold, review=threshold)).questions


def _note(draft: Draft, nodes: Nodes, group: ConceptGroup, options: Options) -> None:
    ids = ", ".join(str(nodes.id_of(row))[:8] for row in group.rows[:8])
    more = f" and {len(group.rows) - 8} more" if len(group.rows) > 8 else ""
    sentence = f"{ids}{more} are {EXPLANATION}: similarity at least {options.min_similarity:g}"
    draft.note("review", sentence, nodes.id_of(group.keeper))


def _unlinked(nodes: Nodes, groups: Sequence[ConceptGroup], ever: EdgeColumns) -> list[tuple[int, int, int]]:
    """Number of the group, row and oldest, for those that no `similar` link joins, or ever joined, with the oldest."""
    members = [(number, row, group.keeper) for number, group in enumerate(groups) for row in group.absorbed]
    rows, keepers = (np.array([member[at] for member in members], np.int64) for at in (1, 2))
    pairs = NearPairs(
        low=np.minimum(rows, keepers), high=np.maximum(rows, keepers), similarity=np.ones(len(members), np.float32)
    )
    linked = is_linked(pairs, nodes.ids, ever)
    return [member for member, is_there in zip(members, linked.tolist(), strict=True) if not is_there]


def _link(draft: Draft, nodes: Nodes, row: int, keeper: int, number: int, now: datetime) -> None:
    source, target = nodes.id_of(row), nodes.id_of(keeper)
    cosine = min(1.0, max(0.0, float(np.dot(nodes.vectors[row], nodes.vectors[keeper]))))
    edge = {**similar_edge(source, target, cosine, now), "explanation": EXPLANATION}
    draft.decide(
        "link",
        UUID(edge["id"]),
        f"{EXPLANATION}: similarity {cosine:.3f}",
        [Change(table="edges", id=UUID(edge["id"]), before=None, after=edge)],
        score=cosine,
        factors={"similarity": cosine, "relation": RELATION, "source": str(source), "target": str(target)},
        group=number,
        look=unlinked(draft.look(), source, target, {}),
    )


POLICY = Policy(
    name="note_similar_memories",
    about="Memories that say nearly the same thing are linked as probably the same; none is merged.",
    risk=Risk.HIGH,
    options=Options,
    propose=propose,
    short="twins",
    says="Noted {linked} memories that are probably the same as another",
    quiet=True,
    recheck=recheck,
    rechecks_the_graph_alone=True,
)
