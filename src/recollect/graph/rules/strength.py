"""How strong an edge is now, what makes it stronger, and when it was last alive.

    now  =  strength when it was set  *  exp(-decay rate  *  days since)

Nothing is rewritten as time passes: a strength is stored with the time at which it was set, and looked at from `now`.
A strength that was never said is 1.0 and does not decay; an explicit 0 is 0 (A00a, A05).
"""

from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from recollect.recall.rules.ranking import share_left, share_left_in_sql

Numbers = NDArray[np.float64]

DECAY_A_DAY = 0.05
NEVER_SAID = 1.0
DAY = 86_400.0

# A00b: what each kind of use adds.
REINFORCEMENTS = {"traversal": 0.05, "revisit": 0.2, "highlight": 0.1, "approved": 0.15, "click": 0.1}
# Such a use of an edge: what it adds, that it is one reinforcement, and one walk along it.
ONE_TRAVERSAL = (REINFORCEMENTS["traversal"], 1, 1)
ONE_CLICK = (REINFORCEMENTS["click"], 1, 1)


def current(strength: float | None, decay_rate: float, set_at: datetime, now: datetime) -> float:
    """The strength of one edge at `now`; `set_at` is its last reinforcement, else its creation."""
    if strength is None:
        return NEVER_SAID
    return strength * float(share_left(decay_rate, (now - set_at).total_seconds() / DAY))


def current_of_all(strength: Numbers, decay_rate: Numbers, set_at: Numbers, now: float) -> Numbers:
    """The same for columns, in seconds since 1970; NaN is a strength never said."""
    return np.where(np.isnan(strength), NEVER_SAID, strength * share_left(decay_rate, (now - set_at) / DAY))


def current_in_sql(edge: str, now: str) -> str:
    """The same as an expression of SQL, for an edge by its alias and a moment by its parameter."""
    set_at = f"coalesce({edge}.last_reinforced_at, {edge}.created_at)"
    return faded_in_sql(f"{edge}.strength", f"{edge}.decay_rate", set_at, f"{now}::timestamptz")


def faded_in_sql(strength: str, decay_rate: str, set_at: str, now: str) -> str:
    """The same for a strength that stands elsewhere than in its edge."""
    return f"coalesce({strength} * {share_left_in_sql(decay_rate, set_at, now)}, {NEVER_SAID})"


def set_at_of_all(reinforced_at: Numbers, created_at: Numbers) -> Numbers:
    """When each strength was set: at the last reinforcement, else at creation."""
    return np.where(np.isnan(reinforced_at), created_at, reinforced_at)


def last_active_of_all(activated_at: Numbers, reinforced_at: Numbers, created_at: Numbers) -> Numbers:
    """A04: the most recent of activation, reinforcement and creation, of those known; NaN where nothing is."""
    return np.fmax(np.fmax(activated_at, reinforced_at), created_at)
