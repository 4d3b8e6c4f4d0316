"""Small wikis for the tests of pages."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from recollect.pages.rules.audit import AuditFailure, audit
from recollect.pages.rules.decisions import DecisionOptions, Judge, MergePlan, plan_merge, wiki_of
from recollect.pages.rules.execution import Executed, destinations, execute
from recollect.pages.rules.hierarchy import WIKI
from recollect.pages.rules.page import WikiPage, normal_name
from recollect.pages.rules.plan_md import read_plan
from recollect.pages.rules.similarity import SuppliedScores
from recollect.pages.rules.stored import read_page
from recollect.pages.rules.text import blocks, said, sentences_of

TYPES = {"P": "Principle", "I": "Implementation", "E": "Environment", "H": "Heuristic", "W": "Workflow"}
RELATIONS = {("P", "I"): "implemented_by", ("I", "E"): "requires_env", ("P", "H"): "uses_heuristic"}
RELATIONS[("I", "H")] = "uses_heuristic"


def id_of(short: str) -> str:
    """`P1` is Principle:P1."""
    return f"{TYPES[short[0]]}:{short}"


def page(short: str, *children: str, text: str = "", body: str = "") -> WikiPage:
    """A page by its short name, leading to others: `page("P1", "I1", "H1")`."""
    folder = next(one.folder for one in WIKI.types if one.name == TYPES[short[0]])
    links = "".join(f"* [[{RELATIONS[short[0], child[0]]}::{id_of(child)}]]\n" for child in children)
    related = f"\n== Related Pages ==\n{links}" if links else ""
    written = f"# {TYPES[short[0]]}: {short}\n\n== Overview ==\n{text or f'What {short} is about.'}\n{body}{related}"
    return read_page(f"{folder}/{short}.md", written).page


def planned(
    new: Sequence[WikiPage],
    old: Sequence[WikiPage],
    scores: Mapping[tuple[str, str], float],
    *,
    judge: Judge | None = None,
    options: DecisionOptions | None = None,
) -> MergePlan:
    given = SuppliedScores(scores={(id_of(one), id_of(other)): score for (one, other), score in scores.items()})
    return plan_merge(new, wiki_of(old), given, judge=judge, options=options)


def carried_out(
    plan: MergePlan, old: Sequence[WikiPage]
) -> tuple[dict[str, WikiPage], list[Executed], list[AuditFailure]]:
    """Every sub-graph in turn: the wiki afterwards, what was done, what the audit says."""
    before = {one.id: one for one in old}
    results = destinations(plan, before)
    after, done, failures = dict(before), list[Executed](), list[AuditFailure]()
    for subgraph in plan.subgraphs:
        executed = execute(subgraph, after, results)
        after |= executed.written
        done.append(executed)
    for executed in done:
        failures += audit(executed.subgraph, before, after, results)
    return after, done, failures


def edges(page: WikiPage) -> set[tuple[str, str]]:
    return {(link.relation, link.target.split(":")[1]) for link in page.links}


# -- what is asked of pages by tests and benchmarks alone


def same_content(one: WikiPage, other: WikiPage) -> bool:
    """Whether two pages say the same, whatever format they are written in."""
    return replace(one, raw=None, format="wiki") == replace(other, raw=None, format="wiki")


def doubled_headings(page: WikiPage) -> list[str]:
    """Headings that occur twice under one parent."""
    return [path[-1] for path, times in Counter(_heading_paths(page)).items() if times > 1]


def _heading_paths(page: WikiPage) -> Iterator[tuple[str, ...]]:
    path: list[tuple[int, str]] = []
    for section in page.sections:
        path = [one for one in path if one[0] < section.level] + [(section.level, normal_name(section.heading))]
        yield tuple(heading for _, heading in path)


def doubled_sentences(page: WikiPage, *, fewest_words: int = 4) -> list[str]:
    """Sentences of the running text that occur twice; code, tables and short phrases may repeat themselves."""
    spoken = (
        said(sentence)
        for text in page.texts
        for block in blocks(text)
        if block.kind in ("paragraph", "item")
        for sentence in sentences_of(block)
    )
    return [one for one, times in Counter(spoken).items() if times > 1 and len(one.split()) >= fewest_words]


def parse_plan(text: str) -> MergePlan:
    """The plan that a plan.md holds."""
    return read_plan(text)[0]
