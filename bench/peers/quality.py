"""How much of the evidence is found: every question of every conversation, each conversation in a store of its own."""

import shutil
import statistics
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.peers import texts
from bench.peers.contenders import Contender, same
from bench.recall import judge, rows

DEPTH = 10
AT = (5, 10)


def measure(contenders: Sequence[Contender], data: Path, *, seconds: float, conversations: int | None) -> str:
    """Fills `recall@5` and `recall@10` of each row; says what was asked."""
    folders = sorted(one for one in data.iterdir() if (one / "queries.jsonl").exists())[:conversations]
    found: dict[str, dict[int, list[float]]] = {one.peer.name: defaultdict(list) for one in contenders}
    for folder in folders:
        corpus, asked = rows(folder / "corpus.jsonl"), rows(folder / "queries.jsonl")
        known = texts.known([row["text"] for row in (*corpus, *asked)])
        for one in contenders:
            one.attempt("recall", _ask, one, folder, found[one.peer.name], known, seconds=seconds)
            shutil.rmtree(one.place / folder.name, ignore_errors=True)
    for one in contenders:
        if "recall" not in one.row.problems:
            for k in AT:
                one.row.rounds[f"recall@{k}"] = [100 * statistics.mean(found[one.peer.name][k])]
    asked_in_all = len(next(iter(found.values()))[AT[0]])
    return f"{asked_in_all} questions about {len(folders)} conversations of {data.name}"


def _ask(one: Contender, folder: Path, found: dict[int, list[float]], known: texts.Known, *, seconds: float) -> None:
    corpus, asked = rows(folder / "corpus.jsonl"), rows(folder / "queries.jsonl")
    with one.talk(folder.name, seconds=seconds) as talk:
        talk.know(known.file)
        talk.load([_memory(row) for row in corpus])
        hits, _ = talk.search([question["text"] for question in asked], limit=DEPTH)
    _judge(corpus, asked, hits, found)


def _memory(row: dict[str, Any]) -> tuple[str, str, str]:
    return row["text"], f"session {row['metadata'].get('session', 0)}", row["created_at"]


def _judge(
    corpus: Sequence[dict[str, Any]],
    asked: Sequence[dict[str, Any]],
    hits: Sequence[Sequence[str]],
    found: dict[int, list[float]],
) -> None:
    """A text that was said twice stands for both."""
    ids: dict[str, list[str]] = defaultdict(list)
    for row in corpus:
        ids[same(row["text"])].append(row["id"])
    for question, one in zip(asked, hits, strict=True):
        judge(question, [id_ for text in one for id_ in ids[same(text)]], found, [])
