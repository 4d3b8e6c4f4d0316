"""How much more one piece of work takes than another: a ratio is the same on a slow machine and on a fast one."""

import time
from collections.abc import Callable

TRIES = 5


def costs_at_most(times: float, more: Callable[[], object], less: Callable[[], object]) -> bool:
    """Whether `more` takes at most so many times the processor time of `less`.

    What else runs on the machine makes a try longer, never shorter: so one try in bounds is enough, and what has
    grown out of them is so in every try.
    """
    basis = min(_seconds(less) for _ in range(TRIES))
    return any(_seconds(more) <= times * basis for _ in range(TRIES))


def _seconds(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began
