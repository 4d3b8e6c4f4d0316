"""Embedding jobs: what waits, what failed, and doing it now."""

from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING
from uuid import UUID

import typer

from recollect.doors.cli import output
from recollect.doors.cli.door import Door, command, listing
from recollect.model import JobCounts
from recollect.wording import counted

if TYPE_CHECKING:
    import anyio

    from recollect.engine.engine import Engine

app = typer.Typer()
group = typer.Typer()
LOOK_EVERY_SECONDS = 0.5

Jobs = tuple[JobCounts, Sequence[tuple[UUID, str]]]


@listing(group)
def list_(door: Door) -> None:
    """Show how many embeddings of a space wait, and which failed."""
    counts, failures = door.ask(_jobs)
    door.show(
        (counts, failures),
        _show,
        as_json={**output.plain(counts), "failures": [{"id": id_, "why": why} for id_, why in failures]},
    )


@command(group, "retry")
def retry(door: Door) -> None:
    """Give failed embeddings of a space another round of attempts."""
    number = door.ask(lambda memory: memory.retry_jobs())
    door.show(
        number,
        lambda number: output.say(f"{counted(number, 'text')} will be tried again."),
        as_json={"retried": number},
    )
    if number:
        output.hint("`recollect work` does it now; a running server does it by itself.")


@command(app, "work", rich_help_panel="Look after the data")
def work(door: Door) -> None:
    """Embed what waits, in all spaces, and index it for search.

    Exit code 1 if something could not be embedded.

    A running `recollect serve` does this by itself.
    """
    embedded, left = door.ask_all(_work)
    total = _total(left.values())
    door.show(
        embedded,
        lambda embedded: output.say(_report(embedded, total)),
        as_json={"embedded": embedded, "waiting": total.waiting, "failed": total.failed, "spaces": left},
    )
    if total.pending or total.failed:
        raise typer.Exit(1)


# -- asking


async def _jobs(memory: "Engine") -> Jobs:
    return await memory.jobs(), await memory.job_failures()


async def _work(memory: "Engine") -> tuple[int, dict[str, JobCounts]]:
    """Embed until nothing is left to do, with a bar for whoever watches."""
    import anyio

    finished = anyio.Event()
    with output.progress("Embedding") as show:
        async with anyio.create_task_group() as beside:
            if output.is_watched():
                beside.start_soon(_watch, memory, show, finished)
            embedded = await _until_idle(memory)
            finished.set()
    return embedded, await _all_jobs(memory)


async def _until_idle(memory: "Engine") -> int:
    """Round after round until two in a row find nothing: the first may have found texts that lack a new model."""
    from recollect.engine.worker import work_once

    embedded = idle_rounds = 0
    while idle_rounds < 2:
        done = await work_once(memory.core)
        embedded += done
        idle_rounds = 0 if done else idle_rounds + 1
    return embedded


async def _watch(memory: "Engine", show: output.Progress, finished: "anyio.Event") -> None:
    import anyio

    before = _total((await _all_jobs(memory)).values()).finished
    while not finished.is_set():
        now = _total((await _all_jobs(memory)).values())
        done = now.finished - before
        show(done, done + now.waiting)
        with anyio.move_on_after(LOOK_EVERY_SECONDS):
            await finished.wait()


async def _all_jobs(memory: "Engine") -> dict[str, JobCounts]:
    return {space.slug: await (await memory.in_space(space.slug)).jobs() for space in await memory.spaces()}


# -- showing


def _show(jobs: Jobs) -> None:
    counts, failures = jobs
    output.facts((state, f"{number:,}") for state, number in output.plain(counts).items())
    if failures:
        output.say("")
        output.table(("id", "why"), [(output.short(id_), why) for id_, why in failures])
        output.note("Mend that, then `recollect jobs retry`.")


def _total(counted: Iterable[JobCounts]) -> JobCounts:
    by_space = list(counted)
    return JobCounts(
        **{field.name: sum(getattr(counts, field.name) for counts in by_space) for field in fields(JobCounts)}
    )


def _report(embedded: int, total: JobCounts) -> str:
    sentences = [f"{counted(embedded, 'text')} embedded."]
    if total.processing:
        sentences.append(f"Another worker has {counted(total.processing, 'text')} in hand.")
    if total.pending:
        sentences.append(f"{counted(total.pending, 'text')} must wait for another attempt: repeat this in a while.")
    if total.failed:
        sentences.append(f"{counted(total.failed, 'text')} could not be embedded: `recollect doctor` says why.")
    return " ".join(sentences) if embedded or len(sentences) > 1 else "Nothing is waiting."
