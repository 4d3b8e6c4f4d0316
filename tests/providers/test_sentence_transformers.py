"""Models of sentence-transformers, with tiny ones that are written here (D52).

The package brings two gigabytes of torch, so it is no part of the development environment: where it is not installed,
what needs it is skipped. `pip install "recollect[sentence-transformers]"` beside it runs all of it.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect.errors import InvalidInput, NotInstalled, ProviderMisbehaved
from recollect.ports import Embedder, Reranker
from recollect.providers import sentence_transformers as provider
from recollect.providers.embedders import embed_readable, make_embedder
from recollect.providers.rerankers import make_reranker
from recollect.settings import Settings

pytestmark = pytest.mark.anyio

WORDS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "tea", "coffee", "boat", "ชา")


@pytest.fixture
def package() -> Any:
    return pytest.importorskip("sentence_transformers", reason="needs the extra sentence-transformers")


def write_bert(folder: Path, package: Any, *, is_reranker: bool) -> None:
    """A BERT of a few numbers, made by chance that is always the same."""
    import torch
    import transformers

    folder.mkdir()
    (folder / "vocab.txt").write_text("\n".join(WORDS), encoding="utf8")
    torch.manual_seed(52)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = transformers.BertConfig(
        vocab_size=len(WORDS), max_position_embeddings=600, num_labels=1, initializer_range=1.0, **sizes
    )
    made = transformers.BertForSequenceClassification if is_reranker else transformers.BertModel
    made(config).save_pretrained(folder)
    transformers.BertTokenizerFast(str(folder / "vocab.txt"), strip_accents=False).save_pretrained(folder)


async def test_D52_a_model_of_sentence_transformers_embeds_and_its_name_makes_it_again(
    package: Any, tmp_path: Path
) -> None:
    write_bert(tmp_path / "model", package, is_reranker=False)
    settings = Settings.load(embedding_folder=tmp_path / "model")
    embedder = make_embedder("sentence-transformers:tiny/one", settings)
    assert isinstance(embedder, Embedder)
    assert (embedder.model, embedder.dim) == ("sentence-transformers:tiny/one:16", 16)
    made = await embedder.embed(["tea", "tea coffee", "tea", "tea " * 1000])
    assert made.dtype == np.float32
    assert made.shape == (4, 16)
    np.testing.assert_allclose(np.linalg.norm(made, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose(made[0], made[2], atol=1e-6)
    again = make_embedder(embedder.model, settings)
    np.testing.assert_allclose(await again.embed(["tea"]), made[:1], atol=1e-6)
    readable = await embed_readable(embedder, ["tea", "กาแฟดำ"])
    assert [one is None for one in readable] == [False, True]
    with pytest.raises(InvalidInput, match="has 16 dimensions: it cannot give 99"):
        await make_embedder("sentence-transformers:tiny/one:99", settings).embed(["tea"])


async def test_D52_a_cross_encoder_of_sentence_transformers_scores(package: Any, tmp_path: Path) -> None:
    write_bert(tmp_path / "model", package, is_reranker=True)
    reranker = make_reranker("sentence-transformers:tiny/two", Settings.load(reranker_folder=tmp_path / "model"))
    assert isinstance(reranker, Reranker)
    scores = await reranker.scores("tea", ["coffee", "boat", "coffee"])
    assert scores.shape == (3,)
    assert ((scores > 0) & (scores < 1)).all()
    assert scores[0] == pytest.approx(scores[2], abs=1e-6)
    assert scores[0] != pytest.approx(scores[1], abs=1e-6)
    await reranker.close()
    np.testing.assert_allclose(await reranker.scores("tea", ["coffee"]), scores[:1], atol=1e-5)


async def test_D52_what_sentence_transformers_does_not_have_is_not_downloaded(package: Any, tmp_path: Path) -> None:
    embedder = make_embedder("sentence-transformers:none:16", Settings.load(embedding_folder=tmp_path / "none"))
    with pytest.raises(ProviderMisbehaved, match=r"downloads none.*RECOLLECT_EMBEDDING_FOLDER"):
        await embedder.embed(["tea"])


def test_D52_without_sentence_transformers_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "find_spec", lambda _name: None)
    with pytest.raises(NotInstalled, match=r'pip install "recollect\[sentence-transformers\]"'):
        make_embedder("sentence-transformers:all-MiniLM-L6-v2", Settings.load())
