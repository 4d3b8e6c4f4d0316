"""Spaces: the tenants. A key bound to one sees only that one."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Path

from recollect.doors.api import access
from recollect.doors.api.access import Administering, Asking, Whole
from recollect.doors.api.schemas import WITH_BODY, SpaceIn, SpaceSettingsIn, problems
from recollect.model import Scope, Space

router = access.router("spaces")

Slug = Annotated[str, Path(description="The name of a space.")]


@router.get("/spaces", summary="The spaces you may see")
async def list_spaces(engine: Whole, caller: Asking) -> Sequence[Space]:
    caller.need(Scope.READ, caller.space)
    return [space for space in await engine.spaces() if caller.space in (None, space.slug)]


@router.post("/spaces", status_code=201, summary="Make a space", responses={**WITH_BODY, **problems(409)})
async def add_space(new: SpaceIn, engine: Administering) -> Space:
    """Needs the scope admin, in every space."""
    return await engine.add_space(new.slug, new.settings)


@router.patch("/spaces/{slug}", summary="Change settings of a space", responses=WITH_BODY)
async def set_space(slug: Slug, change: SpaceSettingsIn, engine: Whole, caller: Asking) -> Space:
    """`tags` are those it registers besides the common ones; with `strict_tags`, no other is accepted. Needs admin."""
    caller.need(Scope.ADMIN, slug)
    return await engine.set_space(slug, change.settings)
