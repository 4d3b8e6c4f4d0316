"""What is wrong with a database, in a sentence: it went away, is full, took too long, or was never there (S05)."""

import os
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import asyncpg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from recollect.errors import DatabaseProblem
from recollect.store.embedded.sockets import is_inside

LOST = (
    ConnectionError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # cut off in the midst of a message
)


WRONG_NAME = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)
DAMAGED = (asyncpg.PostgresSystemError, asyncpg.DataCorruptedError)


# Another process brought back a backup or upgraded the tables meanwhile: what the driver knows of them holds no more.
REPLACED = (asyncpg.UndefinedTableError, asyncpg.InvalidSchemaNameError, asyncpg.InvalidCachedStatementError)


def is_replaced(error: BaseException) -> bool:
    """Whether the tables are no longer those that a connection knows."""
    if isinstance(error, DBAPIError):
        error = (error.orig and error.orig.__cause__) or error
    return isinstance(error, REPLACED)


@asynccontextmanager
async def said_plainly() -> AsyncIterator[None]:
    """A database that went away, is full or took too long is one sentence for the user; other errors are our faults."""
    try:
        yield
    except asyncpg.DataError:  # a kind of InterfaceError, but a fault of ours
        raise
    except (*LOST, PoolTimeout) as error:
        raise lost(error) from error
    except DAMAGED as error:
        raise _damaged(error) from error
    except REPLACED as error:
        raise _replaced(error) from error
    except DBAPIError as error:
        cause = error.orig.__cause__ if error.orig else None
        if isinstance(cause, DAMAGED):
            raise _damaged(cause) from error
        if isinstance(cause, REPLACED):
            raise _replaced(cause) from error
        if error.connection_invalidated or isinstance(cause, LOST):
            raise lost(cause or error) from error
        raise


def lost(error: BaseException) -> DatabaseProblem:
    if isinstance(error, asyncpg.DiskFullError):
        return DatabaseProblem("The disk of the database is full, so nothing was stored: make room, and try again.")
    return DatabaseProblem(f"The database did not answer ({reason(error)}): try again.")


def _replaced(error: BaseException) -> DatabaseProblem:
    return DatabaseProblem(
        f"The tables of the database were replaced meanwhile ({reason(error)}), as by a restore: try again."
    )


def _damaged(error: BaseException) -> DatabaseProblem:
    return DatabaseProblem(
        f"The database cannot use its own files ({reason(error)}): see whether its disk and its directory are whole."
    )


def unreachable(dsn: str, error: Exception) -> DatabaseProblem:
    """Of the database inside nobody gave an address, unless it was one with a wrong name in it."""
    if is_inside(dsn) and not isinstance(error, WRONG_NAME):
        return DatabaseProblem(
            f"The database inside does not answer ({reason(error)}): try again; `recollect doctor` tells how it is."
        )
    if isinstance(error, OSError):
        return DatabaseProblem(
            f"No PostgreSQL answers at the given address, {_place(dsn)} ({reason(error)}): "
            "check DATABASE_URL and that it runs."
        )
    if isinstance(error, asyncpg.InvalidAuthorizationSpecificationError):
        return DatabaseProblem(f"PostgreSQL refused the user of DATABASE_URL: {reason(error)}.")
    if isinstance(error, asyncpg.InvalidCatalogNameError):
        return DatabaseProblem(f"{reason(error).capitalize()}: create it with `createdb`, or correct DATABASE_URL.")
    if isinstance(error, asyncpg.PostgresError):
        return DatabaseProblem(f"The database of DATABASE_URL cannot be used: {reason(error)}.")
    return DatabaseProblem("DATABASE_URL cannot be used: write it like postgresql://user:password@host:5432/name.")


def _place(dsn: str) -> str:
    """Where a server is looked for, without who looks and by which password."""
    parts = urlsplit(dsn)
    return f"{parts.hostname or 'a socket of this machine'}" + (f":{parts.port}" if parts.port else "")


def reason(error: BaseException) -> str:
    """In a few words: the server's own, or what an error of the network or of the driver comes down to."""
    if isinstance(error, TimeoutError | PoolTimeout):
        return "it took too long"
    if isinstance(error, OSError):
        number = error.errno or next(map(int, re.findall(r"\[Errno (\d+)\]", str(error))), None)
        return os.strerror(number).lower() if number and number > 0 else "its host is not known"
    if isinstance(error, asyncpg.InterfaceError | asyncpg.InternalClientError | asyncpg.ConnectionDoesNotExistError):
        return "the connection broke off"
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__).rstrip(".")
