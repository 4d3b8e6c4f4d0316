"""Rerankers: with a tiny cross-encoder that is written here (D52)."""

from pathlib import Path

import numpy as np
import pytest

from recollect.engine.engine import Engine
from recollect.errors import InvalidInput, NotInstalled, ProviderMisbehaved
from recollect.model import Mode, NewMemory
from recollect.ports import Reranker
from recollect.providers import fastembed, sentence_transformers
from recollect.providers.rerankers import make_reranker
from recollect.recall import recall
from recollect.settings import Settings
from tests.tiny_model import write_reranker

pytestmark = pytest.mark.anyio

WORTH = {"tea": 1.0, "green": 6.0, "cold": -6.0, "ชา": 3.0}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_reranker(tmp_path / "model", WORTH)
    return tmp_path / "model"


def reranker_of(folder: Path, name: str = "tiny/reranker") -> Reranker:
    return make_reranker(f"fastembed:{name}", Settings.load(reranker_folder=folder, embedding_threads=1))


def with_reranker(memory: Engine, folder: Path, name: str = "tiny/reranker") -> Engine:
    told = {"reranker": f"fastembed:{name}", "reranker_folder": folder, "space": memory.space.slug}
    return Engine(memory.settings.model_copy(update=told))


async def test_D52_a_cross_encoder_in_a_folder_reads_question_and_text_together(folder: Path) -> None:
    reranker = reranker_of(folder)
    assert isinstance(reranker, Reranker)
    assert reranker.name == "fastembed:tiny/reranker"
    scores = await reranker.scores("tea", ["green", "cold", "ชา", "nothing known"])
    # The mean of both, padded to the longest: 7, -5, 4 and 1, over three words.
    np.testing.assert_allclose(scores, 1 / (1 + np.exp(-np.array([7, -5, 4, 1]) / 3)), rtol=1e-5)
    await reranker.close()
    np.testing.assert_allclose(await reranker.scores("tea", ["green"]), [1 / (1 + np.exp(-3.5))], rtol=1e-5)


async def test_D52_hits_follow_the_reranker_and_its_scores_are_laid_open(memory: Engine, folder: Path) -> None:
    texts = ["tea tea cold", "tea green", "tea"]
    await memory.add_many([NewMemory(text=text) for text in texts])
    plain = await memory.recall("tea")
    assert "reranked" not in plain.ways
    async with with_reranker(memory, folder) as engine:
        found = await engine.recall("tea")
        assert [hit.node.text for hit in found] == ["tea green", "tea", "tea tea cold"]
        assert [hit.parts.rerank for hit in found] == sorted((hit.parts.rerank for hit in found), reverse=True)
        assert found.ways["reranked"] == "3 by fastembed:tiny/reranker"
        assert {hit.node.id: hit.relevance for hit in found} == {hit.node.id: hit.relevance for hit in plain}
        asked = await engine.ask("tea", mode=Mode.RECALL)
        assert asked.recall[0].node.text == "tea green"
        (first,) = await engine.recall("tea", limit=1)
        assert first.node.text == "tea green"
        again = await engine.recall("tea")
        assert [hit.node.id for hit in again] == [hit.node.id for hit in found]
    assert [hit.node.id for hit in await memory.recall("tea")] == [hit.node.id for hit in plain]


async def test_D52_it_chooses_among_more_than_are_wanted_and_says_what_is_beyond(
    memory: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recall, "READ_AGAIN", 4)
    await memory.add_many([NewMemory(text=f"tea number {number}") for number in range(6)])
    await memory.add("tea number green")
    async with with_reranker(memory, folder) as engine:
        found = await engine.recall("tea number green 1", limit=2)
        assert found[0].node.text == "tea number green"
        assert len(found) == 2
        assert {one.step for one in found.left_out} == {"limit"}
        assert len(found.left_out) == 5
        graph = await engine.recall("tea", graph=True)
        assert "reranked" not in graph.ways


async def test_D52_D46_what_is_hardly_related_stays_behind_whatever_a_reranker_thinks(
    memory: Engine, folder: Path
) -> None:
    await memory.add_many([NewMemory(text="tea"), NewMemory(text="green meadows of the north")])
    async with with_reranker(memory, folder) as engine:
        found = await engine.recall("tea", weak=True)
        assert [hit.node.text for hit in found] == ["tea", "green meadows of the north"]
        assert found[0].parts.rerank < found[1].parts.rerank


async def test_D52_one_that_fails_leaves_the_order_and_the_answer_says_so(memory: Engine, tmp_path: Path) -> None:
    write_reranker(tmp_path, WORTH)
    (tmp_path / "tokenizer.json").unlink()
    await memory.add("tea")
    async with with_reranker(memory, tmp_path, "tiny/broken") as engine:
        found = await engine.recall("tea")
        assert [hit.node.text for hit in found] == ["tea"]
        assert any(note.startswith("Not reranked: The model tiny/broken cannot be loaded") for note in found.notes)


async def test_D52_a_reranker_that_is_not_there_is_not_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path))
    with pytest.raises(ProviderMisbehaved, match=r"downloads none.*RECOLLECT_RERANKER_FOLDER"):
        await make_reranker("fastembed:Xenova/ms-marco-MiniLM-L-6-v2", Settings.load()).scores("tea", ["green"])


async def test_D52_a_reranker_without_its_model_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="There is no ONNX model in"):
        await reranker_of(tmp_path, "tiny/none").scores("tea", ["green"])


@pytest.mark.parametrize(
    ("spec", "says"),
    [("cohere:v3", "There is no reranker 'cohere'. Known are fastembed"), ("fastembed", "needs a model")],
)
def test_D52_a_reranker_that_cannot_be_is_refused(spec: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        make_reranker(spec, Settings.load())


@pytest.mark.parametrize(
    ("module", "spec", "extra"),
    [
        (fastembed, "fastembed:x", "fastembed"),
        (sentence_transformers, "sentence-transformers:x", "sentence-transformers"),
    ],
)
def test_D52_a_reranker_without_its_extra_is_named(
    monkeypatch: pytest.MonkeyPatch, module: object, spec: str, extra: str
) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _name: None)
    with pytest.raises(NotInstalled, match=rf'pip install "recollect\[{extra}\]"'):
        make_reranker(spec, Settings.load())
