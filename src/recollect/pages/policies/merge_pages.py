"""Merge pages: a batch of new pages goes into the wiki, leaves first, every link to what its page became (B14-B25).

What becomes of each page was decided when the batch came in (pages/rules/decisions); here that is carried out in
memory, audited, and written down as changes of rows. A sub-graph is a group: it arrives as a whole or not at all. A
page of it is one decision, with its node, its edges and its aliases. What the audit objects to is made again with more
care, at most three times; a sub-graph that still does not pass is left out and named.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

import anyio.to_thread

from recollect.errors import InvalidInput
from recollect.memories.rules.text import checksum
from recollect.pages.rules.audit import TRACEABLE, CarriedOut, carried_out, lost
from recollect.pages.rules.decisions import (
    MAX_RETRIES,
    MergePlan,
    NodePlan,
    NodeStatus,
    SubgraphPlan,
    SubgraphStatus,
    Verdict,
)
from recollect.pages.rules.execution import UNTOUCHED, Destinations, LinkChanges, arriving, destinations
from recollect.pages.rules.hierarchy import children_by_parent, forward_edges
from recollect.pages.rules.links import EdgeKey, edge_row, edges_between, relinked
from recollect.pages.rules.page import WikiLink, WikiPage
from recollect.pages.rules.plan_md import Edit, with_edits
from recollect.pages.rules.stored import (
    PageBatch,
    StoredPage,
    came_also,
    export_page,
    known_results,
    new_row,
    page_from,
    row_of,
)
from recollect.plan import Change, Draft, Look, Plan, Risk
from recollect.plan import Decision as Decided
from recollect.plans.policy import Policy, Reader
from recollect.wording import require

RELINK = "RELINK"
TOGETHER = 20
"""Sub-graphs that share a transaction: few enough that a run that is killed has little to do again."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    """Which pages that came in, what a person decided otherwise (page, decision, target), and what a second try knows.

    `only` names sub-graphs; none means all. `careful` names pages of which a merge had lost something: they are kept
    whole. `attempt` counts the executions.
    """

    batch: str = ""
    edits: tuple[tuple[str, str, str | None], ...] = ()
    only: tuple[str, ...] = ()
    careful: tuple[str, ...] = ()
    attempt: int = 1

    def __post_init__(self) -> None:
        require(1 <= self.attempt <= MAX_RETRIES, "attempt", f"from 1 to {MAX_RETRIES}")


@dataclass(frozen=True, kw_only=True, slots=True)
class _World:
    """What there is when a merge is written down."""

    stored: Sequence[StoredPage]
    edges: Mapping[tuple[UUID, str, UUID], UUID]
    aliases: AbstractSet[tuple[str, UUID]]

    @property
    def pages(self) -> dict[str, WikiPage]:
        """The living pages; what is archived does not count as there."""
        return {stored_page.page.id: stored_page.page for stored_page in self.stored if stored_page.is_living}

    @property
    def by_id(self) -> dict[str, StoredPage]:
        return {stored_page.page.id: stored_page for stored_page in self.stored}


async def propose(reader: Reader, options: Options, now: datetime) -> Plan:
    batch = await reader.page_batch(_batch_id(options.batch))
    world = _World(stored=await reader.pages(), edges=await reader.page_edges(), aliases=await reader.page_aliases())
    return await anyio.to_thread.run_sync(_plan, batch, world, options, now)


def _batch_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise InvalidInput(
            "merge-pages needs the pages that are to come in: `recollect pages import FOLDER` proposes with them.",
            field="batch",
        ) from None


def _plan(batch: PageBatch, world: _World, options: Options, now: datetime) -> Plan:
    before = world.pages
    merge = settled(batch.plan, world, options)
    where = destinations(merge, before)
    done = carried_out(
        merge, before, where, careful=set(options.careful), attempt=options.attempt, updated=f"{now:%Y-%m-%d}"
    )
    draft = Draft()
    _Writing(draft, batch, world, done, where, now).all_of_it()
    _note(draft, batch, done)
    summary = _summary(done, before, draft)
    return draft.plan(
        title=_title(batch.label, summary),
        now=now,
        summary=summary,
    )


def _title(label: str, summary: Mapping[str, Any]) -> str:
    """What becomes of how many; what becomes of none goes unsaid."""
    counts = [f"{summary[verb]:,} {verb}" for verb in ("created", "merged") if summary[verb]]
    return f"Merge {label}: {', '.join(counts) or 'nothing new'}"


def settled(plan: MergePlan, world: _World, options: Options) -> MergePlan:
    """The plan as a person wants it, without what is done already: a page that came before is not merged again."""
    pages = world.pages
    edits = [Edit(page_id=id, decision=Verdict(decision), target=target) for id, decision, target in options.edits]
    if edits:
        plan = with_edits(plan, edits, pages, children_by_parent(pages.values()))
    if options.only:
        plan = replace(plan, subgraphs=_only(plan, options.only))
    plan = plan.with_nodes({id: _target_there(node, pages) for id, node in plan.nodes.items()})
    nodes = plan.nodes
    new = [node.page for node in nodes.values() if node.page is not None and id_arrives(node)]
    results = known_results(new, world.stored)
    return plan.with_nodes(
        {id: replace(nodes[id], status=NodeStatus.COMPLETED, result_page_id=results[id]) for id in results}
    )


def _only(plan: MergePlan, chosen: Iterable[str]) -> tuple[SubgraphPlan, ...]:
    """These sub-graphs; the others stay as they are, for links lead to their pages too."""
    names = set(chosen)
    return tuple(
        subgraph if subgraph.subgraph_id in names else replace(subgraph, status=SubgraphStatus.COMPLETED)
        for subgraph in plan.subgraphs
    )


def id_arrives(node: NodePlan) -> bool:
    return node.decision in (Verdict.MERGE, Verdict.CREATE_NEW)


def _target_there(node: NodePlan, pages: Mapping[str, WikiPage]) -> NodePlan:
    """A page whose target has gone since it was decided is new."""
    if node.decision is Verdict.MERGE and node.merge_target_id not in pages:
        reason = f"{node.merge_target_id} is not there any more"
        return replace(node, decision=Verdict.CREATE_NEW, merge_target_id=None, reason=reason)
    return node


# -- writing down


class _Writing:
    """A merge on its way into a draft."""

    def __init__(
        self, draft: Draft, batch: PageBatch, world: _World, done: CarriedOut, where: Destinations, now: datetime
    ) -> None:
        self.draft, self.batch, self.world, self.done = draft, batch, world, done
        self.where, self.results, self.now = where, where.results, now
        self.stored = world.by_id
        self.written = done.written
        self.order = {self.results[node.page_id]: index for index, (_, node) in enumerate(self._steps())}
        self.nodes = {id: self.stored[id].node_id if id in self.stored else uuid4() for id in done.after}
        self.edges = self._edges()

    def all_of_it(self) -> None:
        others = sorted(self.written - self.order.keys())
        for group, id in enumerate(others):
            self._keep_links(group, id)
        for number, node in self._steps():
            self._decide(len(others) + number, node, self.done.subgraphs[number])

    def _keep_links(self, group: int, id: str) -> None:
        """A page that stays as it is, but for links whose names a newcomer would take (B31): written before that one.

        By itself this changes nothing of where they lead, so each is a group of its own.
        """
        stored = self.stored[id]
        origins = came_also(stored.came_from, stored.row["checksum"], id)
        change = self._changed(stored, row_of(self.done.after[id], origins))
        self.draft.decide(
            "relink",
            stored.node_id,
            "Pages of the same name arrive: its links go on leading where they lead",
            [change],
            factors={"batch": str(self.batch.id), "result": id, "decision": RELINK},
            group=group,
            look=self._look(id, []),
        )

    def _steps(self) -> Iterator[tuple[int, NodePlan]]:
        """The pages that are written, in order: sub-graph after sub-graph, leaves first."""
        for group, subgraph in enumerate(self.done.subgraphs):
            if subgraph.status is SubgraphStatus.FAILED or subgraph.subgraph_id in self.done.skipped:
                continue
            for id in subgraph.execution_order:
                if self._is_due(subgraph.nodes[id]):
                    yield group, subgraph.nodes[id]

    def _is_due(self, node: NodePlan) -> bool:
        """Whether a page changes something; be it only that it is known when it comes again (B32)."""
        result = self.results.get(node.page_id)
        if result is None or (node.status is NodeStatus.COMPLETED and result not in self.written):
            return False
        stored = self.stored.get(result)
        return result in self.written or (stored is not None and not stored.knows(_sum(node), node.page_id))

    def _edges(self) -> dict[str, list[Change]]:
        """The changes of edges, each with the later of the two pages it joins: by then both are there."""
        was, will = (edges_between(list(pages.values())) for pages in (self.done.before, self.done.after))
        changes: dict[str, list[Change]] = {}
        for key in will.keys() - was.keys():
            if (owner := self._later(key)) and self._stored_edge(key) is None:
                changes.setdefault(owner, []).append(self._made(key, will[key]))
        for key in was.keys() - will.keys():
            if key[0] in self.order and (id := self._stored_edge(key)) is not None:
                gone = Change(table="edges", id=id, before={"status": "active"}, after={"status": "pruned"})
                changes.setdefault(key[0], []).append(gone)
        return changes

    def _later(self, key: EdgeKey) -> str | None:
        ends = [end for end in (key[0], key[2]) if end in self.order]
        return max(ends, key=lambda end: self.order[end], default=None)

    def _stored_edge(self, key: EdgeKey) -> UUID | None:
        source, relation, target = key
        return self.world.edges.get((self.nodes[source], relation, self.nodes[target]))

    def _made(self, key: EdgeKey, link: WikiLink) -> Change:
        source, relation, target = key
        row = edge_row(uuid4(), self.nodes[source], relation, self.nodes[target], link, self.now)
        return Change(table="edges", id=UUID(row["id"]), before=None, after=row)

    def _decide(self, group: int, node: NodePlan, subgraph: SubgraphPlan) -> None:
        result = self.results[node.page_id]
        edges = sorted(self.edges.get(result, []), key=lambda change: str(change.after))
        change, verb = self._node(node, result)
        self.draft.decide(
            verb,
            self.nodes[result],
            node.reason or verb,
            [change, *edges, *self._aliases(node, result)],
            score=node.best_match_score,
            factors={**self._factors(node, result), "subgraph": subgraph.subgraph_id},
            group=group,
            look=self._look(result, edges),
        )

    def _node(self, node: NodePlan, result: str) -> tuple[Change, str]:
        """The row of the page: made, brought back, or changed."""
        page, stored = self.done.after[result], self.stored.get(result)
        origins = came_also(stored.came_from if stored and stored.is_living else {}, _sum(node), node.page_id)
        if stored is None:
            row = new_row(page, origins, self.now)
            return Change(table="nodes", id=self.nodes[result], before=None, after=row), "create"
        change = self._changed(stored, {**row_of(page, origins), "status": "active"})
        return change, "merge" if stored.is_living else "bring back"

    def _changed(self, stored: StoredPage, after: dict[str, Any]) -> Change:
        """The columns of a page's row that change."""
        after["metadata"] = {**stored.row["metadata"], **after["metadata"]}
        if after["text"] != stored.row["text"]:
            after |= {"version": stored.row["version"] + 1, "updated_at": self.now.isoformat()}
        columns = [name for name in after if after[name] != stored.row[name]]
        return Change(
            table="nodes",
            id=stored.node_id,
            before={name: stored.row[name] for name in columns},
            after={name: after[name] for name in columns},
        )

    def _aliases(self, node: NodePlan, result: str) -> list[Change]:
        """Other names under which the page can be found: those it gives itself, and that of a page it took in."""
        page, id = self.done.after[result], self.nodes[result]
        names = dict.fromkeys([*page.aliases, *([node.page.name] if node.page else [])])
        fresh = [name for name in names if name != page.name and (name, id) not in self.world.aliases]
        return [
            Change(
                table="aliases",
                id=(alias_id := uuid4()),
                before=None,
                after={
                    "id": str(alias_id),
                    "kind": "page",
                    "subtype": page.type,
                    "alias": name,
                    "node_id": str(id),
                    "created_at": self.now.isoformat(),
                },
            )
            for name in fresh
        ]

    def _look(self, result: str, edges: Sequence[Change]) -> Look:
        """The page, where it is there already, as it was read; and what it is linked with is still there."""
        look = self.draft.look()
        own = self.nodes[result]
        rows = [change.after for change in edges if change.before is None and change.after is not None]
        ends = {UUID(row[end]) for row in rows for end in ("source", "target")} - {own}
        for end in sorted(ends):
            look.finds("nodes", end, status="active")
        if (stored := self.stored.get(result)) is not None:
            look.reads("nodes", own, stored.row, "status", "version")
        return look

    def _factors(self, node: NodePlan, result: str) -> dict[str, Any]:
        """What a person and the audit need to know of the page: where it came from, and where its links lead."""
        children = (edge for edge in forward_edges(node.page)) if node.page else ()
        links = self.where.arriving.get(node.page_id, UNTOUCHED)
        factors = {
            "batch": str(self.batch.id),
            "page_id": node.page_id,
            "page_type": node.page_type,
            "decision": node.decision.value,
            "target": node.merge_target_id,
            "result": result,
            "links": {written: links.anew[written] for written in sorted(links.anew)},
            "left_out": sorted(links.gone),
            "children": sorted(
                {(edge.relation, self.results[edge.target]) for edge in children if edge.target in self.results}
            ),
        }
        if node.decision is Verdict.MERGE and node.page is not None:
            stored = self.stored[result]
            factors |= {"pair": list(pair_of(node.page_id, result)), "state": state_of(node.page, stored.page)}
            factors |= {"links_there": dict(self.where.there.get(result, UNTOUCHED).anew)}
        return factors


def _sum(node: NodePlan) -> str:
    return checksum((node.page.raw if node.page else None) or "")


def pair_of(new: str, old: str) -> tuple[str, str]:
    """How a declined merge of two pages is remembered (P11)."""
    return f"new page {new}", f"page {old}"


def state_of(new: WikiPage, old: WikiPage) -> str:
    """What the two were like: once either changes, the pair may be offered again."""
    return checksum(f"{checksum(new.raw or '')} {checksum(old.raw or '')}")


# -- saying


def _note(draft: Draft, batch: PageBatch, done: CarriedOut) -> None:
    for finding in batch.findings:
        draft.note("reading", str(finding))
    for note in done.notes:
        draft.note("conflict", note)
    for subgraph in done.subgraphs:
        if subgraph.status is SubgraphStatus.FAILED:
            draft.note("audit", f"{subgraph.subgraph_id} ({subgraph.root_id}) was left out: {subgraph.audit_result}")
    for node in (node for subgraph in done.subgraphs for node in subgraph.nodes.values()):
        if node.decision is Verdict.DECLINE:
            draft.note("declined", f"{node.page_id}: {node.reason}")


def _summary(done: CarriedOut, before: Mapping[str, WikiPage], draft: Draft) -> dict[str, Any]:
    verbs = [decision.verb for decision in draft.decisions]
    pages = sum(len(subgraph.nodes) for subgraph in done.subgraphs)
    merged, relinked = verbs.count("merge"), verbs.count("relink")
    return {
        "pages": pages,
        "subgraphs": len(done.subgraphs),
        "created": len(verbs) - merged - relinked,
        "merged": merged,
        "relinked": relinked,
        "unchanged": pages + relinked - len(verbs),
        "failed": sum(subgraph.status is SubgraphStatus.FAILED for subgraph in done.subgraphs),
        "scope": {"pages": len(before)},
        "touched": {"pages": merged + relinked},
    }


# -- the audit of what was written (B20-B22), inside its transaction


async def audited(reader: Reader, decisions: Sequence[Decided]) -> list[str]:
    """Everything that is wrong with the pages of a group as they are in the store now."""
    if not decisions:
        return []
    named = [str(decision.factors["page_id"]) for decision in decisions if "page_id" in decision.factors]
    batch = await reader.page_batch(UUID(str(decisions[0].factors["batch"])), named)
    new = {id: node.page for id, node in batch.plan.nodes.items()}
    stored = {page.node_id: page for page in await reader.pages([decision.subject for decision in decisions])}
    edges = await reader.edges_in_full([change.id for decision in decisions for change in _edges_made(decision)])
    there = {id for id, edge in edges.items() if edge.status == "active"}
    return [
        f"{decision.factors.get('page_id', decision.factors['result'])}: {problem}"
        for decision in decisions
        for problem in _problems(
            decision, new.get(str(decision.factors.get("page_id"))), stored.get(decision.subject), there
        )
    ]


def _edges_made(decision: Decided) -> list[Change]:
    return [change for change in decision.changes if change.table == "edges" and change.before is None]


def _problems(decision: Decided, new: WikiPage | None, stored: StoredPage | None, there: set[UUID]) -> Iterator[str]:
    (row,) = (change for change in decision.changes if change.table == "nodes")
    result = decision.factors["result"]
    if stored is None or not stored.is_living:
        yield f"{result} does not exist"
        return
    if row.after is not None and stored.row["text"] != row.after.get("text", stored.row["text"]):
        yield f"{result} was not updated"
    for change in _edges_made(decision):
        if change.id not in there:
            yield f"{result} has no {(change.after or {})['relation']} edge that it should have"
    links = {(link.relation, link.target) for link in stored.page.links}
    for relation, child in decision.factors.get("children", ()):
        if (relation, child) not in links:
            yield f"{result} has no {relation} link to {child}"
    if decision.factors["decision"] == RELINK:
        return
    led = LinkChanges(anew=decision.factors["links"], gone=frozenset(decision.factors["left_out"]))
    arrived = new and arriving(new, led)
    if arrived is not None and export_page(arrived) != stored.row["text"]:
        yield from lost(arrived, stored.page, traceable=TRACEABLE if decision.verb == "merge" else 1.0)
    if decision.verb == "merge" and row.before is not None and "text" in row.before:
        was = relinked(_as_it_was(stored, row.before), decision.factors.get("links_there", {}))
        yield from lost(was, stored.page, traceable=1.0)


def _as_it_was(stored: StoredPage, before: Mapping[str, Any]) -> WikiPage:
    page = stored.page
    return page_from(id=page.id, type=page.type, name=page.name, path=page.path, text=before["text"])


# -- declined pages, and pages that failed


def without(plan: Plan, declined: Sequence[Decided]) -> dict[str, Any]:
    """The merge as it is when some pages do not come in: their parents come without them (P21)."""
    if any(decision.factors["decision"] == RELINK for decision in declined):
        raise InvalidInput(
            "That decision keeps links leading where they lead: decline the page that takes their name instead."
        )
    edits = {edit[0]: tuple(edit) for edit in plan.options["edits"]}
    pages = (str(decision.factors["page_id"]) for decision in declined)
    edits |= {id: (id, Verdict.DECLINE.value, None) for id in pages}
    return {**plan.options, "edits": [*edits.values()]}


def again(plan: Plan, failed: Sequence[Decided]) -> dict[str, Any] | None:
    """The sub-graphs that failed, once more: what was merged in them is now kept whole (B23)."""
    attempt = int(plan.options["attempt"]) + 1
    if attempt > MAX_RETRIES:
        return None
    merges = [
        str(decision.factors["page_id"]) for decision in failed if decision.factors["decision"] == Verdict.MERGE.value
    ]
    subgraphs = list(
        dict.fromkeys(str(decision.factors["subgraph"]) for decision in failed if "subgraph" in decision.factors)
    )
    if not subgraphs:
        return None
    return {**plan.options, "only": subgraphs, "careful": merges, "attempt": attempt}


POLICY = Policy(
    name="merge_pages",
    about="Imported pages are merged into the wiki.",
    risk=Risk.HIGH,
    options=Options,
    propose=propose,
    short="merge-pages",
    says="Merged {merged} pages, created {created}",
    audit=audited,
    makes_nodes=True,
    together=TOGETHER,
    without=without,
    again=again,
)
