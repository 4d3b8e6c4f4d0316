"""Small wikis for the tests of pages."""

from collections.abc import Mapping, Sequence

from recollect.pages.rules.audit import AuditFailure, audit
from recollect.pages.rules.decisions import DecisionOptions, Judge, MergePlan, plan_merge, wiki_of
from recollect.pages.rules.execution import Executed, destinations, execute
from recollect.pages.rules.hierarchy import WIKI
from recollect.pages.rules.page import WikiPage
from recollect.pages.rules.similarity import SuppliedScores
from recollect.pages.rules.stored import read_page

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
