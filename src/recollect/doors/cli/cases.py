"""Cases: questions with the answers given; add, import, search, say how it went, and keep the bank tidy."""

from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from recollect.doors.cli import output, values
from recollect.doors.cli.door import Cursor, Door, DryRun, Limit, NoWait, Reason, command, listing
from recollect.errors import InvalidInput
from recollect.model import Case, CaseHits, CasePage, CaseStatus
from recollect.wording import counted

if TYPE_CHECKING:
    from recollect.cases.import_ import CaseImport
    from recollect.cases.look import CaseHealth, CaseRun, ErrorType, Reflection, Summary
    from recollect.cases.tidy import Consolidation, DoubtfulCase
    from recollect.engine.engine import Engine

app = typer.Typer()
PANEL = "Remember and look"
MOST_LINES = 20
OUTCOMES_OF_A_RATE = 10  # fewer make none: the database computes it (0004_cases)

Id = Annotated[str, typer.Argument(metavar="ID", help="The case's id, or its first 4 or more characters.")]
Category = Annotated[
    str | None, typer.Option("--category", "-c", metavar="PATH", help="Like billing/refunds; and those below it.")
]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", "-s", metavar="NAME=VALUE", help="A threshold, like inactive_days=180; repeat for more."),
]
Format = Literal["auto", "jsonl", "csv"]
WhichStatus = Literal["active", "archived", "all"]


# -- looking


@listing(app)
def list_(
    door: Door,
    status: Annotated[WhichStatus, typer.Option("--status", help="Which of them.")] = "active",
    category: Category = None,
    below: Annotated[
        float | None, typer.Option("--below", metavar="PERCENT", help="Only those that succeed less often.")
    ] = None,
    at_least: Annotated[
        float | None, typer.Option("--at-least", metavar="PERCENT", help="Only those that succeed so often.")
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> None:
    """A bank of cases: questions, the answers given, and how well they did.

    \b
    recollect cases                                  list them, newest first
    recollect cases import answers.csv
    recollect cases search "I lost my password"
    recollect cases outcome 7f3a --failure --error outdated
    recollect cases tidy --dry-run                   what would be retired, merged and shelved
    """
    page = door.ask(
        lambda memory: memory.cases.list(
            status=None if status == "all" else CaseStatus(status),
            category=category,
            success_below=below,
            success_at_least=at_least,
            limit=limit,
            cursor=cursor,
        )
    )
    door.show(page, _show_page)


@command(app, "show")
def show(door: Door, id_: Id) -> None:
    """Show one case: the question, the answer, and how it does. An archived one is shown too, with a warning."""
    case = door.ask(lambda memory: memory.cases.get(id_))
    door.show(case, _show_case)
    if case.status is CaseStatus.ARCHIVED:
        output.note(f"This case rests in the archive: `recollect cases restore {output.short(case.case_id)}`.")


@command(app, "search")
def search(
    door: Door,
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help="The question; - reads it from stdin.")],
    category: Category = None,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="How many.")] = 5,
) -> None:
    """Search the cases that answer a question, best first. Each hit counts as a use."""
    asked = values.text_of(query)
    hits = door.ask(lambda memory: memory.cases.search(asked, category=category, limit=limit))
    door.show(hits, _show_hits)


@command(app, "reflect")
def reflect(
    door: Door,
    below: Annotated[float, typer.Option("--below", metavar="PERCENT", help="Which cases are listed.")] = 50.0,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", help="How many of them.")] = 20,
) -> None:
    """Show how the cases do: success rates, those that fail too often, and why."""
    reflection = door.ask(lambda memory: memory.cases.reflection(warn_below=below, limit=limit))
    door.show(reflection, _show_reflection)


@command(app, "summary")
def summary(door: Door) -> None:
    """Show the bank at a glance: what is active, what rests and why, what waits, what was done last."""
    bank = door.ask(lambda memory: memory.cases.summary())
    door.show(bank, _show_summary)


@command(app, "health")
def health(door: Door) -> None:
    """Say whether the cases need attention. Exit code 1 if they do."""
    case_health = door.ask(lambda memory: memory.cases.health())
    door.show(case_health, _show_health)
    if case_health.problems:
        raise typer.Exit(1)


# -- adding and changing


@command(app, "add")
def add(
    door: Door,
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help="The question; - reads it from stdin.")],
    answer: Annotated[str, typer.Option("--answer", "-a", metavar="TEXT", help="The answer that was given.")],
    category: Annotated[
        str | None, typer.Option("--category", "-c", metavar="PATH", help="Where it belongs: billing/refunds.")
    ] = None,
    no_wait: NoWait = False,
) -> None:
    """Add a case: a question, and the answer that was given.

    \b
    recollect cases add "How do I reset my password?" --answer "Settings, Security, Reset." -c account/password
    """
    asked = values.text_of(query)
    case = door.ask(lambda memory: memory.cases.add(asked, answer, category, wait=not no_wait))
    door.show(case, lambda case: output.table(("", ""), [(str(case.case_id), "stored" if no_wait else "searchable")]))


@command(app, "import")
def import_(
    door: Door,
    paths: Annotated[list[str], typer.Argument(metavar="PATH", help="CSV or JSONL files; - reads stdin.")],
    format_: Annotated[Format, typer.Option("--format", "-f", help="What they are; by their endings, else.")] = "auto",
    source: Annotated[
        str, typer.Option("--source", metavar="NAME", help="Where the ids in them come from.")
    ] = "import",
    fractions: Annotated[
        bool, typer.Option("--fractions", help="Success rates go from 0 to 1; they are percent else.")
    ] = False,
    update: Annotated[bool, typer.Option("--update", help="Bring cases that are there to what the file says.")] = False,
    dry_run: DryRun = False,
    no_wait: NoWait = False,
) -> None:
    """Import cases from CSV or JSON lines.

    A CSV file names its columns in its first line: query (or question), response_text (or answer), and where there are
    such category_path, usage_count, success_rate, last_accessed_at, id; other columns are kept in metadata.extra. What
    is there already is left alone, so an import that was interrupted is simply repeated. Exit code 1 if something was
    refused.

    \b
    recollect cases import answers.csv
    recollect cases import export.jsonl --fractions --source helpdesk
    """

    async def verb(memory: "Engine") -> "CaseImport":
        with output.progress("Importing") as progress:
            return await memory.cases.import_(
                paths,
                format=format_,
                source=source,
                fractions=fractions,
                update=update,
                dry_run=dry_run,
                stdin=values.piped_in(),
                wait=not no_wait,
                progress=progress,
            )

    report = door.ask(verb)
    door.show(report, _show_import)
    if report.refused:
        raise typer.Exit(1)


@command(app, "update")
def update(
    door: Door,
    id_: Id,
    query: Annotated[str | None, typer.Option("--query", "-q", metavar="TEXT", help="The question anew.")] = None,
    answer: Annotated[str | None, typer.Option("--answer", "-a", metavar="TEXT", help="A better answer.")] = None,
    category: Annotated[
        str | None, typer.Option("--category", "-c", metavar="PATH", help="Where it belongs; '' is nowhere.")
    ] = None,
    protect: Annotated[
        bool | None, typer.Option("--protect/--unprotect", help="Whether every policy leaves it alone.")
    ] = None,
    reason: Reason = None,
) -> None:
    """Change a case. What it said before stays in its history (`recollect history`), and can be brought back."""
    case = door.ask(
        lambda memory: memory.cases.update(
            id_, query=query, response_text=answer, category_path=category, protected=protect, reason=reason
        )
    )
    door.show(case, _show_case)


@command(app, "outcome")
def outcome(
    door: Door,
    id_: Id,
    success: Annotated[bool | None, typer.Option("--success/--failure", help="How it went.")] = None,
    error: Annotated[
        str | None, typer.Option("--error", metavar="TYPE", help="Why it failed, in a word or two.")
    ] = None,
    milliseconds: Annotated[float | None, typer.Option("--ms", metavar="N", help="How long it took.")] = None,
    search: Annotated[
        str | None, typer.Option("--search", metavar="ID", help="The search that found it and counted the use.")
    ] = None,
) -> None:
    """Say how a use of a case went; the last 100 make its success rate, once there are 10. It counts as a use."""
    if success is None:
        raise InvalidInput("Say how it went: --success or --failure.", field="success")
    case = door.ask(
        lambda memory: memory.cases.record_outcome(
            id_, success, error_type=error, milliseconds=milliseconds, search=search
        )
    )
    door.show(case, lambda case: output.say(f"{output.short(case.case_id)}: success rate {_success(case)}."))


# -- tidying


@command(app, "tidy")
def tidy(
    door: Door,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    set_: Set = None,
) -> None:
    """Retire the cases that fail, merge those that repeat, shelve those that nobody asks for.

    What is used a lot or was used recently stays. Each run is a plan: `recollect plan show` tells why each case goes,
    `recollect undo` undoes all of it, and `recollect cases restore` brings back a single case. In production, when
    much would change, or when nobody is told of removals (RECOLLECT_NOTIFY), it waits for `recollect apply`.

    \b
    recollect cases tidy --dry-run
    recollect cases tidy --set success_rate_below=25 --set inactive_days=180
    """
    done = door.ask(partial(_tidy, options=values.assignments("--set", set_ or ()), dry_run=dry_run))
    door.show(done, _show_consolidation)


@command(app, "archive")
def archive(door: Door, id_: Id, reason: Reason = None) -> None:
    """Take a case out of the bank by hand; it is kept, with its data."""
    case = door.ask(lambda memory: memory.cases.archive(id_, reason=reason))
    door.show(case, lambda case: _show_page(CasePage(items=(case,), next_cursor=None)))


@command(app, "restore")
def restore(door: Door, id_: Id) -> None:
    """Bring an archived case back; one that was merged is taken out of its keeper, each with its own counts."""
    case = door.ask(lambda memory: memory.cases.restore(id_))
    door.show(case, lambda case: _show_page(CasePage(items=(case,), next_cursor=None)))


# -- asking


async def _tidy(memory: "Engine", *, options: dict[str, object], dry_run: bool) -> "Consolidation":
    with output.progress("Tidying") as progress:
        return await memory.cases.consolidate(options, dry_run=dry_run, progress=progress)


# -- showing


def _show_page(page: CasePage) -> None:
    headings = ("id", "uses", "success", "last used", "category", "query")
    output.table(headings, [_line(case) for case in page.items])
    if page.next_cursor:
        output.hint(f"There are more: --cursor {page.next_cursor}")


def _line(case: Case) -> tuple[str, ...]:
    return (
        output.short(case.case_id),
        f"{case.usage_count:,}",
        _rate(case.success_rate),
        output.day(case.last_accessed_at) if case.last_accessed_at else "never",
        case.category_path or "-",
        case.query,
    )


def _show_case(case: Case) -> None:
    facts = {
        "case": str(case.case_id),
        "query": case.query,
        "answer": case.response_text,
        "category": case.category_path or "",
        "state": _state(case),
        "uses": f"{case.usage_count:,}, last {output.minute(case.last_accessed_at)}",
        "success": _success(case),
        "version": f"{case.version}, {output.minute(case.updated_at)}",
        "by": case.updated_by or "",
    }
    output.facts((name, value) for name, value in facts.items() if value)


def _success(case: Case) -> str:
    """The success rate and what it stands on: few outcomes make none, and one that came with the case is as it was."""
    if case.success_rate is None and case.judged:
        return f"unknown until there are {OUTCOMES_OF_A_RATE} outcomes ({case.judged} so far)"
    of = f" of the last {counted(case.judged, 'outcome')}" if case.judged >= OUTCOMES_OF_A_RATE else ""
    return _rate(case.success_rate) + of


def _state(case: Case) -> str:
    if case.status is CaseStatus.ACTIVE:
        return "active, protected" if case.protected else "active"
    into = f", merged into {output.short(case.merged_into)}" if case.merged_into else ""
    return f"archived {output.minute(case.archived_at, never='')} ({case.archived_reason or 'by hand'}{into})"


def _show_hits(hits: CaseHits) -> None:
    output.entries(
        (
            f"{hit.score:.2f}",
            output.short(hit.case.case_id),
            counted(hit.case.usage_count, "use"),
            _rate(hit.case.success_rate),
            hit.case.query,
            hit.case.response_text,
        )
        for hit in hits
    )
    if not hits:
        output.note("No case answers that.")
    for sentence in hits.notes:
        output.note(sentence)


def _show_import(report: "CaseImport") -> None:
    output.say(f"{report}.")
    output.lines(report.lines)
    for why, number in report.postponed.items():
        output.note(f"Found by words alone so far: {counted(number, 'case')} ({why}): `recollect work` tries again.")


def _show_consolidation(done: "Consolidation") -> None:
    output.say(f"{done}.")
    details = done.details
    output.table(
        ("what", "case", "why"),
        [
            *(("remove", output.short(case), "it mostly fails") for case in details.removed),
            *(
                ("merge", output.short(merge.removed), f"{merge.similarity:.4f} like {output.short(merge.keeper)}")
                for merge in details.merged
            ),
            *(("archive", output.short(case), "nobody asks for it") for case in details.archived),
            *(("review", output.short(doubtful.other), _doubt(doubtful)) for doubtful in done.doubtful),
        ][: 10 * MOST_LINES],
    )
    short = output.short(done.plan_id)
    for sentence in done.notes:
        output.note(sentence)
    if done.merged_cases + done.removed_cases + done.archived_cases == 0:
        return
    if done.status == "waiting":
        output.note(f"`recollect plan show {short}` tells why, `recollect apply {short}` carries it out.")
    else:
        output.hint(f"`recollect plan show {short}` tells why, `recollect undo {short}` undoes it.")


def _doubt(doubtful: "DoubtfulCase") -> str:
    return f"{doubtful.similarity:.4f} like {output.short(doubtful.keeper)}, but {' and '.join(doubtful.doubts)}"


def _show_reflection(reflection: "Reflection") -> None:
    output.say(
        f"{reflection.rated:,} of {counted(reflection.cases, 'case')} have a success rate, "
        f"{_rate(reflection.mean_success_rate)} on average; "
        f"{reflection.warned:,} are below {reflection.warn_below:g} %."
    )
    output.table(
        ("id", "success", "uses", "fails by", "query"),
        [
            (
                output.short(warning.case.case_id),
                _rate(warning.case.success_rate),
                f"{warning.case.usage_count:,}",
                _errors(warning.errors),
                warning.case.query,
            )
            for warning in reflection.warnings
        ],
    )
    if reflection.errors:
        output.say(f"The commonest errors: {_errors(reflection.errors)}.")


def _errors(errors: "tuple[ErrorType, ...]") -> str:
    return ", ".join(f"{error.error_type or 'not said'} {error.times:,}" for error in errors[:3]) or "-"


def _show_summary(bank: "Summary") -> None:
    rests = ", ".join(f"{reason} {number:,}" for reason, number in sorted(bank.archived_by_reason.items()))
    output.facts(
        (
            ("active", f"{counted(bank.active, 'case')}, {counted(bank.usage_count, 'use')}"),
            ("success", f"{_rate(bank.mean_success_rate)} on average of {bank.rated:,}; {bank.warned:,} below 50 %"),
            ("at rest", f"{bank.archived + bank.merged:,}" + (f" ({rests})" if rests else "")),
            ("without vector", f"{bank.without_vector:,}"),
            ("next run", output.minute(bank.next_run_at, never="not scheduled")),
        )
    )
    for name, runs in (("Waiting for approval", bank.waiting), ("Last runs", bank.last_runs)):
        if runs:
            output.heading(name)
            output.table(("plan", "made", "state", "what"), [_run(run) for run in runs])


def _run(run: "CaseRun") -> tuple[str, ...]:
    return output.short(run.plan_id), output.minute(run.created_at), run.status.value.replace("_", " "), run.title


def _show_health(case_health: "CaseHealth") -> None:
    output.say("All is well." if not case_health.problems else "Needs attention:")
    for problem in case_health.problems:
        output.say(f"- {problem}")


def _rate(rate: float | None) -> str:
    return "unknown" if rate is None else f"{rate:.1f} %"
