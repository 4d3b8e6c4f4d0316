"""What the engine and its parts have in common: a memory that is open, bound to one of its spaces."""

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Self
from uuid import UUID

from recollect.engine import build
from recollect.engine.core import Clock, Core, clock_of, utc_now
from recollect.engine.sql import spaces
from recollect.errors import InvalidInput
from recollect.model import Space
from recollect.settings import Settings

if TYPE_CHECKING:
    from recollect.engine.engine import Engine

Reference = UUID | str


class Opened:
    """A memory between its opening and its closing: its settings, its core, and the space it works in."""

    def __init__(self, settings: Settings, *, clock: Clock | None = None) -> None:
        self.settings = settings
        self._clock = utc_now if clock is None else clock_of(clock)
        self._stack = AsyncExitStack()
        self._core: Core | None = None
        self._space: Space | None = None

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._core = await build.build(self.settings, self._clock)
            stack.push_async_callback(build.take_down, self._core)
            async with self._core.database.owner() as connection:
                self._space = await spaces.get(connection, self.settings.space)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop what was started; the database inside stops with its last user."""
        await self._stack.aclose()

    @property
    def core(self) -> Core:
        """What the verbs stand on: the database, the embedders, the settings."""
        if self._core is None:
            raise InvalidInput("The memory is not open: use it in a `with` block.")
        return self._core

    @property
    def space(self) -> Space:
        """The space this engine works in, as it was when it was opened."""
        assert self._space is not None, "not open"
        return self._space


class Face:
    """The verbs of one part (`memory.plans`, `memory.graph` and the others), bound to the engine's space."""

    def __init__(self, engine: "Engine") -> None:
        self._engine = engine

    @property
    def core(self) -> Core:
        return self._engine.core

    @property
    def space_id(self) -> UUID:
        return self._engine.space.id

    async def node_id(self, reference: Reference) -> UUID:
        """The node that a reference means: a whole id, or a unique beginning of one."""
        return await self._engine.node_id(reference)

    async def keeper_id(self, reference: Reference) -> UUID:
        """The same, but what was merged leads to the node that it is now part of."""
        return await self._engine.keeper_id(reference)
