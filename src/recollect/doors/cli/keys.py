"""API keys: for programs that come in by the network. The command line itself needs none."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated

import typer

from recollect.doors.cli import output, values
from recollect.doors.cli.door import Door, command, listing
from recollect.model import ApiKey, Scope

app = typer.Typer()


@listing(app)
def list_(door: Door) -> None:
    """List the API keys of the server.

    As long as no key was ever made, whoever reaches the server on this machine may do everything; once one is made,
    every request needs one.
    """
    keys = door.ask_all(lambda memory: memory.keys())
    door.show(keys, _show)


@command(app, "add")
def add(
    door: Door,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose key it is.")],
    scope: Annotated[list[Scope] | None, typer.Option("--scope", help="What it may do; repeat for more.")] = None,
    expires: Annotated[
        str | None, typer.Option("--expires", metavar="TIME", help="When it ends: 90d from now, or 2027-01-31.")
    ] = None,
) -> None:
    """Make a key. It may read unless --scope says more; with --space it opens only that space.

    \b
    recollect keys add my-agent --scope read --scope write --space team --expires 90d
    """
    expires_at = values.future("--expires", expires)
    key, secret = door.ask_all(
        lambda memory: memory.add_key(name, scopes=scope or [Scope.READ], space=door.space, expires_at=expires_at)
    )
    door.show(secret, output.say, as_json={"key": key, "secret": secret})
    output.note("Keep this key now: it is shown this once and stored only as a hash.")


@command(app, "revoke")
def revoke(
    door: Door,
    prefix: Annotated[str, typer.Argument(metavar="PREFIX", help="The 8 characters after rk_, as listed.")],
) -> None:
    """End a key at once, for good."""
    key = door.ask_all(lambda memory: memory.revoke_key(prefix))
    door.show(key, lambda key: _show([key]))


def _show(keys: Sequence[ApiKey]) -> None:
    output.table(
        ("prefix", "may", "space", "last used", "state", "name"),
        [
            (
                key.prefix,
                " ".join(key.scopes),
                key.space or "(all)",
                output.minute(key.last_used_at),
                _state(key),
                key.name,
            )
            for key in keys
        ],
    )
    if not keys:
        output.note("No key was made yet: `recollect keys add NAME` makes one.")


def _state(key: ApiKey) -> str:
    if key.revoked_at is not None:
        return f"revoked {output.day(key.revoked_at)}"
    if key.expires_at is None:
        return "valid"
    return ("expired " if key.expires_at <= datetime.now(UTC) else "until ") + output.day(key.expires_at)
