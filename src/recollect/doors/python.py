"""The Python door: `AsyncRecollect`, an engine with a worker beside it, and `Recollect`, the same without `await`.

from recollect import Recollect
with Recollect() as memory:
    memory.add("Linh prefers tea, never coffee")
    print(memory.recall("what does Linh drink?"))
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any, Self, get_args

import anyio.to_thread

from recollect import logs
from recollect.doors.portal import Portal
from recollect.engine.administration import Administration
from recollect.engine.core import Clock, Face
from recollect.engine.engine import Engine
from recollect.engine.worker import working
from recollect.providers.embedders import prepare
from recollect.settings import Settings


class AsyncRecollect(Engine):
    """A memory. `url` names a PostgreSQL of yours; without it, a real one runs inside, in `home`.

    `clock` says what time it is, for simulations and tests; without one it is the time of this machine.
    """

    def __init__(
        self,
        url: str | None = None,
        space: str | None = None,
        home: str | Path | None = None,
        *,
        worker: bool = True,
        settings: Settings | None = None,
        clock: Clock | None = None,
    ) -> None:
        logs.unless_configured()
        super().__init__(
            settings or Settings.load(database_url=url, space=space, home=Path(home) if home is not None else None),
            clock=clock,
        )
        self._with_worker = worker
        self._all = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            if self._with_worker and (loading := prepare(self.settings.embedder)):
                stack.push_async_callback(anyio.to_thread.run_sync, lambda: loading.join())
            await super().__aenter__()
            stack.push_async_callback(super().close)
            if self._with_worker:
                await stack.enter_async_context(working(self.core))
            self._all = stack.pop_all()
        return self

    async def close(self) -> None:
        await self._all.aclose()


class Recollect:
    """A memory for scripts and notebooks: everything `AsyncRecollect` can do, called through a portal.

    Use it in a `with` block, or call `close()` when done.
    """

    _engine: Engine
    _portal: Portal

    def __init__(
        self,
        url: str | None = None,
        space: str | None = None,
        home: str | Path | None = None,
        *,
        worker: bool = True,
        settings: Settings | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._engine = AsyncRecollect(url, space, home, worker=worker, settings=settings, clock=clock)
        self._portal = Portal(self._engine)
        self._stack = ExitStack()
        self._stack.callback(self._portal.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stack.close()

    def in_space(self, slug: str) -> "Recollect":
        """The same memory in another space; closing the first one closes both."""
        other = object.__new__(Recollect)
        other._portal, other._stack = self._portal, ExitStack()
        other._engine = self._portal.call(functools.partial(self._engine.in_space, slug))
        return other

    @property
    def settings(self) -> Settings:
        """The settings in force."""
        return self._engine.settings


class _Part:
    """A part of the engine (`memory.plans`, `memory.graph`), called through the same portal."""

    def __init__(self, portal: Portal, engine: Face) -> None:
        self._portal, self._engine = portal, engine


# What follows gives `Recollect` and its parts the verbs of the asynchronous classes, once, when this file is imported
# and when a part is first asked for, so that help(), dir() and inspect.signature() speak of them as of any other
# method. Editors and type checkers read python.pyi, which `./run fix` writes from the same classes (tests/stub.py).


def _give_verbs(here: type, there: type) -> None:
    """What an asynchronous class defines for others: methods, generators, parts and properties, without `await`."""
    for name, member in vars(there).items():
        if not name.startswith("_") and not hasattr(here, name):
            setattr(here, name, _without_await(name, member))


def _without_await(name: str, member: Any) -> Any:
    if isinstance(member, property):
        return _property(name, member)
    if inspect.isasyncgenfunction(member):
        return _iterator(name, member)
    return _method(name, member)


def _method(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._portal.call(functools.partial(getattr(self._engine, name), *args, **kwargs))

    return call


def _iterator(name: str, generator: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(generator)
    def iterate(self: Any, *args: Any, **kwargs: Any) -> Iterator[Any]:
        yield from self._portal.iterate(getattr(self._engine, name)(*args, **kwargs))

    signature = inspect.signature(generator)
    returned: Any = Iterator
    returned = returned[get_args(signature.return_annotation)[0]]
    iterate.__signature__ = signature.replace(return_annotation=returned)  # type: ignore[attr-defined]
    return iterate


def _property(name: str, original: property) -> property:
    def look(self: Any) -> Any:
        value = getattr(self._engine, name)
        kind: Any = type(value)
        return _part(kind)(self._portal, value) if issubclass(kind, Face) else value

    return property(look, doc=original.__doc__)


@functools.cache
def _part(kind: type[Face]) -> type[_Part]:
    """The synchronous form of a part of the engine, made when it is first asked for."""
    part = type(kind.__name__, (_Part,), {"__doc__": kind.__doc__, "__module__": __name__})
    _give_verbs(part, kind)
    return part


_give_verbs(Recollect, Engine)
_give_verbs(Recollect, Administration)
