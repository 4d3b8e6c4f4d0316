"""A Ray cluster on this machine, for measurements and tests: on loopback alone, without a dashboard, telling nobody.

It is started by a process of its own, in a session of its own: whoever starts nodes of Ray is made the leader of a new
process group, gets another handler for SIGTERM, and is ended with the nodes.
"""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
# The second keeps an address of 127.0.0.1 from becoming the machine's own; the third lets a server of Ray's client
# start while other threads of its parent use gRPC.
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "GRPC_ENABLE_FORK_SUPPORT": "0",
    "RAY_raylet_start_wait_time_s": "300",
    "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]),
}
END_SECONDS = 120


class RayNodes:
    """The cluster of another process, told what to do."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, what: str) -> str:
        """`add` a node (its id is the answer), `remove` it without a word, or `kill` everything."""
        assert self._process.stdin
        self._process.stdin.write(f"{what}\n")
        self._process.stdin.flush()
        return self.answer()

    def answer(self) -> str:
        assert self._process.stdout
        for line in self._process.stdout:
            with contextlib.suppress(ValueError):  # Ray may say something, too
                return str(json.loads(line)["answer"])
        raise RuntimeError("The process that starts Ray broke off.")


@contextmanager
def ray_cluster(processors: Sequence[int], *, store_bytes: int = 200_000_000) -> Iterator[tuple[str, RayNodes]]:
    """A node for each number of processors; yields the address for clients, and the nodes."""
    command = [sys.executable, "-m", "bench.ray_cluster", str(store_bytes), *map(str, processors)]
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env={**os.environ, **SETTINGS},
        start_new_session=True,
    )
    try:
        nodes = RayNodes(process)
        yield nodes.answer(), nodes
    finally:
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            process.stdin.close()  # type: ignore[union-attr]
            process.wait(END_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()  # type: ignore[union-attr]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


# -- the other process


def main(store_bytes: int, processors: Sequence[int]) -> None:
    from ray.cluster_utils import Cluster

    cluster, port = Cluster(), free_port()
    node = {"node_ip_address": "127.0.0.1", "include_dashboard": False, "object_store_memory": store_bytes}
    for number, cores in enumerate(processors):
        cluster.add_node(num_cpus=cores, **node, **({"ray_client_server_port": port} if number == 0 else {}))
    _wait_for(port)
    _say(f"ray://127.0.0.1:{port}")
    added: Any = None
    for line in sys.stdin:
        match line.strip():
            case "add":
                added = cluster.add_node(num_cpus=1, **node)
                _say(added.node_id)
            case "remove":
                cluster.remove_node(added, allow_graceful=False)
                _say("removed")
            case "kill":
                for one in (one for some in cluster.head_node.all_processes.values() for one in some):
                    os.kill(one.process.pid, signal.SIGKILL)
                _say("killed")
    cluster.shutdown()


def _say(answer: str) -> None:
    print(json.dumps({"answer": answer}), flush=True)


def _wait_for(port: int) -> None:
    """The server for clients is the last to come up."""
    for _ in range(3000):
        with contextlib.suppress(OSError):
            return socket.create_connection(("127.0.0.1", port)).close()
        time.sleep(0.1)
    raise TimeoutError("Ray's server for clients did not come up.")


if __name__ == "__main__":
    main(int(sys.argv[1]), [int(cores) for cores in sys.argv[2:]])
