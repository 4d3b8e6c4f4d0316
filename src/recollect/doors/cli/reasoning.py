"""Reasoning: ask for an answer, look at what was asked before, and say what helped."""

from collections.abc import Mapping
from typing import Annotated

import typer

from recollect.doors.cli import output, values
from recollect.doors.cli.door import Cursor, Door, Limit, command, listing
from recollect.doors.cli.memories import PANEL, Id
from recollect.model import Activity, Answer, RecallLog, RecallLogs, Replay
from recollect.wording import counted

app = typer.Typer()
group = typer.Typer()

MODES = "recall, rerank, synthesize, reflect, challenge or expand"
RecallId = Annotated[str, typer.Argument(metavar="ID", help="The recall's id, or its first 4 or more characters.")]
OfRecall = Annotated[
    str | None, typer.Option("--recall", metavar="ID", help="The recall that handed it out; `recollect recalls`.")
]


@command(app, "ask", rich_help_panel=PANEL)
def ask(
    door: Door,
    query: Annotated[list[str], typer.Argument(metavar="QUERY", help="What to answer; - reads it from stdin.")],
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode", "-m", metavar="MODE", help=f"{MODES}; synthesize where a model is configured, else recall."
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", metavar="N", help="How many memories, within the mode's cap.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option("--threshold", metavar="0..1", help="The floor is at least 1 minus this.")
    ] = None,
    budget: Annotated[
        int | None, typer.Option("--budget", metavar="TOKENS", help="How much of them a model reads; 3,000 else.")
    ] = None,
) -> None:
    """Answer a question from what is remembered, with citations.

    Where a language model is configured (RECOLLECT_MODEL) it answers from the memories, and its citations are checked.
    Without one, the memories themselves are the answer.

    \b
    recollect ask what does Linh drink
    recollect ask --mode challenge "should we deploy on Fridays?"
    """
    question = values.text_of(query)
    answer = door.ask(
        lambda memory: memory.ask(question, mode=mode, limit=limit, threshold=threshold, budget_tokens=budget),
        doing="Thinking",
    )
    door.show(answer, _show_answer)
    for sentence in (*answer.recall.notes, *answer.problems):
        if sentence != answer.text:
            output.note(sentence)


@listing(group)
def list_(
    door: Door,
    mode: Annotated[str | None, typer.Option("--mode", "-m", metavar="MODE", help=f"Only neutral, {MODES}.")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> None:
    """List what was asked, newest first."""
    logs = door.ask(lambda memory: memory.recalls(mode=mode, limit=limit, cursor=cursor))
    door.show(logs, _show_logs)


@command(group, "show")
def show(door: Door, id_: RecallId) -> None:
    """Show one recall: what was asked, found and answered."""
    log = door.ask(lambda memory: memory.recall_log(id_))
    door.show(log, _show_log)


@command(group, "replay")
def replay(door: Door, id_: RecallId) -> None:
    """Ask the same again, and show what has changed since."""
    again = door.ask(lambda memory: memory.replay(id_))
    door.show(again, _show_replay)


@command(app, "helped", rich_help_panel=PANEL)
def helped(door: Door, id_: Id, recall: OfRecall = None) -> None:
    """Say that a memory helped.

    It is counted, for rankings that look at engagement; the memory itself does not change.
    """
    door.show(door.ask(lambda memory: memory.helped(id_, True, recall=recall)), _show_activity)


@command(app, "not-helped", rich_help_panel=PANEL)
def not_helped(door: Door, id_: Id, recall: OfRecall = None) -> None:
    """Say that a memory did not help."""
    door.show(door.ask(lambda memory: memory.helped(id_, False, recall=recall)), _show_activity)


# -- showing


def _show_answer(answer: Answer) -> None:
    output.say(answer.text)
    if not answer.recall:
        return
    output.say("")
    cited = {citation.number for citation in answer.citations}
    rows = [
        (
            f"[Memory {number}]" + ("*" if number in cited else ""),
            f"{hit.score:.2f}",
            output.day(hit.node.created_at),
            output.short(hit.node.id),
            hit.text if answer.model else hit.node.subtype,
        )
        for number, hit in enumerate(answer.recall, start=1)
    ]
    output.table(("memory", "score", "date", "id", "text" if answer.model else "type"), rows)
    output.hint("`recollect helped <id>` and `not-helped <id>` tell which of them were of use.")


def _show_logs(logs: RecallLogs) -> None:
    output.table(
        ("id", "time", "mode", "found", "ms", "question"),
        [
            (
                output.short(log.id),
                output.minute(log.created_at),
                log.mode.lower(),
                str(len(log.memory_ids)),
                _milliseconds(log),
                log.user_query,
            )
            for log in logs.items
        ],
    )
    if not logs.items:
        output.note("Nothing was asked yet.")
    if logs.next_cursor:
        output.note(f"There is more: --cursor {logs.next_cursor}")


def _show_log(log: RecallLog) -> None:
    output.facts(
        (
            ("id", str(log.id)),
            ("question", log.user_query),
            ("mode", log.mode.lower()),
            ("time", output.minute(log.created_at)),
            ("took", f"{_milliseconds(log)} ms"),
            ("floor", "none" if log.floor is None else f"{log.floor:.2f}"),
            ("embedding model", log.embedding_model or ""),
            ("tokens", f"{log.token_usage.total:,}"),
            ("confidence", f"{log.confidence_score:.2f}"),
            ("outside knowledge", "yes" if log.external_knowledge_used else "no"),
        )
    )
    if log.hits:
        output.say("")
        given = {id_: number for number, id_ in enumerate(log.memory_ids, start=1)}
        output.table(
            ("score", "id", "given as", "parts"),
            [
                (f"{hit.score:.2f}", output.short(hit.id), _place(given.get(hit.id)), _parts(hit.parts))
                for hit in log.hits
            ],
        )
    if log.response:
        output.say(f"\n{log.response}")


def _show_replay(again: Replay) -> None:
    rows = [
        *(("found now", output.short(id_), "") for id_ in again.added),
        *(("no longer found", output.short(id_), "") for id_ in again.removed),
        *(("moved", output.short(move.id), f"from place {move.before} to {move.after}") for move in again.moved),
    ]
    output.table(("what", "id", ""), rows)
    if again.is_same:
        output.say(f"The same {counted(len(again.recall), 'hit')}, in the same order.")
    for sentence in again.recall.notes:
        output.note(sentence)


def _show_activity(now: Activity) -> None:
    output.say(f"Counted: helped {now.successes:,} of {counted(now.judged, 'time')}; used {now.uses:,}.")


def _place(number: int | None) -> str:
    return "" if number is None else f"[Memory {number}]"


def _parts(parts: Mapping[str, float]) -> str:
    return "  ".join(f"{name} {value:.2f}" for name, value in parts.items() if value)


def _milliseconds(log: RecallLog) -> str:
    return "" if log.latency_ms is None else f"{log.latency_ms:.0f}"
