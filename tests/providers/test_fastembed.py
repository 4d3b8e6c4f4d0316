"""Models of fastembed, from a folder: with a tiny one that is written here (D52)."""

from pathlib import Path

import numpy as np
import pytest

from recollect.engine.engine import Engine
from recollect.errors import InvalidInput, NotInstalled, ProviderMisbehaved
from recollect.ports import Embedder
from recollect.providers import fastembed
from recollect.providers.embedders import embed_readable, make_embedder
from recollect.settings import Settings
from tests.tiny_model import write_model

pytestmark = pytest.mark.anyio

WORDS = ("tea", "coffee", "boat", "ชา", "tee")
VECTORS = tuple(
    [float(place == number) for place in range(8)] if word != "tee" else [1.0] + [0.0] * 7
    for number, word in enumerate(WORDS)
)


def embedder_of(folder: Path, name: str = "tiny/one", **more: object) -> Embedder:
    return make_embedder(f"fastembed:{name}", Settings.load(embedding_folder=folder, embedding_threads=1, **more))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_model(tmp_path / "model", WORDS, VECTORS)
    return tmp_path / "model"


async def test_D52_a_model_in_a_folder_embeds_and_its_name_makes_it_again(folder: Path) -> None:
    embedder = embedder_of(folder)
    assert isinstance(embedder, Embedder)
    assert (embedder.model, embedder.dim) == ("fastembed:tiny/one:8", 8)
    made = await embedder.embed(["tea", "tea coffee", "tee", "coffee", "tea " * 1000])
    assert made.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(made @ made[0], [1, 0.5**0.5, 1, 0, 1], atol=1e-6)
    again = make_embedder(embedder.model, Settings.load(embedding_folder=folder))
    np.testing.assert_allclose(await again.embed(["tea"]), made[:1])
    await embedder.close()
    np.testing.assert_allclose(await embedder.embed(["tea"]), made[:1])


async def test_D52_the_first_token_counts_where_the_folder_says_so(tmp_path: Path) -> None:
    write_model(tmp_path, WORDS, VECTORS, first=True)
    made = await embedder_of(tmp_path, "tiny/first").embed(["tea coffee", "tea", "coffee tea"])
    np.testing.assert_allclose(made @ made[1], [1, 1, 0], atol=1e-6)


async def test_D52_D43_what_most_of_has_no_token_gets_no_vector(folder: Path) -> None:
    embedder = embedder_of(folder)
    made = await embed_readable(embedder, ["ชา", "กาแฟดำ", "tea กา"])
    assert [vector is None for vector in made] == [False, True, False]


async def test_D52_it_serves_a_space(memory: Engine, folder: Path) -> None:
    told = {"embedder": "fastembed:tiny/one", "embedding_folder": folder, "space": memory.space.slug}
    async with Engine(memory.settings.model_copy(update=told)) as engine:
        node = await engine.add("tea")
        await engine.add("boat")
        found = await engine.recall("tee", weak=True)
        assert (found.model, found[0].node.id) == ("fastembed:tiny/one:8", node.id)
        assert found[0].parts.cosine == pytest.approx(1, abs=1e-3)
        assert found[0].parts.lexical == 0


def test_D52_a_model_that_is_known_needs_no_folder_to_be_named() -> None:
    embedder = make_embedder("fastembed:BAAI/bge-small-en-v1.5", Settings.load())
    assert (embedder.model, embedder.dim) == ("fastembed:BAAI/bge-small-en-v1.5:384", 384)


async def test_D52_what_is_not_there_is_not_downloaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTEMBED_CACHE_PATH", str(tmp_path))
    embedder = make_embedder("fastembed:BAAI/bge-small-en-v1.5", Settings.load())
    with pytest.raises(ProviderMisbehaved, match=r"cannot be loaded from the cache of fastembed: .*downloads none"):
        await embedder.embed(["tea"])


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        ("config.json", "There is no config.json in"),
        ("model.onnx", "There is no ONNX model in"),
        ("tokenizer.json", "cannot be loaded from"),
    ],
)
async def test_D52_a_folder_that_lacks_something_is_named(folder: Path, spoil: str, says: str) -> None:
    (folder / spoil).unlink()
    with pytest.raises((InvalidInput, ProviderMisbehaved), match=says):
        await embedder_of(folder, f"tiny/no-{spoil}").embed(["tea"])


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("fastembed", "needs a model"),
        ("fastembed:no/such-model", "fastembed knows no model 'no/such-model'"),
        ("fastembed:BAAI/bge-small-en-v1.5:99", "has 384 dimensions"),
    ],
)
def test_D52_a_name_that_cannot_be_used_is_refused(spec: str, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        make_embedder(spec, Settings.load())


def test_D52_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fastembed, "find_spec", lambda _name: None)
    with pytest.raises(NotInstalled, match=r'pip install "recollect\[fastembed\]"'):
        make_embedder("fastembed:BAAI/bge-small-en-v1.5", Settings.load())
