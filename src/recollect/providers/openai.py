"""Embeddings from OpenAI, or from any server that speaks its protocol (vLLM, LM Studio, LiteLLM, llama.cpp)."""

from collections.abc import Mapping, Sequence
from typing import Any

import httpx
from pydantic import SecretStr

from recollect.errors import InvalidInput
from recollect.providers.http import HttpEmbedder

DEFAULT_URL = "https://api.openai.com/v1"
DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}


class OpenAIEmbedder(HttpEmbedder):
    server = "The OpenAI-compatible server"
    provider = "openai"
    path = "/embeddings"

    def __init__(
        self, *, name: str, dim: int, url: str = DEFAULT_URL, timeout_seconds: float, api_key: SecretStr | None = None
    ) -> None:
        super().__init__(name=name, dim=dim, url=url, timeout_seconds=timeout_seconds, api_key=api_key)
        self._asks_for_dimension = has_choice(name)

    def body(self, texts: Sequence[str]) -> dict[str, Any]:
        body = {"model": self._name, "input": list(texts), "encoding_format": "float"}
        return body | {"dimensions": self._dim} if self._asks_for_dimension else body

    def vectors_in(self, answer: Mapping[str, Any]) -> list[Any] | None:
        items = answer.get("data")
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            return None
        indices = [item.get("index", position) for position, item in enumerate(items)]
        if not is_permutation(indices):
            return None
        return [item.get("embedding") for _, item in sorted(zip(indices, items, strict=True), key=lambda pair: pair[0])]

    async def ask(self, texts: Sequence[str]) -> httpx.Response:
        response = await super().ask(texts)
        if self._asks_for_dimension and is_about_dimension(response):
            # vLLM and LiteLLM refuse to be asked for a dimension where the model has one only, even if it is that one.
            self._asks_for_dimension = False
            response = await super().ask(texts)
        return response


def is_permutation(indices: Sequence[Any]) -> bool:
    """Every text answered once: an index given twice would put a vector on the wrong text."""
    return all(type(index) is int for index in indices) and sorted(indices) == list(range(len(indices)))


def has_choice(name: str) -> bool:
    """Whether this model's vectors can be had shorter; of an unknown model we assume it until its server objects."""
    return name not in DIMENSIONS or name.startswith("text-embedding-3-")


def is_about_dimension(response: httpx.Response) -> bool:
    return response.status_code in (400, 422) and "dimension" in response.text.lower()


def choose_dimension(name: str, *, asked: int | None, configured: int | None) -> int:
    """The dimension in the embedder's name, else the configured one, else the model's own."""
    own = DIMENSIONS.get(name)
    dimension = asked or (configured if has_choice(name) else None) or own
    if dimension is None:
        raise InvalidInput(
            f"The dimension of {name!r} is not known here: write openai:{name}:DIMENSION or set EMBEDDING_DIMENSION.",
            field="embedder",
        )
    if own and (dimension > own or (dimension != own and not has_choice(name))):
        raise InvalidInput(f"{name} has {own} dimensions: it cannot give {dimension}.", field="embedder")
    return dimension
