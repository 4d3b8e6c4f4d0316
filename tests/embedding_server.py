"""A small real server on loopback that embeds as OpenAI and Ollama do, and misbehaves on request.

    with EmbeddingServer(dim=64) as server:
        settings = Settings.load(embedding_url=server.openai_url)      # or server.ollama_url
        server.replies.append(Reply(status=429, headers={"Retry-After": "7"}))      # for the next request only
        server.vectors = lambda texts, dim: [[0.0] * dim for _ in texts]            # from now on

Vectors are those of the hashing embedder, three times as long (so that a forgotten normalisation shows), and OpenAI's
come in reverse order (so that a forgotten index shows). What was received is in `server.received`.
"""

import json
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from recollect.providers.hashing import hash_texts


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A canned answer, instead of vectors."""

    status: int = 200
    body: bytes = b'{"error": "as told"}'
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Received:
    path: str
    authorization: str | None
    body: dict[str, Any]


def tripled(texts: list[str], dim: int) -> list[list[float]]:
    return [[3.0 * value for value in row] for row in hash_texts(texts, dim).astype(float).tolist()]


class EmbeddingServer:
    def __init__(self, *, dim: int = 64) -> None:
        self.dim = dim
        self.vectors: Callable[[list[str], int], list[Any]] = tripled
        self.replies: list[Reply] = []
        self.every_reply: Reply | None = None
        self.delay_seconds = 0.0
        self.allows_dimensions = True  # vLLM refuses the parameter for most models
        self.required_key: str | None = None
        self.received: list[Received] = []
        self._stopping = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def ollama_url(self) -> str:
        return self.url

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Refuses connections from here on; a request that is being delayed ends at once."""
        self._stopping.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def reply_to(self, request: Received) -> Reply:
        self.received.append(request)
        self._stopping.wait(self.delay_seconds)
        if self.replies:
            return self.replies.pop(0)
        return self.every_reply or self._refusal(request) or self._embeddings(request)

    def _refusal(self, request: Received) -> Reply | None:
        if self.required_key is not None and request.authorization != f"Bearer {self.required_key}":
            return Reply(status=401, body=f'{{"error": "wrong key: {request.authorization}"}}'.encode())
        if "dimensions" in request.body and not self.allows_dimensions:
            return Reply(status=400, body=b'{"message": "changing output dimensions will lead to poor results"}')
        return None

    def _embeddings(self, request: Received) -> Reply:
        vectors = self.vectors(request.body["input"], request.body.get("dimensions", self.dim))
        if request.path == "/v1/embeddings":
            data = [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(vectors)]
            return _json({"object": "list", "model": request.body["model"], "data": data[::-1]})
        if request.path == "/api/embed":
            return _json({"model": request.body["model"], "embeddings": vectors})
        return Reply(status=404, body=b'{"error": "no such path"}')


def _json(answer: dict[str, Any]) -> Reply:
    return Reply(body=json.dumps(answer).encode())


def _handler_for(server: EmbeddingServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = server.reply_to(
                Received(path=self.path, authorization=self.headers.get("Authorization"), body=body)
            )
            with suppress(ConnectionError):  # a client that has given up waiting is part of the tests
                self._send(reply)

        def _send(self, reply: Reply) -> None:
            self.send_response(reply.status)
            for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Quiet."""

    return Handler
