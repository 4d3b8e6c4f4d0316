"""A small real server on loopback that embeds as OpenAI and Ollama do, and misbehaves on request.

    with EmbeddingServer(dim=64) as server:
        settings = Settings.load(embedding_url=server.openai_url)      # or server.ollama_url
        server.replies.append(Reply(status=429, headers={"Retry-After": "7"}))      # for the next request only
        server.vectors = lambda texts, dim: [[0.0] * dim for _ in texts]            # from now on

Vectors are those of the hashing embedder, three times as long (so that a forgotten normalisation shows), and OpenAI's
come in reverse order (so that a forgotten index shows). What was received is in `server.received`.
"""

from collections.abc import Callable
from typing import Any

from recollect.providers.hashing import hash_texts
from tests.local_server import LocalServer, Received, Reply, json_reply


def tripled(texts: list[str], dim: int) -> list[list[float]]:
    return [[3.0 * value for value in row] for row in hash_texts(texts, dim).astype(float).tolist()]


class EmbeddingServer(LocalServer[Received]):
    def __init__(self, *, dim: int = 64) -> None:
        super().__init__(Received)
        self.dim = dim
        self.vectors: Callable[[list[str], int], list[Any]] = tripled
        self.allows_dimensions = True  # vLLM refuses the parameter for most models
        self.required_key: str | None = None

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    @property
    def ollama_url(self) -> str:
        return self.url

    def answer(self, request: Received) -> Reply:
        return self._refusal(request) or self._embeddings(request)

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
            return json_reply({"object": "list", "model": request.body["model"], "data": data[::-1]})
        if request.path == "/api/embed":
            return json_reply({"model": request.body["model"], "embeddings": vectors})
        return Reply(status=404, body=b'{"error": "no such path"}')
