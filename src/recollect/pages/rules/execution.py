"""A merge carried out in memory: leaves first, every link to what its page became (B14, B16, B17).

Which id each new page ends with is settled before the first is written, so that links in every direction, back-links
and references too, can be rewritten at once. What is written here is what the store saves; the audit looks at it first.

A link means a page (B31). Which one is settled before anything is merged: for a page that comes in, among the pages it
came with, else among all that there will be; for a page that is there, among those that are. After the merge names,
paths and folders are others, and new pages have arrived: a link that would lead elsewhere then is written anew, by path
or by id, so that it leads to the same page, or to what that page became. The links of pages that the merge does not
touch are kept in the same way, where a newcomer would take their name.

Among all that there will be, not only those that are there: a merge gives pages further names, such as the title of the
page that came in, and when the same folder comes again a link must find by them what it found the first time (B32).
"""

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from posixpath import dirname, relpath
from urllib.parse import quote

from recollect.pages.rules.decisions import (
    DeferredEdge,
    MergePlan,
    NodePlan,
    NodeStatus,
    SubgraphPlan,
    SubgraphStatus,
    Verdict,
)
from recollect.pages.rules.hierarchy import WIKI, Hierarchy
from recollect.pages.rules.links import Directory, relinked, without_links, without_suffix
from recollect.pages.rules.merging import merge_pages, merged_fields, with_line
from recollect.pages.rules.page import PLAIN, PageFinding, WikiLink, WikiPage, changed, links_in, type_and_name
from recollect.pages.rules.stored import free_id

READABLE = "/!$&'*+,;=:@~-._"
"""What stays as it is in a path that a link names; so do all letters, of any script."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkChanges:
    """The links of a page: how those are written now that had to change, by how they were written; those that lead to
    pages which do not arrive; those that led nowhere; and the pages (with their relations) that the others lead to."""

    anew: Mapping[str, str] = field(default_factory=dict)
    gone: frozenset[str] = frozenset()
    nowhere: frozenset[str] = frozenset()
    leads: frozenset[tuple[str, str]] = frozenset()


UNTOUCHED = LinkChanges()


@dataclass(frozen=True, kw_only=True, slots=True)
class Destinations:
    """What becomes of the pages of a plan. `places` are all pages as they will be, without their texts."""

    results: Mapping[str, str]
    places: Mapping[str, WikiPage]
    will: Directory
    arriving: Mapping[str, LinkChanges]
    there: Mapping[str, LinkChanges]

    def leads(self, id: str) -> Callable[[WikiLink], str]:
        """Where links lead that stand on a page; what leads nowhere is known by its own words."""
        return lambda link: self.will.find(self.places[id], link) or link.target


GONE = ""
"""Where a link leads whose page does not arrive."""


def destinations(plan: MergePlan, before: Mapping[str, WikiPage]) -> Destinations:
    results = result_ids(plan, before)
    places = _places(plan, before, results)
    new = {id: node.page for id, node in plan.nodes.items() if node.page is not None}
    incoming, was, will = Directory(new.values()), Directory(before.values()), Directory(places.values())

    def of_new(page: WikiPage, link: WikiLink) -> tuple[WikiLink, str | None]:
        read, target = incoming.read(page, link)
        return will.read(page, link) if target is None else (read, results.get(target, GONE))

    return Destinations(
        results=results,
        places=places,
        will=will,
        arriving={
            id: _relinked(page, of_new, places[results[id]], places, will)
            for id, page in new.items()
            if page.links and id in results
        },
        there={id: _relinked(page, was.read, places[id], places, will) for id, page in before.items() if page.links},
    )


# -- pages


def result_ids(plan: MergePlan, before: Mapping[str, WikiPage]) -> dict[str, str]:
    """The id that each new page ends with: its target's, else its own, with a suffix where that is taken (B16)."""
    nodes = plan.nodes
    results: dict[str, str] = {}
    for id, node in nodes.items():
        if node.result_page_id is not None:
            results[id] = node.result_page_id
        elif node.decision is Verdict.MERGE and node.merge_target_id:
            results[id] = node.merge_target_id
    taken, paths = set(before), {page.path for page in before.values()}
    for id, node in nodes.items():
        if id not in results and node.decision is Verdict.CREATE_NEW:
            results[id] = _free(id, node.page, taken, paths)
            taken.add(results[id])
            paths.add(path_of(node.page, results[id]) if node.page else "")
    return results


def _free(id: str, page: WikiPage | None, taken: set[str], paths: set[str]) -> str:
    """The id, or the first of its kind that no page has, whose path no page has either."""
    refused = set(taken)
    while page is not None and path_of(page, free := free_id(id, refused)) in paths:
        refused.add(free)
    return free_id(id, refused)


def path_of(page: WikiPage, id: str) -> str:
    """The path of a page under an id: its own; where it gets another name, a file of that name beside it."""
    if id == page.id:
        return page.path
    folder, slash, file = page.path.rpartition("/")
    _, dot, suffix = file.rpartition(".")
    return f"{folder}{slash}{type_and_name(id)[1].rpartition('/')[2]}{dot}{suffix}"


def named(page: WikiPage, id: str) -> WikiPage:
    """The page under its id; where another had the name, its own name stays as an alias."""
    if id == page.id:
        return page
    fields = {**page.fields, "aliases": [*page.aliases, page.name]}
    return changed(page, id=id, name=type_and_name(id)[1], path=path_of(page, id), fields=fields)


def _places(plan: MergePlan, before: Mapping[str, WikiPage], results: Mapping[str, str]) -> dict[str, WikiPage]:
    """Every page as it will be found: its id, path, name, title and aliases."""
    places = {id: _place(page) for id, page in before.items()}
    for id, node in plan.nodes.items():
        if node.page is None or id not in results or node.status is NodeStatus.COMPLETED:
            continue
        old = places.get(results[id]) if node.decision is Verdict.MERGE else None
        if old is None:
            places[results[id]] = _place(named(node.page, results[id]))
        else:
            places[old.id] = replace(old, fields=merged_fields(old, node.page)[0])
    return places


def _place(page: WikiPage) -> WikiPage:
    return replace(page, lead="", sections=(), raw=None)


# -- links


def _relinked(
    page: WikiPage,
    read: Callable[[WikiPage, WikiLink], tuple[WikiLink, str | None]],
    here: WikiPage,
    places: Mapping[str, WikiPage],
    will: Directory,
) -> LinkChanges:
    """What becomes of the links of a page that will stand `here`."""
    anew: dict[str, str] = {}
    gone, nowhere, leads = set[str](), set[str](), set[tuple[str, str]]()
    for written in {link.written: link for link in page.links}.values():
        link, target = read(page, written)
        if target is None or (target not in places and target != GONE):
            nowhere.add(link.written)
        elif target == GONE:
            gone.add(link.written)
            if will.find(here, link) is not None:
                anew[link.written] = link.label or link.target  # it must not lead to a page it never meant
        else:
            leads.add((link.relation, target))
            if will.find(here, link) != target:
                anew[link.written] = _leading(link, here, places[target], will)
    return LinkChanges(anew=anew, gone=frozenset(gone), nowhere=frozenset(nowhere), leads=frozenset(leads))


def _leading(link: WikiLink, here: WikiPage, target: WikiPage, will: Directory) -> str:
    """A link written so that it leads to a page; as it was where no way of writing does (the audit will say so)."""
    for text in _ways(link, here, target):
        read = links_in([text])
        if len(read) == 1 and will.find(here, read[0]) == target.id and read[0].relation == link.relation:
            return text
    return link.written


def _ways(link: WikiLink, here: WikiPage, target: WikiPage) -> Iterator[str]:
    """The ways to write a link, the one most like its own first."""
    anchor = f"#{link.anchor}" if link.anchor else ""
    by_path = _to_path(here, target) + anchor.replace(" ", "%20")
    if link.style == "path":
        start = _before_path(link.written)
        yield link.written[:start] + link.written[start:].replace(_path_in(link), by_path, 1)
    if link.relation != PLAIN:
        yield _in_brackets(link, f"{link.relation}::{target.id}{anchor}", link.label)
        return
    shown = link.label or ("" if link.embed or link.style != "wikilink" else f"{link.target}{anchor}")
    names = [without_suffix(target.path), target.path, target.id]
    for name in names[::-1] if link.style == "typed" else names:
        yield _in_brackets(link, f"{name}{anchor}", shown)
        yield _in_brackets(link, f"/{name}{anchor}", shown)
    yield f"{'!' if link.embed else ''}[{shown or link.target}]({by_path})"


def _in_brackets(link: WikiLink, target: str, label: str) -> str:
    bar = "\\|" if "\\|" in link.written else "|"
    return f"{'!' if link.embed else ''}[[{target}{bar + label if label else ''}]]"


def _before_path(written: str) -> int:
    """Where the path of a link begins at the earliest: its label may say the same."""
    return next(start for mark in ("](", "]:", "href=") if (start := written.rfind(mark)) >= 0)


def _path_in(link: WikiLink) -> str:
    """The path of a link with its anchor, as it stands in it."""
    path = f"{link.target}#{link.anchor}" if link.anchor else link.target
    return f"<{path}>" if f"<{path}>" in link.written else path


def _to_path(here: WikiPage, target: WikiPage) -> str:
    path = relpath(target.path, dirname(here.path) or ".")
    written = "".join(sign if ord(sign) > 127 else quote(sign, safe=READABLE) for sign in path)
    return f"./{written}" if ":" in written.partition("/")[0] else written


# -- a merge carried out


@dataclass(frozen=True, kw_only=True, slots=True)
class Executed:
    """A sub-graph carried out: the pages that were written, by id, the plan as it stands, and what was noted."""

    subgraph: SubgraphPlan
    written: Mapping[str, WikiPage]
    findings: tuple[PageFinding, ...] = ()


def execute(
    subgraph: SubgraphPlan,
    pages: Mapping[str, WikiPage],
    where: Destinations,
    *,
    updated: str | None = None,
    hierarchy: Hierarchy = WIKI,
) -> Executed:
    """Every node of a sub-graph that is not done yet, bottom-up. `pages` are those of the wiki as it stands.

    To new pages that do not arrive (declined, or waiting for a person) nothing will link.
    """
    written: dict[str, WikiPage] = {}
    findings: list[PageFinding] = []
    nodes = dict(subgraph.nodes)
    there = ChainMap(written, dict(pages))
    for id in subgraph.execution_order:
        node = nodes[id]
        if node.status is NodeStatus.COMPLETED or node.page is None or id not in where.results:
            continue
        page, notes = _written(node, node.page, there, where, updated, hierarchy)
        if page != pages.get(page.id):
            written[page.id] = page
        findings += (PageFinding(page=page.id, message=note) for note in notes)
        nodes[id] = replace(node, status=NodeStatus.COMPLETED, result_page_id=page.id)
    done = replace(subgraph, nodes=nodes, status=SubgraphStatus.EXECUTING)
    return Executed(subgraph=done, written=written, findings=tuple(findings))


def arriving(page: WikiPage, links: LinkChanges) -> WikiPage:
    """A new page as it comes in: its links lead to what the pages became."""
    return relinked(without_links(page, links.gone), links.anew)


def _written(
    node: NodePlan,
    given: WikiPage,
    pages: Mapping[str, WikiPage],
    where: Destinations,
    updated: str | None,
    hierarchy: Hierarchy,
) -> tuple[WikiPage, tuple[str, ...]]:
    """The page that a node ends in: made or merged, its back-links complete."""
    conflicts: tuple[str, ...] = ()
    new = arriving(given, where.arriving.get(node.page_id, UNTOUCHED))
    result = where.results[node.page_id]
    if node.decision is Verdict.MERGE:
        old = relinked(pages[result], where.there.get(result, UNTOUCHED).anew)
        merged = merge_pages(old, new, updated=updated, leads=where.leads(result))
        page, conflicts = merged.page, merged.conflicts
    else:
        page = named(new, result)
    page = with_links(page, _back_links(page, node.deferred_edges, where.results, hierarchy))
    notes = [("contradicts", target, "the advice differs") for target in node.contradicts]
    return with_links(page, notes), conflicts


def _back_links(
    page: WikiPage, edges: Iterable[DeferredEdge], results: Mapping[str, str], hierarchy: Hierarchy
) -> list[tuple[str, str, str]]:
    """The back-links that the page lacks, if it keeps back-links of that kind at all."""
    relations = {link.relation for link in page.links}
    back_links: list[tuple[str, str, str]] = []
    for edge in edges:
        kind = hierarchy.edge_kind(edge.edge_type, type_and_name(edge.parent_id)[0], page.type)
        name = next((back_link for back_link in kind.back_links if back_link in relations), None) if kind else None
        if name and edge.parent_id in results:
            back_links.append((name, results[edge.parent_id], ""))
    return back_links


def with_links(page: WikiPage, links: Iterable[tuple[str, str, str]]) -> WikiPage:
    """The page with some links (relation, target, note) that it does not have yet, each beside others of its kind."""
    for relation, target, note in links:
        if any(link.relation == relation and link.target == target for link in page.links):
            continue
        line = f"* [[{relation}::{target}]]" + (f" - {note}" if note else "")
        page = with_line(page, relation, line)
    return page
