"""plan.md: a merge plan as the design lays it out, for people to read, edit and hand back (B26, B27).

What is written can be read back. A person may change a decision (MERGE to CREATE_NEW, another target, DECLINE) in the
table, in the root's block or in the execution order; where two of these places were changed differently, that is said
and nothing is guessed. What depended on a changed decision follows it: below a page that is new now everything is new,
below a page that was declined everything falls away.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from graphlib import TopologicalSorter

from recollect.errors import InvalidInput
from recollect.pages.rules.decisions import (
    MAX_RETRIES,
    DeferredEdge,
    MergePlan,
    NodePlan,
    NodeStatus,
    SubgraphPlan,
    SubgraphStatus,
    Verdict,
)
from recollect.pages.rules.hierarchy import PageEdge
from recollect.pages.rules.page import WikiPage, type_and_name

COLUMNS = ("Node", "Decision", "Target", "Score", "Parent", "Deferred Edge", "Status")
NOTHING = "-"
ROOT = "(root)"
NO_TARGET = "N/A"
BREAK = "<br>"
_ARROW = " → "
HEAD = """\
What may be edited, and nothing else: the Decision of a page (MERGE, CREATE_NEW, DECLINE), and with MERGE its
Target, the id of a page of the same type. Change it in the row of the table; the step of the execution order and
the root's block may stay as they are or say the same. No row may be taken out, added or written twice: to leave a
page out, write DECLINE. In names, `\\u0020` and the like stand for white space and signs that the file itself uses."""
_TO_ESCAPE = re.compile(r"[\\|→]|(?! )\s|(?<=[: ]) |\A | \Z|<(?=br>)")
_ESCAPE = re.compile(r"\\(?:([\\|])|u([0-9a-f]{4}))")

_GENERATED = re.compile(r"Generated: *(.*)")
_SUBGRAPH = re.compile(r"## SubGraph \d+: *(.+?) *")
_PART = re.compile(r"### *(.+?) *")
_FACT = re.compile(r"- \*\*(.+?)\*\*: *(.*?) *")
_STEP = re.compile(r"\d+\. +(.+)")
_REASON = re.compile(r"- (.+?): (.*)")
_CELLS = re.compile(r"(?<!\\)\|")


# -- writing


def render_plan(plan: MergePlan) -> str:
    parts = [
        "# Merge Plan",
        f"Generated: {plan.generated.isoformat() if plan.generated else NOTHING}\n"
        f"Total SubGraphs: {len(plan.subgraphs)}",
        HEAD,
    ]
    for number, subgraph in enumerate(plan.subgraphs, start=1):
        parts += ["---", f"## SubGraph {number}: {_cell(subgraph.subgraph_id)}", *_subgraph_parts(subgraph)]
    return "\n\n".join(parts) + "\n"


def _subgraph_parts(subgraph: SubgraphPlan) -> Iterator[str]:
    nodes = [subgraph.nodes[id] for id in subgraph.execution_order]
    top_down = list(subgraph.nodes.values())
    yield "### Root"
    yield _root_block(subgraph.nodes[subgraph.root_id]) if subgraph.root_id in subgraph.nodes else NOTHING
    yield "### Execution Order"
    yield "\n".join(f"{number}. {_step(node)}" for number, node in enumerate(nodes, start=1))
    yield "### Node Plans"
    yield "\n".join([_row(COLUMNS), _row(["---"] * len(COLUMNS)), *(_row(_cells_of(node)) for node in top_down)])
    yield "### Reasons"
    yield "\n".join(f"- {_cell(node.page_id)}: {_line(node.reason) or NOTHING}" for node in top_down)
    yield "### Audit Status"
    yield "\n".join(
        [
            f"- **Status**: {_audit_status(subgraph)}",
            f"- **Retry Count**: {subgraph.retry_count}",
            f"- **Feedback**: {_line(subgraph.audit_result or '') or NOTHING}",
        ]
    )


def _root_block(root: NodePlan) -> str:
    facts = {
        "Page": _cell(root.page_id),
        "Type": root.page_type,
        "Decision": root.decision.value,
        "Target": _cell(root.merge_target_id) if root.merge_target_id else NO_TARGET,
        "Score": _score(root.best_match_score),
    }
    return "\n".join(f"- **{name}**: {value}" for name, value in facts.items())


def _step(node: NodePlan) -> str:
    target = f" with {_cell(node.merge_target_id)}" if node.merge_target_id else ""
    return f"{_cell(node.page_id)}{_ARROW}{node.decision.value}{target}"


def _cells_of(node: NodePlan) -> list[str]:
    parents = BREAK.join(_cell(edge.parent_id) for edge in node.deferred_edges)
    return [
        _cell(node.page_id),
        node.decision.value,
        _cell(node.merge_target_id or "") or NOTHING,
        _score(node.best_match_score),
        parents or ROOT,
        BREAK.join(edge.edge_type for edge in node.deferred_edges) or NOTHING,
        node.status.value,
    ]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _score(score: float | None) -> str:
    return NOTHING if score is None else f"{score:.2f}"


def _cell(name: str) -> str:
    """A name that is read back as it is, whatever signs it holds."""
    if name in (NOTHING, ROOT, NO_TARGET):
        return f"\\u{ord(name[0]):04x}{name[1:]}"
    return _TO_ESCAPE.sub(lambda match: _escaped(match[0]), name)


def _escaped(sign: str) -> str:
    return f"\\{sign}" if sign in "\\|" else f"\\u{ord(sign):04x}"


def _plain(cell: str) -> str:
    return _ESCAPE.sub(lambda match: match[1] or chr(int(match[2], 16)), cell.strip())


def _line(text: str) -> str:
    """A text for people, on one line."""
    return _cell(" ".join(text.split()))


def _audit_status(subgraph: SubgraphPlan) -> str:
    if subgraph.status is SubgraphStatus.COMPLETED:
        return "PASSED"
    return "FAILED" if subgraph.status in (SubgraphStatus.FAILED, SubgraphStatus.RETRY) else "PENDING"


# -- reading


@dataclass(frozen=True, kw_only=True, slots=True)
class _PlanPart:
    """The lines below one `###` heading."""

    name: str
    lines: tuple[str, ...]


def read_plan(text: str) -> tuple[MergePlan, dict[str, list[tuple[Verdict, str | None]]]]:
    """The plan of a plan.md by its tables, and what its other places say about each node.

    InvalidInput, naming the place, where it cannot be read.
    """
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if not any(line.strip() == "# Merge Plan" for line in lines):
        raise InvalidInput("It is no merge plan: a plan begins with the line # Merge Plan.")
    generated = next((match[1] for line in lines if (match := _GENERATED.fullmatch(line))), NOTHING)
    elsewhere: dict[str, list[tuple[Verdict, str | None]]] = {}
    subgraphs = [_read_subgraph(name, parts, elsewhere) for name, parts in _subgraph_lines(lines)]
    _refuse_twice(
        [subgraph.subgraph_id for subgraph in subgraphs], "SubGraph {} stands twice in the file: take one out."
    )
    pages = [id for subgraph in subgraphs for id in subgraph.nodes]
    _refuse_twice(pages, "{} has a row in two sub-graphs: take one out.")
    return MergePlan(subgraphs=tuple(subgraphs), generated=_moment(generated)), elsewhere


def _refuse_twice(names: Sequence[str], message: str) -> None:
    twice = next((name for name, times in Counter(names).items() if times > 1), None)
    if twice is not None:
        raise InvalidInput(message.format(twice))


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text.strip())
    except ValueError:
        return None


def _subgraph_lines(lines: Sequence[str]) -> Iterator[tuple[str, dict[str, _PlanPart]]]:
    name: str | None = None
    parts: dict[str, list[str]] = {}
    current: list[str] = []
    for line in [*lines, "## SubGraph 0: end"]:
        if match := _SUBGRAPH.fullmatch(line):
            if name is not None:
                yield name, {title: _PlanPart(name=title, lines=tuple(held)) for title, held in parts.items()}
            name, parts = _plain(match[1]), {}
        elif match := _PART.fullmatch(line):
            current = parts.setdefault(match[1], [])
        elif line.strip() and line.strip() != "---":
            current.append(line.strip())


def _read_subgraph(
    name: str, parts: Mapping[str, _PlanPart], elsewhere: dict[str, list[tuple[Verdict, str | None]]]
) -> SubgraphPlan:
    for title in ("Node Plans", "Execution Order"):
        if title not in parts:
            raise InvalidInput(f"SubGraph {name} has no part ### {title}.")
    reasons = dict(_reasons(parts.get("Reasons")))
    rows = list(_read_rows(name, parts["Node Plans"], reasons))
    _refuse_twice([node.page_id for node in rows], f"SubGraph {name}: {{}} has two rows in the table: take one out.")
    nodes = {node.page_id: node for node in rows}
    root = _facts(parts.get("Root"))
    if root.get("Decision"):
        verdict = (_verdict(root["Decision"], name), _target_in(root.get("Target", NO_TARGET)))
        elsewhere.setdefault(_plain(root.get("Page", "")), []).append(verdict)
    order = [_read_step(line, name, elsewhere) for line in parts["Execution Order"].lines]
    _refuse_twice(order, f"SubGraph {name}: {{}} stands twice in the execution order: take one out.")
    if set(order) != set(nodes):
        odd = ", ".join(sorted(set(order) ^ set(nodes)))
        raise InvalidInput(f"SubGraph {name}: the execution order and the table name other pages ({odd}).")
    audit = _facts(parts.get("Audit Status"))
    retries = int(audit.get("Retry Count", "0")) if audit.get("Retry Count", "0").isdigit() else 0
    feedback = _plain(audit.get("Feedback", NOTHING))
    return SubgraphPlan(
        subgraph_id=name,
        root_id=_plain(root.get("Page", "")) or next(iter(nodes)),
        nodes=nodes,
        execution_order=tuple(order),
        status=_status(audit.get("Status", "PENDING"), nodes, retries),
        audit_result=None if feedback in (NOTHING, "") else feedback,
        retry_count=retries,
    )


def _read_rows(name: str, part: _PlanPart, reasons: Mapping[str, str]) -> Iterator[NodePlan]:
    for line in part.lines:
        cells = [cell.strip() for cell in _CELLS.split(line)[1:-1]]
        if cells == list(COLUMNS) or all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            continue
        if len(cells) != len(COLUMNS):
            raise InvalidInput(f"SubGraph {name}: a row of the table has {len(cells)} cells, not 7: {line}")
        yield _read_row(name, cells, reasons)


def _read_row(name: str, cells: Sequence[str], reasons: Mapping[str, str]) -> NodePlan:
    id = _plain(cells[0])
    parents = [] if cells[4] == ROOT else [_plain(parent) for parent in cells[4].split(BREAK)]
    kinds = [] if cells[5] == NOTHING else [kind.strip() for kind in cells[5].split(BREAK)]
    if len(parents) != len(kinds):
        raise InvalidInput(f"SubGraph {name}: {id} has {len(parents)} parents and {len(kinds)} deferred edges.")
    return NodePlan(
        page_id=id,
        page_type=type_and_name(id)[0],
        decision=_verdict(cells[1], name),
        merge_target_id=_target_in(cells[2]),
        best_match_score=_number(cells[3], name),
        reason=reasons.get(id, ""),
        parent_id=parents[0] if parents else None,
        deferred_edges=tuple(
            DeferredEdge(parent_id=parent, edge_type=kind) for parent, kind in zip(parents, kinds, strict=True)
        ),
        status=_node_status(cells[6], name),
    )


def _target_in(cell: str) -> str | None:
    return None if cell.strip() in (NOTHING, NO_TARGET, "") else _plain(cell)


def _read_step(line: str, name: str, elsewhere: dict[str, list[tuple[Verdict, str | None]]]) -> str:
    match = _STEP.fullmatch(line)
    if not match or _ARROW not in match[1]:
        raise InvalidInput(f"SubGraph {name}: this is no step of the execution order: {line}")
    page, _, act = match[1].rpartition(_ARROW)
    verdict, _, target = act.partition(" with ")
    elsewhere.setdefault(_plain(page), []).append((_verdict(verdict, name), _plain(target) or None))
    return _plain(page)


def _facts(part: _PlanPart | None) -> dict[str, str]:
    return {match[1]: match[2] for line in (part.lines if part else ()) if (match := _FACT.fullmatch(line))}


def _reasons(part: _PlanPart | None) -> Iterator[tuple[str, str]]:
    """`- Type:Name: reason`: a colon and a space end the id, for in an id that space is escaped."""
    for line in part.lines if part else ():
        if (match := _REASON.fullmatch(line)) and match[2] != NOTHING:
            yield _plain(match[1]), _plain(match[2])


def _verdict(text: str, name: str) -> Verdict:
    try:
        return Verdict(text.strip().upper().replace(" ", "_"))
    except ValueError as error:
        verdicts = ", ".join(Verdict)
        raise InvalidInput(f"SubGraph {name}: {text!r} is no decision; one of {verdicts} is.") from error


def _node_status(text: str, name: str) -> NodeStatus:
    try:
        return NodeStatus(text.strip().upper())
    except ValueError as error:
        raise InvalidInput(f"SubGraph {name}: {text!r} is no status; one of {', '.join(NodeStatus)} is.") from error


def _number(text: str, name: str) -> float | None:
    if text == NOTHING:
        return None
    try:
        return float(text)
    except ValueError as error:
        raise InvalidInput(f"SubGraph {name}: {text!r} is no score.") from error


def _status(text: str, nodes: Mapping[str, NodePlan], retries: int) -> SubgraphStatus:
    if text == "PASSED":
        return SubgraphStatus.COMPLETED
    if text == "FAILED":
        return SubgraphStatus.RETRY if retries < MAX_RETRIES else SubgraphStatus.FAILED
    begun = any(node.status is not NodeStatus.PENDING for node in nodes.values())
    return SubgraphStatus.EXECUTING if begun else SubgraphStatus.PLANNED


# -- edits


@dataclass(frozen=True, kw_only=True, slots=True)
class Edit:
    """A decision that a person changed in the file."""

    page_id: str
    decision: Verdict
    target: str | None = None


def edits_in(text: str, plan: MergePlan) -> list[Edit]:
    """What a person changed in a plan.md since it was written; InvalidInput where two places disagree."""
    edited, elsewhere = read_plan(text)
    rows, nodes = edited.nodes, plan.nodes
    if unknown := rows.keys() ^ nodes.keys():
        raise InvalidInput(_of_another(sorted(unknown)))
    edits: list[Edit] = []
    for id, node in nodes.items():
        was = (node.decision, node.merge_target_id)
        row = rows[id]
        says = {(row.decision, row.merge_target_id), *elsewhere.get(id, [])} - {was}
        if len(says) > 1:
            raise InvalidInput(f"{id} was changed in two ways: make its row, its step and its root say the same.")
        edits += (Edit(page_id=id, decision=decision, target=_target(decision, target)) for decision, target in says)
    return edits


def _of_another(pages: Sequence[str]) -> str:
    more = f" and {len(pages) - 5:,} more" if len(pages) > 5 else ""
    return f"The plan has other pages than its file: {', '.join(pages[:5])}{more}. Is it the plan.md of another plan?"


def _target(decision: Verdict, target: str | None) -> str | None:
    """A page that is new or declined has no target, even where the file still names one."""
    return target if decision in (Verdict.MERGE, Verdict.REVIEW) else None


def with_edits(
    plan: MergePlan,
    edits: Sequence[Edit],
    pages: Mapping[str, WikiPage],
    children: Mapping[str, Sequence[PageEdge]],
) -> MergePlan:
    """The plan as a person wants it, and all that follows from that; InvalidInput where an edit cannot be honoured."""
    nodes = plan.nodes
    for edit in edits:
        _check(edit, nodes, pages)
        nodes[edit.page_id] = replace(
            nodes[edit.page_id], decision=edit.decision, merge_target_id=edit.target, reason="Decided by a person"
        )
    _check_targets(nodes)
    moved = {edit.page_id for edit in edits}
    for id in _top_down(nodes):
        above = {edge.parent_id for edge in nodes[id].deferred_edges}
        if id not in moved and above & moved:
            follows = _following(nodes[id], nodes, children)
            moved |= {id} if follows != nodes[id] else set()
            nodes[id] = follows
    return plan.with_nodes(nodes)


def _top_down(nodes: Mapping[str, NodePlan]) -> list[str]:
    above = {id: [edge.parent_id for edge in nodes[id].deferred_edges] for id in sorted(nodes)}
    return list(TopologicalSorter(above).static_order())


def _check(edit: Edit, nodes: Mapping[str, NodePlan], pages: Mapping[str, WikiPage]) -> None:
    node = nodes.get(edit.page_id)
    if node is None:
        raise InvalidInput(f"The plan has no page {edit.page_id}.")
    if node.status is NodeStatus.COMPLETED:
        raise InvalidInput(f"{edit.page_id} is done already: undo the plan to decide otherwise.")
    if edit.decision is not Verdict.MERGE:
        return
    if edit.target is None:
        raise InvalidInput(f"{edit.page_id} is to be merged, but the plan does not say with which page.")
    if edit.target not in pages:
        raise InvalidInput(f"{edit.page_id} cannot be merged with {edit.target}: there is no such page.")
    if pages[edit.target].type != node.page_type:
        raise InvalidInput(f"{edit.page_id} cannot be merged with {edit.target}: that is another type of page.")


def _check_targets(nodes: Mapping[str, NodePlan]) -> None:
    """No two pages of one batch end in one page."""
    taken: dict[str, str] = {}
    for id, node in nodes.items():
        if node.decision is Verdict.MERGE and node.merge_target_id:
            if node.merge_target_id in taken:
                raise InvalidInput(f"{id} and {taken[node.merge_target_id]} cannot both become {node.merge_target_id}.")
            taken[node.merge_target_id] = id


def _following(node: NodePlan, nodes: Mapping[str, NodePlan], children: Mapping[str, Sequence[PageEdge]]) -> NodePlan:
    """A node as its parents leave it: declined below declined ones, new where its target is out of scope now."""
    parents = [nodes[edge.parent_id] for edge in node.deferred_edges]
    if not parents:
        return node
    if all(parent.decision is Verdict.DECLINE for parent in parents):
        return replace(node, decision=Verdict.DECLINE, merge_target_id=None, reason="Declined with its parent")
    if node.merge_target_id is None or node.decision is Verdict.DECLINE:
        return node
    merged = (parent for parent in parents if parent.decision is Verdict.MERGE and parent.merge_target_id)
    scope = {edge.target for parent in merged for edge in children.get(parent.merge_target_id or "", ())}
    if node.merge_target_id in scope:
        return node
    lowest = parents[0]
    reason = f"Inherited from parent ({lowest.page_id} is {lowest.decision.value})"
    return replace(node, decision=Verdict.CREATE_NEW, merge_target_id=None, best_match_score=None, reason=reason)
