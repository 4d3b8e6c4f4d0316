"""Recollect inside the frameworks people build agents with: one thin file each, and its framework as an extra.

`pip install recollect[langgraph]`, then `from recollect.integrations.langgraph import RecollectStore`. Each takes a
memory that is open: a `Recollect`, which serves calls with and without `await`, or an `AsyncRecollect`, which serves
those with it.
"""


def lacking(extra: str, missing: ModuleNotFoundError) -> ModuleNotFoundError:
    """What to say where the framework that a file is for is not installed."""
    sentence = f"This needs a framework that is not installed here: `pip install 'recollect[{extra}]'` adds it."
    return ModuleNotFoundError(sentence, name=missing.name)
