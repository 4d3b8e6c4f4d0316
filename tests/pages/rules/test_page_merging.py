"""Merging any two pages: nothing lost, nothing doubled, and again is once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.pages.rules.audit import lost, missing_headings, missing_sentences, with_all_of
from recollect.pages.rules.execution import with_links
from recollect.pages.rules.links import rewrite_links
from recollect.pages.rules.merging import merge_pages
from recollect.pages.rules.page import WikiPage, changed
from recollect.pages.rules.stored import export_page, read_page
from tests.pages.rules.page_support import doubled_headings, doubled_sentences, same_content

SENTENCES = st.sampled_from(
    [
        "The loader reads the weights in blocks.",
        "It needs much memory on large models.",
        "Use the cache when the disk is slow.",
        "Short one.",
        "* A list item with some words",
        "* Another list item with words",
        "1. A numbered step of the work",
        "'''Prerequisites for all of this:'''",
        "Label:",
        "* [[requires_env::Environment:A]]",
        "* [[requires_env::Environment:B]] - with a note",
        "* [[requires_env::Environment:B]] - with another",
        "* [[requires_env::Environment:A|labelled]]",
        "* [[requires_env::Environment:A]]\n* [[requires_env::Environment:A]]",
        "```python\nx = 1\n```",
        "```python\ny = 2\nx = 1\n```",
        "| a | b |\n|---|---|\n| 1 | 2 |",
        "{{#mermaid:graph TD\n  A --> B\n}}",
    ]
)
BODIES = st.lists(st.tuples(SENTENCES, st.sampled_from(["\n", "\n\n"])), max_size=4)
HEADINGS = st.sampled_from(["== Overview ==", "=== Usage ===", "== Usage ==", "== Theory ==", "== Related Pages =="])


@st.composite
def pages(draw: st.DrawFn) -> WikiPage:
    headings = draw(st.lists(HEADINGS, max_size=4, unique=True))
    parts = ['# Implementation: Any\n\n{| class="infobox"\n|}\n']
    for heading in ["", *headings]:
        body = "".join(f"{text}{gap}" for text, gap in draw(BODIES))
        parts.append(f"{heading}\n{body}\n")
    return read_page("implementations/Any.md", "\n".join(parts)).page


def doubled_links(page: WikiPage) -> int:
    return len(page.links) - len({(link.relation, link.target) for link in page.links})


@settings(max_examples=400, deadline=None)
@given(pages(), pages())
def test_B17_B22_any_two_pages_merge_without_loss(old: WikiPage, new: WikiPage) -> None:
    merged = merge_pages(old, new, updated="2026-02-01").page
    for side in (old, new):
        links = {(link.relation, link.target) for link in side.links}
        assert all(any(link.note in one.note for one in merged.links) for link in side.links)
        gone = {one for one in missing_sentences(side, merged) if not one.startswith("requires_env")}
        assert gone == set()
        assert missing_headings(side, merged) == []
        assert links <= {(link.relation, link.target) for link in merged.links}
    assert set(doubled_headings(merged)) <= {*doubled_headings(old), *doubled_headings(new)}
    assert set(doubled_sentences(merged)) <= {*doubled_sentences(old), *doubled_sentences(new)}
    assert doubled_links(merged) <= doubled_links(old) + doubled_links(new)


@settings(max_examples=300, deadline=None)
@given(pages(), pages())
def test_B17_merging_twice_is_merging_once(old: WikiPage, new: WikiPage) -> None:
    merged = merge_pages(old, new, updated="2026-02-01").page
    assert merge_pages(merged, new, updated="2027-01-01").page is merged
    again = read_page(merged.path, export_page(merged)).page
    assert same_content(again, merged), "what was merged is read back as it was merged"


def test_B16_links_are_rewritten_everywhere_but_in_code() -> None:
    text = "[[a::B:c]] and [[B:c#x|label]]\n```\n[[a::B:c]]\n```\n[[a::B:cd]] `x`"
    anew = {"[[a::B:c]]": "[[a::B:new]]", "[[B:c#x|label]]": "[[B:new#x|label]]"}
    assert rewrite_links(text, anew) == ("[[a::B:new]] and [[B:new#x|label]]\n```\n[[a::B:c]]\n```\n[[a::B:cd]] `x`")


def test_a_link_is_added_beside_others_of_its_kind_once() -> None:
    page = read_page(
        "implementations/I.md",
        "# I\n\n== Related Pages ==\n=== Needs ===\n* [[requires_env::Environment:A]]\n\n"
        "=== Others ===\n* [[related::Implementation:x]]\n",
    ).page
    grown = with_links(page, [("requires_env", "Environment:B", ""), ("requires_env", "Environment:A", "")])
    assert next(one.body for one in grown.sections if one.heading == "Needs") == (
        "* [[requires_env::Environment:A]]\n* [[requires_env::Environment:B]]"
    )
    bare = with_links(changed(page, sections=()), [("contradicts", "Heuristic:H", "why")])
    assert bare.sections[-1].heading == "Related Pages"
    assert bare.links[-1].note == "why"


def test_an_open_fence_is_closed_before_anything_follows() -> None:
    old = read_page("principles/P.md", "# P\n\n## A\n```\ncode without an end").page
    new = read_page("principles/P.md", "# P\n\n## A\nMore to say about it.\n\n## B\nAnd a section.\n").page
    merged = merge_pages(old, new).page
    again = read_page("principles/P.md", export_page(merged)).page
    assert [one.heading for one in again.sections] == ["A", "B"]


def test_B17_code_that_is_never_closed_does_not_swallow_the_section_that_now_follows_it() -> None:
    old = read_page("principles/P.md", "# P\n\n== Usage ==\n```\nx = 1").page
    new = read_page("principles/P.md", "# P\n\n== Usage ==\n\n== Theory ==\nWhy it works at all.\n").page
    merged = merge_pages(old, new).page
    again = read_page(merged.path, export_page(merged)).page
    assert [one.heading for one in again.sections] == ["Usage", "Theory"]
    assert same_content(again, merged)


def wiki(name: str, text: str) -> WikiPage:
    return read_page(f"principles/{name}.md", f"# Principle: {name}\n\n{text}").page


def test_B23_what_a_merge_lost_is_put_behind_the_rest_whole() -> None:
    side = wiki(
        "Q", "== Overview ==\nSaid by both of them here. Said by this one alone.\n\n== Limits ==\nNone are known.\n"
    )
    short = wiki("P", "== Overview ==\nSaid by both of them here.\n")
    whole = with_all_of(short, side)
    assert [one.heading for one in whole.sections] == ["Overview", "Also in Q", "Limits"]
    assert list(lost(side, whole, traceable=1.0)) == list(lost(short, whole, traceable=1.0)) == []
    assert whole.sections[1].body == "Said by both of them here. Said by this one alone."


def test_B23_a_page_that_has_it_all_stays_the_very_same() -> None:
    page = wiki("P", "A lead that says much.\n\n== Overview ==\nText that is there.\n")
    assert with_all_of(page, wiki("Q", "== Overview ==\nText that is there.\n")) is page


@settings(max_examples=100, deadline=None)
@given(pages(), pages())
def test_B23_nothing_of_any_side_is_lost_when_a_page_is_kept_whole(one: WikiPage, other: WikiPage) -> None:
    assert list(lost(other, with_all_of(one, other), traceable=1.0)) == []
