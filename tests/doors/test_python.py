"""The Python door: three lines after `pip install`, with and without await."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from recollect import AsyncRecollect, Recollect
from recollect.errors import DatabaseProblem, DuplicateText, NotFound
from recollect.model import NewMemory, Recall
from recollect.settings import Settings
from tests.conftest import fresh_space
from tests.waiting import HANG_SECONDS, until, until_it_holds


@pytest.mark.anyio
async def test_the_asynchronous_face_embeds_by_itself(settings: Settings) -> None:
    async with AsyncRecollect(settings=await fresh_space(settings)) as memory:
        await memory.add("Linh prefers tea, never coffee")
        found = await memory.recall("does Linh prefer tea")
        assert isinstance(found, Recall)
        assert found[0].node.text == "Linh prefers tea, never coffee"
        late = await memory.add("arrives without waiting", wait=False)

        async def both_are_found() -> bool:
            return len(await memory.recall("arrives without waiting", weak=True)) == 2

        await until_it_holds(both_are_found)
        assert (await memory.recall("arrives without waiting"))[0].node.id == late.id


@pytest.fixture
def own_space(settings: Settings) -> Settings:
    return asyncio.run(fresh_space(settings))


def test_the_synchronous_face_is_the_same_engine(own_space: Settings) -> None:
    with Recollect(settings=own_space) as memory:
        first = memory.add("Linh prefers tea, never coffee")
        print(memory.recall("what does Linh drink?"))
        with pytest.raises(DuplicateText):
            memory.add("Linh prefers tea, never coffee")
        added = memory.add_many(NewMemory(text=f"note {n}") for n in range(5))
        assert len(added.ids) == 5
        assert {node.text for node in memory.stream()} >= {"note 0", first.text}
        assert memory.history(first.id)[0].verb == "add"
        assert "recall" in dir(memory)


def test_the_synchronous_face_moves_between_spaces(own_space: Settings) -> None:
    with Recollect(settings=own_space) as memory:
        memory.add("here")
        slug = own_space.space + "-b"
        memory.add_space(slug)
        other = memory.in_space(slug)
        assert other.count() == 0
        other.add("there")
        assert memory.count() == 1
        with pytest.raises(NotFound, match="There is no space 'nowhere'"):
            memory.in_space("nowhere")


def test_a_recall_prints_one_line_a_hit(own_space: Settings) -> None:
    with Recollect(settings=own_space) as memory:
        node = memory.add("Linh prefers tea,\nnever coffee")
        (line,) = str(memory.recall("Linh")).splitlines()
        score, date, text = line.split("  ", 2)
        assert 0 <= float(score) <= 1
        assert date == f"{node.created_at:%Y-%m-%d}"
        assert text == "Linh prefers tea, never coffee"
        assert str(memory.in_space("default").recall("anything at all", limit=1)) != ""


def test_an_address_that_does_not_answer_leaves_no_thread_behind() -> None:
    before = threading.active_count()
    with pytest.raises(DatabaseProblem):
        Recollect("postgresql://nobody@127.0.0.1:1/none")
    until(lambda: threading.active_count() <= before)  # helpers end a moment later


THREE_LINES = """
from recollect import Recollect
with Recollect() as memory:
    memory.add("Linh prefers tea, never coffee"); print(memory.recall("what does Linh drink?"))
"""


def test_three_lines_work_with_no_key_and_no_set_up(empty_home: Path) -> None:
    environment = {"RECOLLECT_HOME": str(empty_home), "PATH": "/usr/bin:/bin", "HOME": str(empty_home.parent)}
    done = subprocess.run(
        [sys.executable, "-c", THREE_LINES],
        capture_output=True,
        text=True,
        env=environment,
        timeout=HANG_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("Linh prefers tea, never coffee")
    assert done.stderr == ""


def test_importing_recollect_is_light() -> None:
    code = "import sys, recollect; print([m for m in ('sqlalchemy', 'numpy', 'pydantic') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
