"""The modules that hold the engine's verbs, each loaded when it is first used: who lists memories waits for no way of
tidying to be loaded, which takes longer than the listing."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.cases import cases as cases
    from recollect.concepts import concepts as concepts
    from recollect.engine import access as access
    from recollect.engine import backup as backup
    from recollect.engine import care as care
    from recollect.engine import overview as overview
    from recollect.graph import graph as graph
    from recollect.memories import correct as correct
    from recollect.memories import edit as edit
    from recollect.memories import embed as embed
    from recollect.memories import export as export
    from recollect.memories import import_ as import_
    from recollect.memories import import_texts as import_texts
    from recollect.memories import remember as remember
    from recollect.memories import summaries as summaries
    from recollect.pages import pages as pages
    from recollect.plans import plans as plans
    from recollect.plans import questions as questions
    from recollect.plans import show as show
    from recollect.recall import ask as ask
    from recollect.recall import calibrate as calibrate
    from recollect.recall import feedback as feedback
    from recollect.recall import queries as queries
    from recollect.recall import recall as recall
    from recollect.schedules import schedules as schedules
    from recollect.store import distribute as distribute

_SUBJECTS = {
    "cases": "cases",
    "concepts": "concepts",
    "engine": "access backup care overview",
    "graph": "graph",
    "memories": "correct edit embed export import_ import_texts remember summaries",
    "pages": "pages",
    "plans": "plans questions show",
    "recall": "ask calibrate feedback queries recall",
    "schedules": "schedules",
    "store": "distribute",
}
HOMES = {name: f"recollect.{home}.{name}" for home, names in _SUBJECTS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = globals()[name] = import_module(HOMES[name])
    return module
