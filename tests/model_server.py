"""A small real server on loopback that answers as OpenAI, Anthropic and Ollama do, and misbehaves on request.

    with ModelServer() as server:
        settings = Settings.load(model="openai:test", model_url=server.url_of("openai"))
        server.says = "Linh drinks tea [Memory 1]."                                 # from now on
        server.replies.append(Reply(status=429, headers={"Retry-After": "7"}))      # for the next request only

What was received is in `server.received`: the path, the headers, the body.
"""

import json
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

PATHS = {"openai": "/v1/chat/completions", "anthropic": "/v1/messages", "ollama": "/api/chat"}
PROMPT_TOKENS, COMPLETION_TOKENS = 120, 30


@dataclass(frozen=True, kw_only=True)
class Reply:
    """A canned answer, instead of what the server says."""

    status: int = 200
    body: bytes = b'{"error": "as told"}'
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Received:
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def system(self) -> str:
        return str(self.body["system"] if "system" in self.body else self.body["messages"][0]["content"])

    @property
    def prompt(self) -> str:
        return str(self.body["messages"][-1]["content"])


class ModelServer:
    def __init__(self) -> None:
        self.says = "As far as the memories tell [Memory 1].\nConfidence: 0.9"
        self.is_cut = False
        self.replies: list[Reply] = []
        self.every_reply: Reply | None = None
        self.delay_seconds = 0.0
        self.refuses: dict[str, str] = {}  # a parameter of the body, and the words with which it is refused
        self.received: list[Received] = []
        self._stopping = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_for(self))
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def url_of(self, provider: str) -> str:
        return f"{self.url}/v1" if provider == "openai" else self.url

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
        return self.every_reply or self._refusal(request) or self._answer(request.path)

    def _refusal(self, request: Received) -> Reply | None:
        for parameter, words in self.refuses.items():
            if parameter in request.body:
                return Reply(status=400, body=json.dumps({"error": {"message": words}}).encode())
        return None

    def _answer(self, path: str) -> Reply:
        if path == PATHS["openai"]:
            choice = {
                "index": 0,
                "message": {"role": "assistant", "content": self.says},
                "finish_reason": "length" if self.is_cut else "stop",
            }
            usage = {"prompt_tokens": PROMPT_TOKENS, "completion_tokens": COMPLETION_TOKENS, "total_tokens": 150}
            return _json({"object": "chat.completion", "choices": [choice], "usage": usage})
        if path == PATHS["anthropic"]:
            half = len(self.says) // 2
            content = [{"type": "text", "text": part} for part in (self.says[:half], self.says[half:])]
            usage = {"input_tokens": PROMPT_TOKENS, "output_tokens": COMPLETION_TOKENS}
            reason = "max_tokens" if self.is_cut else "end_turn"
            return _json({"type": "message", "content": content, "usage": usage, "stop_reason": reason})
        if path == PATHS["ollama"]:
            counts = {"prompt_eval_count": PROMPT_TOKENS, "eval_count": COMPLETION_TOKENS}
            message = {"role": "assistant", "content": self.says}
            return _json({"message": message, "done_reason": "length" if self.is_cut else "stop", **counts})
        return Reply(status=404, body=b'{"error": "no such path"}')


def _json(answer: dict[str, Any]) -> Reply:
    return Reply(body=json.dumps(answer).encode())


def _handler_for(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name.lower(): value for name, value in self.headers.items()}
            reply = server.reply_to(Received(path=self.path, headers=headers, body=body))
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
