"""What is stored and asked: sentences of English words, the same for all, with the vectors the model gives them."""

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench.peers.installing import cache
from bench.recall import sentence
from recollect.providers.minilm import MiniLMEmbedder


@dataclass(frozen=True, kw_only=True)
class Known:
    """Texts with their vectors, in a file that every driver can read."""

    texts: tuple[str, ...]
    file: Path


def sentences(count: int, *, seed: int) -> list[str]:
    chance = np.random.default_rng(seed)
    return [f"{number} {sentence(chance)}" for number in range(count)]


def questions(count: int, *, seed: int) -> list[str]:
    return [text.partition(" ")[2] for text in sentences(count, seed=seed)]


def known(texts: Sequence[str]) -> Known:
    """Embedded once and kept: no peer's figure holds the time of the model unless it says so."""
    wanted = tuple(dict.fromkeys(texts))
    name = hashlib.sha256("\n".join(wanted).encode()).hexdigest()[:16]
    file = cache().parent / "vectors" / f"{name}.npz"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        vectors = asyncio.run(MiniLMEmbedder().embed(wanted))
        unfinished = file.with_suffix(".part.npz")
        np.savez(unfinished, texts=np.array(wanted), vectors=vectors)
        unfinished.rename(file)
    return Known(texts=wanted, file=file)
