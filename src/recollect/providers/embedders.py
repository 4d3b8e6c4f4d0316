"""From a name to an embedder: `provider[:model[:dimension]]`.

    minilm                              the default, local, 384
    static                              wordllama, local, 256; needs the extra `static`
    fastembed:BAAI/bge-small-en-v1.5    any ONNX model of fastembed, local; needs the extra `fastembed`
    sentence-transformers:MODEL         any model of sentence-transformers, local; needs that extra
    hashing, hashing:64                 no model; the number is the dimension, 256 if none is given
    openai:text-embedding-3-small:512   OpenAI, or a server like it at RECOLLECT_EMBEDDING_URL
    ollama:nomic-embed-text             Ollama; a model's tag may follow (ollama:bge-m3:567m:1024)

A last part of digits is the dimension; without one, EMBEDDING_DIMENSION counts where the model leaves a choice. Each
embedder's `model` is its name in full, from which the same embedder is made again.
"""

import contextlib
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import anyio.to_thread

from recollect.errors import InvalidInput, RecollectError
from recollect.ports import Embedder, Vectors
from recollect.settings import Settings

# What the column can hold with an index: pgvector's limit for halfvec.
MAX_DIMENSION = 4000
MIN_DIMENSION = 8
PREPARING = "recollect-model"


@dataclass(frozen=True, kw_only=True)
class Spec:
    provider: str
    model: str
    dimension: int | None


def make_embedder(spec: str, settings: Settings) -> Embedder:
    """The embedder of that name; nothing is loaded or asked until it embeds."""
    parsed = parse(spec)
    if parsed.provider not in PROVIDERS:
        raise InvalidInput(
            f"There is no embedder {parsed.provider!r}. Known are {', '.join(sorted(PROVIDERS))}.", field="embedder"
        )
    return PROVIDERS[parsed.provider](parsed, settings)


def prepare(spec: str) -> threading.Thread | None:
    """Load the model inside while others do something else, so that the first text finds it there.

    In a thread to be waited for at the end: native code that is cut off in its midst aborts the process. Others than
    minilm have nothing to load, or are not loaded unasked.
    """
    if parse(spec).provider != "minilm":
        return None
    loading = threading.Thread(target=_load_minilm, name=PREPARING)
    loading.start()
    return loading


def _load_minilm() -> None:
    from recollect.providers.minilm import the_model

    with contextlib.suppress(RecollectError, ImportError, OSError):  # said again to whoever needs the model
        the_model()


async def embed_readable(embedder: Embedder, texts: Sequence[str]) -> list[Vectors | None]:
    """A vector for each text that the model can read, None for the others (D43)."""
    readable = await anyio.to_thread.run_sync(lambda: [embedder.can_read(text) for text in texts])
    readable_texts = [text for text, is_readable in zip(texts, readable, strict=True) if is_readable]
    vectors = iter(await embedder.embed(readable_texts)) if readable_texts else iter(())
    return [next(vectors) if is_readable else None for is_readable in readable]


def parse(spec: str) -> Spec:
    provider, *rest = spec.strip().split(":")
    dimension = int(rest.pop()) if rest and is_digits(rest[-1]) else None
    if dimension is not None and not MIN_DIMENSION <= dimension <= MAX_DIMENSION:
        raise InvalidInput(
            f"The dimension {dimension} in {spec!r} is not between {MIN_DIMENSION} and {MAX_DIMENSION}.",
            field="embedder",
        )
    return Spec(provider=provider.lower(), model=":".join(rest), dimension=dimension)


def is_digits(part: str) -> bool:
    return part.isascii() and part.isdigit()


def _minilm(spec: Spec, settings: Settings) -> Embedder:
    from recollect.providers.minilm import DIM, MiniLMEmbedder

    _require_no_choice(spec, DIM)
    return MiniLMEmbedder(threads=settings.embedding_threads)


def _static(spec: Spec, settings: Settings) -> Embedder:
    from recollect.providers.static import DIM, StaticEmbedder

    _require_no_choice(spec, DIM)
    return StaticEmbedder()


def _fastembed(spec: Spec, settings: Settings) -> Embedder:
    from recollect.providers.fastembed import FastembedEmbedder

    name = _required_model(spec, "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2")
    embedder = FastembedEmbedder(name=name, folder=settings.embedding_folder, threads=settings.embedding_threads)
    if spec.dimension not in (None, embedder.dim):
        raise InvalidInput(f"{name} has {embedder.dim} dimensions: it cannot give {spec.dimension}.", field="embedder")
    return embedder


def _sentence_transformers(spec: Spec, settings: Settings) -> Embedder:
    from recollect.providers.sentence_transformers import SentenceTransformersEmbedder

    name = _required_model(spec, "all-MiniLM-L6-v2")
    return SentenceTransformersEmbedder(name=name, folder=settings.embedding_folder, dim=spec.dimension)


def _hashing(spec: Spec, settings: Settings) -> Embedder:
    from recollect.providers.hashing import DEFAULT_DIM, HashingEmbedder

    _require_no_model(spec)
    return HashingEmbedder(dim=spec.dimension or settings.embedding_dimension or DEFAULT_DIM)


def _openai(spec: Spec, settings: Settings) -> Embedder:
    from recollect.providers.openai import DEFAULT_URL, OpenAIEmbedder, choose_dimension

    name = _required_model(spec, "text-embedding-3-small")
    if not settings.embedding_url and not settings.embedding_api_key:
        raise InvalidInput("OpenAI needs a key: set RECOLLECT_EMBEDDING_API_KEY.", field="embedding_api_key")
    return OpenAIEmbedder(
        name=name,
        dim=choose_dimension(name, asked=spec.dimension, configured=settings.embedding_dimension),
        url=settings.embedding_url or DEFAULT_URL,
        api_key=settings.embedding_api_key,
        timeout_seconds=settings.embedding_timeout_seconds,
    )


def _ollama(spec: Spec, settings: Settings) -> Embedder:
    from recollect.providers.ollama import DEFAULT_URL, OllamaEmbedder, choose_dimension, without_latest

    name = without_latest(_required_model(spec, "nomic-embed-text"))
    return OllamaEmbedder(
        name=name,
        dim=choose_dimension(name, asked=spec.dimension, configured=settings.embedding_dimension),
        url=settings.embedding_url or DEFAULT_URL,
        api_key=settings.embedding_api_key,
        timeout_seconds=settings.embedding_timeout_seconds,
    )


PROVIDERS: dict[str, Callable[[Spec, Settings], Embedder]] = {
    "fastembed": _fastembed,
    "hashing": _hashing,
    "minilm": _minilm,
    "ollama": _ollama,
    "openai": _openai,
    "sentence-transformers": _sentence_transformers,
    "static": _static,
}


def _required_model(spec: Spec, example: str) -> str:
    if not spec.model:
        raise InvalidInput(f"{spec.provider} needs a model, for example {spec.provider}:{example}.", field="embedder")
    return spec.model


def _require_no_model(spec: Spec) -> None:
    if spec.model:
        raise InvalidInput(f"{spec.provider} has no models to choose from: {spec.model!r} is none.", field="embedder")


def _require_no_choice(spec: Spec, dim: int) -> None:
    _require_no_model(spec)
    if spec.dimension not in (None, dim):
        raise InvalidInput(f"{spec.provider} has {dim} dimensions: it cannot give {spec.dimension}.", field="embedder")
