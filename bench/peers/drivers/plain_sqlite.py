"""Plain SQLite: FTS5 for the words, vectors as blobs multiplied by numpy, the two orders fused by their ranks.

What a good engineer would write in an afternoon; durable (WAL, synchronous=FULL), and open to several writers.
"""

import re
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from bench.peers.drivers.driver import DIM, Driver, Memory

TABLES = """
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
CREATE TABLE IF NOT EXISTS memories (
    id INTEGER PRIMARY KEY, user TEXT NOT NULL, text TEXT NOT NULL, vector BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS memories_of ON memories (user);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (text, content = memories, content_rowid = id, tokenize = porter);
CREATE TRIGGER IF NOT EXISTS words_of AFTER INSERT ON memories
    BEGIN INSERT INTO words (rowid, text) VALUES (new.id, new.text); END;
"""
POOL = 100
RANK_BEGINS_AT = 60  # the usual constant of fusing by ranks


class Peer(Driver):
    def open(self) -> None:
        self.base = sqlite3.connect(self.directory / "memories.db", timeout=30)
        self.base.executescript(TABLES)

    def add(self, memory: Memory, user: str) -> None:
        self.load([memory], user)

    def load(self, memories: Sequence[Memory], user: str) -> None:
        vectors = self.embed([memory.text for memory in memories])
        rows = [(user, memory.text, vector.tobytes()) for memory, vector in zip(memories, vectors, strict=True)]
        with self.base:
            self.base.executemany("INSERT INTO memories (user, text, vector) VALUES (?, ?, ?)", rows)

    def search(self, question: str, user: str, limit: int) -> Iterable[str]:
        scores: dict[int, float] = {}
        for found in (self.by_words(question, user), self.by_meaning(question, user)):
            for place, id_ in enumerate(found):
                scores[id_] = scores.get(id_, 0.0) + 1 / (RANK_BEGINS_AT + place)
        best = sorted(scores, key=lambda id_: -scores[id_])[:limit]
        return [self.base.execute("SELECT text FROM memories WHERE id = ?", (id_,)).fetchone()[0] for id_ in best]

    def by_words(self, question: str, user: str) -> list[int]:
        wanted = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question))
        rows = self.base.execute(
            "SELECT words.rowid FROM words JOIN memories ON memories.id = words.rowid"
            " WHERE words MATCH ? AND user = ? ORDER BY words.rank LIMIT ?",
            (wanted or '""', user, POOL),
        )
        return [id_ for (id_,) in rows]

    def by_meaning(self, question: str, user: str) -> list[int]:
        rows: list[Any] = self.base.execute("SELECT id, vector FROM memories WHERE user = ?", (user,)).fetchall()
        if not rows:
            return []
        vectors = np.frombuffer(b"".join(vector for _, vector in rows), np.float32).reshape(-1, DIM)
        return [rows[place][0] for place in np.argsort(-(vectors @ self.embed([question])[0]))[:POOL]]

    def close(self) -> None:
        self.base.close()
