"""Notes as people keep them: facts deep in long notes (D47), and when `ask` answers and when it keeps silent (D45).

In English, and in thirteen other languages (D43, D44): two dozen notes of each among English ones, all in one space.

./run bench notes [--size 12]          facts of an invented life among real documentation; so many facts a set
./run bench notes --chats DIR          and conversations (as `bench recall --data`): their own questions, and another's

Two sets. `development` is what relevance was fitted on (docs/adr/0020-relevance.md); `kept back` was written later: no
weight was chosen by it, but its first forty facts were in view when it was decided in which windows of a long note
words count (docs/adr/0021-passages.md). Each fact is asked in three ways: in other words than its own, halfway, and
plainly. Many questions in vain are about things that are there, and ask what is not told of them. Of the notes in other
languages one half is asked for in development, the other is kept back; some questions in vain name somebody who is
there, as above. The documentation is that of Python and of the packages that are installed, so that figures differ a
little from one version of those to the next.
"""

import argparse
import ast
import asyncio
import csv
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path
from pydoc_data.topics import topics
from typing import NamedTuple
from uuid import UUID, uuid4

from bench.figures import Figure
from bench.recall import rows, taught, temporary_engine
from recollect.engine.engine import Engine
from recollect.model import Mode, NewMemory
from recollect.recall.rules import ranking

TOLD = Path(__file__).parent / "notes_told"
SETS = {"development": "development.tsv", "kept back": "kept_back.tsv"}
LANGUAGES = "languages.tsv"
# By how a language is written: what a model for English makes of it, and how it is cut into words, goes by that.
WRITTEN = {
    "in Latin letters": ("french", "german", "polish", "spanish", "turkish", "vietnamese"),
    "in other letters": ("arabic", "greek", "hindi", "russian"),
    "in pairs of characters": ("japanese", "korean", "thai"),
}
PACKAGES = ("numpy", "sqlalchemy", "alembic", "pydantic", "fastapi", "httpx", "rich", "typer", "anyio")
WORDS = (2000, 7000)
PARAGRAPHS = 400
ENGLISH = 300
LONG_NOTES = 24
FIRST = 5

LOST, SHOWN, FOUND = 0.05, 0.10, 0.80
# How a fact in a long note is asked for, and how many of them are to be found.
WAYS = {"in other words": ("asked", FOUND), "halfway": ("halfway", None), "in its own words": ("plainly", None)}


class Told(NamedTuple):
    """A line of a set: what is told, and what is asked: in other words than those, in the same, and in some of them."""

    kind: str
    told: str
    asked: str
    plainly: str
    halfway: str


class Foreign(NamedTuple):
    """A line in another language: what is told, and what is asked of it. Asked in vain, nothing is told."""

    language: str
    set: str
    told: str
    asked: str


class Silence(NamedTuple):
    """Of questions whose answer is ranked first, how many `ask` does not answer; of those in vain, how many it does."""

    ranked_first: int
    lost: int
    asked_in_vain: int
    shown: int


def run(size: int | None, rest: list[str]) -> list[Figure]:
    parser = argparse.ArgumentParser(prog="./run bench notes")
    parser.add_argument("--chats", type=Path, help="a folder with one folder a conversation")
    given = parser.parse_args(rest)
    if given.chats and not conversations(given.chats):
        parser.error(f"there is no folder with a queries.jsonl in {given.chats}")
    return asyncio.run(measured(size, given.chats))


async def measured(size: int | None, chats: Path | None) -> list[Figure]:
    figures: list[Figure] = []
    documentation = cycle(prose(PACKAGES))
    about_python = list(paragraphs(text for _, text in sorted(topics.items())))
    topic = iter(about_python)
    async with temporary_engine() as engine:
        for name, file in SETS.items():
            told = lines(TOLD / file, size)
            around = [next(topic) for _ in range(PARAGRAPHS)]
            figures += await among_paragraphs(engine, name, told, around)
            figures += await in_long_notes(engine, name, told["fact"], documentation)
            print(f"{name}: {len(told['fact'])} facts", flush=True)
        english = [one.told for one in lines(TOLD / SETS["development"], None)["fact"]]
        figures += await in_other_languages(engine, size, [*english, *about_python][:ENGLISH])
        if chats:
            figures += await in_chats(engine, chats)
    return figures


def lines(file: Path, most: int | None) -> Mapping[str, Sequence[Told]]:
    """What a set tells and asks, by kind."""
    with file.open(encoding="utf8", newline="") as opened:
        told = [Told(**line) for line in csv.DictReader(opened, delimiter="\t", quoting=csv.QUOTE_NONE)]
    return {
        kind: [one for one in told if one.kind == kind][:most] for kind in ("fact", "vain", "title", "typo", "script")
    }


# -- what stands around the facts


def paragraphs(texts: Iterator[str]) -> Iterator[str]:
    """The paragraphs of some texts that are prose: of 12 to 120 words, mostly letters; each once."""
    seen: set[str] = set()
    for text in texts:
        for part in re.split(r"\n\s*\n", text):
            words = part.split()
            one = " ".join(words)
            if (
                12 <= len(words) <= 120
                and one not in seen
                and sum(c.isalpha() or c == " " for c in one) > 0.9 * len(one)
            ):
                seen.add(one)
                yield one


def prose(packages: Sequence[str]) -> list[str]:
    """The documentation inside installed packages, shuffled always alike."""
    found = sorted(paragraphs(docstring for package in packages for docstring in docstrings(package)))
    random.Random(47).shuffle(found)
    return found


def docstrings(package: str) -> Iterator[str]:
    """Of every module, class and function of a package, without importing any of them."""
    spec = find_spec(package)
    for folder in (spec and spec.submodule_search_locations) or ():
        for file in sorted(Path(folder).rglob("*.py")):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf8"))):
                if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                    yield ast.get_docstring(node) or ""


def long_note(fact: str, documentation: Iterator[str], chance: random.Random) -> str:
    """A fact somewhere in the middle of a note of 2,000 to 7,000 words."""
    length, body, words = chance.randint(*WORDS), [], 0
    while words < length:
        body.append(next(documentation))
        words += len(body[-1].split())
    body.insert(chance.randint(len(body) // 5, 4 * len(body) // 5), fact)
    return "\n\n".join(body)


# -- measuring


async def fresh(engine: Engine) -> Engine:
    await engine.add_space(slug := f"n-{uuid4().hex[:12]}")
    return await engine.in_space(slug)


async def among_paragraphs(
    engine: Engine, name: str, told: Mapping[str, Sequence[Told]], around: Sequence[str]
) -> list[Figure]:
    """Short notes: each fact is one, and so is each paragraph of documentation around them."""
    space = await fresh(engine)
    texts = [one.told for kind in ("fact", "typo", "script") for one in told[kind]]
    await space.add_many([NewMemory(text=text) for text in [*texts, *around[len(told["title"]) :]]])
    await space.import_texts({one.told: text for one, text in zip(told["title"], around, strict=False)})
    facts = told["fact"]
    in_other_words = await silence_of(space, [(one.asked, one.told) for one in facts], [])
    some_words = [(asked, one.told) for one in facts for asked in (one.plainly, one.halfway) if asked]
    silence = await silence_of(space, some_words, [one.asked for one in told["vain"]])
    figures = silent(f"notes, {name}", added_up(silence, in_other_words))
    figures.append(replace(silent(f"notes, {name}, in other words", in_other_words)[0], bar=None))
    for kind in ("title", "typo", "script"):
        if told[kind]:
            first = [one.told in await names_of_first(space, one.asked) for one in told[kind]]
            how = f"{sum(first)} of {len(first)} in the first {FIRST}"
            figures.append(Figure(name=f"notes, {name}: by {kind}", value=sum(first) / len(first), how=how))
    return figures


async def names_of_first(space: Engine, question: str) -> set[str | None]:
    """The texts of the first hits, and the files they came from."""
    found = await space.recall(question, limit=FIRST)
    return {name for hit in found for name in (hit.node.text, hit.node.thread)}


async def silence_of(space: Engine, answerable: Sequence[tuple[str, str]], vain: Sequence[str]) -> Silence:
    first = lost = 0
    for question, answer in answerable:
        ranked = await space.recall(question, limit=1, weak=True)
        if ranked and ranked[0].node.text == answer:
            first += 1
            lost += not (await space.ask(question, mode=Mode.RECALL)).recall
    shown = [bool((await space.ask(question, mode=Mode.RECALL)).recall) for question in vain]
    return Silence(ranked_first=first, lost=lost, asked_in_vain=len(vain), shown=sum(shown))


def added_up(one: Silence, other: Silence) -> Silence:
    return Silence(*map(sum, zip(one, other, strict=True)))


def silent(name: str, one: Silence) -> list[Figure]:
    return [
        Figure(
            name=f"{name}: nothing shown",
            value=one.lost / max(one.ranked_first, 1),
            bar=LOST,
            better="lower",
            how=f"`ask` for {one.lost} of {one.ranked_first} questions whose answer is ranked first",
        ),
        Figure(
            name=f"{name}: something shown in vain",
            value=one.shown / max(one.asked_in_vain, 1),
            bar=SHOWN,
            better="lower",
            how=f"`ask` for {one.shown} of {one.asked_in_vain} questions about what is not there",
        ),
    ]


async def in_other_languages(engine: Engine, most: int | None, english: Sequence[str]) -> list[Figure]:
    """Notes of many languages among English ones, each language asked what it was told and what it was not."""
    space = await fresh(engine)
    told = foreign_lines(TOLD / LANGUAGES)
    await space.add_many([NewMemory(text=text) for text in [*(one.told for one in told if one.told), *english]])
    figures = []
    for name in SETS:
        for written, languages in WRITTEN.items():
            of_these = [one for one in told if one.set == name and one.language in languages]
            answerable = [(one.asked, one.told) for one in of_these if one.told][:most]
            vain = [one.asked for one in of_these if not one.told][:most]
            silence = await silence_of(space, answerable, vain)
            found = Figure(
                name=f"{written}, {name}: found first",
                value=silence.ranked_first / len(answerable),
                how=f"the answers of {silence.ranked_first} of {len(answerable)} questions: {', '.join(languages)}",
            )
            figures += [found, *silent(f"{written}, {name}", silence)]
    return figures


def foreign_lines(file: Path) -> list[Foreign]:
    with file.open(encoding="utf8", newline="") as opened:
        return [Foreign(**line) for line in csv.DictReader(opened, delimiter="\t", quoting=csv.QUOTE_NONE)]


class Deep(NamedTuple):
    """Of facts in long notes, how many are found, are related enough to be shown, and are in the passage."""

    asked: int
    found: int
    shown: int
    in_passage: int


async def in_long_notes(engine: Engine, name: str, facts: Sequence[Told], around: Iterator[str]) -> list[Figure]:
    """Each fact in a long note of its own, two dozen of them in a space; asked in three ways, as above."""
    totals = dict.fromkeys(WAYS, Deep(0, 0, 0, 0))
    for start in range(0, len(facts), LONG_NOTES):
        some, chance = facts[start : start + LONG_NOTES], random.Random(LONG_NOTES)
        space, notes = await fresh(engine), [long_note(one.told, around, chance) for one in some]
        added = await space.add_many([NewMemory(text=note) for note in notes])
        assert len(added.ids) == len(notes)
        assert not added.postponed
        for way, (field, _) in WAYS.items():
            asked = [(getattr(one, field), one.told, id_) for one, id_ in zip(some, added.ids, strict=True)]
            totals[way] = Deep(*map(sum, zip(totals[way], await found_deep(space, asked), strict=True)))
    return [
        figure
        for way, (_, bar) in WAYS.items()
        for figure in of_long_notes(f"long notes, {name}: {{}} {way}", totals[way], bar)
    ]


async def found_deep(space: Engine, asked: Sequence[tuple[str, str, UUID]]) -> Deep:
    told = {id_: fact for _, fact, id_ in asked}
    questions = [(question, id_) for question, _, id_ in asked if question]
    hits = [
        hit
        for question, id_ in questions
        for hit in await space.recall(question, limit=FIRST, weak=True)
        if hit.node.id == id_
    ]
    return Deep(
        asked=len(questions),
        found=len(hits),
        shown=sum(hit.relevance >= ranking.RELATED for hit in hits),
        in_passage=sum(told[hit.node.id] in " ".join(hit.text.split()) for hit in hits),
    )


def of_long_notes(name: str, deep: Deep, bar: float | None) -> list[Figure]:
    how = f"{deep.found} of {deep.asked} facts in notes of {WORDS[0]:,} to {WORDS[1]:,} words are in the first {FIRST}"
    return [
        Figure(
            name=name.format("found"),
            value=deep.found / deep.asked,
            bar=bar,
            how=how,
        ),
        Figure(
            name=name.format("shown"),
            value=deep.shown / deep.asked,
            how=f"{deep.shown} of {deep.asked} are related enough to be shown without asking for weaker matches",
        ),
        Figure(
            name=name.format("passage"),
            value=deep.in_passage / max(deep.found, 1),
            how=f"the passage of {deep.in_passage} of those {deep.found} holds the fact",
        ),
    ]


def conversations(data: Path) -> list[Path]:
    return sorted(file.parent for file in data.glob("*/queries.jsonl"))


async def in_chats(engine: Engine, data: Path) -> list[Figure]:
    """Conversations: each is asked what it was told, and what another was told."""
    folders = conversations(data)
    questions = {one: [row for row in rows(one / "queries.jsonl") if row.get("relevant")] for one in folders}
    total = Silence(0, 0, 0, 0)
    for folder, other in zip(folders, [*folders[1:], folders[0]], strict=True):
        space, names = await taught(engine, rows(folder / "corpus.jsonl"))
        one = await chat_silence(space, names, questions[folder], [row["text"] for row in questions[other]])
        total = added_up(total, one)
        print(f"{folder.name}: {one}", flush=True)
    return silent(f"chats of {data.name}", total)


async def chat_silence(
    space: Engine, names: Mapping[str, Sequence[str]], asked: Sequence[Mapping[str, object]], vain: Sequence[str]
) -> Silence:
    texts = {}
    for row in asked:
        ranked = await space.recall(str(row["text"]), limit=1, weak=True)
        if ranked and {*names[ranked[0].node.source_id or ""]} & {*row["relevant"]}:  # type: ignore[misc]
            texts[str(row["text"])] = ranked[0].node.text or ""
    return await silence_of(space, list(texts.items()), vain)
