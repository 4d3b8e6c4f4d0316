"""Batches on Ray (X01), on a real cluster of two nodes on this machine.

Ray is large, so it is no part of the development environment: where it is not installed, what needs it is skipped.
`.venv/bin/pip install "ray[client]"`, or a folder made by `pip install --target` on PYTHONPATH, runs all of it.
"""

import io
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import structlog

from bench import recall as evaluation
from bench.ray_cluster import ROOT, RayNodes, free_port, ray_cluster
from recollect.concepts.rules.detection import ConceptColumns, FoundPairs
from recollect.concepts.rules.detection import compare as comparing
from recollect.engine.engine import Engine
from recollect.errors import InvalidInput, NotInstalled, ProviderMisbehaved
from recollect.model import NewMemory
from recollect.ports import Executor
from recollect.providers import ray as provider
from recollect.providers import spread
from recollect.providers.embedders import make_embedder
from recollect.providers.executors import LocalExecutor, make_executor
from recollect.providers.ray import RayExecutor
from recollect.settings import Settings
from tests.concept_sets import detect
from tests.providers import ray_blocks
from tests.waiting import until

pytestmark = [pytest.mark.anyio, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def cluster() -> Iterator[tuple[str, RayNodes]]:
    pytest.importorskip("ray", reason="needs the extra ray")
    with ray_cluster([1, 1]) as started:
        yield started


@pytest.fixture(scope="module")
def executor(cluster: tuple[str, RayNodes]) -> Iterator[RayExecutor]:
    made = RayExecutor(cluster[0], strict=True)
    yield made
    made.close()


# -- without Ray


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "find_spec", lambda _name: object())


def test_X01_without_the_setting_there_is_no_executor() -> None:
    assert make_executor(Settings.load().ray) is None


def test_X01_without_ray_installed_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "find_spec", lambda _name: None)
    with pytest.raises(NotInstalled, match=r'pip install "recollect\[ray\]", or unset RECOLLECT_RAY'):
        make_executor("auto")


@pytest.mark.parametrize("value", ["localhost:6379", "ray://", "ray://host", "Auto", "http://host:1"])
def test_X01_a_setting_that_is_no_address_is_refused_by_its_name(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_RAY", value)
    with pytest.raises(InvalidInput, match="RECOLLECT_RAY"):
        Settings.load()


async def test_X01_an_address_where_nothing_answers_is_said_before_anything_starts(
    installed: None, settings: Settings
) -> None:
    lonely = settings.model_copy(update={"ray": f"ray://127.0.0.1:{free_port()}"})
    with pytest.raises(InvalidInput, match=r"No Ray cluster answers at ray://127.0.0.1:\d+ \(RECOLLECT_RAY\).*unset"):
        async with Engine(lonely):
            raise AssertionError("it opened")


def test_X01_auto_goes_on_here_where_no_cluster_runs(installed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_ADDRESS", f"ray://127.0.0.1:{free_port()}")
    monkeypatch.setattr(provider, "RayConnection", unreachable)
    alone = RayExecutor("auto")
    with structlog.testing.capture_logs() as said:
        assert list(alone.map(ray_blocks.squared, 1, range(5))) == [1, 2, 5, 10, 17]
        assert alone.width == 1
    assert [one["event"] for one in said] == ["what is left is done on this machine"]
    assert "No Ray cluster answers" in said[0]["why"]
    alone.close()


def unreachable(address: str) -> None:
    """As the connection does before it loads Ray, which may not be there."""
    provider._require_reachable(address)


@pytest.mark.parametrize("threads", [1, 3])
def test_X01_the_local_executor_gives_results_in_order_and_tells_each(threads: int) -> None:
    told: list[int] = []
    local = LocalExecutor(threads)
    assert isinstance(local, Executor)
    made = list(local.map(ray_blocks.squared, 1, range(20), progress=told.append))
    assert made == [number * number + 1 for number in range(20)]
    assert told == list(range(1, 21))
    with pytest.raises(ProviderMisbehaved):
        list(local.map(ray_blocks.refuse, None, range(5)))


# -- on two nodes


def test_X01_results_come_in_order_with_progress_for_each_block(executor: RayExecutor) -> None:
    told: list[int] = []
    before = signal.getsignal(signal.SIGTERM)
    assert executor.width == 2
    assert signal.getsignal(signal.SIGTERM) is before
    assert list(executor.map(ray_blocks.squared, 1, range(50), progress=told.append)) == [
        number * number + 1 for number in range(50)
    ]
    assert told == list(range(1, 51))


def test_X01_what_a_block_refuses_is_said_as_on_one_machine(executor: RayExecutor) -> None:
    with pytest.raises(ProviderMisbehaved, match=r"Two is refused\."):
        list(executor.map(ray_blocks.refuse, None, range(5)))


def test_X01_duplicates_on_ray_are_those_of_one_machine_to_the_last_pair(
    executor: RayExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    concepts = many_alike(4000)
    here = detect(concepts, 0.9, threads=2)
    monkeypatch.setattr(import_module("recollect.concepts.rules.detection.detect"), "WORTH_A_JOURNEY", 0)
    monkeypatch.setattr(comparing, "PRODUCTS_A_BLOCK", 500_000)
    there = detect(concepts, 0.9, executor=executor)
    assert len(here.pairs) > 500
    assert_same(here, there)
    assert_same(detect(concepts, 0.9, cells=20), detect(concepts, 0.9, cells=20, executor=executor))
    changed = np.arange(len(concepts)) % 7 == 0
    assert_same(detect(concepts, 0.9, changed=changed), detect(concepts, 0.9, changed=changed, executor=executor))


def many_alike(count: int) -> ConceptColumns:
    """Names of a few words, with and without the small ones, and vectors in clouds; some without a vector."""
    chance = np.random.default_rng(1)
    words = ["tea", "house", "garden", "river", "light", "paper", "stone", "winter", "music", "window"]
    names = [
        " ".join(([] if number % 3 else ["the"]) + list(chance.choice(words, chance.integers(1, 4))))
        for number in range(count)
    ]
    centres = chance.normal(size=(count // 8, 96))
    vectors = centres[chance.integers(0, len(centres), count)] + chance.normal(size=(count, 96)) * 0.1
    given = [None if number % 50 == 0 else row for number, row in enumerate(vectors)]
    return ConceptColumns.of(names=names, vectors=given, types=[("a", "b")[number % 2] for number in range(count)])


def assert_same(here: FoundPairs, there: FoundPairs) -> None:
    for name in ("left", "right", "score", "cosine", "name_plain", "name_ordered", "metadata"):
        np.testing.assert_array_equal(getattr(here.pairs, name), getattr(there.pairs, name))
    for one, other in zip(here.copies, there.copies, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(here.crowded, there.crowded)
    assert here.left_out == there.left_out


async def test_X01_vectors_made_on_ray_are_those_made_here(executor: RayExecutor) -> None:
    texts = [f"Note {number}: the tea of the {number % 7}th day, with {number * 31} leaves" for number in range(80)]
    for model in ("minilm", "hashing:64"):
        here = make_embedder(model, Settings.load())
        there = spread.SpreadEmbedder(here, executor)
        np.testing.assert_array_equal(await here.embed(texts), await there.embed(texts))
        assert (there.model, there.dim, there.can_read("tea")) == (here.model, here.dim, True)


async def test_X01_a_large_import_is_embedded_on_ray_batch_by_batch(
    cluster: tuple[str, RayNodes], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [f"Memory {number} of tea and rain, {number * 17}" for number in range(700)]
    found = {}
    for ray in ("", cluster[0]):
        chosen = settings.model_copy(update={"ray": ray, "embedder": "hashing:64", "embedding_batch": 100})
        async with Engine(chosen) as engine:
            submitted = counted(engine.core.executor, monkeypatch) if ray else []
            await engine.add_space(slug := f"x01-{'ray' if ray else 'here'}")
            space = await engine.in_space(slug)
            await space.add_many([NewMemory(text=text) for text in texts])
            await space.export(written := io.BytesIO(), with_vectors=True)
            lines = [json.loads(line) for line in written.getvalue().splitlines()]
            found[ray] = {line["text"]: line["vectors"] for line in lines}
    assert len(found[""]) == 700
    assert found[""] == found[cluster[0]]
    assert sum(submitted) == 700


def test_X01_recall_is_evaluated_on_ray_as_here(executor: RayExecutor, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        corpus = [
            {"id": f"{name}-{number}", "text": f"{name} spoke of {what}", "created_at": "2026-01-01", "metadata": {}}
            for number, what in enumerate(["tea", "the boat", "a red house"])
        ]
        asked = [{"id": f"q-{name}", "text": "what about the boat?", "relevant": [f"{name}-1"]}]
        for file, lines in (("corpus", corpus), ("queries", asked)):
            (tmp_path / name / f"{file}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    here = evaluation.quality(tmp_path, tmp_path / "here.jsonl")
    there = evaluation.quality(tmp_path, tmp_path / "there.jsonl", executor=executor)
    assert without_times(tmp_path / "here.jsonl") == without_times(tmp_path / "there.jsonl")
    assert [one.value for one in here if "latency" not in one.name] == [
        one.value for one in there if "latency" not in one.name
    ]


def without_times(file: Path) -> list[tuple[str, list[str]]]:
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(lines) == 2
    return [(line["query_id"], line["retrieved"]) for line in lines]


def counted(executor: Executor | None, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts each task was given."""
    assert executor is not None
    sizes: list[int] = []
    submit = executor.submit

    def counting(work: Callable[[Any, Any], Any], shared: Any, block: Any) -> Any:
        sizes.append(len(block))
        return submit(work, shared, block)

    monkeypatch.setattr(executor, "submit", counting)
    return sizes


def test_X01_a_killed_worker_costs_its_block_and_nothing_else(executor: RayExecutor, tmp_path: Path) -> None:
    assert list(executor.map(ray_blocks.die_once, tmp_path, range(12))) == list(range(12))
    begun = {int(one.name.removeprefix("begun-")): len(one.read_text()) for one in tmp_path.iterdir()}
    assert begun == {number: 2 if number == 3 else 1 for number in range(12)}


def test_X01_a_block_that_kills_every_worker_is_done_here(executor: RayExecutor) -> None:
    with structlog.testing.capture_logs() as said:
        assert list(executor.map(ray_blocks.die_always, os.getpid(), [7])) == [7]
    assert [one["event"] for one in said] == ["a block is done here, for Ray could not"]
    assert executor.width == 2


def test_X01_cancelling_stops_the_block_and_those_not_begun(executor: RayExecutor, tmp_path: Path) -> None:
    future = executor.submit(ray_blocks.wait_to_go, tmp_path, 99)
    until(lambda: any(tmp_path.glob("99-on-*")))
    assert future.cancel()
    until(lambda: (tmp_path / "99-cancelled").exists())
    (tmp_path / "go").touch()
    taken = executor.map(ray_blocks.wait_to_go, tmp_path, range(30))
    assert next(taken) == 0
    taken.close()  # type: ignore[attr-defined]
    assert list(executor.map(ray_blocks.squared, 0, [3])) == [9]
    assert len(list(tmp_path.glob("*-on-*"))) < 10


def test_X01_a_lost_node_costs_its_blocks_and_nothing_else(cluster: tuple[str, RayNodes], tmp_path: Path) -> None:
    address, nodes = cluster
    third = nodes.ask("add")
    made: list[int] = []
    executor = RayExecutor(address, strict=True)
    working = threading.Thread(target=lambda: made.extend(executor.map(ray_blocks.wait_to_go, tmp_path, range(9))))
    working.start()
    until(lambda: any(tmp_path.glob(f"*-on-{third}")))
    nodes.ask("remove")
    (tmp_path / "go").touch()
    working.join()
    assert made == list(range(9))
    executor.close()


def test_X01_another_version_of_recollect_there_is_named_and_the_work_is_done_here(
    cluster: tuple[str, RayNodes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "__version__", "9.9.9")
    careful, strict = RayExecutor(cluster[0]), RayExecutor(cluster[0], strict=True)
    with structlog.testing.capture_logs() as said:
        assert list(careful.map(ray_blocks.squared, 0, range(6))) == [0, 1, 4, 9, 16, 25]
    assert len(said) == 1
    assert "and this one 9.9.9: install the same" in said[0]["why"]
    with pytest.raises(provider.OtherVersion, match="unset RECOLLECT_RAY"):
        list(strict.map(ray_blocks.squared, 0, range(6)))
    careful.close()
    strict.close()


def test_X01_a_cluster_lost_midway_leaves_the_rest_to_this_machine(tmp_path: Path) -> None:
    """In a process of its own, since there is one connection in a process and the others of this file use it."""
    pytest.importorskip("ray", reason="needs the extra ray")
    code = f"from tests.providers.test_ray import lose_it; lose_it({str(tmp_path)!r})"
    brief = {**os.environ, "RAY_CLIENT_RECONNECT_GRACE_PERIOD": "5"}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=brief, timeout=600, check=True)


def lose_it(folder: str) -> None:
    made: list[int] = []
    with ray_cluster([1]) as (address, nodes):
        executor = RayExecutor(address)
        with structlog.testing.capture_logs() as said:
            working = threading.Thread(
                target=lambda: made.extend(executor.map(ray_blocks.wait_to_go, Path(folder), range(5)))
            )
            working.start()
            until(lambda: any(Path(folder).iterdir()))
            nodes.ask("kill")
            (Path(folder) / "go").touch()
            working.join()
        executor.close()
    assert made == list(range(5)), made
    assert [one["event"] for one in said] == ["what is left is done on this machine"], said
    assert "is lost" in said[0]["why"], said
