"""Measuring beside others: the protocol, a failing peer, ours and the plainest one at a tiny size, the page."""

import asyncio
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.peers import quality, report, safety, texts
from bench.peers.contenders import Contender, Row
from bench.peers.field import FIELD, Peer
from bench.peers.match import takes_part
from bench.peers.talking import PeerFailed, Talk
from recollect.providers.hashing import HashingEmbedder

TOLD = ["Linh drinks green tea", "The cat sleeps on the red sofa", "Otto plays the cello on Sundays"]
PATIENCE_SECONDS = 120


@pytest.fixture
def hashed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors without the model: what a peer does with them is the same."""

    def known(wanted: list[str]) -> texts.Known:
        once = tuple(dict.fromkeys(wanted))
        file = tmp_path / f"{len(once)}.npz"
        np.savez(file, texts=np.array(once), vectors=asyncio.run(HashingEmbedder(dim=384).embed(once)))
        return texts.Known(texts=once, file=file)

    monkeypatch.setattr(texts, "known", known)


def talk_with(driver: str, directory: Path) -> Talk:
    return Talk(Path(sys.executable), driver, directory, seconds=PATIENCE_SECONDS)


def test_a_peer_answers_line_by_line_and_keeps_what_it_was_told(tmp_path: Path, hashed: None) -> None:
    file = texts.known([*TOLD, "tea"]).file
    with talk_with("plain_sqlite", tmp_path / "store") as talk:
        talk.know(file)
        assert len(talk.add([(text,) for text in TOLD[:2]])) == 2
        stored, findable = talk.load([(TOLD[2],)])
        assert 0 < stored == findable
        assert talk.megabytes() > 0
    with talk_with("plain_sqlite", tmp_path / "store") as talk:
        talk.know(file)
        ((first, *_),), spent = talk.search(["tea"])
        assert [first, len(spent)] == [TOLD[0], 1]
        assert talk.search(["tea"], user="ben")[0] == [[]]


def test_what_a_peer_raises_is_said_and_it_goes_on(tmp_path: Path, hashed: None) -> None:
    with talk_with("plain_sqlite", tmp_path / "store") as talk:
        with pytest.raises(PeerFailed, match="dance"):
            talk.ask("dance")
        talk.know(texts.known(TOLD).file)
        talk.add([(TOLD[0],)])


def test_a_peer_that_is_not_there_or_dies_says_why(tmp_path: Path) -> None:
    with pytest.raises(PeerFailed, match="No module named"), talk_with("txtai_hybrid", tmp_path / "none") as talk:
        talk.search(["tea"])
    with talk_with("plain_sqlite", tmp_path / "store") as talk:
        talk.killed_after(0).join()
        with pytest.raises(PeerFailed):
            talk.search(["tea"])


def test_ours_beside_the_plainest_one(new_home: Path, tmp_path: Path, hashed: None) -> None:
    conversation = tmp_path / "data" / "one"
    conversation.mkdir(parents=True)
    rows = [
        {"id": f"D1:{place}", "text": text, "created_at": "2026-05-08T13:56:00Z", "metadata": {"session": 1}}
        for place, text in enumerate(TOLD)
    ]
    (conversation / "corpus.jsonl").write_text("\n".join(map(json.dumps, rows)))
    asked = {"id": "q", "text": "who plays the cello?", "relevant": ["D1:2"]}
    (conversation / "queries.jsonl").write_text(json.dumps(asked))
    # One store a contender, so that a single home is made: `quality` takes it away afterwards.
    (new_home.parent / "told").mkdir()
    new_home.rename(new_home.parent / "told" / "home")
    ours = contender(FIELD[0], new_home.parent)
    plain = contender(next(one for one in FIELD if one.driver == "plain_sqlite"), tmp_path / "plain")
    broken = contender(Peer(name="Broken", driver="txtai_hybrid", how=""), tmp_path / "broken")
    known = texts.known([safety.SECRET, safety.ANOTHER])
    for one in (ours, plain, broken):
        one.attempt("told twice", safety._told_twice, one, known, PATIENCE_SECONDS)
        one.attempt("another user", safety._another_user, one, known, PATIENCE_SECONDS)
    said = quality.measure([plain, broken], tmp_path / "data", seconds=PATIENCE_SECONDS, conversations=None)
    assert said == "1 questions about 1 conversations of data"
    assert plain.row.rounds["recall@5"] == [100.0]
    assert ours.row.words["told twice"] == "the second is refused; kept once"
    assert plain.row.words["told twice"] == "the second is accepted; kept 2 times"
    assert ours.row.rounds["seen by another user"] == plain.row.rounds["seen by another user"] == [0.0]
    assert set(broken.row.problems) == {"told twice", "another user", "recall"}
    assert "No module named" in broken.row.problems["recall"]


def test_two_writers_at_once_lose_nothing(tmp_path: Path, hashed: None) -> None:
    plain = contender(next(one for one in FIELD if one.driver == "plain_sqlite"), tmp_path / "plain")
    safety._two_writers(plain, texts.known(texts.sentences(6, seed=7)), 3, PATIENCE_SECONDS)
    assert plain.row.rounds["two writers, acknowledged"] == [6]
    assert plain.row.rounds["two writers, missing"] == [0]


def contender(peer: Peer, place: Path) -> Contender:
    return Contender(peer=peer, python=Path(sys.executable), row=Row(name=peer.name), place=place, say=lambda _: None)


def row(name: str, *, p50: list[float], recall: float, missing: float = 0) -> Row:
    made = Row(name=name, version="1.0", words={"undo": "no"})
    made.rounds["search p50 at 10, ms"] = p50
    made.rounds["recall@5"] = [recall]
    for stage in report.LOST:
        made.rounds[f"{stage}, acknowledged"], made.rounds[f"{stage}, missing"] = [100], [missing]
    return made


ABOUT = {"command": "./run bench peers", "date": "2026-11-17", "commit": "abc", "cores": 2, "load": "0 to 1"}


def part(rows: list[Row], **more: object) -> dict[str, Any]:
    return {"about": ABOUT | more, "rows": [asdict(row) for row in rows]}


def test_a_quick_run_leaves_out_the_slow_unless_they_are_named() -> None:
    quick = [peer.name for peer in FIELD if takes_part(peer, None, quick=True)]
    assert "SQLite by hand" in quick
    assert "txtai" not in quick
    assert [peer.name for peer in FIELD if takes_part(peer, ["txtai"], quick=True)] == [*quick[:2], "txtai"]
    assert all(takes_part(peer, None, quick=False) for peer in FIELD)


def test_the_page_says_first_where_we_are_behind_and_names_what_failed(tmp_path: Path) -> None:
    rows = [
        row("Recollect", p50=[10, 12, 20], recall=60),
        row("Fast", p50=[5, 4, 5], recall=40),
        row("Careless", p50=[1, 1, 1], recall=70, missing=30),
        Row(name="Absent", problems={"install": "not installed: no such package"}),
    ]
    report.save(tmp_path / "last.json", {"recall": part(rows, asked="3 questions")})
    report.save(tmp_path / "last.json", {"speed": part([row("Recollect", p50=[99], recall=60)], sizes=[10])})
    report.save(tmp_path / "last.json", {"speed": part(rows, sizes=[10])})
    page = report.page(report.read(tmp_path / "last.json"))
    assert page.index("## Where Recollect is behind") < page.index("## Evidence found")
    assert "| search p50 at 10, ms | 12 | 5 (Fast) | 2.4 x |" in page
    assert "| Fast | 5 (0.333 x) |" in page, "the median of the ratios of each round"
    assert "70 (Careless)" not in page, "who loses memories is not what we are measured by"
    assert "30 of 100 missing" in page
    assert "| Absent | install | not installed: no such package |" in page


def test_the_figures_are_ours_with_the_best_peer_beside() -> None:
    rows = [row("Recollect", p50=[10], recall=60, missing=1), row("Fast", p50=[5], recall=40)]
    figures = {one.name: one for one in report.figures({"speed": part(rows, sizes=[10])})}
    assert figures["search p50 at 10, ms"].how == "the best peer that lost nothing: 5 (Fast)"
    assert not figures["kill -9, acknowledged and missing"].holds
