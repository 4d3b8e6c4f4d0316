"""One address of a provider's server: sending JSON, reading the answer with distrust, naming each failure.

For embedders (http.py), language models (models.py) and webhooks (notify.py) alike; `setting` says which settings the
messages name.

Two ways to fail, because the worker treats them differently. ProviderUnavailable: the same request may succeed later
(429, 5xx, time-out, nobody there). ProviderMisbehaved: it will not until a person changes something (key, address,
model), or the answer is not what was asked for. Nothing is retried here. The API key appears in no message.
"""

import json
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import Any, Literal

import anyio
import httpx
from pydantic import SecretStr

from recollect.errors import InvalidInput, ProviderMisbehaved, ProviderUnavailable

Setting = Literal["EMBEDDING", "MODEL", "NOTIFY"]

MAX_ANSWER_BYTES = 64_000_000
MAX_RETRY_AFTER_SECONDS = 86_400.0
SHOWN_CHARACTERS = 200
LOOPBACK = {"127.0.0.1", "localhost", "::1"}


@dataclass(frozen=True, kw_only=True, slots=True)
class ErrorHints:
    """What a person can look at when something goes wrong: the names of settings, as the messages say them."""

    address: str
    key: str
    chosen: str
    unknown: str
    slow: str
    missing: str


def _model_hints(setting: Setting, *, chosen: str, missing: str) -> ErrorHints:
    address = f"RECOLLECT_{setting}_URL"
    return ErrorHints(
        address=address,
        key=f"RECOLLECT_{setting}_API_KEY",
        chosen=chosen,
        unknown=f"that the model exists there, and {address}",
        slow=f" If it is only slow, raise RECOLLECT_{setting}_TIMEOUT_SECONDS.",
        missing=missing,
    )


HINTS: dict[Setting, ErrorHints] = {
    "EMBEDDING": _model_hints("EMBEDDING", chosen="the model in RECOLLECT_EMBEDDER", missing="embeddings"),
    "MODEL": _model_hints("MODEL", chosen="RECOLLECT_MODEL", missing="an answer in it"),
    # Of a webhook there is only its address.
    "NOTIFY": ErrorHints(
        address="RECOLLECT_NOTIFY",
        key="the address in RECOLLECT_NOTIFY",
        chosen="RECOLLECT_NOTIFY",
        unknown="RECOLLECT_NOTIFY",
        slow="",
        missing="an answer",
    ),
}


@cache
def _certificates() -> ssl.SSLContext:
    """Whom to trust, read once: reading all of them takes longer than many a request."""
    return httpx.create_ssl_context()


class Endpoint:
    """POSTs JSON to one address. `who` names the server in messages, `model` what is asked of it, if it is one."""

    def __init__(
        self,
        *,
        setting: Setting,
        who: str,
        url: str,
        path: str,
        timeout_seconds: float,
        key: str,
        headers: Mapping[str, str],
        model: str | None = None,
        max_answer_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        address = checked_address(url, setting)
        self._setting: Setting = setting
        self._hints = HINTS[setting]
        self._url = address.copy_with(path=address.path.rstrip("/") + path)
        # netloc is host and port: a password in the address stays out of messages too.
        self._who = f"{who} at {self._url.scheme}://{self._url.netloc.decode()}"
        self._who += f" (model {model})" if model else ""
        self._timeout_seconds = timeout_seconds
        self._key = key
        self._max_answer_bytes = max_answer_bytes
        self._client = httpx.AsyncClient(
            headers=dict(headers),
            timeout=None,  # the whole request has one limit, in post; httpx's are for each wait within it
            trust_env=address.host not in LOOPBACK,  # a proxy cannot reach the server beside us
            verify=_certificates(),
        )

    async def post(self, body: Mapping[str, Any]) -> httpx.Response:
        """The server's answer, whatever its status."""
        try:
            with anyio.fail_after(self._timeout_seconds):
                return await self._read(body)
        except TimeoutError as error:
            raise ProviderUnavailable(
                f"{self._who} did not answer within {self._timeout_seconds:g} s.{self._hints.slow}"
            ) from error
        except httpx.DecodingError as error:
            raise self.misbehaved("sent an answer that cannot be decompressed.") from error
        except httpx.TransportError as error:
            reason = str(error) if isinstance(error, httpx.ConnectError) else type(error).__name__
            raise ProviderUnavailable(
                f"{self._who} cannot be reached ({reason}). Is it running, and is {self._hints.address} right?"
            ) from error

    async def _read(self, body: Mapping[str, Any]) -> httpx.Response:
        async with self._client.stream("POST", self._url, json=body) as response:
            content = bytearray()
            async for block in response.aiter_bytes():
                content += block
                if len(content) > self._max_answer_bytes:
                    raise self.misbehaved(f"sent more than {self._max_answer_bytes:,} bytes.")
        headers = {name: value for name, value in response.headers.items() if name in ("content-type", "retry-after")}
        return httpx.Response(response.status_code, headers=headers, content=bytes(content))

    def document(self, response: httpx.Response) -> Mapping[str, Any]:
        """The JSON object of a successful answer; otherwise the problem, named."""
        if not response.is_success:
            raise self.problem(response)
        try:
            value = json.loads(response.content)
        except (ValueError, RecursionError) as error:
            raise self.misbehaved("sent an answer that is not JSON.") from error
        if not isinstance(value, dict):
            raise self.misshapen()
        return value

    def misshapen(self) -> ProviderMisbehaved:
        return self.misbehaved(f"sent JSON without {self._hints.missing}. Does it speak this protocol?")

    def misbehaved(self, how: str) -> ProviderMisbehaved:
        return ProviderMisbehaved(f"{self._who} {how}")

    async def close(self) -> None:
        await self._client.aclose()

    def problem(self, response: httpx.Response) -> ProviderUnavailable | ProviderMisbehaved:
        """What an answer without success means."""
        status = response.status_code
        message = f"{self._who} answered {status}: {why(status, self._setting)}.{self._said(response)}"
        if is_transient(status):
            wait = retry_after_seconds(response.headers.get("Retry-After"), datetime.now(UTC))
            return ProviderUnavailable(message, retry_after_seconds=wait)
        return ProviderMisbehaved(message)

    def _said(self, response: httpx.Response) -> str:
        """The server's own words, unless they are a page or speak of the key, which OpenAI repeats in part."""
        if response.status_code in (401, 403) or "html" in response.headers.get("Content-Type", ""):
            return ""
        text = response.text.replace(self._key, "[key]") if self._key else response.text
        return f" It said: {' '.join(text.split())[:SHOWN_CHARACTERS]}" if text.strip() else ""


def checked_address(url: str, setting: Setting) -> httpx.URL:
    name = HINTS[setting].address
    field = name.removeprefix("RECOLLECT_").lower()
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        # Without its reason: that quotes the address, which may hold a password.
        raise InvalidInput(f"{name} is not an address.", field=field) from None
    if address.scheme not in ("http", "https") or not address.host:
        raise InvalidInput(f"{name} must begin with http:// or https:// and name a host.", field=field)
    return address


def checked_key(key: SecretStr | None, setting: Setting) -> str:
    """The key, fit for a header: httpx repeats an unfit one in its error, for all logs to see."""
    text = key.get_secret_value().strip() if key else ""
    if not re.fullmatch(r"[!-~]*", text):
        raise InvalidInput(
            f"RECOLLECT_{setting}_API_KEY contains white space or characters that no key has: copy it again.",
            field=f"{setting.lower()}_api_key",
        )
    return text


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def is_transient(status: int) -> bool:
    return status in (408, 425, 429) or status >= 500


def why(status: int, setting: Setting) -> str:
    if status == 429:
        return "too many requests, or the quota is used up"
    if is_transient(status):
        return "it is in trouble for now"
    if status in (401, 403):
        return f"check {HINTS[setting].key}"
    if status == 404:
        return f"check {HINTS[setting].unknown}"
    if status < 400:
        return f"it is elsewhere, check {HINTS[setting].address}"
    return f"it does not accept the request; check {HINTS[setting].chosen}"


def retry_after_seconds(header: str | None, now: datetime) -> float | None:
    """The wait a server asks for, from seconds or an HTTP date; None if it asks for none that can be read."""
    if header is None:
        return None
    wait = _seconds(header.strip(), now)
    return None if wait is None else min(max(wait, 0.0), MAX_RETRY_AFTER_SECONDS)


def _seconds(header: str, now: datetime) -> float | None:
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", header):
        return float(header)
    try:
        moment = parsedate_to_datetime(header)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now.timestamp()
