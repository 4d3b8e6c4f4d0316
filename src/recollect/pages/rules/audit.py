"""Whether a merge did what it said (B20-B22): looked at afterwards, with nothing taken on trust.

nodes      what was created is there, what was to be merged was updated
edges      each parent leads to the child's result by an edge of the right type
content    every heading of the new page is in the result, and nearly all of its sentences; the old page has lost
           none of its own; what was created is what was submitted
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from recollect.pages.rules.execution import arriving
from recollect.pages.rules.merge_plan import AuditFailure, NodePlan, SubgraphPlan, Verdict
from recollect.pages.rules.page import WikiPage, normal_name
from recollect.pages.rules.text import blocks, said, said_in, sentences_of

TRACEABLE = 0.9


def audit(
    subgraph: SubgraphPlan,
    before: Mapping[str, WikiPage],
    after: Mapping[str, WikiPage],
    results: Mapping[str, str],
    left_out: Collection[str] = (),
) -> list[AuditFailure]:
    """Everything that is wrong with a sub-graph as it was carried out."""
    failures: list[AuditFailure] = []
    for id, node in subgraph.nodes.items():
        if id in results:
            problems = (*_nodes(node, before, after, results, left_out), *_edges(node, after, results))
            failures += (AuditFailure(page_id=id, message=message) for message in problems)
    return failures


def _nodes(
    node: NodePlan,
    before: Mapping[str, WikiPage],
    after: Mapping[str, WikiPage],
    results: Mapping[str, str],
    left_out: Collection[str],
) -> Iterator[str]:
    result = after.get(results[node.page_id])
    if result is None:
        yield f"{results[node.page_id]} does not exist"
    elif node.page is not None:
        is_merged = node.decision is Verdict.MERGE
        yield from lost(arriving(node.page, results, left_out), result, traceable=TRACEABLE if is_merged else 1.0)
        if is_merged and result.id in before:
            yield from lost(before[result.id], result, traceable=1.0)


def _edges(node: NodePlan, after: Mapping[str, WikiPage], results: Mapping[str, str]) -> Iterator[str]:
    for edge in node.deferred_edges:
        parent = after.get(results.get(edge.parent_id, ""))
        if parent is None:
            continue
        links = {link.relation for link in parent.links if link.target == results[node.page_id]}
        if edge.edge_type not in links:
            yield f"{parent.id} has no {edge.edge_type} edge to {results[node.page_id]}"


# -- content


def lost(page: WikiPage, result: WikiPage, *, traceable: float = TRACEABLE) -> Iterator[str]:
    """What a page says that the result does not."""
    if missing := missing_headings(page, result):
        yield f"headings are missing in {result.id}: {', '.join(missing)}"
    gone = missing_sentences(page, result)
    sentences = said_in(page.texts) if gone else ()
    if len(sentences) - len(gone) < traceable * len(sentences):
        yield f"{len(gone)} of {len(sentences)} sentences are missing in {result.id}, such as “{min(gone)[:80]}”"


def missing_headings(page: WikiPage, result: WikiPage) -> list[str]:
    there = {normal_name(section.heading) for section in result.sections}
    return [section.heading for section in page.sections if normal_name(section.heading) not in there]


def missing_sentences(page: WikiPage, result: WikiPage) -> set[str]:
    """The sentences of a page that the result has not; a text that it has word for word needs no comparing."""
    there = set(result.texts)
    others = [text for text in page.texts if text not in there]
    return said_in(others) - said_in(result.texts) if others else set()


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
