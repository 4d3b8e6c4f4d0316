"""Keys: shown once, kept as a hash, bound to scopes and spaces."""

from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest

from recollect.engine.access import LOCAL_ADMIN, Caller
from recollect.engine.engine import Engine
from recollect.errors import InvalidInput, NotAllowed, NotAuthenticated, NotFound
from recollect.model import Scope
from recollect.settings import Settings

pytestmark = pytest.mark.anyio


async def test_before_the_first_key_the_local_caller_is_admin_and_never_after(new_home: Path) -> None:
    async with Engine(Settings.load(home=new_home, embedder="hashing:32")) as own:
        assert not await own.needs_key()
        assert await own.authenticate(None, loopback=True) == LOCAL_ADMIN
        with pytest.raises(NotAuthenticated, match="An API key is needed"):
            await own.authenticate(None, loopback=False)
        key, token = await own.add_key("bot", scopes=[Scope.READ])
        await own.revoke_key(key.prefix)
        assert await own.needs_key()
        with pytest.raises(NotAuthenticated, match="An API key is needed"):
            await own.authenticate(None, loopback=True)
        with pytest.raises(NotAuthenticated, match=f"The key {key.prefix} was revoked"):
            await own.authenticate(token, loopback=True)


async def test_a_key_is_kept_only_as_a_hash(memory: Engine) -> None:
    key, token = await memory.add_key("bot", scopes=[Scope.READ])
    connection = await asyncpg.connect(memory.core.database.dsn)
    row = await connection.fetchrow("SELECT k::text AS everything FROM recollect.api_keys k WHERE id = $1", key.id)
    await connection.close()
    assert token not in row["everything"]
    assert token.split("_", 2)[2] not in row["everything"]
    assert key.prefix in row["everything"]


async def test_a_key_opens_what_it_was_made_for(memory: Engine) -> None:
    _, token = await memory.add_key("bot", scopes=[Scope.READ, Scope.WRITE], space=memory.space.slug)
    caller = await memory.authenticate(token, loopback=False)
    caller.need(Scope.READ, memory.space.slug)
    with pytest.raises(NotAllowed, match="lacks the scope consolidate"):
        caller.need(Scope.CONSOLIDATE, memory.space.slug)
    with pytest.raises(NotAllowed, match=f"bound to the space '{memory.space.slug}'"):
        caller.need(Scope.READ, "default")


def test_admin_holds_every_scope() -> None:
    admin = Caller(name="a", scopes=frozenset({Scope.ADMIN}), space=None)
    for scope in Scope:
        admin.need(scope, "any")


async def test_wrong_and_expired_keys_are_refused(memory: Engine) -> None:
    key, token = await memory.add_key("bot", scopes=[Scope.READ], expires_at=memory.core.now() + timedelta(hours=1))
    for wrong in (token[:-1] + ("a" if token[-1] != "a" else "b"), "rk_zzzzzzzz_" + "x" * 43, "nonsense", ""):
        with pytest.raises(NotAuthenticated, match="not known"):
            await memory.authenticate(wrong, loopback=True)
    await memory.authenticate(token, loopback=True)
    assert next(one for one in await memory.keys() if one.id == key.id).last_used_at
    later = memory.core.now() + timedelta(hours=2)
    memory.core.now = lambda: later
    with pytest.raises(NotAuthenticated, match="has expired"):
        await memory.authenticate(token, loopback=True)


async def test_keys_that_make_no_sense_are_refused(memory: Engine) -> None:
    with pytest.raises(InvalidInput, match="A key needs a scope: read, write, consolidate, admin"):
        await memory.add_key("bot", scopes=[])
    with pytest.raises(InvalidInput, match="expired already"):
        await memory.add_key("bot", scopes=[Scope.READ], expires_at=memory.core.now() - timedelta(days=1))
    with pytest.raises(InvalidInput, match="Name is a text"):
        await memory.add_key(" ", scopes=[Scope.READ])
    with pytest.raises(NotFound, match="There is no space 'nowhere'"):
        await memory.add_key("bot", scopes=[Scope.READ], space="nowhere")
    with pytest.raises(NotFound, match="There is no key 'zzzzzzzz'"):
        await memory.revoke_key("zzzzzzzz")
