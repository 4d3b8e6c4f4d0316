"""Who is calling, and the memory they work with: the same keys, scopes and spaces as over the API."""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any

from recollect.engine.access import Caller
from recollect.engine.engine import Engine
from recollect.model import Scope


@dataclass(frozen=True, kw_only=True, slots=True)
class Visit:
    """A caller in the space that is meant."""

    caller: Caller
    memory: Engine

    def need(self, scopes: Collection[Scope]) -> None:
        """NotAllowed unless the caller holds one of these scopes here."""
        self.caller.need_any(scopes, self.memory.space.slug)


# The visit that a request belongs to. Over HTTP it is known before the request is read; the request is None elsewhere.
Enter = Callable[[Any], Awaitable[Visit]]


async def enter(house: Engine, caller: Caller, scopes: Collection[Scope] = (), *, space: str | None = None) -> Visit:
    """Go into a space: the one that is named, else the key's own, else the usual one."""
    slug = space or caller.space or house.settings.space
    caller.need_any(scopes, slug)  # first, so that a key bound elsewhere does not learn which spaces there are
    return Visit(caller=caller, memory=await house.in_space(slug))
