"""The embedders behind HTTP, against a real server: what is sent, what is accepted, and how each failure is named."""

import socket
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import numpy as np
import pytest

from recollect.errors import ProviderMisbehaved, ProviderProblem, ProviderUnavailable
from recollect.ports import Embedder
from recollect.providers.embedders import make_embedder
from recollect.providers.endpoint import retry_after_seconds
from recollect.providers.hashing import hash_texts
from recollect.settings import Settings
from tests.embedding_server import EmbeddingServer
from tests.local_server import Reply
from tests.waiting import HANG_SECONDS

KEY = "sk-very-secret-0123456789"
TEXTS = ["Linh prefers tea", "The river rose", "Quarterly revenue fell by ten percent, said the report"]
NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(dim=64) as server:
        yield server


def connect(server: EmbeddingServer, protocol: str, **given: object) -> Embedder:
    url = server.openai_url if protocol == "openai" else server.ollama_url
    settings = Settings.load(embedding_url=url, embedding_api_key=KEY, embedding_timeout_seconds=HANG_SECONDS, **given)
    return make_embedder(f"{protocol}:test-model:64", settings)


@pytest.fixture(params=["openai", "ollama"])
async def embedder(request: pytest.FixtureRequest, server: EmbeddingServer) -> AsyncIterator[Embedder]:
    embedder = connect(server, request.param)
    yield embedder
    await embedder.close()


@pytest.fixture
async def openai(server: EmbeddingServer) -> AsyncIterator[Embedder]:
    embedder = connect(server, "openai")
    yield embedder
    await embedder.close()


async def problem_of(embedder: Embedder, texts: list[str] | None = None) -> ProviderProblem:
    with pytest.raises(ProviderProblem) as failed:
        await embedder.embed(TEXTS if texts is None else texts)
    assert KEY not in failed.value.message
    return failed.value


# --- what works


@pytest.mark.anyio
async def test_each_text_gets_its_own_unit_vector(embedder: Embedder) -> None:
    vectors = await embedder.embed(TEXTS)
    assert vectors.dtype == np.float32
    assert np.abs(vectors - hash_texts(TEXTS, 64)).max() < 1e-6


@pytest.mark.anyio
async def test_no_texts_need_no_request(embedder: Embedder, server: EmbeddingServer) -> None:
    assert (await embedder.embed([])).shape == (0, 64)
    assert server.received == []


@pytest.mark.anyio
async def test_300_texts_go_in_requests_of_at_most_128(embedder: Embedder, server: EmbeddingServer) -> None:
    texts = [f"note number {number}" for number in range(300)]
    vectors = await embedder.embed(texts)
    assert np.abs(vectors - hash_texts(texts, 64)).max() < 1e-6
    assert [len(request.body["input"]) for request in server.received] == [128, 128, 44]


@pytest.mark.anyio
async def test_a_long_text_goes_in_pieces_a_model_can_take(embedder: Embedder, server: EmbeddingServer) -> None:
    long = "山河 rivers and bridges " * 5_000
    vectors = await embedder.embed(["short", long])
    sent = [text for request in server.received for text in request.body["input"]]
    assert vectors.shape == (2, 64)
    assert max(len(text.encode()) for text in sent) <= 8_000
    assert float(vectors[1] @ hash_texts([long], 64)[0]) > 0.99


@pytest.mark.anyio
async def test_openai_is_sent_key_model_texts_and_dimension(openai: Embedder, server: EmbeddingServer) -> None:
    await openai.embed(["tea"])
    (request,) = server.received
    assert request.path == "/v1/embeddings"
    assert request.authorization == f"Bearer {KEY}"
    assert request.body == {"model": "test-model", "input": ["tea"], "encoding_format": "float", "dimensions": 64}


@pytest.mark.anyio
async def test_ollama_is_sent_model_and_texts(server: EmbeddingServer) -> None:
    server.dim = 768
    embedder = make_embedder("ollama:nomic-embed-text", Settings.load(embedding_url=server.ollama_url + "/"))
    assert (await embedder.embed(["tea"])).shape == (1, 768)
    await embedder.close()
    (request,) = server.received
    assert (request.path, request.authorization) == ("/api/embed", None)
    assert request.body == {"model": "nomic-embed-text", "input": ["tea"]}


@pytest.mark.anyio
async def test_ollama_is_asked_for_a_dimension_that_is_not_the_models_own(server: EmbeddingServer) -> None:
    embedder = make_embedder("ollama:nomic-embed-text:256", Settings.load(embedding_url=server.ollama_url))
    assert (await embedder.embed(["tea"])).shape == (1, 256)
    await embedder.close()
    assert server.received[0].body["dimensions"] == 256


@pytest.mark.anyio
async def test_a_model_without_choice_is_not_asked_for_a_dimension(server: EmbeddingServer) -> None:
    server.dim = 1536
    embedder = make_embedder("openai:text-embedding-ada-002", Settings.load(embedding_url=server.openai_url))
    await embedder.embed(["tea"])
    await embedder.close()
    assert "dimensions" not in server.received[0].body


@pytest.mark.anyio
async def test_a_server_that_refuses_the_dimension_is_asked_without_it(
    openai: Embedder, server: EmbeddingServer
) -> None:
    server.allows_dimensions = False
    await openai.embed(["tea"])
    await openai.embed(["tea"])
    assert ["dimensions" in request.body for request in server.received] == [True, False, False]


@pytest.mark.anyio
async def test_a_server_that_leaves_out_the_index_is_taken_at_its_order(
    openai: Embedder, server: EmbeddingServer
) -> None:
    rows = ", ".join(f'{{"embedding": {row}}}' for row in hash_texts(["a", "b"], 64).tolist())
    server.replies = [Reply(body=f'{{"data": [{rows}]}}'.encode())]
    assert np.abs(await openai.embed(["a", "b"]) - hash_texts(["a", "b"], 64)).max() < 1e-6


# --- for now: try again


@pytest.mark.anyio
async def test_429_says_how_long_to_wait_and_the_next_request_succeeds(
    embedder: Embedder, server: EmbeddingServer
) -> None:
    server.replies = [Reply(status=429, headers={"Retry-After": "7"})]
    problem = await problem_of(embedder)
    assert isinstance(problem, ProviderUnavailable)
    assert problem.retry_after_seconds == 7.0
    assert "answered 429" in problem.message
    assert len(server.received) == 1  # the worker retries, not the embedder
    assert (await embedder.embed(TEXTS)).shape == (3, 64)


@pytest.mark.anyio
async def test_503_may_name_a_date(embedder: Embedder, server: EmbeddingServer) -> None:
    date = format_datetime(datetime.now(UTC) + timedelta(days=1), usegmt=True)
    server.replies = [Reply(status=503, headers={"Retry-After": date})]
    problem = await problem_of(embedder)
    assert isinstance(problem, ProviderUnavailable)
    assert problem.retry_after_seconds == pytest.approx(86_400, abs=HANG_SECONDS)


@pytest.mark.anyio
@pytest.mark.parametrize("status", [408, 500, 502, 504])
async def test_a_server_in_trouble_is_unavailable(embedder: Embedder, server: EmbeddingServer, status: int) -> None:
    server.replies = [Reply(status=status, body=f'{{"error": "out of memory, {KEY}"}}'.encode())]
    problem = await problem_of(embedder)
    assert isinstance(problem, ProviderUnavailable)
    assert problem.retry_after_seconds is None
    assert "out of memory, [key]" in problem.message


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", ["openai", "ollama"])
async def test_a_server_that_does_not_answer_in_time_is_unavailable(server: EmbeddingServer, protocol: str) -> None:
    server.delay_seconds = HANG_SECONDS
    url = server.openai_url if protocol == "openai" else server.ollama_url
    settings = Settings.load(embedding_url=url, embedding_timeout_seconds=0.2)
    embedder = make_embedder(f"{protocol}:test-model:64", settings)
    problem = await problem_of(embedder)
    await embedder.close()
    assert isinstance(problem, ProviderUnavailable)
    assert "did not answer within 0.2 s" in problem.message


@pytest.mark.anyio
@pytest.mark.parametrize("protocol", ["openai", "ollama"])
async def test_nobody_there_is_unavailable(protocol: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused
        url = f"http://someone:hunter2@127.0.0.1:{taken.getsockname()[1]}"
        embedder = make_embedder(f"{protocol}:test-model:64", Settings.load(embedding_url=url))
        problem = await problem_of(embedder)
        await embedder.close()
    assert isinstance(problem, ProviderUnavailable)
    assert "cannot be reached" in problem.message
    assert "hunter2" not in problem.message


@pytest.mark.anyio
async def test_a_server_that_stops_is_unavailable(embedder: Embedder, server: EmbeddingServer) -> None:
    await embedder.embed(TEXTS)
    server.stop()
    assert isinstance(await problem_of(embedder), ProviderUnavailable)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("12", 12.0),
        (" 0.5 ", 0.5),
        ("Sun, 15 Nov 2026 12:01:30 GMT", 90.0),
        ("Sun, 15 Nov 2026 11:00:00 GMT", 0.0),
        ("Sun, 15 Nov 2026 12:01:30 -0000", 90.0),
        ("soon", None),
        ("-5", None),
        ("nan", None),
        ("9" * 400, 86_400.0),
        ("", None),
    ],
)
def test_retry_after_is_seconds_or_a_date(header: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(header, NOW) == seconds


# --- for good: someone has to change something


@pytest.mark.anyio
async def test_a_wrong_key_is_named_by_its_setting_and_not_shown(embedder: Embedder, server: EmbeddingServer) -> None:
    server.required_key = "another"
    problem = await problem_of(embedder)
    assert isinstance(problem, ProviderMisbehaved)
    assert "answered 401: check RECOLLECT_EMBEDDING_API_KEY" in problem.message
    assert "sk-" not in problem.message


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "says"),
    [
        (400, "check the model in RECOLLECT_EMBEDDER. It said: {"),
        (403, "check RECOLLECT_EMBEDDING_API_KEY"),
        (404, "check that the model exists there"),
        (302, "check RECOLLECT_EMBEDDING_URL"),
    ],
)
async def test_a_refusal_says_what_to_check(
    embedder: Embedder, server: EmbeddingServer, status: int, says: str
) -> None:
    server.replies = [Reply(status=status, headers={"Location": server.url})]
    problem = await problem_of(embedder)
    assert isinstance(problem, ProviderMisbehaved)
    assert f"answered {status}" in problem.message
    assert says in problem.message


@pytest.mark.anyio
async def test_a_wrong_dimension_is_refused(embedder: Embedder, server: EmbeddingServer) -> None:
    server.vectors = lambda texts, dim: [[1.0] * (dim + 1) for _ in texts]
    problem = await problem_of(embedder)
    assert isinstance(problem, ProviderMisbehaved)
    assert "sent 65 numbers for the text at position" in problem.message
    assert "where 64 were expected" in problem.message


@pytest.mark.anyio
@pytest.mark.parametrize("change", [1, -1])
async def test_a_wrong_count_is_refused(embedder: Embedder, server: EmbeddingServer, change: int) -> None:
    server.vectors = lambda texts, dim: [[1.0] * dim] * (len(texts) + change)
    problem = await problem_of(embedder)
    assert isinstance(problem, ProviderMisbehaved)
    assert f"sent {3 + change} vectors for 3 texts" in problem.message


@pytest.mark.anyio
@pytest.mark.parametrize(
    "body",
    [
        b"<html>welcome</html>",
        b'{"data": [{"index": 0, "embedding": [0.1, ',
        b"\xff\xfe",
        b"",
        b"[]",
        b"{}",
        b'{"data": null, "embeddings": null}',
        b'{"data": [1, 2, 3], "embeddings": {"0": []}}',
        b'{"data": [{"index": 0}, {"index": 0}, {"index": 1}]}',
        b'{"data": [{"index": []}, {"index": "0"}, {"index": null}]}',
        b"[" * 100_000,
    ],
)
async def test_a_malformed_answer_is_refused(embedder: Embedder, server: EmbeddingServer, body: bytes) -> None:
    server.replies = [Reply(body=body)]
    problem = await problem_of(embedder)
    assert isinstance(problem, ProviderMisbehaved)
    assert "not JSON" in problem.message or "without embeddings" in problem.message


@pytest.mark.anyio
async def test_an_answer_that_cannot_be_decompressed_is_refused(embedder: Embedder, server: EmbeddingServer) -> None:
    server.replies = [Reply(headers={"Content-Encoding": "gzip"})]
    assert "cannot be decompressed" in (await problem_of(embedder)).message


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("bad", "says"),
    [
        ([float("nan")] * 64, "NaN or infinity"),
        ([float("inf")] + [0.0] * 63, "NaN or infinity"),
        ([0.0] * 64, "only zeros"),
        (["0.5"] * 64, "no list of numbers"),
        ([None] * 64, "no list of numbers"),
        ([True] * 64, "no list of numbers"),
        ([10**400] + [0] * 63, "no list of numbers"),
        ("AAAA", "no list of numbers"),
        ([[0.5] * 64], "no list of numbers"),
    ],
)
async def test_a_vector_that_is_none_is_refused_by_position(
    embedder: Embedder, server: EmbeddingServer, bad: object, says: str
) -> None:
    server.vectors = lambda texts, dim: [bad if "river" in text else [1.0] * dim for text in texts]
    problem = await problem_of(embedder)
    assert isinstance(problem, ProviderMisbehaved)
    assert says in problem.message
    assert "at position 1" in problem.message


@pytest.mark.anyio
async def test_whole_numbers_and_enormous_ones_are_still_numbers(embedder: Embedder, server: EmbeddingServer) -> None:
    server.vectors = lambda texts, dim: [[1] * dim, [1e300] * dim, [1e-300] * dim]
    vectors = await embedder.embed(TEXTS)
    assert np.allclose(vectors, 1 / 8)
