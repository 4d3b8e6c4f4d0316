"""Recollect: a memory that remembers, recalls, tidies itself, and can undo every tidying.

Importing this package is cheap; the engine (database, model) is loaded when it is first used.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["AsyncRecollect", "Hit", "NewMemory", "Node", "Plan", "Recall", "Recollect", "RecollectError", "__version__"]

if TYPE_CHECKING:
    from recollect.doors.python import AsyncRecollect, Recollect
    from recollect.errors import RecollectError
    from recollect.model import Hit, NewMemory, Node, Recall
    from recollect.plan import Plan

_HOMES = {
    "AsyncRecollect": "recollect.doors.python",
    "Recollect": "recollect.doors.python",
    "RecollectError": "recollect.errors",
    "Hit": "recollect.model",
    "NewMemory": "recollect.model",
    "Node": "recollect.model",
    "Recall": "recollect.model",
    "Plan": "recollect.plan",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'recollect' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
