"""The figures that were measured last: kept in bench/results, shown in docs/figures.md and, ten of them, in the README.

`./run bench NAME --json bench/results/NAME.json` measures them anew, `./run fix` writes both pages from what is there.
Each figure carries the day, the commit and the command it was measured with. `copied_from` marks those that were taken,
rounded, from the table that the README had before: their commit is the one that recorded them there.
"""

import json
from pathlib import Path
from typing import Any

from bench.figures import shown

ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).parent / "results"
BEGIN, END = "<!-- figures: written by ./run fix from bench/results -->\n", "<!-- /figures -->\n"

PAGE = """# Figures

What was measured, with which command, when, and on which commit. The machine had 2 cores and no GPU. A ratio (`/`)
compares two sides that were measured in the same run. The bar is what the project holds itself to; **no** marks what
misses it.

A commit marked *README of* means that the figure was copied, rounded, from the table that the README of that commit
had: it was measured on that commit or shortly before it, and some of those (pooled over several sets, or computed by
the sets' own scorers from the run file) are not printed by the command under this name. All others were written here
by the command itself.

To measure something again: `./run bench NAME --json bench/results/NAME.json`, then `./run fix`, which writes this
page. `DIR` and `FILE` stand for evaluation data that is not part of the repository; LoCoMo and BEAM are the
development parts named in [ADR 6](adr/0006-fusion.md), with one configuration for both.
"""

# What a newcomer wants to know first: the words, the file and the figure, how its value is said.
TEN = (
    (
        "Adding 100,000 memories, against a bare `COPY` of the same rows",
        "store",
        "bulk add / bare COPY",
        "{:.2f} of its speed",
    ),
    (
        "LoCoMo, evidence found in the first 10, without any model (BM25 alone: 63.8)",
        "recall-locomo",
        "recall@10",
        "{:.1f} %",
    ),
    ("BEAM, the same (BM25 alone: 42.7)", "recall-beam", "recall@10", "{:.1f} %"),
    (
        "A whole recall over 100,000 memories that stay as they are, against a bare pgvector query that finds as much",
        "recall",
        "recall / bare pgvector top 200 that finds as much, p50",
        "{:.2f} x its time",
    ),
    ("Search while another process writes (p95, against quiet)", "recall", "p95 under writes / quiet", "{:.2f} x"),
    ("Tidying 1,000 links: proposed and applied", "graph", "A30: tidying 1,000 edges, ms", "{:.0f} ms"),
    ("Undoing a plan of 100,000 changes", "graph", "undo, changes a second", "{:,.0f} changes a second"),
    ("Concepts merged without asking that were wrong", "dedupe-data", "wrong merges, all sets", "{1:.1f} %"),
    ("Finding every duplicate among 100,000 names", "dedupe", "exact detection, s", "{:.1f} s"),
    ("The web page over 100,000 memories, first view", "web", "first view, seconds", "{:.2f} s"),
)


def kept(name: str) -> dict[str, dict[str, Any]]:
    """The figures of one file: what `./run bench --json` writes, with day, commit and command."""
    found: dict[str, dict[str, Any]] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def page() -> str:
    """docs/figures.md: every figure there is, file by file."""
    names = sorted(file.stem for file in RESULTS.glob("*.json"))
    return PAGE + "".join(_section(name, kept(name)) for name in names)


def _section(name: str, figures: dict[str, dict[str, Any]]) -> str:
    (command,) = {one["command"] for one in figures.values()}
    head = f"\n## {name}\n\n`{command}`\n\n| figure | measured | bar | how | when, commit |\n|---|---|---|---|---|\n"
    return head + "".join(_line(title, one) for title, one in figures.items())


def _line(title: str, one: dict[str, Any]) -> str:
    commit = f"README of `{one['commit']}`" if "copied_from" in one else f"`{one['commit']}`"
    return f"| {title} | {shown(one['value'])} | {bar(one)} | {one['how']} | {one['date']}, {commit} |\n"


def bar(one: dict[str, Any]) -> str:
    """What a figure is held against, and whether it misses that."""
    if one["bar"] is None:
        return ""
    sign = "at least" if one["better"] == "higher" else "at most"
    return f"{sign} {shown(one['bar'])}" + ("" if one["holds"] else ": **no**")


def readme() -> str:
    """The README, with the ten figures that matter as they were measured last."""
    text = (ROOT / "README.md").read_text()
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    return before + BEGIN + _table() + END + after


def _table() -> str:
    return "| | |\n|---|---|\n" + "".join(_short(*one) for one in TEN)


def _short(words: str, name: str, figure: str, said: str) -> str:
    value = kept(name)[figure]["value"]
    return f"| {words} | {said.format(value, 100 * value)} |\n"
