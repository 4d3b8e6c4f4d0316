"""Who may do what: API keys, scopes and spaces.

On loopback with no key ever made, the caller is admin of every space. Once one key exists, every request needs one
(DESIGN 3). Keys are random, so a plain SHA-256 of them is safe to store; they are compared in constant time.

A browser does not keep the key: it signs in with it once and gets a session, random too, which ends by itself, with
its key, or by logging out.
"""

import hashlib
import hmac
import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from recollect.engine.core import Core
from recollect.engine.sql import keys, spaces
from recollect.errors import InvalidInput, NotAllowed, NotAuthenticated
from recollect.memories.rules.contract import checked_name, known_time
from recollect.model import ApiKey, Scope
from recollect.plan import Risk
from recollect.store.connections import Connection

FORM = re.compile(r"rk_([a-z0-9]{8})_([A-Za-z0-9_-]{43})")
ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
SESSION_LASTS = timedelta(hours=12)


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """Who is asking: the scopes held, and the one space they are bound to (None = every space)."""

    name: str
    scopes: frozenset[Scope]
    space: str | None

    def need(self, scope: Scope, space: str | None = None) -> None:
        """NotAllowed unless the caller holds this scope in this space."""
        if scope not in self.scopes and Scope.ADMIN not in self.scopes:
            raise NotAllowed(
                f"This key lacks the scope {scope.value}: make one with `recollect keys add --scope {scope.value}`."
            )
        if self.space is not None and space != self.space:
            raise NotAllowed(f"This key is bound to the space {self.space!r}.")

    def need_any(self, scopes: Collection[Scope], space: str | None = None) -> None:
        """NotAllowed unless the caller holds one of these scopes in this space; any scope will do where none is."""
        enough = [*scopes] or [*self.scopes]
        self.need(next((scope for scope in enough if scope in self.scopes), enough[0]), space)

    @property
    def most_risk(self) -> Risk:
        """The riskiest plan that may be applied for this caller with no person asked (P03)."""
        return Risk.HIGH if Scope.ADMIN in self.scopes else Risk.LOW


@dataclass(frozen=True, kw_only=True, slots=True)
class Session:
    """A browser that signed in: the secret it keeps, as whom, and for how long."""

    secret: str
    caller: Caller
    seconds: int


LOCAL_ADMIN = Caller(name="local", scopes=frozenset(Scope), space=None)


async def add_key(
    core: Core,
    *,
    name: str,
    scopes: Sequence[Scope],
    space: str | None = None,
    expires_at: datetime | None = None,
) -> tuple[ApiKey, str]:
    """Make a key; the secret is returned once and kept only as a hash."""
    if not scopes:
        raise InvalidInput(f"A key needs a scope: {', '.join(Scope)}.", field="scopes")
    now = core.now()
    ends = None if expires_at is None else known_time("expires_at", expires_at)
    if ends is not None and ends <= now:
        raise InvalidInput("A key that has expired already is of no use: give a later time.", field="expires_at")
    prefix = "".join(secrets.choice(ALPHABET) for _ in range(8))
    token = f"rk_{prefix}_{secrets.token_urlsafe(32)}"
    async with core.database.owner() as connection:
        bound = await spaces.get(connection, space) if space else None
        key = await keys.add(
            connection,
            name=checked_name("name", name) or "",
            prefix=prefix,
            hash_=_hash(token),
            scopes=sorted(set(scopes)),
            space_id=bound.id if bound else None,
            now=now,
            expires_at=ends,
        )
    return key, token


async def list_keys(core: Core) -> list[ApiKey]:
    async with core.database.owner() as connection:
        return await keys.list_all(connection)


async def revoke_key(core: Core, prefix: str) -> ApiKey:
    async with core.database.owner() as connection:
        return await keys.revoke(connection, prefix.removeprefix("rk_")[:8], core.now())


async def needs_key(core: Core) -> bool:
    async with core.database.owner() as connection:
        return await keys.any_made(connection)


async def authenticate(core: Core, token: str | None, *, loopback: bool) -> Caller:
    """The caller behind a token; without one, the local admin as long as no key was ever made."""
    async with core.database.owner(in_passing=True) as connection:
        if token is None:
            if loopback and not await keys.any_made(connection):
                return LOCAL_ADMIN
            raise NotAuthenticated("An API key is needed: send it as `Authorization: Bearer <key>`.")
        key = await _known(connection, token, core.now())
        await keys.touch(connection, key.id, core.now())
    return _caller(key)


async def _known(connection: Connection, token: str, now: datetime) -> ApiKey:
    """The key that a token is, if it may be used."""
    form = FORM.fullmatch(token)
    stored = await keys.find(connection, form[1]) if form else None
    # The hash is computed whether or not the key exists, so that timing tells nothing.
    matches = hmac.compare_digest(_hash(token), stored[1] if stored else _hash(""))
    if stored is None or not matches:
        raise NotAuthenticated("This API key is not known.")
    key = stored[0]
    if key.revoked_at is not None:
        raise NotAuthenticated(f"The key {key.prefix} was revoked.")
    if key.expires_at is not None and key.expires_at <= now:
        raise NotAuthenticated(f"The key {key.prefix} has expired.")
    return key


def _caller(key: ApiKey) -> Caller:
    return Caller(name=key.name, scopes=frozenset(key.scopes), space=key.space)


# -- sessions


async def sign_in(core: Core, token: str) -> Session:
    """Begin a session with a key; its secret is returned once and kept only as a hash."""
    now, secret = core.now(), secrets.token_urlsafe(32)
    async with core.database.owner() as connection:
        key = await _known(connection, token, now)
        lasts_until = min(now + SESSION_LASTS, key.expires_at or now + SESSION_LASTS)
        await keys.add_session(connection, hash_=_hash(secret), key_id=key.id, now=now, expires_at=lasts_until)
    return Session(secret=secret, caller=_caller(key), seconds=int((lasts_until - now).total_seconds()))


async def resume(core: Core, secret: str) -> Caller | None:
    """The caller whose session this is; None where it has ended, its key was revoked, or there was never one."""
    now = core.now()
    async with core.database.owner(in_passing=True) as connection:
        key = await keys.of_session(connection, _hash(secret), now)
        if key is None or key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= now):
            return None
        await keys.touch(connection, key.id, now)
    return _caller(key)


async def sign_out(core: Core, secret: str) -> None:
    """End a session; one that has ended already stays so."""
    async with core.database.owner() as connection:
        await keys.end_session(connection, _hash(secret))


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
