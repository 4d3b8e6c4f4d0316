"""A plan as people read it: what comes (+), what changes (~), what goes (-), and why; as lines, and as Markdown.

A decision is one line for its subject and one for each other row that it changes. Rows are called by labels, short
names that the engine has looked up; what is remembered may hold anything, so in Markdown nothing of it is taken for
markup.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from recollect.graph.rules.labels import shortened
from recollect.graph.rules.titles import name_of
from recollect.model import Node
from recollect.plan import Change, Decision, DecisionStatus, Finding, Plan, PlanStatus, Row

COMES, CHANGES, GOES = "+", "~", "-"
# So much of a name is shown, of one value, and so many rows and columns of one decision.
LABEL_COLUMNS = 40
VALUE_COLUMNS = 40
SHORT_ID = 8
MOST_ROWS = 8
MOST_VALUES = 3
# Columns that follow from others, or say nothing to a reader.
SILENT = {"version", "updated_at", "changed_in", "gathered_at", "state"}
# What a row of a table is called by, where it is not stored yet.
NAMED_BY = ("name", "text", "key", "alias", "query")
# Parts of a summary that serve the brake.
UNSEEN = {"scope", "touched", "waits"}

Labels = Mapping[UUID, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanLine:
    """One row that a decision changes. Only the first line of a decision has its number and its state."""

    number: int | None
    sign: str
    id: UUID
    what: str
    why: str
    state: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tally:
    """How many rows a whole plan brings, changes and retires; of those that come, how many were there before."""

    comes: int = 0
    returns: int = 0
    changes: int = 0
    goes: int = 0

    def __str__(self) -> str:
        return f"{COMES} {self.comes:,}, {CHANGES} {self.changes:,}, {GOES} {self.goes:,}"


# -- lines


def sign_of(change: Change) -> str:
    """Whether a row comes (is made, or becomes active again), goes (is retired or taken away), or changes."""
    if change.before is None:
        return COMES
    if change.after is None:
        return GOES
    if "status" in change.after:
        return COMES if change.after["status"] == "active" else GOES
    return CHANGES


def lines_of(decision: Decision, labels: Labels) -> list[PlanLine]:
    """The subject of a decision with its reason, then the other rows that change with it."""
    main = next((change for change in decision.changes if change.id == decision.subject), None)
    others = [change for change in decision.changes if change is not main]
    first = PlanLine(
        number=decision.number,
        sign=CHANGES if main is None else sign_of(main),
        id=decision.subject,
        what=label_of(decision.subject, labels),
        why=decision.reason + ("" if main is None else _altered(main)),
        state=state_of(decision),
    )
    return [first, *_rows(others, labels)]


def state_of(decision: Decision) -> str:
    """What became of a decision, and why; nothing while it waits."""
    if decision.status is DecisionStatus.PROPOSED:
        return ""
    return decision.status.value + (f": {decision.note}" if decision.note else "")


def label_of(id_: UUID, labels: Labels) -> str:
    return labels.get(id_) or str(id_)


def _rows(others: Sequence[Change], labels: Labels) -> Iterator[PlanLine]:
    for change in others[:MOST_ROWS]:
        why = _altered(change).strip(" ()") or _retired(change)
        yield PlanLine(number=None, sign=sign_of(change), id=change.id, what=label_of(change.id, labels), why=why)
    if rest := others[MOST_ROWS:]:
        signs = Counter(map(sign_of, rest))
        summary = f"and {len(rest):,} more rows: {', '.join(f'{sign} {count:,}' for sign, count in signs.items())}"
        yield PlanLine(number=None, sign=" ", id=rest[0].id, what=summary, why="")


def _altered(change: Change) -> str:
    return difference(change.before, change.after) if sign_of(change) == CHANGES else ""


def _retired(change: Change) -> str:
    """Where a row went that was merged."""
    into = (change.after or {}).get("merged_into")
    return f"merged into {into[:SHORT_ID]}" if into else ""


def difference(before: Row | None, after: Row | None) -> str:
    """What changed, in brackets and few words: ` (importance 0.5 -> 0.9)`; nothing where a row was made or taken."""
    if before is None or after is None:
        return ""
    changed = [name for name in after if name not in SILENT]
    parts = [f"{name} {value_of(before.get(name))} -> {value_of(after[name])}" for name in changed[:MOST_VALUES]]
    if len(changed) > MOST_VALUES:
        parts.append(f"and {', '.join(changed[MOST_VALUES:])}")
    return f" ({', '.join(parts)})" if parts else ""


def value_of(value: Any) -> str:
    """A value in few characters: texts as they are, the rest as JSON."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return shortened(text, VALUE_COLUMNS)


# -- labels


def edge_label(source: str, relation: str, target: str) -> str:
    return f"{source} —{short_name(relation)}→ {target}"


def name_in(row: Row) -> str:
    """What a row that is not stored yet is called by."""
    if "archived_reason" in row:
        return f"a copy in the archive ({row['archived_reason']})"
    return next((str(row[column]) for column in NAMED_BY if row.get(column)), "")


@lru_cache(maxsize=10_000)
def short_name(text: str) -> str:
    """A name that fits beside others; the same few come again and again in a long plan."""
    return shortened(text, LABEL_COLUMNS)


def called(node: Node) -> str:
    """A node by its name, or as its text is called."""
    return short_name(name_of(node))


# -- the whole, in words


def report_of(plan: Plan) -> str:
    """The policy's own figures in one line: `total 12, pruned 3, kept 9, kept by leaf 2`."""
    return ", ".join(_figures(plan.summary, ""))


def _figures(summary: Row, prefix: str) -> Iterator[str]:
    for name, value in summary.items():
        title = f"{prefix}{name.replace('_', ' ')}"
        if isinstance(value, Mapping):
            yield from () if name in UNSEEN else _figures(value, f"{title} ")
        elif name not in UNSEEN and not (prefix and value == 0):
            yield f"{title} {value:,}" if isinstance(value, int) else f"{title} {value_of(value)}"


def options_of(plan: Plan) -> str:
    return ", ".join(f"{name} {value_of(value)}" for name, value in plan.options.items())


def states_of(plan: Plan) -> str:
    """`12 applied, 2 stale`, the states of a plan's decisions."""
    counts = ((state, plan.counts.get(state, 0)) for state in DecisionStatus)
    return ", ".join(f"{count:,} {state_word(state)}" for state, count in counts if count) or "no decisions"


def state_word(state: PlanStatus | DecisionStatus) -> str:
    """One word for one state: what was proposed and is not decided yet is waiting."""
    return "waiting" if state in (PlanStatus.PROPOSED, DecisionStatus.PROPOSED) else state.value.replace("_", " ")


# -- Markdown


def markdown_head(plan: Plan, tally: Tally) -> str:
    values = {
        "plan": f"`{plan.id}`",
        "policy": _md(plan.policy),
        "state": f"{state_word(plan.status)}; {states_of(plan)}",
        "risk": plan.risk.value,
        "made": f"{plan.created_at:%Y-%m-%d %H:%M}Z by {_md(plan.created_by)}",
        "undoes": f"`{plan.undoes}`" if plan.undoes else "",
        "rows": str(tally),
        "report": _md(report_of(plan)),
        "options": _md(options_of(plan)),
        "waits": _md(str(plan.summary.get("waits", ""))),
    }
    facts = "\n".join(f"| {name} | {value} |" for name, value in values.items() if value)
    return f"# {_md(plan.title)}\n\n| | |\n|---|---|\n{facts}\n"


def markdown_decisions(decisions: Iterable[Decision], labels: Labels, *, with_heading: bool = True) -> str:
    """A stretch of the table of decisions; the first one bears the heading."""
    heading = "\n## Decisions\n\n| # | | what | why | state |\n|---:|---|---|---|---|\n" if with_heading else ""
    lines = (line for decision in decisions for line in lines_of(decision, labels))
    return heading + "".join(map(_markdown_line, lines))


def _markdown_line(line: PlanLine) -> str:
    number = "" if line.number is None else str(line.number)
    # In code, lest a lone sign be taken for the beginning of a list.
    sign = f"`{line.sign}`" if line.sign.strip() else ""
    return f"| {number} | {sign} | {_md(line.what)} | {_md(line.why)} | {_md(line.state)} |\n"


def markdown_left_alone(findings: Sequence[Finding], labels: Labels) -> str:
    """What was seen and left alone, each with its rule."""
    if not findings:
        return ""
    rows = "".join(
        f"| {_md(finding.rule)} | {_md(subject_of(finding, labels))} | {_md(finding.text)} |\n" for finding in findings
    )
    return f"\n## Skipped\n\n| rule | what | why |\n|---|---|---|\n{rows}"


def subject_of(finding: Finding, labels: Labels) -> str:
    return "" if finding.subject is None else label_of(finding.subject, labels)


_MARKUP = re.compile(r"([\\`*_{}\[\]<>#|~&!])")


def _md(text: str) -> str:
    """A text on one line, with nothing in it that Markdown or HTML would act upon."""
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))
