"""Calibration: what a cosine of a certain model means, on one scale for all models (D28a).

A model's cosines of unrelated and of closely related texts lie where its training put them. A calibration names the two
ends: `low` is what unrelated texts have, `high` what texts about the same thing have. Between them the scale is a
straight line; above, it bends and never quite reaches 1, so the order is kept.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from recollect.errors import InvalidInput

Numbers = NDArray[np.float64]

LEAST_PAIRS = 30
BEND = 0.8
SOFTNESS = 0.3
# Texts of one person are seldom quite unrelated to each other, so the lowest of random pairs tell what unrelated means.
UNRELATED_SHARE = 0.05
RELATED_SHARE = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Calibration:
    """The two ends of a model's scale."""

    low: float
    high: float

    def similarity(self, cosine: Numbers) -> Numbers:
        """Raw cosines on the common scale, 0 to 1, in the same order."""
        return soft(np.maximum((cosine - self.low) / (self.high - self.low), 0.0))


# Measured on the development data; see docs/adr/0006.
SHIPPED = {
    "minilm": Calibration(low=0.0, high=0.6),
    "static": Calibration(low=0.05, high=0.65),
    "hashing": Calibration(low=0.0, high=0.7),
    "openai": Calibration(low=0.1, high=0.6),
    "ollama": Calibration(low=0.4, high=0.8),
}


def shipped(model: str) -> Calibration:
    """The calibration that comes with an embedder, by its provider; a model of one's own is best measured."""
    return SHIPPED.get(model.split(":")[0], SHIPPED["minilm"])


def soft(values: Numbers) -> Numbers:
    """0 to 1 as it is up to 0.8, then ever flatter towards 1: nothing is cut off, so no order is lost."""
    above = np.maximum(values - BEND, 0.0)
    bent: Numbers = np.minimum(values, BEND) + (1 - BEND) * (1 - np.exp(-above / SOFTNESS))
    return bent


def measured(unrelated: Sequence[float], related: Sequence[float]) -> Calibration:
    """A calibration from the cosines of random pairs and of pairs known to belong together."""
    if len(unrelated) < LEAST_PAIRS or len(related) < LEAST_PAIRS:
        raise InvalidInput(
            f"There are too few memories to measure a calibration ({len(unrelated)} random and {len(related)} related "
            f"pairs; {LEAST_PAIRS} of each are needed): the one that comes with the embedder stays in use."
        )
    low = float(np.quantile(unrelated, UNRELATED_SHARE))
    high = float(np.quantile(related, RELATED_SHARE))
    return Calibration(low=round(low, 3), high=round(max(high, low + 0.05), 3))


def histogram(values: Sequence[float], *, bins: int = 20) -> list[int]:
    """How many values lie in each of `bins` equal parts of 0 to 1 (what is below 0 counts as 0)."""
    counts, _ = np.histogram(np.clip(values, 0.0, 1.0), bins=bins, range=(0.0, 1.0))
    return [int(count) for count in counts]
