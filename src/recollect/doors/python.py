"""The Python door: `AsyncRecollect`, an engine with a worker beside it, and `Recollect`, the same without `await`.

from recollect import Recollect
with Recollect() as memory:
    memory.add("Linh prefers tea, never coffee")
    print(memory.recall("what does Linh drink?"))
"""

import functools
import inspect
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any, Self

from recollect.background.worker import working
from recollect.doors import logs
from recollect.doors.portal import Portal
from recollect.engine.engine import Engine
from recollect.engine.face import Face
from recollect.settings import Settings


class AsyncRecollect(Engine):
    """A memory. `url` names a PostgreSQL of yours; without it, a real one runs inside, in `home`."""

    def __init__(
        self,
        url: str | None = None,
        space: str | None = None,
        home: str | Path | None = None,
        *,
        worker: bool = True,
        settings: Settings | None = None,
    ) -> None:
        logs.unless_configured()
        super().__init__(
            settings or Settings.load(database_url=url, space=space, home=Path(home) if home is not None else None)
        )
        self._with_worker = worker
        self._all = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
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

    def __init__(
        self,
        url: str | None = None,
        space: str | None = None,
        home: str | Path | None = None,
        *,
        worker: bool = True,
        settings: Settings | None = None,
    ) -> None:
        self._engine: Engine = AsyncRecollect(url, space, home, worker=worker, settings=settings)
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

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._engine)})

    def __getattr__(self, name: str) -> Any:
        return _through(self._portal, self._engine, name)


class _Part:
    """A face of the engine (`memory.plans`, `memory.graph`), called through the same portal."""

    def __init__(self, portal: Portal, face: Face) -> None:
        self._portal, self._face = portal, face

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *dir(self._face)})

    def __getattr__(self, name: str) -> Any:
        return _through(self._portal, self._face, name)


def _through(portal: Portal, owner: object, name: str) -> Any:
    """An attribute of the engine as a script sees it: no `await` anywhere."""
    if name.startswith("_"):
        raise AttributeError(name)
    found = getattr(owner, name)
    if isinstance(found, Face):
        return _Part(portal, found)
    if inspect.isasyncgenfunction(found):
        return lambda *args, **kwargs: portal.iterate(found(*args, **kwargs))
    if not inspect.iscoroutinefunction(found):
        return found

    @functools.wraps(found)
    def call(*args: Any, **kwargs: Any) -> Any:
        return portal.call(functools.partial(found, *args, **kwargs))

    return call
