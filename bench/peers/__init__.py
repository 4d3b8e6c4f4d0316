"""Recollect beside others, with the same embedder, in turn: what is found, how fast, how large, and what is lost.

./run bench peers [--data DIR] [--quick] [--only NAME ...] [--out FILE]

Each peer gets a virtual environment of its own below the user's cache directory (the first run installs them, and
embeds the texts once). One that cannot be installed or driven keeps its row, which says why.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bench.figures import Figure


def run(size: int | None, rest: list[str]) -> "list[Figure]":
    from bench.peers.match import run as play  # drivers import this package where nothing of ours is installed

    return play(size, rest)
