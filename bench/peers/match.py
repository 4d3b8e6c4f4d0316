"""The run: who takes part, what is asked of each, what comes out."""

import argparse
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.figures import Figure, as_typed, commit
from bench.peers import installing, quality, report, safety, speed
from bench.peers.contenders import PREFIX, Contender, Row, in_one_line
from bench.peers.field import FIELD, Peer
from bench.peers.talking import PeerFailed

SIZE = 20_000
LOADS = 4  # so many loads make the full size; the first of them is the smaller size at which all is measured


def run(size: int | None, rest: list[str]) -> list[Figure]:
    parser = argparse.ArgumentParser(prog="./run bench peers")
    parser.add_argument("--data", type=Path, help="evaluation data: a folder with one folder a conversation")
    parser.add_argument("--conversations", type=int, help="so many of them; all, unless it is to be quick")
    parser.add_argument("--quick", action="store_true", help="small sizes, without the slow ones: within five minutes")
    parser.add_argument("--part", nargs="+", choices=report.PARTS, default=report.PARTS, help="only these parts")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these beside Recollect")
    parser.add_argument("--out", type=Path, help="write what was measured here; parts not measured stay as they are")
    parser.add_argument("--patience", type=float, help="seconds that a peer may take for one request")
    parser.add_argument("--rounds", type=int, help="how often each size is measured (3)")
    given = parser.parse_args(rest)
    place = Path(tempfile.mkdtemp(prefix=PREFIX))
    place.chmod(0o755)
    document: report.Document = {}
    try:
        contenders, absent = entered(given.only, place, quick=given.quick)
        for part in given.part:
            if part == "recall" and not given.data:
                continue
            began = os.getloadavg()[0]
            more = measured(part, contenders, size, given)
            document[part] = {
                "about": {
                    "command": as_typed("peers", size, rest),
                    "date": f"{datetime.now(UTC):%Y-%m-%d}",
                    "commit": commit(),
                    "cores": cores(),
                    "load": f"{began:.1f} to {os.getloadavg()[0]:.1f}",
                    **more,
                },
                "rows": [asdict(row) for row in sorted([*absent, *(one.taken() for one in contenders)], key=in_order)],
            }
            if given.out:
                report.save(given.out, document)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return report.figures(document)


def measured(part: str, contenders: Sequence[Contender], size: int | None, given: argparse.Namespace) -> dict[str, Any]:
    """One part; what it has to say besides its rows."""
    seconds = given.patience or (60.0 if given.quick else 900.0)
    alone = [one for one in contenders if one.peer.variant != "bare"]
    if part == "recall":
        most = given.conversations or (1 if given.quick else None)
        return {"asked": quality.measure(contenders, given.data, seconds=seconds, conversations=most)}
    if part == "speed":
        full = size or (1000 if given.quick else SIZE)
        sizes = (full // LOADS, full)
        speed.measure(alone, sizes, rounds=given.rounds or (1 if given.quick else 3), seconds=seconds)
        return {"sizes": sizes}
    is_small = given.quick or size is not None
    safety.measure(alone, writes=40 if is_small else 300, kills=2 if is_small else 5, seconds=seconds)
    return {}


def cores() -> int:
    """Those that the run may use, where the system tells."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_order(row: Row) -> int:
    return [peer.name for peer in FIELD].index(row.name)


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def entered(only: Sequence[str] | None, place: Path, *, quick: bool = False) -> tuple[list[Contender], list[Row]]:
    """Whoever can be installed; and of the others, rows that say why not."""
    contenders: list[Contender] = []
    absent: list[Row] = []
    for number, peer in enumerate(FIELD):
        if not takes_part(peer, only, quick=quick):
            continue
        row = Row(name=peer.name, words={"how": peer.how})
        if peer.reason:
            absent.append(replace(row, problems={"not driven": peer.reason}))
            continue
        try:
            python = installing.python_with(peer.packages, say)
            row.version = version(peer, python)
        except PeerFailed as problem:
            absent.append(replace(row, problems={"install": in_one_line(str(problem))}))
            continue
        contenders.append(Contender(peer=peer, python=python, row=row, place=place / str(number), say=say))
    return contenders, absent


def takes_part(peer: Peer, only: Sequence[str] | None, *, quick: bool) -> bool:
    """Whoever is named beside Recollect; where nobody is, all, or in a quick run those that are not slow."""
    if peer.driver == "ours":
        return True
    if only:
        return any(word.lower() in peer.name.lower() for word in only)
    return not (quick and peer.is_slow)


def version(peer: Peer, python: Path) -> str:
    if not peer.package:
        import sqlite3

        return f"SQLite {sqlite3.sqlite_version}"
    return f"{peer.package} {installing.version(python, peer.package)}"
