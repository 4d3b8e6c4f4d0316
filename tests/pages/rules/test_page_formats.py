"""Pages read and written in both formats (B30): nothing lost, and back again unchanged."""

from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from recollect.pages.rules.page import Format, Section, Source, WikiPage, changed
from recollect.pages.rules.stored import distinct, export_page, read_page
from tests.effort import costs_at_most
from tests.pages.rules.page_support import same_content

WIKI = """# Implementation: Loader

{| class="wikitable" style="float:right;"
|-
! Knowledge Sources
|
* [[source::Paper|A: paper|https://example.org/1]]
* [[source::Repo|Code|https://example.org/2]]
|-
! Domains
| [[domain::NLP]], [[domain::Deep_Learning]]
|-
! Last Updated
| [[last_updated::2026-01-09 16:00 GMT]]
|}

== Overview ==

Loads a model.

=== Usage ===
# first
# second

== Code ==
<syntaxhighlight lang="python">
# a comment
== not a heading ==
x = "[[requires_env::Environment:No]]"
</syntaxhighlight>

== Related Pages ==
* [[requires_env::Environment:GPU|a card]] - at least one
* [[implements::Principle:Loading]]
"""

OBSIDIAN = """---
aliases: [Loader, Model loader]
tags: [ml, loading]
created: 2026-01-09
nested: {a: [1, 2]}
---
# Loading models

See [[Other note|that one]], [[folder/Deep note#Part]], ![[picture note]] and [a file](../up%20there.md#x).
A #tag here and `#none [[nor this]]` there.

## Part
```
# no heading
[[no link]]
```
"""


def read(path: str, text: str) -> WikiPage:
    return read_page(path, text).page


def test_B30_a_wiki_page_is_taken_apart() -> None:
    page = read("implementations/Loader.md", WIKI)
    assert (page.id, page.type, page.name, page.format) == ("Implementation:Loader", "Implementation", "Loader", "wiki")
    assert page.sources[0] == Source(kind="Paper", title="A: paper", url="https://example.org/1")
    assert page.domains == ("NLP", "Deep_Learning")
    assert page.last_updated == "2026-01-09 16:00 GMT"
    assert [(one.level, one.heading) for one in page.sections] == [
        *((2, "Overview"), (3, "Usage"), (2, "Code"), (2, "Related Pages"))
    ]
    assert page.overview == "Loads a model."
    assert [(link.relation, link.target, link.label, link.note) for link in page.links] == [
        ("requires_env", "Environment:GPU", "a card", "at least one"),
        ("implements", "Principle:Loading", "", ""),
    ]


def test_B30_a_wiki_page_written_as_markdown_is_taken_apart() -> None:
    text = (
        "# Environment: CUDA 11+\n\n[[domain::GPU]] [[domain::Kernels]]\n\n## Summary\nNeeds a card.\n\n## Backlinks\n"
    )
    page = read(
        "environments/CUDA_11.md", text + "[[required_by::Implementation:A]]\n[[required_by::Implementation:B]]\n"
    )
    assert (page.id, page.format, page.title) == ("Environment:CUDA_11", "markdown", "Environment: CUDA 11+")
    assert page.domains == ("GPU", "Kernels")
    assert page.overview == "Needs a card."
    assert [link.target for link in page.links] == ["Implementation:A", "Implementation:B"]


def test_B30_an_obsidian_note_is_taken_apart() -> None:
    page = read("notes/loading.md", OBSIDIAN)
    assert (page.id, page.type) == ("notes/loading", "Note")
    assert page.aliases == ("Loader", "Model loader")
    assert page.tags == ("ml", "loading", "tag")
    assert page.fields["nested"] == {"a": [1, 2]}
    assert [(link.style, link.target, link.anchor, link.label, link.embed) for link in page.links] == [
        ("wikilink", "Other note", "", "that one", False),
        ("wikilink", "folder/Deep note", "Part", "", False),
        ("wikilink", "picture note", "", "", True),
        ("path", "../up%20there.md", "x", "a file", False),
    ]


@pytest.mark.parametrize("format", ["wiki", "markdown"])
@pytest.mark.parametrize(("path", "text"), [("implementations/Loader.md", WIKI), ("notes/loading.md", OBSIDIAN)])
def test_B30_export_and_import_change_nothing(path: str, text: str, format: Format) -> None:
    page = read(path, text)
    written = export_page(changed(page), format)
    again = read(path, written)
    assert same_content(again, page)
    assert again.format == format
    assert export_page(changed(again), format) == written


@pytest.mark.parametrize("text", [WIKI, OBSIDIAN, "", "\ufeff# x\r\n\r\ny\r\n", "no newline at the end"])
def test_B30_an_untouched_page_is_exported_byte_by_byte(text: str) -> None:
    assert export_page(read("a.md", text)) == text


def findings(text: str, path: str = "principles/P.md") -> list[str]:
    return [finding.message for finding in read_page(path, text).findings]


def test_B30_what_is_not_understood_stays_text_and_is_said() -> None:
    broken = '# P\n\n{| class="wikitable"\n! Domains\n| [[domain::A]]\n\n== Overview ==\nText.\n'
    assert any("never closed" in one for one in findings(broken))
    assert "[[domain::A]]" in read("principles/P.md", broken).lead

    extra = '{| class="wikitable"\n! Domains\n| [[domain::A]] and more\n! Owner\n| Ann\n|}\n\n== O ==\n'
    page = read("principles/P.md", extra)
    assert page.fields == {"Owner": "Ann", "Domains": "and more"}
    assert any("not understood" in one for one in findings(extra))

    twice = read("principles/P.md", '{| class="infobox"\n! Owner\n| Ann\n! Owner\n| Ben\n|}\n')
    assert twice.fields == {"Owner": "Ann\nBen"}

    assert any("not YAML" in one for one in findings("---\na: [\n---\n# P\n"))
    assert any("never closed" in one for one in findings("---\na: b\n# P\n"))
    assert any("It is empty" in one for one in findings(" \n"))
    assert any("by its own words" in one for one in findings("# Heuristic: P\n\nText.\n"))


def test_B30_a_table_that_is_no_infobox_stays_text() -> None:
    page = read("principles/P.md", "# P\n\n{|\n! A !! B\n|-\n| 1 || 2\n|}\n\n== O ==\nText.\n")
    assert page.lead.startswith("{|")
    assert same_content(read(page.path, export_page(changed(page), "wiki")), page)


def test_B30_two_pages_with_one_name_are_both_kept_and_named() -> None:
    pages = [read("a/principles/P.md", "# one"), read("b/principles/P.md", "# two"), read("principles/p.md", "# three")]
    kept, said = distinct(pages)
    assert [page.id for page in kept] == ["Principle:P", "Principle:P_2", "Principle:p"]
    assert "same name" in said[0].message
    assert "only in case" in said[1].message


# -- any page at all

LINES = st.one_of(
    st.sampled_from(
        [
            *(
                "# x",
                "## x",
                "\\# x",
                "\\\\## x",
                "== x ==",
                "= x =",
                "<nowiki/>== x ==",
                "{|",
                "|}",
                "! a",
                "| b",
                "|-",
            ),
            *("---", "```", "~~~", "<pre>", "</pre>", "<!--", "-->", "{{a", "}}", "[[domain::a]]", "[[a::B:c]]"),
            *(
                "[[source::a|b|c]]",
                "[[last_updated::x]]",
                "* item",
                "# item",
                "",
                "text",
                "a: b",
                "    code",
                "\t",
                "...",
            ),
            *(
                "--- ",
                "{| class=infobox",
                "! Domains",
                "| [[domain::q]]",
                " |}",
                "> ```",
                "~~~~",
                "<pre>x</pre>",
                "<PRE>",
            ),
            *("<nowiki/>= x =", "###### z", "= a = b =", "a\x0b== b ==", "# b\x85", "\u2028", "0\x85", "\u3000# x"),
            *("# Environment: x", "= Environment: x =", "type: Heuristic", "text [[domain::a]]", "\ufeff", "\ufeff# x"),
        ]
    ),
    st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\n\r\ufeff"), max_size=12),
)
TEXTS = st.lists(LINES, max_size=14).map("\n".join)


@settings(max_examples=400, deadline=None)
@given(TEXTS)
@example("```\n```\n{|\n# x")
@example("<pre>\n</pre>\n{|")
@example("{|\n!Domains\n0\x85\n# x\n|}")
@example("--- \n== x ==")
@example("{| class=infobox\n! Last Updated\n# x\n|}\n[[last_updated::x]]")
def test_B30_any_text_survives_both_formats(text: str) -> None:
    page = read("principles/P.md", text)
    assert export_page(page) == text
    formats: tuple[Format, ...] = ("wiki", "markdown")
    for format in formats:
        written = export_page(changed(page), format)
        again = read(page.path, written)
        assert same_content(again, page), written
        assert again.format == format


NAMES = st.text(alphabet="abcXYZ |[]:<>\"'{}!*-é", min_size=1, max_size=8).map(str.strip).filter(bool)


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.builds(Source, kind=NAMES, title=NAMES, url=NAMES), max_size=3, unique=True),
    st.lists(NAMES, max_size=3, unique=True),
    st.dictionaries(
        st.text(alphabet="abc_|! \\é", min_size=1, max_size=5)
        | st.sampled_from(["sources", "\\domains", "last_updated", "Domains", "Last Updated", "<nowiki/>"]),
        st.recursive(
            st.none() | st.booleans() | st.integers() | NAMES, lambda one: st.lists(one, max_size=2), max_leaves=3
        ),
        max_size=3,
    ),
)
def test_B30_any_infobox_survives_both_formats(
    sources: list[Source], domains: list[str], fields: dict[str, object]
) -> None:
    page = replace(
        read("principles/P.md", "# P\n\n== O ==\nText.\n"),
        raw=None,
        sources=tuple(sources),
        domains=tuple(domains),
        fields=fields,
        sections=(Section(level=2, heading="O", body="Text."),),
    )
    formats: tuple[Format, ...] = ("wiki", "markdown")
    for format in formats:
        assert same_content(read(page.path, export_page(page, format)), page)


@pytest.mark.parametrize(
    "piece", ["<code>[[", "<nowiki>[[", "<!-- [[", "` [[", "[a](", "[[source::", "<pre>\n[[", "{{\n", "```\n"]
)
def test_a_page_of_openings_alone_is_read_in_time_that_grows_with_it(piece: str) -> None:
    short, long = piece * 1_000, piece * 10_000
    assert costs_at_most(40, lambda: read("principles/P.md", long), lambda: read("principles/P.md", short))
