"""Pages: which new page belongs to which old one, and whether a merge loses anything. All in memory, no database.

./run bench pages --main DIR --new DIR [--out run.json] [--scope type] [--gold gold_pairs.jsonl]    quality
./run bench pages --vault DIR                                                                        links, round trips
./run bench pages [--size 600]                                         speed of planning; and in the store (pages_store)
"""

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from bench import invented_pages, pages_store
from bench.figures import Figure
from recollect.pages.files import PageFile, read_folder
from recollect.pages.rules.audit import audit, led_astray, missing_headings, missing_sentences
from recollect.pages.rules.audit import carried_out as with_care
from recollect.pages.rules.decisions import DecisionOptions, MergePlan, Verdict, plan_merge, wiki_of
from recollect.pages.rules.execution import Destinations, LinkChanges, destinations, execute
from recollect.pages.rules.hierarchy import WIKI, children_by_parent, detect_subgraphs, forward_edges
from recollect.pages.rules.links import Directory, relinked, resolve
from recollect.pages.rules.page import Format, WikiPage
from recollect.pages.rules.similarity import SuppliedScores, compare, text_for_vector
from recollect.pages.rules.stored import distinct, export_page, read_page
from recollect.pages.rules.text import said_in
from recollect.ports import Vectors
from recollect.providers.minilm import MiniLMEmbedder
from tests.pages.rules.page_support import doubled_headings, doubled_sentences, same_content

SIZE = 600
SIZES = (100, 200, 400, 800)
ROUNDS = 5
PARAGRAPHS = 5_000
Scope = Literal["parents", "type"]


def run(size: int | None, rest: list[str]) -> list[Figure]:
    parser = argparse.ArgumentParser(prog="./run bench pages")
    parser.add_argument("--main", type=Path, help="the pages that are there")
    parser.add_argument("--new", type=Path, help="the pages that come in")
    parser.add_argument("--out", type=Path, help="write the scorer's run file here")
    parser.add_argument("--scope", choices=("parents", "type"), default="parents")
    parser.add_argument("--gold", type=Path, help="the true pairs, one {main, new} a line")
    parser.add_argument("--vault", type=Path, help="a folder of Markdown notes: links and round trips")
    given = parser.parse_args(rest)
    if given.vault:
        return vault(given.vault)
    if given.main and given.new:
        return quality(pages_in(given.main), pages_in(given.new), given.scope, given.out, given.gold)
    return speed(size or SIZE)


def pages_in(folder: Path) -> list[WikiPage]:
    files = [one for one in read_folder(folder, hidden=True) if isinstance(one, PageFile)]
    return distinct(read_page(one.path, one.text).page for one in files)[0]


def embedded(pages: Sequence[WikiPage]) -> Vectors:
    return asyncio.run(MiniLMEmbedder().embed([text_for_vector(page) for page in pages]))


def proposed(
    new: Sequence[WikiPage], old: Sequence[WikiPage], scope: Scope, old_vectors: Vectors | None = None
) -> MergePlan:
    old_vectors = embedded(old) if old_vectors is None else old_vectors
    scores = compare(new, old, new_vectors=embedded(new), old_vectors=old_vectors)
    return plan_merge(new, wiki_of(old), scores, options=DecisionOptions(scope=scope))


# -- quality


@dataclass(frozen=True, kw_only=True, slots=True)
class Carried:
    """A whole merge, carried out."""

    plan: MergePlan
    before: Mapping[str, WikiPage]
    after: Mapping[str, WikiPage]
    written: Mapping[str, WikiPage]
    failures: Sequence[object]
    where: Destinations


def carried_out(plan: MergePlan, old: Sequence[WikiPage]) -> Carried:
    before = {page.id: page for page in old}
    where = destinations(plan, before)
    kept = {id: relinked(before[id], links.anew) for id, links in where.there.items() if links.anew}
    after, written, failures = {**before, **kept}, dict(kept), list[object]()
    for subgraph in plan.subgraphs:
        executed = execute(subgraph, after, where, updated="2026-02-01 00:00 GMT")
        after |= executed.written
        written |= executed.written
        plan = plan.with_nodes(executed.subgraph.nodes)
    for subgraph in plan.subgraphs:
        failures += audit(subgraph, before, after, where)
    return Carried(plan=plan, before=before, after=after, written=written, failures=failures, where=where)


def quality(
    old: Sequence[WikiPage], new: Sequence[WikiPage], scope: Scope, out: Path | None, gold: Path | None
) -> list[Figure]:
    plan = proposed(new, old, scope)
    done = carried_out(plan, old)
    again = carried_out(proposed(new, list(done.after.values()), scope), list(done.after.values()))
    if out:
        out.write_text(json.dumps({"decisions": [_line(plan, page) for page in new]}, indent=1))
    targets = [node.merge_target_id for node in plan.nodes.values() if node.decision is Verdict.MERGE]
    how = f"{len(new)} pages into {len(old)}, scope {scope}"
    return [
        *(known_pairs(plan, new, old, gold, scope) if gold else []),
        _count("merged", len(targets), how, bar=None),
        _count("pairs joined within one ingestion", len(targets) - len(set(targets)), how),
        _count("audit failures", len(done.failures), "nodes, edges, content (B20-B22)"),
        _count("sentences lost", _lost_sentences(done), "of either side, in merged pages"),
        _count("headings lost", _lost_headings(done), "of either side, in merged pages"),
        _count("headings doubled", _doubled(done, doubled_headings), "beyond those one side has itself"),
        _count("sentences doubled", _doubled(done, doubled_sentences), "beyond those one side has itself"),
        _count("links that lead elsewhere", _astray(done), "of all pages, by where they led before (B31)"),
        _count("mandatory edges lost", _edges_lost(done), "implemented_by of every Principle"),
        _count("pages changed by a second import", len(again.written), "the same folder once more"),
    ]


def _count(name: str, value: int, how: str, bar: float | None = 0) -> Figure:
    return Figure(name=name, value=value, bar=bar, better="lower", how=how)


def _line(plan: MergePlan, page: WikiPage) -> dict[str, Any]:
    node = plan.nodes[page.id]
    return {
        "page_id": page.id,
        "decision": node.decision.value,
        "target_id": node.merge_target_id,
        "score": None if node.best_match_score is None else round(node.best_match_score, 4),
        "reason": node.reason,
    }


def known_pairs(
    plan: MergePlan, new: Sequence[WikiPage], old: Sequence[WikiPage], gold: Path, scope: Scope
) -> list[Figure]:
    rows = [json.loads(line) for line in gold.read_text(encoding="utf8").splitlines() if line.strip()]
    truth = {row["new"]: row["main"] for row in rows}
    merges = {id: node.merge_target_id for id, node in plan.nodes.items() if node.decision is Verdict.MERGE}
    right = {id for id, target in merges.items() if truth.get(id) == target}
    judged = [id for id, target in merges.items() if id in truth or target in truth.values()]
    reachable = truth.keys() if scope == "type" else reachable_pairs(truth, new, old)
    how = f"{len(truth)} known pairs, scope {scope}"
    return [
        Figure(name="recall", value=len(right) / len(truth), bar=0.907 if scope == "type" else None, how=how),
        Figure(
            name="recall of what scoping can reach",
            value=len(right & reachable) / len(reachable),
            bar=0.92,
            how=f"{len(reachable)} of {len(truth)} pairs can be reached",
        ),
        Figure(
            name="precision where known",
            value=sum(id in right for id in judged) / max(len(judged), 1),
            bar=0.99,
            how=f"{len(judged)} merges that touch a page of a known pair",
        ),
    ]


def reachable_pairs(truth: Mapping[str, str], new: Sequence[WikiPage], old: Sequence[WikiPage]) -> set[str]:
    """The pairs that B03-B05 leave in scope: roots, and children of which some parent may merge with a parent of the
    true match (a parent of a known pair only with its own)."""
    parents = detect_subgraphs(new).parents()
    above: dict[str, set[str]] = {}
    for id, edges in children_by_parent(old).items():
        for edge in edges:
            above.setdefault(edge.target, set()).add(id)
    return {id for id, target in truth.items() if not parents.get(id) or _may_meet(id, target, parents, above, truth)}


def _may_meet(
    id: str, target: str, parents: Mapping[str, Sequence[Any]], above: Mapping[str, set[str]], truth: Mapping[str, str]
) -> bool:
    taken = set(truth.values())
    for edge in parents[id]:
        own = truth.get(edge.source)
        theirs = above.get(target, set())
        if own in theirs if own else theirs - taken:
            return True
    return False


def _merged(done: Carried) -> list[tuple[WikiPage, WikiPage, WikiPage]]:
    """New page, old page, what they became."""
    nodes = (node for node in done.plan.nodes.values() if node.decision is Verdict.MERGE)
    return [
        (node.page, done.before[node.merge_target_id], done.after[node.merge_target_id])
        for node in nodes
        if node.page and node.merge_target_id
    ]


def _without_links(page: WikiPage) -> WikiPage:
    """Link lines are edges: those are audited as edges, and rewritten."""
    sections = tuple(replace(one, body="\n".join(_lines(one.body))) for one in page.sections)
    return replace(page, lead="\n".join(_lines(page.lead)), sections=sections)


def _lines(body: str) -> list[str]:
    return [line for line in body.split("\n") if "[[" not in line]


def _lost_sentences(done: Carried) -> int:
    return sum(
        len(missing_sentences(_without_links(side), result))
        for new, old, result in _merged(done)
        for side in (new, old)
    )


def _lost_headings(done: Carried) -> int:
    return sum(len(missing_headings(side, result)) for new, old, result in _merged(done) for side in (new, old))


def _doubled(done: Carried, count: Any) -> int:
    return sum(len(set(count(result)) - set(count(new)) - set(count(old))) for new, old, result in _merged(done))


def _astray(done: Carried) -> int:
    now = Directory(done.after.values())
    came: dict[str, list[LinkChanges]] = {}
    for id, links in done.where.arriving.items():
        came.setdefault(done.where.results[id], []).append(links)
    there = done.where.there
    sides = {id: [*came.get(id, []), *([there[id]] if id in there else [])] for id in done.after}
    return sum(len(list(led_astray(page, sides[id], now, done.after))) for id, page in done.after.items())


def _edges_lost(done: Carried) -> int:
    mandatory = {kind.name for kind in WIKI.edges if kind.is_mandatory}
    wanted = [edge for page in done.before.values() for edge in forward_edges(page) if edge.relation in mandatory]
    kept = {edge for page in done.after.values() for edge in forward_edges(page)}
    nowhere = [edge for edge in kept if edge.target not in done.after]
    return len([edge for edge in wanted if edge not in kept]) + len(nowhere)


# -- a vault


def vault(folder: Path) -> list[Figure]:
    files = [one for one in read_folder(folder, hidden=True) if isinstance(one, PageFile)]
    pages = distinct(read_page(one.path, one.text).page for one in files)[0]
    resolved = resolve(pages)
    to_files = [one for one in resolved.links if one.link.style == "path"]
    formats: tuple[Format, ...] = ("wiki", "markdown")
    trips = [(page, format) for page in pages for format in formats]
    how = f"{len(pages)} notes of {folder.name}"
    return [
        Figure(name="notes", value=len(pages), how=how),
        Figure(name="links to files", value=len(to_files), how=how),
        _count("links to files left unresolved", sum(one.target is None for one in to_files), "each a finding", bar=4),
        _count(
            "untouched notes exported otherwise",
            sum(
                (folder / one.path).read_bytes() != export_page(page).encode()
                for one, page in zip(files, pages, strict=True)
            ),
            "byte by byte",
        ),
        _count("notes changed by a round trip", sum(not _survives(*trip) for trip in trips), "through either format"),
    ]


def _survives(page: WikiPage, format: Format) -> bool:
    written = export_page(replace(page, raw=None), format)
    return same_content(read_page(page.path, written).page, replace(page, id=page.id))


# -- speed


def speed(size: int) -> list[Figure]:
    """New pages into as many; and how the time grows with the number of new pages, in memory and through the store."""
    known = invented_pages.subjects(size, seed=1)
    old, new = invented_pages.pages(known), invented_pages.second_pages(size, known, seed=2)
    more = [
        invented_pages.second_pages(max(16, number * size // SIZE), known, seed=3 + place)
        for place, number in enumerate(SIZES)
    ]
    return [*planning(old, more), large_page(), *pages_store.stored(old, new, more)]


def large_page(paragraphs: int = PARAGRAPHS) -> Figure:
    """One large page into another (B34): half of it is there already, a tenth of it are sections and lists."""

    def page(first: int) -> WikiPage:
        numbers = range(first, first + paragraphs)
        return read_page("notes/large.md", "# Large\n\n" + "\n\n".join(map(_paragraph, numbers)) + "\n").page

    old, new = page(0), page(paragraphs // 2)
    started = time.process_time()
    before = {old.id: old}
    plan = plan_merge([new], wiki_of([old]), SuppliedScores(scores={(new.id, old.id): 1.0}))
    done = with_care(plan, before, destinations(plan, before))
    spent = time.process_time() - started
    assert said_in(done.after[old.id].texts) >= said_in(new.texts), "nothing is lost"
    how = f"{paragraphs:,} paragraphs into as many, half of them new: merged and audited; CPU time"
    return Figure(name="seconds to merge a page of 5,000 paragraphs", value=spent, bar=5.0, better="lower", how=how)


def _paragraph(number: int) -> str:
    text = f"Paragraph {number} says what no other of them says, and [[note {number}]] says more."
    return f"## Section {number}\n\n{text}" if number % 20 == 0 else f"- {text}" if number % 20 == 1 else text


def planning(old: Sequence[WikiPage], more: Sequence[Sequence[WikiPage]]) -> list[Figure]:
    """How planning grows with the number of new pages, for a fixed wiki: CPU time, medians of alternating rounds."""
    wiki, old_vectors = wiki_of(old), embedded(old)
    vectors = [embedded(new) for new in more]
    spent: list[list[float]] = [[] for _ in more]
    for _ in range(ROUNDS):
        for place, new in enumerate(more):
            started = time.process_time()
            plan_merge(new, wiki, compare(new, old, new_vectors=vectors[place], old_vectors=old_vectors))
            spent[place].append(time.process_time() - started)
    return [pages_store.growth("planning in memory", [*map(len, more)], [*map(statistics.median, spent)])]
