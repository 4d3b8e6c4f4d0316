"""How far one walks to follow a verb: the files, functions and calls between files that it goes through.

    ./run bench walks
    ./run bench walks recall      the same, and which files and functions those of a recall are

A newcomer who reads along opens each of those files. What is counted is what runs in this package, in the thread of the
loop and in those that work for it; a file that only holds a noun counts too. No bar is measured in seconds here.
"""

import asyncio
import sys
import tempfile
import threading
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import anyio.to_thread

import recollect
from bench.figures import Figure
from recollect.engine import verbs
from recollect.engine.engine import Engine
from recollect.settings import Settings

HOUSE = str(Path(recollect.__file__).parent)
BARS = {"wiki import": 25, "recall": 15}
WIKI = [
    (
        "principles/Loading.md",
        "# Principle: Loading\n\n== Overview ==\nHow.\n\n* [[implemented_by::Implementation:Loader]]\n",
    ),
    ("implementations/Loader.md", "# Implementation: Loader\n\n== Overview ==\nThe class that loads a model.\n"),
]


@dataclass
class Walk:
    """What was walked through between the beginning and the end of a verb."""

    functions: set[tuple[str, str]] = field(default_factory=set)
    crossings: int = 0
    # Held until the end, so that a coroutine which goes on after an `await` is not taken for another call.
    _frames: set[FrameType] = field(default_factory=set)

    def note(self, frame: FrameType, event: str, _argument: object) -> None:
        file = frame.f_code.co_filename
        if event != "call" or not file.startswith(HOUSE) or frame in self._frames:
            return
        self._frames.add(frame)
        if not frame.f_code.co_name.startswith("<"):  # a comprehension is a function of its own in some Pythons only
            self.functions.add((file, frame.f_code.co_qualname))
        above = frame.f_back
        if above and above.f_code.co_filename != file and above.f_code.co_filename.startswith(HOUSE):
            self.crossings += 1

    @property
    def files(self) -> int:
        return len({file for file, _ in self.functions})


@asynccontextmanager
async def walked() -> AsyncIterator[Walk]:
    """Counts in this thread, in those that are begun meanwhile, and in those that lie ready to work for the loop."""
    walk = Walk()
    run_sync = anyio.to_thread.run_sync

    async def counted(function: Callable[..., Any], *given: Any, **how: Any) -> Any:
        def work() -> Any:
            sys.setprofile(walk.note)
            try:
                return function(*given)
            finally:
                sys.setprofile(None)

        return await run_sync(work, **how)

    anyio.to_thread.run_sync = counted  # type: ignore[assignment]
    threading.setprofile(walk.note)
    sys.setprofile(walk.note)
    try:
        yield walk
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        anyio.to_thread.run_sync = run_sync


async def walks(memory: Engine) -> AsyncIterator[tuple[str, Callable[[], Awaitable[Any]]]]:
    """Each verb, with what it needs made before."""
    tea = await memory.add("Linh prefers tea, never coffee")
    rain = await memory.add("Rain all day, tea in the garden")
    yield "add", lambda: memory.add("Minh is allergic to shrimp")
    yield "recall", lambda: memory.recall("does Linh prefer tea?")
    for name in ("jasmine_tea", "Jasmine Tea"):
        await memory.concepts.add(name, "drink", text=f"Green tea with jasmine, called {name}", threshold=1.0)
    yield "duplicates propose", lambda: memory.plans.propose("duplicates")
    for relation in ("similar", "extends"):
        await memory.graph.link(tea.id, rain.id, relation)
    plan = await memory.plans.propose("merge-edges")
    yield "show", lambda: memory.plans.show(plan.id)
    yield "apply", lambda: memory.plans.apply(plan.id)
    yield "undo", lambda: memory.plans.undo(plan.id)
    pages = await memory.pages.import_texts(WIKI)
    yield "wiki import", lambda: memory.pages.import_texts([("a/New.md", WIKI[1][1].replace("Loader", "New"))])
    yield "wiki apply", lambda: memory.pages.apply(pages.plan.id)
    yield "scheduled run", lambda: memory.schedules.run("prune")


def by_file(walk: Walk) -> dict[str, list[str]]:
    """The functions that are gone through, by file."""
    files: dict[str, list[str]] = defaultdict(list)
    for file, function in sorted(walk.functions):
        files[str(Path(file).relative_to(HOUSE))].append(function)
    return files


async def measured(memory: Engine) -> dict[str, Walk]:
    found = {}
    for name in verbs.HOMES:  # a newcomer reads what a verb does, not how it was loaded
        getattr(verbs, name)
    async for name, verb in walks(memory):
        async with walked() as walk:
            await verb()
        found[name] = walk
    return found


async def measure() -> dict[str, Walk]:
    with tempfile.TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        settings = Settings.load(home=Path(directory) / "home", embedder="hashing:64")
        async with Engine(settings) as memory:
            return await measured(memory)


def run(_size: int | None, rest: list[str]) -> list[Figure]:
    figures = []
    for name, walk in asyncio.run(measure()).items():
        if name in rest:
            print("\n".join(f"{file}: {', '.join(functions)}" for file, functions in by_file(walk).items()))
        how = f"{len(walk.functions)} functions, {walk.crossings} calls across files"
        figures.append(Figure(name=f"{name}: files", value=walk.files, bar=BARS.get(name), better="lower", how=how))
    sources = [file for file in Path(HOUSE).rglob("*.py") if "migrations" not in file.parts]
    lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in sources)
    return [*figures, Figure(name="lines", value=lines, better="lower", how=f"{len(sources)} files, migrations aside")]
