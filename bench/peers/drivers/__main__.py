"""python -m bench.peers.drivers MODULE DIRECTORY VARIANT: a peer that answers line by line."""

import sys
from importlib import import_module
from pathlib import Path

from bench.peers.drivers.driver import serve

if __name__ == "__main__":
    serve(import_module(f"bench.peers.drivers.{sys.argv[1]}").Peer, Path(sys.argv[2]), sys.argv[3])
