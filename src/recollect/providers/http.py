"""What the embedders behind HTTP share: cutting, sending, and reading an answer with distrust.

Two ways to fail, because the worker treats them differently. ProviderUnavailable: the same request may succeed later
(429, 5xx, time-out, nobody there). ProviderMisbehaved: it will not until a person changes something (key, address,
model), or the answer is not what was asked for. Nothing is retried here. The API key appears in no message.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, ClassVar

import anyio
import anyio.to_thread
import httpx
import numpy as np
from numpy.typing import NDArray
from pydantic import SecretStr

from recollect.errors import InvalidInput, ProviderMisbehaved, ProviderUnavailable
from recollect.ports import Vectors
from recollect.providers.pieces import batches, cut, sum_of_pieces, unit_rows

# A token is at least one byte, so neither can exceed what OpenAI takes: 8,192 tokens a text, 300,000 a request.
MAX_TEXT_BYTES = 8_000
MAX_REQUEST_BYTES = 300_000
MAX_REQUEST_TEXTS = 128
MAX_RETRY_AFTER_SECONDS = 86_400.0
SHOWN_CHARACTERS = 200
LOOPBACK = {"127.0.0.1", "localhost", "::1"}


class HttpEmbedder(ABC):
    """One POST a batch. A subclass says what the server is called, what is sent, and where the vectors are."""

    server: ClassVar[str]
    provider: ClassVar[str]
    path: ClassVar[str]

    def __init__(
        self, *, name: str, dim: int, url: str, timeout_seconds: float, api_key: SecretStr | None = None
    ) -> None:
        self._name = name
        self._dim = dim
        address = checked_address(url)
        self._endpoint = address.copy_with(path=address.path.rstrip("/") + self.path)
        self._timeout_seconds = timeout_seconds
        self._key = checked_key(api_key)
        self._client = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {self._key}"} if self._key else {},
            timeout=None,  # the whole request has one limit, in _post; httpx's are for each wait within it
            trust_env=address.host not in LOOPBACK,  # a proxy cannot reach the server beside us
        )

    @property
    def model(self) -> str:
        return f"{self.provider}:{self._name}:{self._dim}"

    @property
    def dim(self) -> int:
        return self._dim

    @abstractmethod
    def body(self, texts: Sequence[str]) -> dict[str, Any]:
        """What is sent."""

    @abstractmethod
    def vectors_in(self, answer: Mapping[str, Any]) -> list[Any] | None:
        """The vectors in the order of the texts, unchecked; None if the answer has another shape."""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        pieces, owners = cut_all(texts)
        sizes = [len(piece.encode()) for piece in pieces]
        rows = np.empty((len(pieces), self._dim), np.float64)
        for group in batches(sizes, max_items=MAX_REQUEST_TEXTS, max_size=MAX_REQUEST_BYTES):
            response = await self.ask([pieces[index] for index in group])
            self._check_status(response)
            # Off the event loop: an answer can be megabytes of digits.
            positions = [owners[index] for index in group]
            vectors = await anyio.to_thread.run_sync(self._read, response.content, positions)
            # Weighted by length, as a long piece says more than the last few words.
            rows[group] = vectors * np.array([[max(sizes[index], 1)] for index in group])
        return sum_of_pieces(rows, owners, len(texts))

    async def ask(self, texts: Sequence[str]) -> httpx.Response:
        return await self._post(self.body(texts))

    async def close(self) -> None:
        await self._client.aclose()

    async def _post(self, body: dict[str, Any]) -> httpx.Response:
        try:
            with anyio.fail_after(self._timeout_seconds):
                return await self._client.post(self._endpoint, json=body)
        except TimeoutError as error:
            raise ProviderUnavailable(
                f"{self._who} did not answer within {self._timeout_seconds:g} s. If it is only slow, raise "
                f"RECOLLECT_EMBEDDING_TIMEOUT_SECONDS."
            ) from error
        except httpx.DecodingError as error:
            raise ProviderMisbehaved(f"{self._who} sent an answer that cannot be decompressed.") from error
        except httpx.TransportError as error:
            reason = str(error) if isinstance(error, httpx.ConnectError) else type(error).__name__
            raise ProviderUnavailable(
                f"{self._who} cannot be reached ({reason}). Is it running, and is RECOLLECT_EMBEDDING_URL right?"
            ) from error

    def _check_status(self, response: httpx.Response) -> None:
        if response.is_success:
            return
        message = f"{self._who} answered {response.status_code}: {why(response.status_code)}.{self._said(response)}"
        if is_transient(response.status_code):
            wait = retry_after_seconds(response.headers.get("Retry-After"), datetime.now(UTC))
            raise ProviderUnavailable(message, retry_after_seconds=wait)
        raise ProviderMisbehaved(message)

    def _read(self, content: bytes, positions: Sequence[int]) -> Vectors:
        """The vectors of an answer; `positions` are those of the texts asked about, for messages."""
        try:
            answer = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise ProviderMisbehaved(f"{self._who} sent an answer that is not JSON.") from error
        vectors = self.vectors_in(answer) if isinstance(answer, dict) else None
        if vectors is None:
            raise ProviderMisbehaved(f"{self._who} sent JSON without embeddings. Does it speak this protocol?")
        if len(vectors) != len(positions):
            raise ProviderMisbehaved(f"{self._who} sent {len(vectors)} vectors for {len(positions)} texts.")
        return unit_rows(np.stack([self._read_vector(*pair) for pair in zip(positions, vectors, strict=True)]))

    def _read_vector(self, position: int, values: Any) -> NDArray[np.float64]:
        if not is_numbers(values):
            raise ProviderMisbehaved(f"{self._who} sent no list of numbers for the text at position {position}.")
        if len(values) != self._dim:
            raise ProviderMisbehaved(
                f"{self._who} sent {len(values)} numbers for the text at position {position} where {self._dim} were "
                f"expected. Check model and dimension in RECOLLECT_EMBEDDER."
            )
        row = np.array(values, np.float64)
        if not np.isfinite(row).all():
            raise ProviderMisbehaved(f"{self._who} sent NaN or infinity for the text at position {position}.")
        if not row.any():
            raise ProviderMisbehaved(f"{self._who} sent only zeros for the text at position {position}.")
        return row

    @property
    def _who(self) -> str:
        # netloc is host and port: a password in the address stays out of messages too.
        return f"{self.server} at {self._endpoint.scheme}://{self._endpoint.netloc.decode()} (model {self._name})"

    def _said(self, response: httpx.Response) -> str:
        """The server's own words, unless they are a page or speak of the key, which OpenAI repeats in part."""
        if response.status_code in (401, 403) or "html" in response.headers.get("Content-Type", ""):
            return ""
        text = response.text.replace(self._key, "[key]") if self._key else response.text
        return f" It said: {' '.join(text.split())[:SHOWN_CHARACTERS]}" if text.strip() else ""


def cut_all(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """The pieces of all texts, and for each piece the position of its text."""
    pieces = [(position, piece) for position, text in enumerate(texts) for piece in cut(text, MAX_TEXT_BYTES)]
    return [piece for _, piece in pieces], [position for position, _ in pieces]


def checked_address(url: str) -> httpx.URL:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        # Without its reason: that quotes the address, which may hold a password.
        raise InvalidInput("RECOLLECT_EMBEDDING_URL is not an address.", field="embedding_url") from None
    if address.scheme not in ("http", "https") or not address.host:
        raise InvalidInput(
            "RECOLLECT_EMBEDDING_URL must begin with http:// or https:// and name a host.", field="embedding_url"
        )
    return address


def checked_key(key: SecretStr | None) -> str:
    """The key, fit for a header: httpx repeats an unfit one in its error, for all logs to see."""
    text = key.get_secret_value().strip() if key else ""
    if not re.fullmatch(r"[!-~]*", text):
        raise InvalidInput(
            "RECOLLECT_EMBEDDING_API_KEY contains white space or characters that no key has: copy it again.",
            field="embedding_api_key",
        )
    return text


def is_transient(status: int) -> bool:
    return status in (408, 425, 429) or status >= 500


def why(status: int) -> str:
    if status == 429:
        return "too many requests, or the quota is used up"
    if is_transient(status):
        return "it is in trouble for now"
    if status in (401, 403):
        return "check RECOLLECT_EMBEDDING_API_KEY"
    if status == 404:
        return "check that the model exists there, and RECOLLECT_EMBEDDING_URL"
    if status < 400:
        return "it is elsewhere, check RECOLLECT_EMBEDDING_URL"
    return "it does not accept the request; check the model in RECOLLECT_EMBEDDER"


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


def is_numbers(values: Any) -> bool:
    # A whole number beyond what a float holds would overflow; no embedding has one.
    return isinstance(values, list) and all(
        isinstance(value, float) or (type(value) is int and abs(value) < 10**300) for value in values
    )
