"""What the test servers share: a real HTTP server on loopback that keeps what it receives and misbehaves on request."""

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Generic, Self, TypeVar


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer; in `replies` a canned one, instead of what the server would say."""

    status: int = 200
    body: bytes = b'{"error": "as told"}'
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Received:
    path: str
    headers: Mapping[str, str]  # their names in lower case
    body: dict[str, Any]

    @property
    def authorization(self) -> str | None:
        return self.headers.get("authorization")


R = TypeVar("R", bound=Received)


class LocalServer(ABC, Generic[R]):
    """A subclass says what is answered when no canned reply is due."""

    def __init__(self, kind: type[R]) -> None:
        self.replies: list[Reply] = []
        self.every_reply: Reply | None = None
        self.delay_seconds = 0.0
        self.received: list[R] = []
        self._kind = kind
        self._stopping = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @abstractmethod
    def answer(self, request: R) -> Reply:
        """What a server that behaves would send."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

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

    def reply_to(self, path: str, headers: Mapping[str, str], body: dict[str, Any]) -> Reply:
        request = self._kind(path=path, headers=headers, body=body)
        self.received.append(request)
        self._stopping.wait(self.delay_seconds)
        if self.replies:
            return self.replies.pop(0)
        return self.every_reply or self.answer(request)


def json_reply(answer: dict[str, Any], *, status: int = 200) -> Reply:
    return Reply(status=status, body=json.dumps(answer).encode())


def _handler_for(server: LocalServer[Any]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = server.reply_to(self.path, headers, body)
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
