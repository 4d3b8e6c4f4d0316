"""What a run measured, as JSON, and the page written from it: docs/beside-others.md, where we are behind first."""

import json
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.figures import Figure, shown

KEPT = Path(__file__).parent / "last.json"

PARTS = ("recall", "speed", "safety")
Peerless = dict[str, Any]  # a row as it is kept
Document = dict[str, dict[str, Any]]  # by part: about the run, and its rows


@dataclass(frozen=True, kw_only=True)
class Measure:
    """One column: what it is called in the rows, how a table heads it, and which way is better."""

    key: str
    head: str
    better: str = "lower"


QUALITY = (
    Measure(key="recall@5", head="recall@5, %", better="higher"),
    Measure(key="recall@10", head="recall@10, %", better="higher"),
)
LOADING = (
    Measure(key="loaded a second, stored", head="loaded a second, stored", better="higher"),
    Measure(key="loaded a second, findable", head="loaded a second, findable", better="higher"),
)
FULL_SIZE = 20_000
PLAINEST = "SQLite by hand"
DISK_BAR = 3.0
BARS = {"loaded a second, stored": 10_000.0, f"start to first answer at {FULL_SIZE:,}, s": 1.2}
LOST = ("two writers", "kill -9")

# A reader of the table must know it: figures on what one was tuned on flatter.
CHOSEN_ON = "On development data of LoCoMo Recollect's own weights were chosen; nobody else's were."
PAGE = """# Beside others

What Recollect and others do with the same texts, the same questions and the same embedding model (the one inside
Recollect, given to each by the interface it documents), in one run, in turn. Each peer is driven by its documented
Python interface in a process and an environment of its own, and nothing may leave the machine.

A number in brackets is the ratio to Recollect in the same round (the median over the rounds). To measure it again:
`./run bench peers --data DIR --out bench/peers/last.json`, then `./run fix`, which writes this page. `--part` measures
one part anew and leaves the others as they are.
"""


def use_of(size: int) -> tuple[Measure, ...]:
    at = f"at {size:,}"
    return (
        Measure(key=f"search p50 {at}, ms", head="search p50, ms"),
        Measure(key=f"search p95 {at}, ms", head="p95"),
        Measure(key=f"search p50 {at} with embedding, ms", head="with embedding p50, ms"),
        Measure(key=f"search p95 {at} with embedding, ms", head="p95"),
        Measure(key=f"add p50 {at}, ms", head="add one, ms"),
        Measure(key=f"start to first answer {at}, s", head="start to first answer, s"),
        Measure(key=f"memory {at}, MB", head="memory, MB"),
        Measure(key=f"disk {at}, MB", head="disk, MB"),
    )


def _measures(sizes: Sequence[int]) -> tuple[Measure, ...]:
    return (*QUALITY, *LOADING, *(one for size in sizes for one in use_of(size)))


def save(file: Path, measured: Document) -> None:
    """What was measured takes the place of what was there before, part by part."""
    before = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps({**before, **measured}, indent=1, ensure_ascii=False) + "\n")


def read(file: Path = KEPT) -> Document:
    """What was measured last; nothing where nothing was."""
    document: Document = json.loads(file.read_text()) if file.exists() else {}
    return document


def together(document: Document) -> list[Peerless]:
    """One row a peer, with what all parts say of it."""
    rows: dict[str, Peerless] = {}
    for part in PARTS:
        for row in document.get(part, {"rows": []})["rows"]:
            one = rows.setdefault(row["name"], {**row, "rounds": {}, "words": {}, "problems": {}})
            for what in ("rounds", "words", "problems"):
                one[what] |= row[what]
    return list(rows.values())


def sizes_of(document: Document) -> list[int]:
    return list(document["speed"]["about"]["sizes"]) if "speed" in document else []


# -- the page


def page(document: Document) -> str:
    rows, sizes = together(document), sizes_of(document)
    if not rows:
        return f"{PAGE}\nNothing is kept here yet of such a run.\n"
    is_safety_known = any(value(row, f"{LOST[0]}, missing") is not None for row in rows)
    parts = [PAGE, _runs(document), _behind(rows, sizes) if is_safety_known else ""]
    if "recall" in document:
        parts.append(
            f"## Evidence found\n\n{document['recall']['about']['asked']}. {CHOSEN_ON}\n\n{_table(rows, QUALITY)}"
        )
    if sizes:
        parts.append(
            f"## Loading\n\n{sizes[0]:,} memories at a time. What is stored is durable; Recollect finds it by its "
            "words from then on, and by its meaning when its vectors are there too. The model's time is in neither.\n\n"
            f"{_table(rows, LOADING)}"
        )
    for size in sizes:
        parts.append(f"## With {size:,} memories\n\n{_table(rows, use_of(size))}")
    parts += [_safety(rows) if is_safety_known else "", _versions(rows), _problems(rows)]
    return "\n".join(part for part in parts if part)


def _runs(document: Document) -> str:
    lines = [_line("part", "command", "when, commit", "cores", "load of the machine"), _line(*["---"] * 5)]
    for part, one in document.items():
        about = one["about"]
        when = f"{about['date']}, `{about['commit']}`"
        lines.append(_line(part, f"`{about['command']}`", when, str(about["cores"]), about["load"]))
    return "".join(lines)


def value(row: dict[str, Any], key: str) -> float | None:
    rounds = row["rounds"].get(key)
    return statistics.median(rounds) if rounds else None


def ratio(row: dict[str, Any], ours: dict[str, Any], key: str) -> float | None:
    """The median of the ratios of each round."""
    pairs = list(zip(row["rounds"].get(key, ()), ours["rounds"].get(key, ()), strict=False))
    return statistics.median(theirs / mine for theirs, mine in pairs) if pairs and all(m for _, m in pairs) else None


def _table(rows: Sequence[dict[str, Any]], measures: Sequence[Measure]) -> str:
    ours = rows[0]
    lines = [_line("", *(one.head for one in measures)), _line(*("---" for _ in range(len(measures) + 1)))]
    for row in rows:
        if any(one.key in row["rounds"] for one in measures):
            lines.append(_line(row["name"], *(_cell(row, ours, one.key) for one in measures)))
    return "".join(lines)


def _cell(row: dict[str, Any], ours: dict[str, Any], key: str) -> str:
    found = value(row, key)
    if found is None:
        return ""
    beside = None if row is ours else ratio(row, ours, key)
    return shown(found) if beside is None else f"{shown(found)} ({shown(beside)} x)"


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


# -- where we are behind


def lost_nothing(row: dict[str, Any]) -> bool:
    return all(value(row, f"{stage}, missing") == 0 for stage in LOST)


def behind(rows: Sequence[dict[str, Any]], sizes: Sequence[int]) -> list[tuple[Measure, str, float, float, float]]:
    """Each measure in which a peer that lost nothing is better: who is best, their value, ours, and by which factor."""
    ours, others = rows[0], [row for row in rows[1:] if lost_nothing(row) and not row["name"].startswith("Recollect")]
    found = []
    for one in _measures(sizes):
        mine = value(ours, one.key)
        best = _best(others, one)
        if mine is None or best is None:
            continue
        name, theirs = best
        factor = mine / theirs if one.better == "lower" else theirs / mine
        if factor > 1:
            found.append((one, name, theirs, mine, factor))
    return sorted(found, key=lambda each: -each[-1])


def _best(rows: Sequence[dict[str, Any]], one: Measure) -> tuple[str, float] | None:
    measured = [(row["name"], found) for row in rows if (found := value(row, one.key)) is not None]
    if not measured:
        return None
    return (min if one.better == "lower" else max)(measured, key=lambda each: each[1])


def _behind(rows: Sequence[dict[str, Any]], sizes: Sequence[int]) -> str:
    lines = [
        _line(one.key, shown(mine), f"{shown(theirs)} ({name})", f"{factor:.1f} x")
        for one, name, theirs, mine, factor in behind(rows, sizes)
    ]
    head = _line("", "Recollect", "best of those that lost nothing", "behind by") + _line("---", "---", "---", "---")
    return (
        "## Where Recollect is behind\n\nBeside the best of those that lost no acknowledged memory, neither to a "
        f"second writer nor to `kill -9`.\n\n{head}{''.join(lines)}"
    )


def figures(document: Document) -> list[Figure]:
    """Ours, each beside the best peer that lost nothing; the bars are those of the full size."""
    (ours, *others), sizes = together(document), sizes_of(document)
    found = [
        Figure(name=f"{stage}, acknowledged and missing", value=lost, bar=0, better="lower", how="of ours")
        for stage in LOST
        if (lost := value(ours, f"{stage}, missing")) is not None
    ]
    for one in _measures(sizes):
        mine, best = value(ours, one.key), _best([row for row in others if lost_nothing(row)], one)
        if mine is not None:
            beside = f"the best peer that lost nothing: {shown(best[1])} ({best[0]})" if best else "no peer beside it"
            bar = BARS.get(one.key)
            found.append(Figure(name=one.key, value=mine, bar=bar, better=one.better, how=beside))
    plain = [row for row in others if row["name"] == PLAINEST]
    plainest = _best(plain, use_of(sizes[-1])[-1]) if sizes else None
    if plainest and (mine := value(ours, f"disk at {sizes[-1]:,}, MB")):
        bar = DISK_BAR if sizes[-1] == FULL_SIZE else None
        name, how = f"disk at {sizes[-1]:,} / {PLAINEST}", f"{shown(mine)} MB and {shown(plainest[1])} MB"
        found.append(Figure(name=name, value=mine / plainest[1], bar=bar, better="lower", how=how))
    return found


# -- safety, versions, what failed


def _safety(rows: Sequence[Peerless]) -> str:
    heads = ("", "two writers", "killed while writing", "the same text twice", "another user", "preview", "undo")
    lines = [_line(*heads), _line(*("---" for _ in heads))]
    for row in rows:
        if any(cells := _safe_cells(row)):
            lines.append(_line(row["name"], *cells))
    return (
        "## Safety\n\nTwo processes write one memory after the other into one store; all processes of a peer are "
        "killed while it writes. Then a fresh process looks for each memory that was acknowledged.\n\n" + "".join(lines)
    )


def _safe_cells(row: dict[str, Any]) -> list[str]:
    words, problems = row["words"], row["problems"]
    seen = value(row, "seen by another user")
    apart = f": {words['kept apart by']}" if words.get("kept apart by") else ""
    return [
        *(problems.get(stage) or _losses(row, stage) for stage in LOST),
        problems.get("told twice") or words.get("told twice", ""),
        problems.get("another user") or ("" if seen is None else ("sees it" if seen else "does not see it") + apart),
        words.get("preview", ""),
        words.get("undo", ""),
    ]


def _losses(row: dict[str, Any], stage: str) -> str:
    kept, missing = value(row, f"{stage}, acknowledged"), value(row, f"{stage}, missing")
    if kept is None or missing is None:
        return ""
    notes = [row["words"].get(f"{stage}, {note}") for note in ("refused", "afterwards")]
    more = "".join(f"; refused {note}" if place == 0 else f"; {note}" for place, note in enumerate(notes) if note)
    return f"{missing:.0f} of {kept:.0f} missing{more}"


def _versions(rows: Sequence[Peerless]) -> str:
    lines = [_line(row["name"], row["version"], row["words"].get("how", "")) for row in rows if row["version"]]
    return "## Versions\n\n" + _line("", "version", "driven by") + _line("---", "---", "---") + "".join(lines)


def _problems(rows: Sequence[Peerless]) -> str:
    lines = [_line(row["name"], stage, why) for row in rows for stage, why in row["problems"].items()]
    if not lines:
        return ""
    head = _line("", "what", "why") + _line("---", "---", "---")
    return f"## What could not be measured\n\n{head}{''.join(lines)}"
