"""API keys: list, make, revoke. For admins of every space."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import Path

from recollect.doors.api import access
from recollect.doors.api.access import Administering
from recollect.doors.api.schemas import WITH_BODY, KeyIn, NewKey
from recollect.memories.rules.contract import parsed_time
from recollect.model import ApiKey

router = access.router("keys")

Prefix = Annotated[str, Path(pattern="^[A-Za-z0-9_-]{1,64}$", description="The 8 characters after `rk_`.")]


@router.get("/keys", summary="All keys, without their secrets")
async def list_keys(engine: Administering) -> Sequence[ApiKey]:
    return await engine.keys()


@router.post("/keys", status_code=201, summary="Make a key", responses=WITH_BODY)
async def add_key(new: KeyIn, engine: Administering) -> NewKey:
    """The secret is in this answer and nowhere else. Once the first key is made, every request needs one."""
    key, secret = await engine.add_key(
        new.name, scopes=new.scopes, space=new.space, expires_at=parsed_time("expires_at", new.expires_at)
    )
    return NewKey(key=key, secret=secret)


@router.post("/keys/{prefix}/revoke", summary="Revoke a key")
async def revoke_key(prefix: Prefix, engine: Administering) -> ApiKey:
    """From now on it is refused. It stays in the list, so that the log can be read."""
    return await engine.revoke_key(prefix)
