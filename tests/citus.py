"""A real Citus cluster for tests, where one can be had: the variable below names a script that starts one.

`SCRIPT start DIR PORT` prints the URL of the coordinator, whose database `recollect` knows its workers, and
`SCRIPT stop DIR` ends it. PYTHON names an interpreter whose packages hold PostgreSQL. Where there is no script,
those tests say so.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

import asyncpg

from recollect.engine.engine import Engine

VARIABLE = "RECOLLECT_CITUS_CLUSTER"
SCRIPT = os.environ.get(VARIABLE)  # before the tests empty the environment
ABSENT = f"there is no Citus here: {VARIABLE} names no script that starts a cluster"
NODES = 3
SHARD_OF = "SELECT get_shard_id_for_distribution_column('recollect.nodes', $1::uuid)"
PLACE_OF = "SELECT nodeport FROM pg_dist_shard_placement WHERE shardid = $1"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """A coordinator and two workers, and where their data lies."""

    directory: Path
    port: int

    @property
    def url(self) -> str:
        return self.url_of(0)

    def url_of(self, node: int, database: str = "recollect", user: str = "postgres") -> str:
        """The coordinator is node 0, the workers are 1 and 2."""
        return f"postgresql://{user}@127.0.0.1:{self.port + node}/{database}"

    def start(self) -> None:
        self._say("start", str(self.directory), str(self.port))

    def stop(self) -> None:
        self._say("stop", str(self.directory))

    def kill(self, node: int) -> None:
        """As a power failure would."""
        os.kill(self.postmaster(node), signal.SIGKILL)

    def postmaster(self, node: int) -> int:
        """The id of its first process."""
        return int((self.directory / f"node{node}" / "postmaster.pid").read_text().split()[0])

    def restart(self) -> None:
        """All of them. The script may then complain that everything is made already: the servers run."""
        self.stop()
        self._say("start", str(self.directory), str(self.port), check=False)

    def _say(self, *words: str, check: bool = True) -> None:
        assert SCRIPT is not None, ABSENT
        environment = {**os.environ, "PYTHON": sys.executable}
        subprocess.run([SCRIPT, *words], env=environment, check=check, stdout=subprocess.DEVNULL)


@contextmanager
def running() -> Iterator[Cluster]:
    directory = Path(tempfile.mkdtemp(prefix="recollect-citus-"))
    directory.chmod(0o755)
    cluster = Cluster(directory=directory, port=free_ports(NODES))
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
        shutil.rmtree(directory, ignore_errors=True)


async def new_database(cluster: Cluster, name: str) -> str:
    """Another database of the cluster, which knows its workers too; its URL."""
    for node in range(NODES):
        there = await asyncpg.connect(cluster.url_of(node, "postgres"))
        await there.execute(f"CREATE DATABASE {name}")
        await there.close()
        there = await asyncpg.connect(cluster.url_of(node, name))
        await there.execute("SET client_min_messages = warning; CREATE EXTENSION citus; CREATE EXTENSION vector")
        await there.close()
    coordinator = await asyncpg.connect(cluster.url_of(0, name))
    await coordinator.execute(f"SELECT citus_set_coordinator_host('127.0.0.1', {cluster.port})")
    for node in range(1, NODES):
        await coordinator.execute(f"SELECT citus_add_node('127.0.0.1', {cluster.port + node})")
    await coordinator.close()
    return cluster.url_of(0, name)


async def space_on(engine: Engine, cluster: Cluster, node: int, name: str) -> Engine:
    """A new space that lies on this worker."""
    coordinator = await asyncpg.connect(cluster.url)
    try:
        for number in range(100):
            space = await engine.add_space(f"{name}-{number}")
            if await placed_at(coordinator, space.id) == cluster.port + node:
                return await engine.in_space(space.slug)
    finally:
        await coordinator.close()
    raise AssertionError("no space of a hundred lies there")


async def placed_at(coordinator: asyncpg.Connection, space_id: UUID) -> int:
    return int(await coordinator.fetchval(PLACE_OF, await coordinator.fetchval(SHARD_OF, space_id)))


def free_ports(number: int) -> int:
    """The first of some ports in a row that nobody uses, below those that connections are given by themselves."""
    for first in range(20_000 + os.getpid() % 3_000 * 4, 32_000 + number, number):
        if all(map(is_free, range(first, first + number))):
            return first
    raise AssertionError("no ports are free")


def is_free(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) != 0
