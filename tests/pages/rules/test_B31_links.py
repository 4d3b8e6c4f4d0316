"""Links of pages lead where they led, and nothing is lost or doubled, whatever two wikis become one (B31, B32)."""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.pages.rules.audit import missing_headings, missing_sentences
from recollect.pages.rules.decisions import SubgraphStatus, Verdict
from recollect.pages.rules.execution import UNTOUCHED, arriving
from recollect.pages.rules.links import Directory, relinked
from recollect.pages.rules.page import WikiPage, normal_name
from recollect.pages.rules.stored import export_page, read_page
from tests.effort import costs_at_most
from tests.pages.rules.page_support import doubled_headings, doubled_sentences
from tests.pages.rules.wikis import MergedWikis, Wiki, merged, wikis

TIMES = int(os.environ.get("TEST_TIMES", "1"))
SCORES = (0.0, 0.0, 0.9, 0.95, 1.0)


def written(pages: Sequence[WikiPage]) -> list[WikiPage]:
    """The pages as they are read again from what is exported."""
    return [read_page(one.path, export_page(one)).page for one in pages]


def scores(data: st.DataObject, old: Sequence[WikiPage], new: Sequence[WikiPage]) -> dict[tuple[str, str], float]:
    return {(a.id, b.id): data.draw(st.sampled_from(SCORES)) for a in new for b in old}


def led_to(pages: Sequence[WikiPage]) -> dict[str, str]:
    """For each link, by the word that only it has, the path of the page that it leads to."""
    directory = Directory(pages)
    paths = {page.id: page.path for page in pages}
    found = {}
    for page in pages:
        for link in page.links:
            if link.label.endswith("q"):
                target = directory.find(page, link)
                found[link.label] = paths[target] if target else "nowhere"
    return found


def check_links(one: MergedWikis, old: Wiki, new: Wiki) -> None:
    after = written(list(one.done.after.values()))
    leads = led_to(after)
    paths = {page.path: one.where.results[page.id] for page in new.pages}
    ends = {id: page.path for id, page in one.done.after.items()}
    came = led_to(new.pages)  # without what stands behind code that nothing closes
    wanted = {**led_to(old.pages), **{word: ends[paths[path]] for word, path in came.items()}}
    assert {word: leads.get(word) for word in wanted} == wanted


@settings(max_examples=150 * TIMES, deadline=None)
@given(wikis("old"), wikis("new"), st.data())
def test_B31_every_link_leads_to_the_page_it_led_to(old: Wiki, new: Wiki, data: st.DataObject) -> None:
    for wiki in (old, new):
        assert led_to(wiki.pages).items() <= wiki.means.items(), "the generator and the reader agree"
    one = merged(old.pages, new.pages, scores(data, old.pages, new.pages))
    assert [sub.audit_result for sub in one.done.subgraphs if sub.status is not SubgraphStatus.COMPLETED] == []
    check_links(one, old, new)


def sides(one: MergedWikis) -> list[tuple[WikiPage, WikiPage, WikiPage]]:
    """For each merge the new page as it arrived, the old one, and what they became, as it is read again."""
    nodes = [node for node in one.plan.nodes.values() if node.decision is Verdict.MERGE and node.page]
    found = []
    for node in nodes:
        result = one.where.results[node.page_id]
        old = relinked(one.done.before[result], one.where.there.get(result, UNTOUCHED).anew)
        new = arriving(node.page, one.where.arriving.get(node.page_id, UNTOUCHED)) if node.page else old
        found.append((new, old, written([one.done.after[result]])[0]))
    return found


@settings(max_examples=150 * TIMES, deadline=None)
@given(wikis("old"), wikis("new"), st.data())
def test_B32_no_heading_or_sentence_is_lost_or_doubled(old: Wiki, new: Wiki, data: st.DataObject) -> None:
    one = merged(old.pages, new.pages, scores(data, old.pages, new.pages))
    for mine, theirs, result in sides(one):
        for side in (mine, theirs):
            assert missing_headings(side, result) == []
            assert missing_sentences(side, result) == set()
            assert heading_counts(side) <= heading_counts(result)
        for count in (doubled_headings, doubled_sentences):
            assert set(count(result)) <= {*count(mine), *count(theirs)}
    created = [node for node in one.plan.nodes.values() if node.decision is Verdict.CREATE_NEW and node.page]
    for node in created:
        links = one.where.arriving.get(node.page_id, UNTOUCHED)
        if node.page and one.where.results[node.page_id] == node.page_id and not links.anew:
            assert export_page(one.done.after[node.page_id]) == node.page.raw


def heading_counts(page: WikiPage) -> Counter[str]:
    return Counter(normal_name(section.heading) for section in page.sections)


@settings(max_examples=100 * TIMES, deadline=None)
@given(wikis("old"), wikis("new"), st.data())
def test_B32_the_same_folder_again_changes_no_page(old: Wiki, new: Wiki, data: st.DataObject) -> None:
    first = merged(old.pages, new.pages, scores(data, old.pages, new.pages))
    after = [replace(read_page(one.path, export_page(one)).page, id=one.id) for one in first.done.after.values()]
    known = dict.fromkeys(first.where.results.items(), 1.0)
    again = merged(after, new.pages, known)
    assert {id: export_page(again.done.after[id]) for id in again.done.written} == {}


def page(path: str, text: str) -> WikiPage:
    return read_page(path, text).page


def test_B32_what_is_said_of_a_link_is_not_put_behind_a_sentence_that_holds_it() -> None:
    old, new = page("setup.md", "See [here](setup.md) for more.\n"), page("setup.md", "* [[setup]] - noted\n")
    result = merged([old], [new], {("setup", "setup"): 1.0}).done.after["setup"]
    assert result.lead == "See [here](setup.md) for more.\n\n* [[setup]] - noted"


def test_B32_a_heading_that_stands_twice_stands_twice_afterwards() -> None:
    old, new = page("faq.md", "## Usage\n"), page("faq.md", "## Usage\n\n## usage\n")
    assert [one.heading for one in merged([old], [new], {("faq", "faq"): 1.0}).done.after["faq"].sections] == [
        "Usage",
        "usage",
    ]


def test_B31_a_link_is_new_where_only_code_says_the_same() -> None:
    old, new = (
        page("faq.md", "```\n[[setup]] and two more words\n```\n"),
        page("faq.md", "[[setup]] and two more words\n"),
    )
    one = merged([old, page("setup.md", "\n")], [new], {("faq", "faq"): 1.0})
    assert [link.target for link in one.done.after["faq"].links] == ["setup"]


def test_B31_a_title_is_no_second_name_of_its_page() -> None:
    text = "# Index\n\nWhat the page says.\n"
    pages = [
        page("api/setup.md", text),
        page("a.md", "---\naliases: [index]\n---\n"),
        page("api/b.md", "* [[index]]\n"),
    ]
    again = merged(pages, [page("api/setup.md", text)], {("api/setup", "api/setup"): 1.0})
    assert again.done.written == frozenset()


def test_B32_a_link_that_leads_nowhere_but_to_what_a_merge_names_leads_there_at_once() -> None:
    """No page is called index, until titles become second names of the pages that they are merged into."""
    old = [page("setup.md", "\n"), page("guide/setup.md", "\n")]
    new = [page("notes.md", "# Index\n"), page("faq.md", "# Index\n\n* [[index]] - noted\n")]
    into = {("notes", "setup"): 1.0, ("faq", "guide/setup"): 1.0}
    after = list(merged(old, new, into).done.after.values())
    assert after[1].lead == "* [[setup|index]] - noted"
    assert merged(after, new, into).done.written == frozenset()


def test_B31_a_name_leads_to_the_file_written_so_in_whatever_order_the_files_are_read() -> None:
    pages = [page("FAQ.md", "[[FAQ]] [[faq]] [[Faq]]\n"), page("faq.md", "\n")]
    for order in (pages, pages[::-1]):
        directory = Directory(order)
        assert [directory.find(pages[0], link) for link in pages[0].links] == ["FAQ", "faq", "faq"]


def test_B31_a_page_with_number_signs_in_its_name_can_be_shown_on_another() -> None:
    """Only brackets show a page, and there what follows a # may be a place on it, or the rest of its name."""
    new = [page("a.md", "![[b]] and ![[b#Usage]]\n"), page("b.md", "\n")]
    one = merged([page("C# and F #.md", "\n")], new, {("b", "C# and F #"): 1.0})
    assert one.done.after["a"].lead == "![[C# and F #]] and ![[C# and F ##Usage]]"


def test_B31_the_place_on_a_page_is_told_from_a_name_that_holds_a_number_sign() -> None:
    text = "[[C# notes]], [[C# notes#Usage]], [[C# notes#Usage#Linux|here]] and [[uses::C# notes#Usage]]"
    one = merged([page("C# notes.md", "\n")], [page("a.md", text), page("C# notes.md", "\n")], {})
    assert one.done.after["a"].lead == (
        "[[C# notes_2|C# notes]], [[C# notes_2#Usage|C# notes#Usage]], [[C# notes_2#Usage#Linux|here]] "
        "and [[uses::C# notes_2#Usage]]"
    )


def test_B31_a_byte_order_mark_hides_no_code_that_a_page_begins_with() -> None:
    old, new = page("a.md", "\n"), page("api/b.md", "\ufeff```\n[x](c.md)\n```\n\n[x](c.md)\n")
    one = merged([old], [new, page("api/c.md", "\n")], {("api/b", "a"): 1.0})
    assert one.done.after["a"].lead == "```\n[x](c.md)\n```\n\n[x](api/c.md)"


def test_B31_a_link_in_html_is_seen_where_no_other_link_stands() -> None:
    assert [link.target for link in page("a.md", "See <a href='setup.md'>here</a>.\n").links] == ["setup.md"]


def large(paragraphs: int, first: int) -> WikiPage:
    lines = [
        f"## Section {number}\n\nParagraph {number} says what no other says.\n\n* [[note {number}]] - noted {first}"
        for number in range(first, first + paragraphs)
    ]
    return read_page("large.md", "\n\n".join(lines)).page


def test_B34_the_work_grows_with_the_page_and_no_faster() -> None:
    def work(paragraphs: int) -> MergedWikis:
        old, new = large(paragraphs, 0), large(paragraphs, paragraphs // 2)
        return merged([old], [new], {(new.id, old.id): 1.0})

    result = work(40).done.after["large"]
    assert [section.heading for section in result.sections] == [f"Section {number}" for number in range(60)]
    assert "* [[note 30]] - noted 0; noted 20" in result.sections[30].body
    assert costs_at_most(12, more=lambda: work(1_200), less=lambda: work(200))
