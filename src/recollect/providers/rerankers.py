"""From a name to a reranker: `provider:model`.

    fastembed:Xenova/ms-marco-MiniLM-L-6-v2                       a cross-encoder as ONNX; needs the extra `fastembed`
    sentence-transformers:cross-encoder/ms-marco-MiniLM-L6-v2     needs the extra `sentence-transformers`

Both run here, from their own cache or from the folder that RECOLLECT_RERANKER_FOLDER names; nothing is downloaded.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from recollect.errors import InvalidInput, ProviderMisbehaved
from recollect.ports import Reranker, Vectors
from recollect.settings import Settings


def make_reranker(spec: str, settings: Settings) -> Reranker:
    """The reranker of that name; nothing is loaded until it is asked."""
    provider, _, model = spec.strip().partition(":")
    if provider.lower() not in PROVIDERS:
        raise InvalidInput(
            f"There is no reranker {provider!r}. Known are {', '.join(sorted(PROVIDERS))}.", field="reranker"
        )
    if not model:
        raise InvalidInput(
            f"{provider} needs a model, for example {provider}:cross-encoder/ms-marco-MiniLM-L6-v2.", field="reranker"
        )
    return PROVIDERS[provider.lower()](model, settings.reranker_folder, settings.embedding_threads)


def checked_scores(numbers: Any, *, texts: int, name: str) -> Vectors:
    """What a model says of some texts, if it is one number each."""
    scores: Vectors = np.asarray(numbers, dtype=np.float32)
    if scores.shape != (texts,) or not np.isfinite(scores).all():
        raise ProviderMisbehaved(f"The reranker {name} did not give one number a text.")
    return scores


def _fastembed(model: str, folder: Path | None, threads: int) -> Reranker:
    from recollect.providers.fastembed import FastembedReranker

    return FastembedReranker(name=model, folder=folder, threads=threads)


def _sentence_transformers(model: str, folder: Path | None, threads: int) -> Reranker:
    from recollect.providers.sentence_transformers import SentenceTransformersReranker

    return SentenceTransformersReranker(name=model, folder=folder)


PROVIDERS: dict[str, Callable[[str, Path | None, int], Reranker]] = {
    "fastembed": _fastembed,
    "sentence-transformers": _sentence_transformers,
}
