"""Language models: `provider:model`. Three protocols, one small class each; docs/adr/0007 says why no library.

openai:gpt-4o-mini          OpenAI, or any server like it at RECOLLECT_MODEL_URL (vLLM, LM Studio, llama.cpp)
anthropic:claude-sonnet-4   Anthropic
ollama:llama3.1             Ollama, by default the one on this machine; a tag may follow (ollama:qwen3:8b)
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import httpx

from recollect.errors import InvalidInput
from recollect.ports import Completion, LanguageModel
from recollect.providers.endpoint import Endpoint, bearer, checked_key
from recollect.settings import Settings

ANTHROPIC_VERSION = "2023-06-01"
# Text, and not much of it: an answer needs less room than a batch of vectors.
MAX_COMPLETION_BYTES = 10_000_000
# Ollama's own default cuts a prompt off without a word; the context (3,000 tokens), the rest and the answer fit here.
OLLAMA_CONTEXT_TOKENS = 8192
# What a reasoning model thinks aloud before it answers.
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)


class ChatModel(ABC):
    """A model behind HTTP. A subclass says what is sent, and where in the answer is what."""

    provider: ClassVar[str]
    server: ClassVar[str]
    default_url: ClassVar[str]
    path: ClassVar[str]
    needs_key: ClassVar[bool] = True

    def __init__(self, name: str, settings: Settings) -> None:
        key = checked_key(settings.model_api_key, "MODEL")
        if self.needs_key and not key and not settings.model_url:
            raise InvalidInput(
                f"{self.provider} needs a key: set RECOLLECT_MODEL_API_KEY, or RECOLLECT_MODEL_URL to your server.",
                field="model_api_key",
            )
        self._name = name
        self._refused: set[str] = set()
        self._endpoint = Endpoint(
            setting="MODEL",
            who=self.server,
            model=name,
            url=settings.model_url or self.default_url,
            path=self.path,
            timeout_seconds=settings.model_timeout_seconds,
            key=key,
            headers=self.headers(key),
            max_answer_bytes=MAX_COMPLETION_BYTES,
        )

    @property
    def name(self) -> str:
        return f"{self.provider}:{self._name}"

    def headers(self, key: str) -> dict[str, str]:
        return bearer(key)

    @abstractmethod
    def body(self, system: str, prompt: str, max_tokens: int) -> dict[str, Any]:
        """What is sent."""

    @abstractmethod
    def completion(self, answer: Mapping[str, Any]) -> Completion:
        """What was answered; KeyError, IndexError or TypeError if the answer has another shape."""

    async def complete(self, system: str, prompt: str, *, max_tokens: int) -> Completion:
        response = await self._endpoint.post(self._accepted(self.body(system, prompt, max_tokens)))
        while objections := self._objections(response) - self._refused:
            # Newer models take no temperature, or call max_tokens otherwise; an older server knows nothing of that.
            self._refused |= objections
            response = await self._endpoint.post(self._accepted(self.body(system, prompt, max_tokens)))
        answer = self._endpoint.document(response)
        try:
            completion = self.completion(answer)
        except (KeyError, IndexError, TypeError) as error:
            raise self._endpoint.misshapen() from error
        return completion

    async def close(self) -> None:
        await self._endpoint.close()

    def _accepted(self, body: dict[str, Any]) -> dict[str, Any]:
        if "max_tokens" in self._refused and "max_tokens" in body:
            body["max_completion_tokens"] = body.pop("max_tokens")
        return {name: value for name, value in body.items() if name not in self._refused}

    def _objections(self, response: httpx.Response) -> set[str]:
        """The parameters that a refusal speaks of, among those that can be done without or renamed."""
        if response.status_code not in (400, 422):
            return set()
        text = response.text
        return ({"temperature"} if "temperature" in text else set()) | (
            {"max_tokens"} if "max_completion_tokens" in text else set()
        )


class OpenAIModel(ChatModel):
    provider = "openai"
    server = "The OpenAI-compatible server"
    default_url = "https://api.openai.com/v1"
    path = "/chat/completions"

    def body(self, system: str, prompt: str, max_tokens: int) -> dict[str, Any]:
        messages = [{"role": "system", "content": system}, {"role": "user", "content": prompt}]
        return {"model": self._name, "messages": messages, "max_tokens": max_tokens, "temperature": 0}

    def completion(self, answer: Mapping[str, Any]) -> Completion:
        choice = answer["choices"][0]
        usage = answer.get("usage") or {}
        return Completion(
            text=without_thoughts(choice["message"]["content"]),
            prompt_tokens=counted(usage.get("prompt_tokens")),
            completion_tokens=counted(usage.get("completion_tokens")),
            is_cut=choice.get("finish_reason") == "length",
        )


class AnthropicModel(ChatModel):
    provider = "anthropic"
    server = "Anthropic's server"
    default_url = "https://api.anthropic.com"
    path = "/v1/messages"

    def headers(self, key: str) -> dict[str, str]:
        return {"anthropic-version": ANTHROPIC_VERSION} | ({"x-api-key": key} if key else {})

    def body(self, system: str, prompt: str, max_tokens: int) -> dict[str, Any]:
        messages = [{"role": "user", "content": prompt}]
        return {
            "model": self._name,
            "system": system,
            "messages": messages,
            "max_tokens": max_tokens,
            "temperature": 0,
        }

    def completion(self, answer: Mapping[str, Any]) -> Completion:
        usage = answer.get("usage") or {}
        return Completion(
            text="".join(checked_text(block["text"]) for block in answer["content"] if block["type"] == "text"),
            prompt_tokens=counted(usage.get("input_tokens")),
            completion_tokens=counted(usage.get("output_tokens")),
            is_cut=answer.get("stop_reason") == "max_tokens",
        )


class OllamaModel(ChatModel):
    provider = "ollama"
    server = "The Ollama server"
    default_url = "http://127.0.0.1:11434"
    path = "/api/chat"
    needs_key = False

    def body(self, system: str, prompt: str, max_tokens: int) -> dict[str, Any]:
        return {
            "model": self._name,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": prompt}],
            "stream": False,
            "options": {"temperature": 0, "num_predict": max_tokens, "num_ctx": OLLAMA_CONTEXT_TOKENS},
        }

    def completion(self, answer: Mapping[str, Any]) -> Completion:
        return Completion(
            text=without_thoughts(answer["message"]["content"]),
            prompt_tokens=counted(answer.get("prompt_eval_count")),
            completion_tokens=counted(answer.get("eval_count")),
            is_cut=answer.get("done_reason") == "length",
        )


PROVIDERS: dict[str, type[ChatModel]] = {model.provider: model for model in (AnthropicModel, OllamaModel, OpenAIModel)}


def make_model(spec: str, settings: Settings) -> LanguageModel:
    """The model of that name; nothing is asked of it yet."""
    provider, _, name = spec.strip().partition(":")
    if provider.lower() not in PROVIDERS:
        raise InvalidInput(
            f"There is no provider {provider!r} of language models. Known are {', '.join(PROVIDERS)}: "
            f"set RECOLLECT_MODEL to provider:model, or to nothing.",
            field="model",
        )
    if not name:
        raise InvalidInput(
            f"RECOLLECT_MODEL must name a model of {provider} after a colon, like openai:gpt-4o-mini.", field="model"
        )
    return PROVIDERS[provider.lower()](name, settings)


def without_thoughts(text: Any) -> str:
    return _THOUGHT.sub("", checked_text(text)).strip()


def checked_text(text: Any) -> str:
    """An answer's text, without what cannot be kept: JSON can spell NUL bytes and lone surrogates."""
    if not isinstance(text, str):
        raise TypeError("an answer is text")
    return text.replace("\0", "").encode(errors="replace").decode()


def counted(number: Any) -> int:
    """A count that a server gave, if it is one: it is shown, and nothing hangs on it."""
    return number if type(number) is int and number >= 0 else 0
