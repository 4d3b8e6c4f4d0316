"""A face of the engine: the verbs of one part (plans, the graph, cases, ...), bound to the engine's space."""

from typing import TYPE_CHECKING
from uuid import UUID

from recollect.engine.core import Core

if TYPE_CHECKING:
    from recollect.engine.engine import Engine

Reference = UUID | str


class Face:
    """What `memory.plans`, `memory.graph` and the others have in common."""

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
