"""How strong an edge is now, what makes it stronger, and when it was last alive.

    now  =  strength when it was set  *  exp(-decay rate  *  days since)

Nothing is rewritten as time passes: a strength is stored with the time at which it was set, and looked at from `now`.
A strength that was never said is 1.0 and does not decay; an explicit 0 is 0 (A00a, A05).
"""

import math
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from recollect.errors import InvalidInput

Numbers = NDArray[np.float64]

DECAY_A_DAY = 0.05
NEVER_SAID = 1.0
DAY = 86_400.0

# A00b: what each kind of use adds.
REINFORCEMENTS = {"traversal": 0.05, "revisit": 0.2, "highlight": 0.1, "approved": 0.15, "click": 0.1}
IMPORTANT = "important"


def current(strength: float | None, decay_rate: float, set_at: datetime, now: datetime) -> float:
    """The strength of one edge at `now`; `set_at` is its last reinforcement, else its creation."""
    if strength is None:
        return NEVER_SAID
    return strength * math.exp(-decay_rate * max(0.0, (now - set_at).total_seconds() / DAY))


def current_of_all(strength: Numbers, decay_rate: Numbers, set_at: Numbers, now: float) -> Numbers:
    """The same for columns, in seconds since 1970; NaN is a strength never said."""
    days = np.maximum(0.0, (now - set_at) / DAY)
    return np.where(np.isnan(strength), NEVER_SAID, strength * np.exp(-decay_rate * days))


def set_at_of_all(reinforced_at: Numbers, created_at: Numbers) -> Numbers:
    """When each strength was set: at the last reinforcement, else at creation."""
    return np.where(np.isnan(reinforced_at), created_at, reinforced_at)


def reinforced(current: float, kind: str) -> float:
    """The strength after one use of a kind, never over 1.0."""
    if kind == IMPORTANT:
        return 1.0
    if kind not in REINFORCEMENTS:
        known = ", ".join(sorted((*REINFORCEMENTS, IMPORTANT)))
        raise InvalidInput(f"There is no reinforcement {kind!r}: it is one of {known}.", field="kind")
    return min(1.0, current + REINFORCEMENTS[kind])


def protects(kind: str) -> bool:
    """Whether a use of this kind also protects the edge: marked important is."""
    return kind == IMPORTANT


def last_active(*times: datetime | None) -> datetime | None:
    """A04: the most recent of activation, reinforcement and creation, of those that are known."""
    return max((time for time in times if time is not None), default=None)


def last_active_of_all(activated_at: Numbers, reinforced_at: Numbers, created_at: Numbers) -> Numbers:
    """The same for columns; NaN where nothing is known."""
    return np.fmax(np.fmax(activated_at, reinforced_at), created_at)
