"""How plans look on a terminal and in a pipe: their decisions, what became of them, what was run."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from recollect.doors.cli import output
from recollect.plan import Outcome, Plan, PlanStatus, Run, TakenBack
from recollect.plans.rules import plan_text
from recollect.plans.rules.plan_text import PlanLine
from recollect.wording import counted

if TYPE_CHECKING:
    from recollect.pages.apply import Merged
    from recollect.plans.run import Tidied
    from recollect.plans.show import PolicyInfo, ShownPlan

FIRST = 50
LEFT_ALONE = 20


def head(plan: "ShownPlan") -> None:
    facts = {
        "plan": id_of(plan) or "",
        "what": plan.title,
        "state": f"{plan_text.state_word(plan.status)}; {plan_text.states_of(plan)}" if plan.counts else "",
        "policy": f"{plan.policy}, {plan.risk.value} risk",
        "made": f"{output.minute(plan.created_at)} by {plan.created_by}",
        "undoes": str(plan.undoes or ""),
        "options": plan_text.options_of(plan),
        "report": plan_text.report_of(plan),
        "rows": str(plan.tally),
    }
    output.facts((name, value) for name, value in facts.items() if value)


def id_of(plan: Plan) -> str | None:
    """Who found nothing to do made no plan, and there is no id to go on with (P24)."""
    return str(plan.id) if plan.counts else None


def decisions(plan: "ShownPlan") -> None:
    lines = [line for decision in plan.decisions for line in plan_text.lines_of(decision, plan.labels)]
    if lines and plan.tally is not None:
        output.say("")
    output.signed(map(_cells, lines))


def _cells(line: PlanLine) -> tuple[str, ...]:
    number = "" if line.number is None else str(line.number)
    why = f"[{line.state}] {line.why}" if line.state else line.why
    return number, line.sign, output.short(line.id), line.what, why


def left_alone(plan: "ShownPlan") -> None:
    if not plan.findings:
        return
    rules = ", ".join(
        f"{count:,} {rule}" for rule, count in Counter(finding.rule for finding in plan.findings).most_common()
    )
    output.heading(f"Skipped: {rules}")
    output.entries(
        (finding.rule, output.short(finding.subject), plan_text.subject_of(finding, plan.labels), finding.text)
        for finding in plan.findings[:LEFT_ALONE]
    )


def more(plan: "ShownPlan", *, is_all: bool) -> None:
    id_ = output.short(plan.id)
    if plan.next_after is not None and not is_all:
        total = sum(plan.counts.values())
        output.note(
            f"These are the first {FIRST} of {counted(total, 'decision')}: `recollect plan show {id_} --all` shows all."
        )
    if len(plan.findings) > LEFT_ALONE:
        output.note(f"{len(plan.findings):,} were skipped: `recollect plan show {id_} --md` lists them.")
    for sentence in plan.warnings:
        output.note(sentence)
    if not plan.counts:
        output.note("There is nothing to do.")


def hint_next(plan: Plan) -> None:
    id_ = output.short(plan.id)
    if plan.status in (PlanStatus.PROPOSED, PlanStatus.APPROVED) and plan.counts:
        output.hint(
            f"`recollect apply {id_}` carries it out, `--decline 3,8` leaves some out; "
            f"`recollect plan decline {id_}` says no."
        )
    elif plan.counts.get("applied"):
        output.hint(f"`recollect undo {id_}` undoes it.")


def plans(shown: Plan | Sequence[Plan], *, more: str | None) -> None:
    listed = [shown] if isinstance(shown, Plan) else shown
    output.table(
        ("plan", "made", "policy", "state", "decisions", "what"),
        [
            (
                output.short(plan.id),
                output.minute(plan.created_at),
                plan.policy,
                plan_text.state_word(plan.status),
                plan_text.states_of(plan),
                plan.title,
            )
            for plan in listed
        ],
    )
    if more:
        output.note(f"There is more: `--cursor {more}` goes on.")
    elif not listed:
        output.note("There are no plans: `recollect plan policies` says what can be tidied.")


def policies(infos: "Sequence[PolicyInfo]") -> None:
    output.entries(
        (info.short, info.about, f"{info.risk.value} risk", _schedule(info), _options(info)) for info in infos
    )
    output.hint("`recollect plan POLICY` proposes; `--set NAME=VALUE` changes an option.")


def _schedule(policy: "PolicyInfo") -> str:
    if policy.every_minutes is None:
        return policy.cron or "not by schedule"
    return f"every {counted(policy.every_minutes // 1440, 'day')}"


def _options(policy: "PolicyInfo") -> str:
    return ", ".join(f"{name}={output.compact(value)}" for name, value in policy.options.items())


def runs(listed: Sequence[Run]) -> None:
    output.entries(
        (
            output.short(run.id),
            output.short(run.plan_id),
            run.action,
            run.status,
            output.minute(run.started_at),
            _report(run),
        )
        for run in listed
    )
    if not listed:
        output.note("Nothing was run yet.")


def _report(run: Run) -> str:
    if run.status == "running":
        return f"{run.report.get('done', 0):,} of {counted(run.report.get('total', 0), 'decision')}"
    marks = run.report.get("metrics", {})
    plain = {name: value for name, value in run.report.items() if name not in ("metrics", "policy", "status")}
    figures = [f"{name.replace('_', ' ')} {output.compact(value)}" for name, value in plain.items()]
    figures += [f"{name.replace('_', ' ')} {_mark(mark)}" for name, mark in marks.items() if name not in plain]
    return ", ".join(figures)


def _mark(figure: dict[str, Any]) -> str:
    """A29: a figure, its target, and whether it was met."""
    met = "in" if figure["in_target"] else "out of"
    return f"{figure['value']:.3g} ({met} target, {figure['target']})"


def applied(outcome: Outcome) -> None:
    id_ = output.short(outcome.plan_id)
    if outcome.repeated:
        output.say(f"The plan {id_} was {plan_text.state_word(outcome.status)} already: {_counted(outcome)}.")
        return
    output.say(f"The plan {id_} is {plan_text.state_word(outcome.status)}: {_counted(outcome)}.")
    for state, messages in (("stale", outcome.stale), ("failed", outcome.failed)):
        output.table(("", ""), [(state, message) for message in messages[:FIRST]])
        if len(messages) > FIRST:
            output.note(f"{len(messages):,} are {state}: `recollect plan show {id_} --status {state} --all` shows all.")
    if outcome.applied:
        output.hint(f"`recollect undo {id_}` undoes it.")


def merged(done: "Merged") -> None:
    """A merge of pages: what was made of them, and what could not be merged."""
    result = done.result
    created, edited = (counted(len(pages), "page") for pages in (result.created_pages, result.edited_pages))
    output.say(f"{result.overall.value}: {created} created, {edited} merged.")
    for id_, why in result.failed.items():
        output.say(f"{id_} failed: {why}")
    if done.outcome.stale or done.outcome.repeated:
        applied(done.outcome)
    elif result.created_pages or result.edited_pages:
        output.hint(f"`recollect undo {output.short(done.plans[-1])}` takes it all back.")


def _counted(outcome: Outcome) -> str:
    counts = {
        "applied": outcome.applied,
        "stale": len(outcome.stale),
        "declined": outcome.declined,
        "failed": len(outcome.failed),
    }
    return ", ".join(f"{count:,} {name}" for name, count in counts.items() if count or name == "applied")


def undone(outcome: Outcome) -> None:
    if outcome.repeated:
        output.say("That was undone already.")
        return
    if len(outcome.chain) > 1:
        _chain(outcome.chain)
    output.say(f"Undone: {counted(outcome.applied, 'decision')}, by the plan {outcome.plan_id}.")
    output.hint(f"`recollect undo {output.short(outcome.plan_id)}` undoes this in turn.")


def to_be_undone(chain: Sequence[TakenBack]) -> None:
    if not chain:
        output.say("That was undone already.")
        return
    _chain(chain)
    output.hint(f"`recollect undo {output.short(chain[-1].id)} --with-later` undoes them in this order, as one plan.")


def _chain(chain: Sequence[TakenBack]) -> None:
    output.table(
        ("plan", "what", "decisions"),
        [(output.short(step.id), step.title, f"{step.decisions:,}") for step in chain],
        wrap=True,
    )


def tidied(done: "Sequence[Tidied]") -> None:
    output.table(
        ("plan", "policy", "what", "became"),
        [
            (
                output.short(tidying.plan.id) if id_of(tidying.plan) else "",
                tidying.plan.policy,
                tidying.plan.title,
                " ".join(tidying.notes)
                if tidying.outcome is None
                else f"{plan_text.state_word(tidying.outcome.status)}: {_counted(tidying.outcome)}",
            )
            for tidying in done
        ],
        wrap=True,
    )
    if any(tidying.outcome and tidying.outcome.applied for tidying in done):
        output.hint("`recollect undo PLAN` undoes it.")
    if any(tidying.outcome is None and tidying.plan.counts for tidying in done):
        output.hint("`recollect plan show PLAN` shows what waits, `recollect apply PLAN` carries it out.")
