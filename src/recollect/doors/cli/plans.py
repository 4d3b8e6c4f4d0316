"""Plans: propose, show, approve, decline, apply, undo; what was run; and tidy, which does it all at once."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import fields, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from recollect.doors.cli import output, showing, values
from recollect.doors.cli.door import Cursor, Door, Limit, command, listing
from recollect.doors.cli.front import CommandGroup
from recollect.doors.cli.memories import CHANGING
from recollect.errors import InvalidInput
from recollect.plan import Decision, DecisionStatus, Outcome, PlanStatus
from recollect.plans.rules import plan_text

if TYPE_CHECKING:
    from recollect.engine.engine import Engine
    from recollect.pages.apply import Merged
    from recollect.plans.run import Tidied
    from recollect.plans.show import ShownPlan

PANEL = "Tidy"
PAGES = "merge_pages"


class PlanCommands(CommandGroup):
    """`recollect plan prune` is short for `recollect plan propose prune`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if args[0] in self.commands or args[0].startswith("-") or self._is_slip(args[0]):
            return super().resolve_command(ctx, args)
        return super().resolve_command(ctx, ["propose", *args])

    def _is_slip(self, word: str) -> bool:
        """Whether a word is rather a command that was mistyped than a policy."""
        from recollect.plans.registry import POLICIES

        policies = {name for policy in POLICIES.values() for name in (policy.name, policy.short)}
        return bool(get_close_matches(word, self.commands)) and not get_close_matches(word, policies)


app = typer.Typer()
group = typer.Typer(cls=PlanCommands)

PlanId = Annotated[str, typer.Argument(metavar="PLAN", help="The plan's id, or its first 4 or more characters.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="NAME=VALUE", help="An option of the policy; repeat for more."),
]
Status = Annotated[
    str | None, typer.Option("--status", metavar="STATUS", help="Only these: waiting, applied, undone, ...")
]
OfPolicy = Annotated[str | None, typer.Option("--policy", metavar="POLICY", help="Only of this policy.")]
Numbers = Annotated[
    str | None, typer.Option("--decision", metavar="N,N", help="Only these decisions, like 3,8 or 10-20.")
]


# -- looking


@listing(group, as_list="List plans, newest first: every change that was proposed or made.")
def list_plans(
    door: Door, status: Status = None, policy: OfPolicy = None, limit: Limit = 20, cursor: Cursor = None
) -> None:
    """Propose plans, look at them, approve and decline them.

    \b
    recollect plan prune            what would go, and why; nothing is changed
    recollect plan show 7f3a        the same plan again
    recollect apply 7f3a            carry it out
    recollect plan                  list the plans, newest first
    """
    stored = PlanStatus.PROPOSED if status == "waiting" else status
    listed, more = door.ask(lambda memory: memory.plans.list(status=stored, policy=policy, limit=limit, cursor=cursor))
    door.show(listed, partial(showing.plans, more=more), as_json={"items": listed, "next_cursor": more})


@command(group, "policies")
def policies(door: Door) -> None:
    """List the policies: the ways of tidying there are, with their options."""
    infos = door.ask(lambda memory: memory.plans.policies())
    door.show(infos, showing.policies)


@command(group, "propose")
def propose(
    door: Door,
    policy: Annotated[
        str, typer.Argument(metavar="POLICY", help="prune, merge-edges, ...: `recollect plan policies`.")
    ],
    set_: Set = None,
) -> None:
    """Let a policy propose a plan; `recollect plan POLICY` for short.

    Shows what comes (+), what changes (~) and what goes (-), each with its reason, and what was skipped and by which
    rule. The plan is saved under an id; nothing else is written until you apply it.

    \b
    recollect plan prune --set threshold=0.1 --set min_inactive_days=14
    """
    options = values.assignments("--set", set_ or ())

    async def verb(memory: "Engine") -> "ShownPlan":
        with output.busy("Looking"):
            plan = await memory.plans.propose(policy, options)
        return await _show(memory, str(plan.id), door=door)

    showing.hint_next(door.ask(verb))


@command(group, "show")
def show(
    door: Door,
    plan: PlanId,
    all_: Annotated[bool, typer.Option("--all", "-a", help="Every decision, not only the first 50.")] = False,
    markdown: Annotated[bool, typer.Option("--md", help="All of it as Markdown, for a file.")] = False,
    status: Annotated[DecisionStatus | None, typer.Option("--status", help="Only decisions that came to this.")] = None,
) -> None:
    """Show a plan: the very one that will be applied, or was.

    With --json it is one document, with every decision and each row before and after.

    \b
    recollect plan show 7f3a
    recollect plan show 7f3a --md > plan.md
    """
    verb = _show_markdown if markdown and not door.json else partial(_show, door=door, all_=all_)
    shown = door.ask(lambda memory: verb(memory, plan, status=status))
    if not markdown:
        showing.hint_next(shown)


@command(group, "runs")
def runs(
    door: Door,
    plan: Annotated[str | None, typer.Argument(metavar="PLAN", help="Only of this plan.")] = None,
    limit: Limit = 20,
) -> None:
    """List what was applied and undone, newest first: how far it is, or its report."""
    listed = door.ask(lambda memory: memory.plans.runs(plan, limit=limit))
    door.show(listed, showing.runs)


# -- deciding


@command(group, "approve")
def approve(door: Door, plan: PlanId) -> None:
    """Say yes to a plan; `recollect apply` carries it out."""
    approved = door.ask(lambda memory: memory.plans.approve(plan))
    door.show(approved, partial(showing.plans, more=None))
    output.hint(f"`recollect apply {output.short(approved.id)}` carries it out.")


@command(group, "decline")
def decline(
    door: Door,
    plan: PlanId,
    decision: Numbers = None,
    never: Annotated[
        bool, typer.Option("--never", help="Never propose to join these pairs again; else not for 30 days.")
    ] = False,
) -> None:
    """Say no to a plan, or to some of its decisions and what needs them."""
    numbers = values.numbers("--decision", decision)
    declined = door.ask(lambda memory: memory.plans.decline(plan, numbers, never=never))
    door.show(declined, lambda plan: showing.plans([plan], more=None))
    option = f" --decision {decision}" if decision else ""
    output.note(f"`recollect plan accept {output.short(declined.id)}{option}` takes that back.")


@command(group, "accept")
def accept(
    door: Door,
    plan: PlanId,
    decision: Numbers = None,
) -> None:
    """Take back a no: declined decisions wait again, with what they need.

    As long as the plan waits. A pair that was kept apart because of it may be proposed again.
    """
    numbers = values.numbers("--decision", decision)
    accepted = door.ask(lambda memory: memory.plans.accept(plan, numbers))
    door.show(accepted, lambda plan: showing.plans([plan], more=None))
    showing.hint_next(accepted)


@command(app, "apply", rich_help_panel=PANEL)
def apply(
    door: Door,
    plan: PlanId,
    decline: Annotated[
        str | None, typer.Option("--decline", metavar="N,N", help="All but these decisions, like 3,8 or 10-20.")
    ] = None,
    plan_md: Annotated[
        Path | None,
        typer.Option("--plan-md", metavar="FILE", help="The plan.md of a merge of pages, as you have edited it."),
    ] = None,
) -> None:
    """Carry out a plan, group by group; each is changed as a whole or not at all.

    What has changed since the plan was made is left alone and reported as stale. A plan that was interrupted goes on;
    applying twice does no harm. A merge of pages follows its plan.md, and keeps it current.
    """
    numbers = values.numbers("--decline", decline) or []

    async def verb(memory: "Engine") -> "tuple[Outcome, Merged | None]":
        with output.progress("Applying") as progress:
            if (await memory.plans.get(plan, decisions=False)).policy == PAGES or plan_md is not None:
                text = None if plan_md is None else _read(plan_md)
                merged = await memory.pages.apply(plan, plan_md=text, decline=numbers, file=plan_md, progress=progress)
                return merged.outcome, merged
            return await memory.plans.apply(plan, decline=numbers, progress=progress), None

    outcome, merged = door.ask(verb)
    door.show(outcome, showing.applied if merged is None else lambda _: showing.merged(merged))
    if is_short(outcome):
        raise typer.Exit(1)


@command(app, "undo", rich_help_panel=CHANGING)
def undo(
    door: Door,
    plan: Annotated[str, typer.Argument(metavar="PLAN", help="A plan of `recollect history`, or its beginning.")],
    decision: Numbers = None,
    with_later: Annotated[
        bool, typer.Option("--with-later", help="Undo first what later plans changed on top of it, all as one plan.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be undone, with all that came later, in order.")
    ] = False,
) -> None:
    """Undo a plan, or some of its decisions and what needs them.

    Everything is as it was before, and what happened since (recalls, other changes) is kept. Undoing twice does no
    harm; an undo is a plan itself, and can be undone. Where a later plan has changed the same, it is named and nothing
    is undone; --with-later undoes it first, and whatever stands in its way.
    """
    numbers = values.numbers("--decision", decision)
    if dry_run:
        chain = door.ask(lambda memory: memory.plans.undo_chain(plan, decisions=numbers), doing="Looking")
        door.show(chain, showing.to_be_undone)
        return
    outcome = door.ask(
        lambda memory: memory.plans.undo(plan, decisions=numbers, with_later=with_later), doing="Undoing"
    )
    door.show(outcome, showing.undone)


@command(app, "tidy", rich_help_panel=PANEL)
def tidy(
    door: Door,
    policy: Annotated[
        list[str] | None,
        typer.Argument(metavar="POLICY", help="prune, merge-edges, ...; those that have a schedule, if none is named."),
    ] = None,
    set_: Set = None,
) -> None:
    """Run policies now: propose, and apply what may be applied without asking.

    What would touch much of the graph, and in production whatever merges or archives, waits for `recollect apply`. Each
    run is a plan, and `recollect undo` undoes it.

    \b
    recollect tidy
    recollect tidy prune --set threshold=0.1
    """
    options = values.assignments("--set", set_ or ())
    if options and len(policy or ()) != 1:
        raise InvalidInput("--set is for one policy: name it, as in `recollect tidy prune --set threshold=0.1`.")
    done = door.ask(partial(_tidy, named=policy or [], options=options))
    door.show([tidied for tidied, _ in done], showing.tidied)
    for sentence in dict.fromkeys(sentence for _, sentences in done for sentence in sentences):
        output.note(sentence)
    if any(is_short(tidied.outcome) for tidied, _ in done):
        raise typer.Exit(1)


def _read(file: Path) -> str:
    try:
        return file.read_text()
    except (OSError, UnicodeError) as error:
        raise InvalidInput(f"{file} cannot be read ({error}).", field="plan_md") from error


def is_short(outcome: Outcome | None) -> bool:
    """Whether a plan did not do what it should: something failed, or all of it was stale."""
    return outcome is not None and (bool(outcome.failed) or outcome.status in (PlanStatus.STALE, PlanStatus.FAILED))


# -- asking


async def _show(
    memory: "Engine", plan: str, *, door: Door, all_: bool = False, status: DecisionStatus | None = None
) -> "ShownPlan":
    """Print a plan as it comes out of the store; returns its head."""
    first = await memory.plans.show(plan, limit=showing.FIRST, status=status)
    if door.json:
        await output.document_in_parts(_head(first), "decisions", _decisions(memory, plan, status))
        return first
    showing.head(first)
    if not all_:
        showing.decisions(first)
    else:
        async for stretch in memory.plans.stretches(plan, status=status):
            showing.decisions(stretch)
    showing.left_alone(first)
    showing.more(first, is_all=all_)
    return first


def _head(plan: "ShownPlan") -> dict[str, Any]:
    """A plan as JSON but for its decisions, each of which will carry its own label."""
    head: dict[str, Any] = {**output.plain(plan), "id": showing.id_of(plan)}
    return {name: value for name, value in head.items() if name not in ("decisions", "labels", "next_after")}


async def _decisions(
    memory: "Engine", plan: str, status: DecisionStatus | None
) -> AsyncIterator[Sequence[dict[str, Any]]]:
    async for stretch in memory.plans.stretches(plan, status=status):
        yield [_labelled(decision, stretch) for decision in stretch.decisions]


def _labelled(decision: Decision, plan: "ShownPlan") -> dict[str, Any]:
    columns = {attribute.name: getattr(decision, attribute.name) for attribute in fields(decision)}
    return {**columns, "label": plan_text.label_of(decision.subject, plan.labels)}


async def _show_markdown(memory: "Engine", plan: str, *, status: DecisionStatus | None) -> "ShownPlan":
    first: ShownPlan | None = None
    async for stretch in memory.plans.stretches(plan, status=status):
        if stretch.tally is not None:
            first = stretch
            output.say(plan_text.markdown_head(stretch, stretch.tally).rstrip())
        text = plan_text.markdown_decisions(stretch.decisions, stretch.labels, with_heading=stretch is first)
        output.say(text.rstrip("\n"))
    assert first is not None, "a plan has at least one stretch"
    if left := plan_text.markdown_left_alone(first.findings, first.labels):
        output.say(left.rstrip("\n"))
    return first


async def _tidy(
    memory: "Engine", *, named: Sequence[str], options: dict[str, Any]
) -> "list[tuple[Tidied, Sequence[str]]]":
    from recollect.plans.registry import POLICIES, policy_named

    done = []
    chosen = [policy_named(name) for name in named]  # all of them before the first is run
    for policy in chosen or [usual for usual in POLICIES.values() if usual.every_minutes or usual.cron]:
        with output.progress(f"Tidying: {policy.short}") as progress:
            tidied = await memory.plans.run(policy.name, options, progress=progress)
        head = replace(tidied.plan, decisions=())  # its counts say enough, and it may be long
        done.append((replace(tidied, plan=head), await memory.plans.warnings(head)))
    return done
