"""The plan of a merge as the document lays it out: nodes, sub-graphs, the whole (B06-B08).

These are views for people, for plan.md and for resuming; what is applied is the one Plan of the engine.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any

from recollect.pages.rules.page import PageFinding, WikiPage

MAX_RETRIES = 3


class Verdict(StrEnum):
    """What becomes of a new page. REVIEW waits for a person; a declined page is left out of the merge."""

    MERGE = "MERGE"
    CREATE_NEW = "CREATE_NEW"
    REVIEW = "REVIEW"
    DECLINE = "DECLINE"


class NodeStatus(StrEnum):
    PENDING = "PENDING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class SubgraphStatus(StrEnum):
    PLANNED = "PLANNED"
    EXECUTING = "EXECUTING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    RETRY = "RETRY"


@dataclass(frozen=True, kw_only=True, slots=True)
class DeferredEdge:
    """An edge from a parent, made when the parent is written (B15)."""

    parent_id: str
    edge_type: str
    edge_metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class NodePlan:
    """What becomes of one new page (B06), with the reason (B12). A plan read back from its file has no `page`."""

    page_id: str
    page_type: str
    decision: Verdict
    page: WikiPage | None = None
    merge_target_id: str | None = None
    best_match_score: float | None = None
    reason: str = ""
    parent_id: str | None = None
    deferred_edges: tuple[DeferredEdge, ...] = ()
    contradicts: tuple[str, ...] = ()
    status: NodeStatus = NodeStatus.PENDING
    result_page_id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class SubgraphPlan:
    """What becomes of a root and all below it (B07)."""

    subgraph_id: str
    root_id: str
    nodes: Mapping[str, NodePlan]
    execution_order: tuple[str, ...]
    status: SubgraphStatus = SubgraphStatus.PLANNED
    audit_result: str | None = None
    retry_count: int = 0

    @property
    def next_node(self) -> str | None:
        """Where a run goes on: the first node that is not done (B24)."""
        return next((id for id in self.execution_order if self.nodes[id].status is not NodeStatus.COMPLETED), None)

    def with_nodes(self, nodes: Mapping[str, NodePlan]) -> "SubgraphPlan":
        return replace(self, nodes={id: nodes.get(id, node) for id, node in self.nodes.items()})

    def ancestors(self, id: str) -> list[str]:
        """The pages of this sub-graph above one of them, itself first."""
        found = {id: None}
        waiting = [id]
        while waiting:
            for edge in self.nodes[waiting.pop()].deferred_edges:
                if edge.parent_id in self.nodes and edge.parent_id not in found:
                    found[edge.parent_id] = None
                    waiting.append(edge.parent_id)
        return list(found)


@dataclass(frozen=True, kw_only=True, slots=True)
class MergePlan:
    """The whole merge (B08)."""

    subgraphs: tuple[SubgraphPlan, ...]
    created_pages: tuple[str, ...] = ()
    edited_pages: tuple[str, ...] = ()
    findings: tuple[PageFinding, ...] = ()
    generated: datetime | None = None

    def with_nodes(self, nodes: Mapping[str, NodePlan]) -> "MergePlan":
        """The plan with some of its nodes replaced."""
        return replace(self, subgraphs=tuple(one.with_nodes(nodes) for one in self.subgraphs))

    @property
    def nodes(self) -> dict[str, NodePlan]:
        """Every node by its id: each page is planned once."""
        return {id: node for subgraph in self.subgraphs for id, node in subgraph.nodes.items()}


# -- what an execution does to a plan


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditFailure:
    """What an audit found wrong, and with which page."""

    page_id: str
    message: str

    def __str__(self) -> str:
        return f"{self.page_id}: {self.message}"


def after_audit(subgraph: SubgraphPlan, failures: Sequence[AuditFailure]) -> SubgraphPlan:
    """Done where nothing failed; else the offending pages and all above them are to be made again (B23).

    After the third execution that fails there is no fourth.
    """
    if not failures:
        return replace(subgraph, status=SubgraphStatus.COMPLETED)
    offending = {
        id for failure in failures if failure.page_id in subgraph.nodes for id in subgraph.ancestors(failure.page_id)
    }
    failed = {id: replace(subgraph.nodes[id], status=NodeStatus.FAILED) for id in offending}
    tries = subgraph.retry_count + 1
    return replace(
        subgraph.with_nodes(failed),
        status=SubgraphStatus.RETRY if tries < MAX_RETRIES else SubgraphStatus.FAILED,
        retry_count=tries,
        audit_result="; ".join(map(str, failures)),
    )


class Overall(StrEnum):
    SUCCESS = "SUCCESS"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"


@dataclass(frozen=True, kw_only=True, slots=True)
class MergeResult:
    """What came of a merge (B25)."""

    created_pages: tuple[str, ...]
    edited_pages: tuple[str, ...]
    failed: Mapping[str, str]
    overall: Overall


def result_of(plan: MergePlan, touched: Collection[str] | None = None) -> MergeResult:
    """What a merge came to. `touched` names the pages that had something to do; none given means all."""
    done = [one for one in plan.subgraphs if one.status is SubgraphStatus.COMPLETED]
    failed = {one.subgraph_id: one.audit_result or "" for one in plan.subgraphs if one.status is SubgraphStatus.FAILED}
    return MergeResult(
        created_pages=_results(done, Verdict.CREATE_NEW, touched),
        edited_pages=_results(done, Verdict.MERGE, touched),
        failed=failed,
        overall=Overall.SUCCESS if not failed else Overall.PARTIAL if done else Overall.FAILED,
    )


def _results(subgraphs: Iterable[SubgraphPlan], verdict: Verdict, touched: Collection[str] | None) -> tuple[str, ...]:
    nodes = (one.nodes[id] for one in subgraphs for id in one.execution_order if touched is None or id in touched)
    return tuple(node.result_page_id for node in nodes if node.decision is verdict and node.result_page_id)
