"""Embeddings from an Ollama server, by default the one on this machine."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import SecretStr

from recollect.errors import InvalidInput
from recollect.providers.http import HttpEmbedder

DEFAULT_URL = "http://127.0.0.1:11434"
# Of the untagged models only: a tag (snowflake-arctic-embed:22m) may mean another size.
DIMENSIONS = {
    "all-minilm": 384,
    "bge-m3": 1024,
    "embeddinggemma": 768,
    "mxbai-embed-large": 1024,
    "nomic-embed-text": 768,
    "snowflake-arctic-embed": 1024,
    "snowflake-arctic-embed2": 1024,
}


class OllamaEmbedder(HttpEmbedder):
    server = "The Ollama server"
    provider = "ollama"
    path = "/api/embed"

    def __init__(
        self, *, name: str, dim: int, url: str = DEFAULT_URL, timeout_seconds: float, api_key: SecretStr | None = None
    ) -> None:
        super().__init__(name=name, dim=dim, url=url, timeout_seconds=timeout_seconds, api_key=api_key)

    def body(self, texts: Sequence[str]) -> dict[str, Any]:
        body = {"model": self._name, "input": list(texts)}
        # Ollama shortens on request and ignores a dimension that is the model's own.
        return body if self._dim == DIMENSIONS.get(self._name) else body | {"dimensions": self._dim}

    def vectors_in(self, answer: Mapping[str, Any]) -> list[Any] | None:
        vectors = answer.get("embeddings")
        return vectors if isinstance(vectors, list) else None


def without_latest(name: str) -> str:
    """`nomic-embed-text:latest` is `nomic-embed-text`: one model, one name for its vectors."""
    return name.removesuffix(":latest")


def choose_dimension(name: str, *, asked: int | None, configured: int | None) -> int:
    """The dimension in the embedder's name, else the configured one, else the model's own."""
    dimension = asked or configured or DIMENSIONS.get(name)
    if dimension is None:
        raise InvalidInput(
            f"The dimension of {name!r} is not known here: write ollama:{name}:DIMENSION or set EMBEDDING_DIMENSION "
            f"(`ollama show {name}` tells its embedding length).",
            field="embedder",
        )
    return dimension
