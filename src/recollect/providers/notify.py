"""Notifiers: who is told of plans that wait, of failures and of reports.

log                        always: a line in the log
webhook:https://...        a JSON document, POSTed there; tried again while the server is in trouble
mailto://..., slack://...  e-mail, chats and everything else, by Apprise (the extra `notify`)

RECOLLECT_NOTIFY names them, divided by commas. An address may hold a password or a secret path: no message shows it.
"""

import re
from collections.abc import Sequence
from datetime import UTC
from importlib.util import find_spec
from typing import Any

import anyio
from pydantic import SecretStr

from recollect.errors import InvalidInput, NotInstalled, ProviderUnavailable
from recollect.logs import Logger
from recollect.ports import Notice, Notifier

log = Logger("recollect.notice")

TIMEOUT_SECONDS = 10.0
# Before the second and the third try; a server that asks for more patience gets it, within reason.
WAITS_SECONDS = (1.0, 5.0)
LONGEST_WAIT_SECONDS = 30.0
# A comma divides targets only where the next one begins: `?to=a@x.example,b@x.example` is one address.
DIVIDED = re.compile(r",\s*(?=log\s*(?:,|$)|[a-z][a-z0-9+.-]*:)", re.IGNORECASE)
WEBHOOK = "webhook:"


class LogNotifier:
    """A line in the log: a warning where somebody should act."""

    name = "log"

    async def notify(self, notice: Notice) -> None:
        say = log.warning if notice.kind in ("waiting", "failed") else log.info
        say(notice.title, text=notice.text, space=notice.space)

    async def close(self) -> None:
        """Nothing is open."""


class WebhookNotifier:
    """POSTs {kind, title, text, space, at, facts} to one address."""

    def __init__(self, url: str, *, waits_seconds: Sequence[float] = WAITS_SECONDS) -> None:
        from recollect.providers.endpoint import Endpoint, checked_address  # brings an HTTP client

        address = checked_address(url, "NOTIFY")
        self.name = f"{WEBHOOK}{address.scheme}://{address.netloc.decode()}"
        self._waits_seconds = tuple(waits_seconds)
        self._endpoint = Endpoint(
            setting="NOTIFY", who="The webhook", url=url, path="", timeout_seconds=TIMEOUT_SECONDS, key="", headers={}
        )

    async def notify(self, notice: Notice) -> None:
        for wait in self._waits_seconds:
            try:
                return await self._send(notice)
            except ProviderUnavailable as problem:
                await anyio.sleep(max(wait, min(problem.retry_after_seconds or 0.0, LONGEST_WAIT_SECONDS)))
        return await self._send(notice)

    async def close(self) -> None:
        await self._endpoint.close()

    async def _send(self, notice: Notice) -> None:
        response = await self._endpoint.post(as_document(notice))
        if not response.is_success:
            raise self._endpoint.problem(response)


class AppriseNotifier:
    """E-mail, chats and the like, through Apprise."""

    def __init__(self, url: str) -> None:
        scheme = url.partition(":")[0].lower()
        self.name = f"{scheme}:"
        if find_spec("apprise") is None:
            raise NotInstalled(f'Telling somebody by {scheme}: needs Apprise: pip install "recollect[notify]".')
        import apprise  # takes a second, and only those wait who use it

        self._apprise = apprise.Apprise()
        if not self._apprise.add(url):
            raise InvalidInput(
                f"RECOLLECT_NOTIFY holds an address of {scheme}: that Apprise does not understand.", field="notify"
            )

    async def notify(self, notice: Notice) -> None:
        if not await self._apprise.async_notify(title=f"Recollect: {notice.title}", body=notice.text):
            raise ProviderUnavailable(f"The notice by {self.name} was not taken. Is its address right, and reachable?")

    async def close(self) -> None:
        """Apprise opens and closes what it needs for each notice."""


def as_document(notice: Notice) -> dict[str, Any]:
    return {
        "kind": notice.kind,
        "title": notice.title,
        "text": notice.text,
        "space": notice.space,
        "at": notice.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "facts": dict(notice.facts),
    }


def make_notifiers(targets: SecretStr | None) -> tuple[Notifier, ...]:
    """The log, and whoever the setting names; InvalidInput or NotInstalled where one cannot be told."""
    named = DIVIDED.split(targets.get_secret_value().strip()) if targets else []
    others = [target.strip() for target in named if target.strip(" ,").lower() not in ("", "log")]
    return (LogNotifier(), *map(make_notifier, others))


def make_notifier(target: str) -> Notifier:
    if target.lower().startswith(WEBHOOK):
        return WebhookNotifier(target[len(WEBHOOK) :])
    if not re.match(r"[a-z][a-z0-9+.-]*://", target, re.IGNORECASE):
        raise InvalidInput(
            "RECOLLECT_NOTIFY holds `log`, `webhook:https://...` or addresses like mailto://..., divided by commas.",
            field="notify",
        )
    return AppriseNotifier(target)
