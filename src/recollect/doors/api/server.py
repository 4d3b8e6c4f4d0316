"""The server: the API, a worker and the scheduler in one process, until SIGTERM or SIGINT.

What is opened is closed in the opposite order: requests under way are answered, worker and scheduler stop, the
database inside is let go of and stops with its last user. A signal that comes while the memory is still being opened
ends that.
"""

import asyncio
import errno
import gc
import logging
import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from ipaddress import ip_address
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from recollect.doors.api.app import create_app
from recollect.doors.api.mcp import Mcp
from recollect.doors.ending import SIGNALS, leaving_when_told, told_by
from recollect.engine.engine import Engine
from recollect.engine.worker import work_forever
from recollect.errors import Conflict, InvalidInput
from recollect.logs import Logger
from recollect.schedules import run
from recollect.schedules.scheduler import schedule_forever
from recollect.settings import Settings

log = Logger("recollect.server")

DRAIN_SECONDS = 10
BACKLOG = 2048
UNBINDABLE = {
    errno.EADDRINUSE: "another program uses it: stop that one, or choose another port (--port, RECOLLECT_PORT)",
    errno.EACCES: "this user may not: choose a port above 1023 (--port, RECOLLECT_PORT)",
    errno.EADDRNOTAVAIL: "this machine has no such address: choose another (--host, RECOLLECT_HOST)",
}

Ready = Callable[[str], object]


def serve(settings: Settings, *, ready: Ready | None = None) -> None:
    """Serve until told to stop; `ready` is called with the address once requests are answered."""
    asyncio.run(_serve(settings, ready))


async def _serve(settings: Settings, ready: Ready | None) -> None:
    engine = Engine(settings)
    with closing(bind(settings.host, settings.port)) as listener:
        server = Listening(engine, listener, ready)
        with leaving_when_told() as from_here_on:
            async with engine:
                engine.core.serves = True
                run.check_settings(engine.core)
                await _refuse_open_house(engine, listener)
                _keep_what_stays_out_of_the_way()
                from_here_on()
                # The first signal asks the server to finish; a second Ctrl-C, not to wait for requests under way.
                with told_by(SIGNALS, lambda number: server.handle_exit(number, None)):
                    await _work_and_serve(engine, server)
    log.info("stopped")


def _keep_what_stays_out_of_the_way() -> None:
    """Modules and schemas live as long as the server. Looked through with every collection of garbage, they make a
    request wait for a tenth of a second."""
    gc.collect()
    gc.freeze()


async def _work_and_serve(engine: Engine, server: "Listening") -> None:
    # Not anyio's task group: its cancelling is repeated at every await, and so would also cut the rollbacks short.
    async with asyncio.TaskGroup() as beside:
        tasks = [beside.create_task(work_forever(engine.core)), beside.create_task(schedule_forever(engine.core))]
        await server.answer()
        for task in tasks:
            task.cancel()


class Listening(uvicorn.Server):
    """Uvicorn on a socket that is bound already, and without signal handlers of its own: after its part it would hand
    the signal on, and so end the process before the database is let go of."""

    def __init__(self, engine: Engine, listener: socket.socket, ready: Ready | None = None) -> None:
        app = create_app(engine)
        super().__init__(
            uvicorn.Config(
                app,
                lifespan="off",
                ws="none",
                log_config=None,
                access_log=False,
                server_header=False,
                # Who is calling is told by the socket alone: those headers are for anybody to write.
                proxy_headers=False,
                http=partial(ImpatientProtocol, seconds=engine.settings.header_seconds),  # type: ignore[arg-type]
                limit_concurrency=engine.settings.max_connections,
                timeout_graceful_shutdown=DRAIN_SECONDS,
            )
        )
        self._running = app.state.running
        self._mcp = Mcp(app)
        self._listener = listener
        self._ready = ready
        logging.getLogger("uvicorn.error").addFilter(_is_news)

    async def answer(self) -> None:
        """Answer requests until told to stop, then those under way; plans that nobody waits for are broken off."""
        async with self._mcp.open():
            try:
                await self.serve([self._listener])
            finally:
                await self._running.stop()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        address = address_of(self._listener)
        log.info("listening", address=address)
        if self._ready:
            self._ready(address)


class ImpatientProtocol(H11Protocol):
    """Whoever connects and does not say what they want is not waited for (S02). The time counts from the moment when
    there is nothing else to wait for, and a byte now and then does not extend it."""

    def __init__(self, *, seconds: float, **given: Any) -> None:
        super().__init__(**given)
        self._seconds = seconds
        self._waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is h11.IDLE or self.conn.our_state is h11.DONE:  # or is answered, and sends on
            self._wait()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait(self) -> None:
        if self._waiting is None:
            self._waiting = self.loop.call_later(self._seconds, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


def _is_news(record: logging.LogRecord) -> bool:
    """Uvicorn reports again, without its correlation id, what the app has logged and answered with 500."""
    return not record.getMessage().startswith("Exception in ASGI application")


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there already, so that a second server is told at once, not after its database is up."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except socket.gaierror as error:
        raise InvalidInput(f"The host {host!r} is not known: use an address of this machine.", field="host") from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        why = UNBINDABLE.get(error.errno or 0, str(error))
        raise Conflict(f"The server cannot listen on port {port} of {host}: {why}.") from error
    return listener


def address_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


async def _refuse_open_house(engine: Engine, listener: socket.socket) -> None:
    """Without a key everybody who reaches the server is its admin, so only this machine may reach it."""
    if await engine.needs_key():
        return
    host = listener.getsockname()[0]
    if not ip_address(host.partition("%")[0]).is_loopback:
        raise InvalidInput(
            f"Other machines can reach {host}, and no API key was ever made: make one with `recollect keys add`, "
            f"or serve on 127.0.0.1.",
            field="host",
        )
    log.info("no API key was ever made, so this serves localhost only, and everybody there may do everything")
