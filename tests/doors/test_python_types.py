"""Editors, type checkers and help() know the Python door: its methods, signatures and docstrings, with and without
`await`."""

import asyncio
import inspect
import pydoc
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from recollect import AsyncRecollect, Recollect
from recollect.doors import python
from recollect.engine.core import Face
from recollect.model import Node
from recollect.settings import Settings
from tests.conftest import fresh_space
from tests.reference import ROOT
from tests.stub import parts

# Each line with a comment is wrong in that way, and no other line is.
SCRIPT = """
from recollect import AsyncRecollect, Recollect

with Recollect(home="/tmp/x", space="default") as memory:
    node = memory.add("Linh prefers tea", importance=0.5)
    for hit in memory.recall("tea", limit=3):
        print(hit.score + 1, hit.node.subtype.upper(), hit.parts.similarity)
    for one in memory.stream():
        print(one.kind.value.upper())
    plan = memory.plans.propose("prune")
    print(memory.plans.apply(plan.id).plan_id, memory.in_space("other").graph.edges(node.id)[0].relation)
    print(memory.cases.search("x")[0].case.query, memory.concepts.get("x").name, memory.pages.get("x").links)
    print(memory.schedules.run("prune").outcome)

    memory.add("tea", importnce=0.5)                   # call-arg
    memory.add(3)                                      # arg-type
    memory.recal("tea")                                # attr-defined
    memory.recall("tea", limit="three")                # arg-type
    memory.recall()                                    # call-arg
    memory.plans.aply("x")                             # attr-defined
    memory.graph.link("a")                             # call-arg
    memory.cases.search("x", category=3)               # arg-type
    memory.concepts.merge("a", "b", why="x")           # call-arg
    memory.pages.export()                              # call-arg
    memory.schedules.pause(1)                          # arg-type
    memory.nothing                                     # attr-defined
    number: int = memory.add("tea")                    # assignment
    for one in memory.stream(limit=3):                 # call-arg
        one.txt                                        # attr-defined


async def main() -> None:
    async with AsyncRecollect() as memory:
        node = await memory.add("Linh prefers tea")
        print((await memory.recall("tea"))[0].score + 1, (await memory.graph.edges(node.id))[0].relation)
        async for one in memory.stream():
            print(one.kind.value.upper())
        await memory.add("tea", importnce=0.5)         # call-arg
        await memory.plans.aply("x")                   # attr-defined
        memory.add("tea").text                         # attr-defined
"""
# What the door itself does not speak of is not read by the type checker, which is slow at it.
CONFIGURATION = """
[mypy]
strict = True
[mypy-sqlalchemy.*,numpy.*,pydantic.*,pydantic_settings.*,structlog.*,anyio.*,httpx.*,rustworkx.*,recollect.store.*]
follow_imports = skip
"""


def test_G10_a_type_checker_finds_what_is_wrong_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "mypy.ini").write_text(CONFIGURATION)
    (tmp_path / "script.py").write_text(SCRIPT)
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)):
        (tmp_path / f"readme{number}.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir=cache", *map(str, tmp_path.glob("*.py"))],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    wrong = re.findall(r"^(\w+\.py):(\d+): error: .*\[([\w-]+)\]$", done.stdout, re.MULTILINE)
    expected = [
        ("script.py", str(number), line.split("#")[1].strip())
        for number, line in enumerate(SCRIPT.splitlines(), 1)
        if "#" in line
    ]
    assert wrong == expected, done.stdout + done.stderr
    assert 'Unexpected keyword argument "importnce" for "add" of "Recollect"' in done.stdout


def test_G10_the_stub_knows_what_the_face_has_at_run_time() -> None:
    stub = Path(str(python.__file__)).with_suffix(".pyi").read_text()
    for name in public(Recollect):
        assert re.search(rf"^    def {name}\(", stub, re.MULTILINE), name
    assert all(f"class {kind.__name__}:" in stub for kind in parts())


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_G10_help_and_signature_speak_without_await() -> None:
    assert public(Recollect) >= public(AsyncRecollect)
    for name in public(AsyncRecollect) - {"core", "space", "settings", "close", "in_space"}:
        ours, theirs = getattr(Recollect, name), getattr(AsyncRecollect, name)
        assert ours.__doc__ == theirs.__doc__
        if not isinstance(ours, property):
            assert inspect.signature(ours).parameters == inspect.signature(theirs).parameters
            assert not inspect.iscoroutinefunction(ours)
    assert inspect.signature(Recollect.stream).return_annotation == Iterator[Node]


def test_G10_a_memory_and_its_parts_explain_themselves(settings: Settings) -> None:
    with Recollect(settings=asyncio.run(fresh_space(settings)), worker=False) as memory:
        said = pydoc.plain(pydoc.render_doc(memory.recall))
        assert "recall(query: str" in said
        assert "best first, each score laid open" in said
        assert {"recall", "add", "plans", "stream"} <= set(dir(memory))
        assert "async" not in said
        for name, asynchronous in named_parts().items():
            ours = type(getattr(memory, name))
            assert public(ours) == {one for one in vars(asynchronous) if not one.startswith("_")}
        assert "Say yes; `apply` carries it out" in pydoc.plain(pydoc.render_doc(memory.plans))
        memory.add_many([])
        assert list(memory.stream()) == []
        plan = memory.plans.propose("prune")
        assert [len(stretch.decisions) for stretch in memory.plans.stretches(plan.id)] == [0]


def named_parts() -> dict[str, type[Face]]:
    """The asynchronous class of each part, by the name that it has in a memory."""
    kinds = {kind.__name__: kind for kind in parts()}
    properties = {name: one.fget for name, one in vars(AsyncRecollect.__mro__[1]).items() if isinstance(one, property)}
    said = {name: inspect.signature(get).return_annotation for name, get in properties.items() if get}
    assert len(kinds) == 7
    return {name: kinds[kind] for name, kind in said.items() if kind in kinds}
