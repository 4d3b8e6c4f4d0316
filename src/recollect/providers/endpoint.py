"""One address of a language model's server: sending JSON, reading the answer with distrust, naming each failure.

As with the embedders (http.py): ProviderUnavailable when the same request may succeed later (429, 5xx, time-out, nobody
there), ProviderMisbehaved when a person must change something first. Nothing is retried; the API key is in no message.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import anyio
import httpx
from pydantic import SecretStr

from recollect.errors import InvalidInput, ProviderMisbehaved, ProviderUnavailable
from recollect.providers.http import LOOPBACK, SHOWN_CHARACTERS, is_transient, retry_after_seconds

MAX_ANSWER_BYTES = 10_000_000


class Endpoint:
    """POSTs JSON to one address. `who` names the server in messages, `model` what is asked of it."""

    def __init__(
        self, *, who: str, model: str, url: str, path: str, timeout_seconds: float, key: str, headers: Mapping[str, str]
    ) -> None:
        address = checked_address(url)
        self._url = address.copy_with(path=address.path.rstrip("/") + path)
        # netloc is host and port: a password in the address stays out of messages too.
        self._who = f"{who} at {self._url.scheme}://{self._url.netloc.decode()} (model {model})"
        self._timeout_seconds = timeout_seconds
        self._key = key
        self._client = httpx.AsyncClient(
            headers=dict(headers),
            timeout=None,  # the whole request has one limit, in post; httpx's are for each wait within it
            trust_env=address.host not in LOOPBACK,  # a proxy cannot reach the server beside us
        )

    async def post(self, body: Mapping[str, Any]) -> httpx.Response:
        """The server's answer, whatever its status."""
        try:
            with anyio.fail_after(self._timeout_seconds):
                return await self._read(body)
        except TimeoutError as error:
            raise ProviderUnavailable(
                f"{self._who} did not answer within {self._timeout_seconds:g} s. If it is only slow, raise "
                f"RECOLLECT_MODEL_TIMEOUT_SECONDS."
            ) from error
        except httpx.DecodingError as error:
            raise ProviderMisbehaved(f"{self._who} sent an answer that cannot be decompressed.") from error
        except httpx.TransportError as error:
            reason = str(error) if isinstance(error, httpx.ConnectError) else type(error).__name__
            raise ProviderUnavailable(
                f"{self._who} cannot be reached ({reason}). Is it running, and is RECOLLECT_MODEL_URL right?"
            ) from error

    async def _read(self, body: Mapping[str, Any]) -> httpx.Response:
        async with self._client.stream("POST", self._url, json=body) as response:
            content = bytearray()
            async for block in response.aiter_bytes():
                content += block
                if len(content) > MAX_ANSWER_BYTES:
                    raise ProviderMisbehaved(f"{self._who} sent more than {MAX_ANSWER_BYTES:,} bytes.")
        kept = {name: value for name, value in response.headers.items() if name in ("content-type", "retry-after")}
        return httpx.Response(response.status_code, headers=kept, content=bytes(content))

    def document(self, response: httpx.Response) -> Mapping[str, Any]:
        """The JSON object of a successful answer; otherwise the problem, named."""
        if not response.is_success:
            raise self._problem(response)
        try:
            found = json.loads(response.content)
        except (ValueError, RecursionError) as error:
            raise ProviderMisbehaved(f"{self._who} sent an answer that is not JSON.") from error
        if not isinstance(found, dict):
            raise self.misbehaved()
        return found

    def misbehaved(self) -> ProviderMisbehaved:
        return ProviderMisbehaved(f"{self._who} sent JSON without an answer in it. Does it speak this protocol?")

    async def close(self) -> None:
        await self._client.aclose()

    def _problem(self, response: httpx.Response) -> ProviderUnavailable | ProviderMisbehaved:
        status = response.status_code
        message = f"{self._who} answered {status}: {why(status)}.{self._said(response)}"
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


def checked_address(url: str) -> httpx.URL:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        # Without its reason: that quotes the address, which may hold a password.
        raise InvalidInput("RECOLLECT_MODEL_URL is not an address.", field="model_url") from None
    if address.scheme not in ("http", "https") or not address.host:
        raise InvalidInput(
            "RECOLLECT_MODEL_URL must begin with http:// or https:// and name a host.", field="model_url"
        )
    return address


def checked_key(key: SecretStr | None) -> str:
    """The key, fit for a header: httpx repeats an unfit one in its error, for all logs to see."""
    text = key.get_secret_value().strip() if key else ""
    if not re.fullmatch(r"[!-~]*", text):
        raise InvalidInput(
            "RECOLLECT_MODEL_API_KEY contains white space or characters that no key has: copy it again.",
            field="model_api_key",
        )
    return text


def why(status: int) -> str:
    if status == 429:
        return "too many requests, or the quota is used up"
    if is_transient(status):
        return "it is in trouble for now"
    if status in (401, 403):
        return "check RECOLLECT_MODEL_API_KEY"
    if status == 404:
        return "check that the model exists there, and RECOLLECT_MODEL_URL"
    if status < 400:
        return "it is elsewhere, check RECOLLECT_MODEL_URL"
    return "it does not accept the request; check RECOLLECT_MODEL"
