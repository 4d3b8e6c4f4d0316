"""The language models, against a real server: what is sent, what is accepted, and how each failure is named."""

import socket
from collections.abc import AsyncIterator, Iterator

import pytest

from recollect.errors import InvalidInput, ProviderMisbehaved, ProviderProblem, ProviderUnavailable
from recollect.ports import LanguageModel
from recollect.providers.models import make_model
from recollect.settings import Settings
from tests.local_server import Reply
from tests.model_server import PATHS, ModelServer
from tests.waiting import HANG_SECONDS

KEY = "sk-very-secret-0123456789"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


def connect(server: ModelServer, provider: str, **given: object) -> LanguageModel:
    known = {"model_url": server.url_of(provider), "model_api_key": KEY, "model_timeout_seconds": HANG_SECONDS}
    return make_model(f"{provider}:test-model", Settings.load(**known | given))


@pytest.fixture(params=list(PATHS))
async def model(request: pytest.FixtureRequest, server: ModelServer) -> AsyncIterator[LanguageModel]:
    model = connect(server, request.param)
    yield model
    await model.close()


@pytest.fixture
async def openai(server: ModelServer) -> AsyncIterator[LanguageModel]:
    model = connect(server, "openai")
    yield model
    await model.close()


async def problem_of(model: LanguageModel) -> ProviderProblem:
    with pytest.raises(ProviderProblem) as failed:
        await model.complete("be brief", "what?", max_tokens=50)
    assert KEY not in failed.value.message
    assert failed.value.message.count("test-model") == 1
    return failed.value


# --- what works


@pytest.mark.anyio
async def test_an_answer_with_its_tokens(model: LanguageModel, server: ModelServer) -> None:
    server.says = "Tea, never coffee [Memory 1]."
    found = await model.complete("be brief", "what does Linh drink?", max_tokens=50)
    assert (found.text, found.prompt_tokens, found.completion_tokens) == ("Tea, never coffee [Memory 1].", 120, 30)
    assert not found.is_cut
    (request,) = server.received
    assert PATHS[model.name.partition(":")[0]] == request.path
    assert (request.system, request.prompt) == ("be brief", "what does Linh drink?")
    assert request.body["model"] == "test-model"


@pytest.mark.anyio
async def test_an_answer_that_was_cut_says_so(model: LanguageModel, server: ModelServer) -> None:
    server.is_cut = True
    assert (await model.complete("s", "p", max_tokens=50)).is_cut


@pytest.mark.anyio
async def test_the_longest_answer_is_sent_in_each_protocols_own_words(server: ModelServer) -> None:
    for provider in PATHS:
        model = connect(server, provider)
        await model.complete("s", "p", max_tokens=77)
        await model.close()
    openai, anthropic, ollama = (request.body for request in server.received)
    assert openai["max_tokens"] == anthropic["max_tokens"] == ollama["options"]["num_predict"] == 77
    assert ollama["stream"] is False
    assert ollama["options"]["num_ctx"] >= 8192


@pytest.mark.anyio
async def test_the_key_goes_where_each_protocol_expects_it(server: ModelServer) -> None:
    for provider in PATHS:
        model = connect(server, provider)
        await model.complete("s", "p", max_tokens=50)
        await model.close()
    openai, anthropic, ollama = (request.headers for request in server.received)
    assert openai["authorization"] == ollama["authorization"] == f"Bearer {KEY}"
    assert anthropic["x-api-key"] == KEY
    assert "authorization" not in anthropic
    assert anthropic["anthropic-version"]


@pytest.mark.anyio
async def test_a_model_that_takes_no_temperature_and_other_names_is_asked_again_without(
    openai: LanguageModel, server: ModelServer
) -> None:
    server.refuses = {
        "max_tokens": "Unsupported parameter: use 'max_completion_tokens' instead.",
        "temperature": "Unsupported value: 'temperature' does not support 0 with this model.",
    }
    await openai.complete("s", "p", max_tokens=50)
    await openai.complete("s", "p", max_tokens=50)
    assert len(server.received) == 4
    last = server.received[-1].body
    assert last["max_completion_tokens"] == 50
    assert "temperature" not in last
    assert "max_tokens" not in last


@pytest.mark.anyio
async def test_what_a_model_thinks_aloud_is_not_its_answer(server: ModelServer) -> None:
    server.says = "<think>The user wants\ntea.</think>\n\nTea."
    for provider in ("openai", "ollama"):
        model = connect(server, provider)
        assert (await model.complete("s", "p", max_tokens=50)).text == "Tea."
        await model.close()


@pytest.mark.anyio
async def test_counts_that_are_none_do_not_matter(openai: LanguageModel, server: ModelServer) -> None:
    server.replies.append(
        Reply(body=b'{"choices": [{"message": {"content": "yes"}}], "usage": {"prompt_tokens": "x"}}')
    )
    found = await openai.complete("s", "p", max_tokens=50)
    assert (found.text, found.prompt_tokens, found.completion_tokens) == ("yes", 0, 0)


# --- what fails


@pytest.mark.anyio
@pytest.mark.parametrize("status", [429, 500, 503])
async def test_for_now_is_unavailable(model: LanguageModel, server: ModelServer, status: int) -> None:
    server.replies.append(Reply(status=status, headers={"Retry-After": "7"}))
    problem = await problem_of(model)
    assert isinstance(problem, ProviderUnavailable)
    assert problem.retry_after_seconds == 7
    assert str(status) in problem.message


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("status", "advice"),
    [
        (400, "check RECOLLECT_MODEL"),
        (401, "RECOLLECT_MODEL_API_KEY"),
        (404, "RECOLLECT_MODEL_URL"),
        (302, "elsewhere"),
    ],
)
async def test_for_good_is_misbehaved(model: LanguageModel, server: ModelServer, status: int, advice: str) -> None:
    server.replies.append(Reply(status=status, body=f'{{"error": "the key {KEY} is wrong"}}'.encode()))
    problem = await problem_of(model)
    assert isinstance(problem, ProviderMisbehaved)
    assert advice in problem.message


@pytest.mark.anyio
@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"{}", b'{"choices": [], "content": 1}', b'{"choices": [{"message": {"content": null}}]}'],
)
async def test_an_answer_of_another_shape_is_misbehaved(model: LanguageModel, server: ModelServer, body: bytes) -> None:
    server.replies.append(Reply(body=body))
    assert isinstance(await problem_of(model), ProviderMisbehaved)


@pytest.mark.anyio
async def test_an_endless_answer_is_not_read_to_its_end(openai: LanguageModel, server: ModelServer) -> None:
    server.replies.append(Reply(body=b'"' + b"x" * 10_000_001 + b'"'))
    assert "more than 10,000,000 bytes" in (await problem_of(openai)).message


@pytest.mark.anyio
async def test_a_slow_server_is_given_up(server: ModelServer) -> None:
    server.delay_seconds = HANG_SECONDS
    model = connect(server, "openai", model_timeout_seconds=0.2)
    problem = await problem_of(model)
    await model.close()
    assert isinstance(problem, ProviderUnavailable)
    assert "within 0.2 s" in problem.message


@pytest.mark.anyio
async def test_nobody_there_is_unavailable() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://user:{KEY}@127.0.0.1:{unused.getsockname()[1]}"
        model = make_model("ollama:test-model", Settings.load(model_url=url))
        problem = await problem_of(model)
        await model.close()
    assert isinstance(problem, ProviderUnavailable)
    assert "RECOLLECT_MODEL_URL" in problem.message


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"model": "gpt-4o"}, "model"),
        ({"model": "openai"}, "model"),
        ({"model": "openai:gpt"}, "model_api_key"),
        ({"model": "anthropic:claude"}, "model_api_key"),
        ({"model": "openai:gpt", "model_api_key": "a b"}, "model_api_key"),
        ({"model": "ollama:x", "model_url": "localhost:1"}, "model_url"),
        ({"model": "ollama:x", "model_url": "http://a:bad"}, "model_url"),
    ],
)
def test_a_wrong_setting_is_named(given: dict[str, str], field: str) -> None:
    settings = Settings.load(**given)
    with pytest.raises(InvalidInput) as refused:
        make_model(settings.model, settings)
    assert refused.value.field == field


@pytest.mark.anyio
async def test_a_model_on_this_machine_needs_no_key() -> None:
    model = make_model("ollama:qwen3:8b", Settings.load())
    assert model.name == "ollama:qwen3:8b"
    await model.close()
