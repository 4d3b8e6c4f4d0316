"""Notifiers, over real HTTP to a server beside the test."""

import importlib.util
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from recollect.errors import InvalidInput, NotInstalled, ProviderMisbehaved, ProviderUnavailable
from recollect.ports import Notice, Notifier
from recollect.providers.notify import LogNotifier, WebhookNotifier, make_notifiers
from tests.local_server import LocalServer, Received, Reply

pytestmark = pytest.mark.anyio

NOTICE = Notice(
    kind="waiting",
    title="A plan waits for approval",
    text="Nhãn: 6 of 18 edges",
    space="default",
    at=datetime(2026, 11, 15, 8, 0, tzinfo=UTC),
    facts={"planned": 6},
)
AT_ONCE = (0.0, 0.0)


class Hook(LocalServer[Received]):
    def answer(self, request: Received) -> Reply:
        return Reply(status=204, body=b"")


@pytest.fixture
def hook() -> Iterator[Hook]:
    with Hook(Received) as hook:
        yield hook


def names(targets: str | None) -> list[str]:
    return [notifier.name for notifier in make_notifiers(SecretStr(targets) if targets is not None else None)]


async def test_a_webhook_receives_the_notice_as_json(hook: Hook) -> None:
    notifier = WebhookNotifier(f"{hook.url}/hooks/T0/secret?a=1", waits_seconds=AT_ONCE)
    await notifier.notify(NOTICE)
    await notifier.close()
    (request,) = hook.received
    assert request.path == "/hooks/T0/secret?a=1"
    assert request.headers["content-type"] == "application/json"
    assert request.body == {
        "kind": "waiting",
        "title": "A plan waits for approval",
        "text": "Nhãn: 6 of 18 edges",
        "space": "default",
        "at": "2026-11-15T08:00:00Z",
        "facts": {"planned": 6},
    }


async def test_a_webhook_in_trouble_is_tried_again(hook: Hook) -> None:
    hook.replies = [Reply(status=503), Reply(status=429, headers={"Retry-After": "0"})]
    await WebhookNotifier(hook.url, waits_seconds=AT_ONCE).notify(NOTICE)
    assert len(hook.received) == 3


async def test_a_webhook_that_stays_in_trouble_is_given_up(hook: Hook) -> None:
    hook.every_reply = Reply(status=500)
    with pytest.raises(
        ProviderUnavailable, match=r"The webhook at http://127.0.0.1:\d+ answered 500: it is in trouble"
    ):
        await WebhookNotifier(hook.url, waits_seconds=AT_ONCE).notify(NOTICE)
    assert len(hook.received) == 3


@pytest.mark.parametrize("status", [301, 400, 401, 404, 410])
async def test_a_webhook_that_refuses_is_asked_once_and_its_secret_kept(hook: Hook, status: int) -> None:
    hook.every_reply = Reply(status=status, body=b"no")
    with pytest.raises(ProviderMisbehaved, match=f"answered {status}: .*RECOLLECT_NOTIFY") as refused:
        await WebhookNotifier(f"{hook.url}/secret", waits_seconds=AT_ONCE).notify(NOTICE)
    assert "secret" not in refused.value.message
    assert "API_KEY" not in refused.value.message
    assert "model" not in refused.value.message
    assert len(hook.received) == 1


async def test_a_webhook_that_nobody_answers_is_said_plainly(hook: Hook) -> None:
    hook.stop()
    with pytest.raises(ProviderUnavailable, match=r"cannot be reached .* is RECOLLECT_NOTIFY right"):
        await WebhookNotifier(hook.url, waits_seconds=AT_ONCE).notify(NOTICE)
    # The fixture stops it again.
    hook.stop = lambda: None  # type: ignore[method-assign]


async def test_the_log_warns_where_somebody_should_act() -> None:
    with capture_logs() as lines:
        await LogNotifier().notify(NOTICE)
    assert lines == [
        {
            "event": "A plan waits for approval",
            "text": "Nhãn: 6 of 18 edges",
            "space": "default",
            "log_level": "warning",
        }
    ]
    assert isinstance(LogNotifier(), Notifier)


def test_targets_are_divided_by_commas_and_the_log_is_always_there() -> None:
    assert names(None) == names("") == names("log") == names(" LOG , ") == ["log"]
    two = "webhook:https://u:p@a.example/x,y , webhook:http://b.example:8080"
    assert names(two) == ["log", "webhook:https://a.example", "webhook:http://b.example:8080"]
    assert names("log,webhook:https://a.example") == ["log", "webhook:https://a.example"]


@pytest.mark.parametrize("wrong", ["e-mail", "webhook:", "webhook:ftp://a.example", "webhook:a.example", "a@b.example"])
def test_a_target_that_is_none_is_refused_without_showing_it(wrong: str) -> None:
    with pytest.raises(InvalidInput, match="RECOLLECT_NOTIFY") as refused:
        names(wrong)
    assert refused.value.field == "notify"
    assert wrong not in refused.value.message


@pytest.mark.skipif(importlib.util.find_spec("apprise") is not None, reason="Apprise is installed")
def test_apprise_names_the_extra_when_it_is_not_installed() -> None:
    with pytest.raises(NotInstalled, match=r'pip install "recollect\[notify\]"') as refused:
        names("mailto://me:secret@mail.example?to=a@x.example,b@x.example")
    assert "secret" not in refused.value.message


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what Apprise imports
async def test_apprise_tells_and_says_when_it_could_not(hook: Hook) -> None:
    pytest.importorskip("apprise")
    host = hook.url.removeprefix("http://")
    _, notifier = make_notifiers(SecretStr(f"json://{host}/x"))
    assert notifier.name == "json:"
    await notifier.notify(NOTICE)
    assert hook.received[0].body["title"] == "Recollect: A plan waits for approval"
    hook.every_reply = Reply(status=500)
    with pytest.raises(ProviderUnavailable, match="The notice by json: was not taken"):
        await notifier.notify(NOTICE)
    with pytest.raises(InvalidInput, match="does not understand"):
        names("nosuchthing://x")
