"""Blocks on a Ray cluster (X01), through Ray's client: in this process there is a connection and nothing more.

A driver of Ray's own would live in this process, and could end it when the cluster is lost. The connection of a client
breaks, and what was under way is done here. So nothing is lost with a cluster but time:

    a worker dies           Ray gives its block to another, a few times
    a machine is lost       likewise, and what it had made is made again
    the cluster is lost     a warning, and the blocks that are left are done in this process

A task is a function of a module, its block and what all blocks share, which is put into Ray's object store once. Every
machine needs the same Recollect; each task looks. No engine, no connection to a database and no key goes there.
"""

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

from recollect import __version__
from recollect.errors import InvalidInput, NotInstalled, ProviderUnavailable, RecollectError
from recollect.logs import Logger
from recollect.ports import Block, Made, Shared
from recollect.providers.executors import fulfil, in_order, told

log = Logger("recollect.ray")

AUTO, SCHEME = "auto", "ray://"
# Where `ray start --head` listens for clients.
HERE = f"{SCHEME}127.0.0.1:10001"
WITHOUT_IT = "unset RECOLLECT_RAY to do everything on this machine"
REACH_SECONDS = 5.0
# A cluster that was lost or refused us is tried again after so long.
AGAIN_SECONDS = 600.0
# A worker that dies with its block is replaced so often; then the block is done here.
RETRIES = 3
# So many blocks are on their way for each that is worked on, so that no worker waits for the next.
AHEAD = 2


class OtherVersion(ProviderUnavailable):
    """A machine of the cluster has another Recollect: what it makes may differ."""


class RayExecutor:
    """Connects when it first has work. `strict` raises where otherwise a warning is given and the work is done here."""

    def __init__(self, setting: str, *, must_answer: bool = False, strict: bool = False) -> None:
        self.name = _address_of(setting)
        self._strict = strict
        self._connecting = threading.Lock()
        self._cluster: RayConnection | None = None
        self._again_at = 0.0
        if find_spec("ray") is None:
            raise NotInstalled(f'RECOLLECT_RAY needs Ray: pip install "recollect[ray]", or {WITHOUT_IT}.')
        if must_answer or strict:
            _require_reachable(self.name)
        self._here = ThreadPoolExecutor(max_workers=os.cpu_count() or 1, thread_name_prefix="block")

    @property
    def width(self) -> int:
        cluster = self._connected()
        return cluster.processors if cluster else 1

    def submit(self, work: Callable[[Shared, Block], Made], shared: Shared, block: Block) -> "Future[Made]":
        return self._submit(self._connected(), work, shared, shared, block)

    def map(
        self,
        work: Callable[[Shared, Block], Made],
        shared: Shared,
        blocks: Iterable[Block],
        *,
        progress: Callable[[int], None] | None = None,
    ) -> Iterator[Made]:
        cluster, there = self._connected(), None
        try:
            there = cluster.put(shared) if cluster else None
        except OSError as problem:
            self._lose(problem)
        ahead = AHEAD * (cluster.processors if cluster else os.cpu_count() or 1)
        results = in_order(lambda block: self._submit(cluster, work, shared, there, block), blocks, ahead)
        yield from told(results, progress)

    def close(self) -> None:
        with self._connecting:
            cluster, self._cluster, self._again_at = self._cluster, None, float("inf")
        if cluster:
            cluster.close()
        self._here.shutdown(wait=True, cancel_futures=True)

    def _connected(self) -> "RayConnection | None":
        """The cluster; None while it cannot be used."""
        with self._connecting:
            if self._cluster is None and time.monotonic() >= self._again_at:
                try:
                    # By another thread: on the main one, Ray would take over the signal that ends this process.
                    with ThreadPoolExecutor(1) as aside:
                        self._cluster = aside.submit(RayConnection, self.name).result()
                except RecollectError as problem:
                    if self._strict:
                        raise
                    self._give_up(problem.message)
            return self._cluster

    def _submit(
        self,
        cluster: "RayConnection | None",
        work: Callable[[Shared, Block], Made],
        shared: Shared,
        there: Any,
        block: Block,
    ) -> "Future[Made]":
        """`there` stands for `shared` on the cluster: a reference to it, or itself."""
        if cluster is None or cluster is not self._cluster:
            return self._here.submit(work, shared, block)
        try:
            task = cluster.start(work, there, block)
            theirs: Future[Made] = task.future()
        except OSError as problem:
            self._lose(problem)
            return self._here.submit(work, shared, block)
        ours: Future[Made] = Future()
        ours.add_done_callback(lambda future: future.cancelled() and self._here.submit(cluster.cancel, task))
        theirs.add_done_callback(lambda future: self._settle(cluster, ours, future, work, shared, block))
        return ours

    def _settle(
        self,
        cluster: "RayConnection",
        ours: "Future[Made]",
        theirs: "Future[Made]",
        work: Callable[[Shared, Block], Made],
        shared: Shared,
        block: Block,
    ) -> None:
        """Hand on what a task made. Called by the thread that receives from the cluster: nothing here takes long."""
        if not ours.set_running_or_notify_cancel():
            return
        try:
            ours.set_result(theirs.result())
        except (CancelledError, OSError, *cluster.problems) as problem:
            cause = getattr(problem, "cause", None)
            if isinstance(cause, RecollectError) and (self._strict or not isinstance(cause, OtherVersion)):
                ours.set_exception(cause)
                return
            if isinstance(problem, OSError):
                self._lose(problem)
            elif isinstance(cause, OtherVersion):
                if cluster is self._cluster:  # said once, however many blocks were under way
                    self._give_up(cause.message)
            else:
                # Its worker died too often, or the function itself fails: then it says so here, too.
                log.warning("a block is done here, for Ray could not", why=_said(problem))
            self._here.submit(fulfil, ours, work, shared, block)

    def _lose(self, problem: BaseException) -> None:
        if self._cluster:
            self._give_up(f"The Ray cluster at {self.name} is lost: {_said(problem)}")

    def _give_up(self, why: str) -> None:
        cluster, self._cluster = self._cluster, None
        self._again_at = time.monotonic() + AGAIN_SECONDS
        if cluster:
            self._here.submit(cluster.close)
        log.warning("what is left is done on this machine", why=why)


class RayConnection:
    """A connection of Ray's client. There is one in a process: whoever finds one there uses it, the last of ours closes
    it, and one that the program made itself is left open."""

    _users = 0
    _is_ours = False
    _changing = threading.Lock()

    def __init__(self, address: str) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing about our users leaves their machines
        import ray
        from ray.exceptions import RayError

        self._ray = ray
        self.problems = (RayError,)
        with self._changing:
            if not ray.is_initialized():
                logging.getLogger("ray").setLevel(logging.CRITICAL)  # what matters is said by us, in one sentence
                self._connect(address)
                RayConnection._users, RayConnection._is_ours = 0, True
            RayConnection._users += 1
        self.processors = int(ray.cluster_resources().get("CPU", 0))
        if not self.processors:
            self.close()
            raise ProviderUnavailable(f"The Ray cluster at {address} offers no processors: {WITHOUT_IT}.")
        self._task = ray.remote(num_cpus=1, max_retries=RETRIES, scheduling_strategy="SPREAD")(run_block)

    def put(self, shared: Any) -> Any:
        return self._ray.put(shared)

    def start(self, work: Callable[..., Any], shared: Any, block: Any) -> Any:
        if not self._ray.is_initialized():  # else Ray would look for a cluster, or start one, by itself
            raise ConnectionError("the connection was closed")
        return self._task.remote(__version__, work, shared, block)

    def cancel(self, task: Any) -> None:
        if self._ray.is_initialized():
            self._ray.cancel(task)

    def close(self) -> None:
        with self._changing:
            RayConnection._users -= 1
            if self._is_ours and not self._users:
                RayConnection._is_ours = False
                self._ray.shutdown()

    def _connect(self, address: str) -> None:
        _require_reachable(address)
        try:
            self._ray.init(address, log_to_driver=False, configure_logging=False)
        # Whatever Ray says no with: another version of Ray or Python there, a server that does not start.
        except (OSError, RuntimeError, ValueError, ImportError) as problem:
            raise ProviderUnavailable(
                f"The Ray cluster at {address} cannot be used: {_said(problem)} Ray and Python must be of the same "
                f"versions there and here; mend that, or {WITHOUT_IT}."
            ) from problem


def run_block(version: str, work: Callable[[Shared, Block], Made], shared: Shared, block: Block) -> Made:
    """The task, on whichever machine."""
    if version != __version__:
        raise OtherVersion(
            f"A machine of the Ray cluster has Recollect {__version__}, and this one {version}: install the same, "
            f"or {WITHOUT_IT}."
        )
    return work(shared, block)


def _address_of(setting: str) -> str:
    if setting != AUTO:
        return setting
    given = os.environ.get("RAY_ADDRESS", "")
    return given if given.startswith(SCHEME) else HERE


def _require_reachable(address: str) -> None:
    """Asked first, for Ray itself would try for half a minute."""
    host, _, port = address.removeprefix(SCHEME).rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACH_SECONDS).close()
    except (OSError, ValueError, OverflowError) as problem:
        raise InvalidInput(
            f"No Ray cluster answers at {address} (RECOLLECT_RAY): start it there with `ray start --head`, or "
            f"{WITHOUT_IT}.",
            field="ray",
        ) from problem


def _said(problem: BaseException) -> str:
    """The last line of what Ray says, which is often a whole traceback."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return f"{(lines or [type(problem).__name__])[-1].rstrip('.')}."
