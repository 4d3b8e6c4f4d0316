"""Benchmarks: `./run bench NAME [--size N] [--json FILE]`. What docs/figures.md comes from."""

import argparse
import importlib
import sys
from pathlib import Path

from bench.figures import as_typed, save, show

NAMES = (
    *("store", "recall", "notes", "graph", "cases", "dedupe", "pages", "web", "web_graph", "walks", "year"),
    *("peers", "faults", "servers", "scale"),
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="./run bench", description=__doc__)
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--size", type=int, help="smaller for a quick look; the full size is the default")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    given, rest = parser.parse_known_args()
    figures = importlib.import_module(f"bench.{given.name}").run(given.size, rest)
    show(figures)
    if given.json:
        save(figures, given.json, as_typed(given.name, given.size, rest))
    return 0 if all(figure.holds for figure in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
