"""Pages written, merged, audited, retried, and planned in a file (B06-B08, B16-B18, B20-B28)."""

from collections.abc import Callable
from dataclasses import fields, replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InvalidInput
from recollect.pages.rules.audit import AuditFailure, Overall, after_audit, audit, missing_sentences, result_of
from recollect.pages.rules.decisions import (
    MergePlan,
    NodePlan,
    NodeStatus,
    SubgraphPlan,
    SubgraphStatus,
    Verdict,
    plan_merge,
    wiki_of,
)
from recollect.pages.rules.execution import Destinations, destinations, execute
from recollect.pages.rules.merging import merge_pages
from recollect.pages.rules.page import WikiPage
from recollect.pages.rules.plan_md import Edit, edits_in, render_plan, with_edits
from recollect.pages.rules.similarity import SuppliedScores
from recollect.pages.rules.stored import read_page
from tests.pages.rules.page_support import (
    carried_out,
    doubled_headings,
    doubled_sentences,
    edges,
    page,
    parse_plan,
    planned,
    same_content,
)

OLD = [page("P1", "I1"), page("I1", "E1"), page("E1")]
NEW = [page("P8", "I8"), page("I8", "E8"), page("E8")]
SCORES = {("P8", "P1"): 0.92, ("I8", "I1"): 0.95, ("E8", "E1"): 0.31}


def plan() -> MergePlan:
    return replace(planned(NEW, OLD, SCORES), generated=datetime(2026, 2, 1, 12, 30, tzinfo=UTC))


# -- B06-B08


def test_B06_B07_B08_the_plans_have_the_documents_fields() -> None:
    node = "page_id page_type page decision merge_target_id best_match_score"
    node += " parent_id deferred_edges status result_page_id"
    subgraph = "subgraph_id root_id nodes execution_order status audit_result retry_count"
    assert set(node.split()) <= {field.name for field in fields(NodePlan)}
    assert set(subgraph.split()) <= {field.name for field in fields(SubgraphPlan)}
    assert {"subgraphs", "created_pages", "edited_pages"} <= {field.name for field in fields(MergePlan)}


# -- B16: created


def test_B16_a_created_page_links_to_what_its_children_became() -> None:
    old = [page("P1", "I1"), page("I1", "E1"), page("E1")]
    scores = {("P8", "P1"): 0.9, ("I8", "I1"): 0.2}
    after, done, failures = carried_out(planned([page("P8", "I8"), page("I8")], old, scores), old)
    assert failures == []
    assert "Implementation:I8" in after
    assert done[0].subgraph.nodes["Implementation:I8"].result_page_id == "Implementation:I8"
    assert done[0].subgraph.nodes["Implementation:I8"].status is NodeStatus.COMPLETED


def test_B16_a_page_whose_id_is_taken_gets_a_suffix_and_an_alias() -> None:
    old = [page("P1", "I1"), page("I1"), page("I8", text="A page of the same name elsewhere.")]
    plan = planned([page("P8", "I8"), page("I8")], old, {("P8", "P1"): 0.9})
    after, _, failures = carried_out(plan, old)
    assert failures == []
    assert after["Implementation:I8"] == old[2]
    assert after["Implementation:I8_2"].aliases == ("I8",)
    assert after["Implementation:I8_2"].path == "implementations/I8_2.md"
    assert ("implemented_by", "I8_2") in edges(after["Principle:P1"])


def test_B16_a_created_page_without_rewritten_links_stays_byte_for_byte() -> None:
    after, _, _ = carried_out(planned([page("E8")], [], {}), [])
    assert after["Environment:E8"].raw == page("E8").raw


# -- B17, B18: merged

OLD_TEXT = """# Principle: P1

{| class="wikitable"
|-
! Knowledge Sources
|
* [[source::Paper|The paper|https://example.org/paper]]
|-
! Domains
| [[domain::NLP]]
|-
! Last Updated
| [[last_updated::2026-01-01]]
|}

== Overview ==
Adapters are small matrices beside frozen weights. They are cheap to train.

=== Usage ===
Use it when memory is short.
* Large models on one card

== Theory ==
<syntaxhighlight lang="python">
import torch
x = 1
</syntaxhighlight>

== Related Pages ==
=== Implemented By ===
* [[implemented_by::Implementation:I1]]
"""
NEW_TEXT = """# Principle: P8

{| class="wikitable"
|-
! Knowledge Sources
|
* [[source::Paper|Paper|https://example.org/paper/]]
* [[source::Repo|Code|https://example.org/code]]
|-
! Domains
| [[domain::nlp]], [[domain::Training]]
|-
! Last Updated
| [[last_updated::2026-01-12]]
|}

== Overview ==
They are cheap to train. A frozen model keeps what it knows.

=== Usage ===
* Large models on one card
* Many tasks on one model

== Pitfalls ==
A rank that is too low underfits.

== Theory ==
<syntaxhighlight lang="python">
import torch
y = 2
</syntaxhighlight>

== Related Pages ==
=== Implemented By ===
* [[implemented_by::Implementation:I1]] - since version 2
* [[implemented_by::Implementation:I9]]
"""


def both() -> tuple[WikiPage, WikiPage, WikiPage]:
    old, new = read_page("principles/P1.md", OLD_TEXT).page, read_page("principles/P8.md", NEW_TEXT).page
    return old, new, merge_pages(old, new, updated="2026-02-01").page


def test_B17_sections_are_merged_in_place_and_nothing_is_lost_or_doubled() -> None:
    old, new, merged = both()
    assert [one.heading for one in merged.sections] == [
        *("Overview", "Usage", "Pitfalls", "Theory", "Related Pages", "Implemented By")
    ]
    assert doubled_headings(merged) == doubled_sentences(merged) == []
    assert missing_sentences(old, merged) - {"implemented_by implementation i1"} == set()
    assert missing_sentences(new, merged) == set()


def test_B17_the_overview_keeps_both_views() -> None:
    assert both()[2].overview == (
        "Adapters are small matrices beside frozen weights. They are cheap to train.\n\n"
        "A frozen model keeps what it knows."
    )


def test_B17_sources_and_domains_are_united_and_the_date_is_new() -> None:
    merged = both()[2]
    assert [source.title for source in merged.sources] == ["The paper", "Code"]
    assert merged.domains == ("NLP", "Training")
    assert merged.last_updated == "2026-02-01"


def test_B17_links_are_additive_and_the_richer_one_stays() -> None:
    links = {link.target: link.note for link in both()[2].links}
    assert links == {"Implementation:I1": "since version 2", "Implementation:I9": ""}


def test_B17_code_is_kept_whole() -> None:
    theory = next(one.body for one in both()[2].sections if one.heading == "Theory")
    assert theory.count("import torch") == 2
    assert theory.index("x = 1") < theory.index("y = 2")


def test_B17_merging_again_changes_nothing_at_all() -> None:
    _, new, merged = both()
    assert merge_pages(merged, new, updated="2027-01-01").page is merged
    old = both()[0]
    assert merge_pages(old, old).page is old


def test_B17_a_markdown_page_merges_into_a_wiki_page() -> None:
    old, _, _ = both()
    new = read_page("principles/P8.md", "# P8\n\n## Overview\nA view in Markdown.\n\n## Notes\n- One more thing\n").page
    merged = merge_pages(old, new).page
    assert merged.format == "wiki"
    assert merged.overview.endswith("A view in Markdown.")
    assert "Notes" in [one.heading for one in merged.sections]


def test_B18_a_field_with_two_values_keeps_both_and_is_named() -> None:
    old = read_page("principles/P1.md", "---\nowner: Ann\ntags: [a]\n---\n# P1\n").page
    new = read_page("principles/P8.md", "---\nowner: Ben\ntags: [b]\n---\n# P8\n").page
    merged = merge_pages(old, new)
    assert merged.page.fields == {"owner": "Ann", "tags": ["a", "b"], "owner (other)": ["Ben"]}
    assert len(merged.conflicts) == 1
    assert merge_pages(merged.page, new).page is merged.page


def test_B18_contradicting_heuristics_stay_two_and_the_conflict_is_an_edge() -> None:
    old = [page("H1", text="Use packed sequences for speed.")]
    new = [page("H8", text="Avoid packed sequences for speed.")]
    after, _, failures = carried_out(planned(new, old, {("H8", "H1"): 0.97}), old)
    assert failures == []
    assert after["Heuristic:H1"] == old[0]
    assert ("contradicts", "H1") in edges(after["Heuristic:H8"])


def test_B09_back_links_stay_consistent() -> None:
    old = [page("P1", "I1"), page("I1")]
    child = read_page("implementations/I8.md", "# Implementation: I8\n\nText.\n\n* [[implements::Principle:P8]]\n").page
    after, _, failures = carried_out(planned([page("P8", "I8"), child], old, {("P8", "P1"): 0.9}), old)
    assert failures == []
    assert edges(after["Implementation:I8"]) == {("implements", "P1")}


# -- B20-B22: the audit


def executed() -> tuple[MergePlan, dict[str, WikiPage], dict[str, WikiPage], Destinations]:
    made = plan()
    before = {one.id: one for one in OLD}
    results = destinations(made, before)
    return made, before, {**before, **execute(made.subgraphs[0], before, results).written}, results


def failures(after: dict[str, WikiPage]) -> list[str]:
    made, before, _, results = executed()
    return [str(one) for one in audit(made.subgraphs[0], before, after, results)]


def test_B20_a_page_that_is_not_there_is_found() -> None:
    after = executed()[2]
    assert failures(after) == []
    del after["Environment:E8"]
    assert failures(after) == ["Environment:E8: Environment:E8 does not exist"]


def test_B20_a_target_that_was_not_updated_is_found() -> None:
    _, before, after, _ = executed()
    assert any("sentences are missing" in one for one in failures({**after, "Principle:P1": before["Principle:P1"]}))


def test_B21_an_edge_of_another_type_is_found() -> None:
    after = executed()[2]
    wrong = (after["Implementation:I1"].raw or "") + "* [[uses_heuristic::Environment:E8]]\n"
    after["Implementation:I1"] = read_page("implementations/I1.md", wrong).page
    assert "Environment:E8: Implementation:I1 has no requires_env edge to Environment:E8" in failures(after)


@pytest.mark.parametrize(("kept", "is_found"), [(10, False), (9, False), (8, True)])
def test_B22_nine_of_ten_sentences_must_be_traceable(kept: int, is_found: bool) -> None:
    sentences = [f"Sentence number {number} says something." for number in range(10)]
    new, old = [page("H8", text=" ".join(sentences))], [page("H1", text=sentences[0])]
    made = planned(new, old, {("H8", "H1"): 0.9})
    merged = page("H1", text=" ".join(sentences[:kept]))
    before = {"Heuristic:H1": old[0]}
    found = audit(made.subgraphs[0], before, {"Heuristic:H1": merged}, destinations(made, before))
    assert bool(found) is is_found


def test_B22_a_missing_heading_and_an_altered_created_page_are_found() -> None:
    after = executed()[2]
    after["Environment:E8"] = page("E8", text="Something else altogether.")
    assert any("sentences are missing" in one for one in failures(after))
    after = executed()[2]
    after["Principle:P1"] = replace(after["Principle:P1"], sections=after["Principle:P1"].sections[1:])
    assert any("headings are missing" in one for one in failures(after))


# -- B23-B25, and two rows of B28


def test_B23_a_failed_audit_sets_the_offenders_and_all_above_them_back() -> None:
    subgraph = execute(
        plan().subgraphs[0], {one.id: one for one in OLD}, destinations(plan(), {one.id: one for one in OLD})
    ).subgraph
    failed = after_audit(subgraph, [AuditFailure(page_id="Implementation:I8", message="lost an edge")])
    assert (failed.status, failed.retry_count) == (SubgraphStatus.RETRY, 1)
    assert failed.audit_result == "Implementation:I8: lost an edge"
    assert {id: node.status for id, node in failed.nodes.items()} == {
        "Principle:P8": NodeStatus.FAILED,
        "Implementation:I8": NodeStatus.FAILED,
        "Environment:E8": NodeStatus.COMPLETED,
    }


def test_B28_audit_and_retry_ends_after_three_executions() -> None:
    subgraph = plan().subgraphs[0]
    statuses = []
    for _ in range(3):
        subgraph = after_audit(subgraph, [AuditFailure(page_id="Environment:E8", message="gone")])
        statuses.append(subgraph.status)
    assert statuses == [SubgraphStatus.RETRY, SubgraphStatus.RETRY, SubgraphStatus.FAILED]
    assert subgraph.retry_count == 3


def test_B28_partial_failure_resumes_at_the_failed_node() -> None:
    made = plan()
    before = {one.id: one for one in OLD}
    results = destinations(made, before)
    first = execute(made.subgraphs[0], before, results)
    after = {**before, **first.written}
    failed = after_audit(first.subgraph, [AuditFailure(page_id="Implementation:I8", message="lost an edge")])
    assert failed.next_node == "Implementation:I8"
    again = execute(failed, after, results)
    assert "Environment:E8" not in again.written
    assert again.written == {}, "what was written before is recognised, and nothing is said twice"
    assert again.subgraph.next_node is None


def test_B24_a_resumed_run_gives_what_an_unbroken_one_gives() -> None:
    made, before, whole, results = executed()
    half = made.subgraphs[0]
    for stop in range(len(half.execution_order)):
        done = half.execution_order[:stop]
        rest = {id: replace(half.nodes[id], page=None) for id in half.execution_order[stop:]}
        part = execute(half.with_nodes(rest), before, results)
        resumed = half.with_nodes({id: part.subgraph.nodes[id] for id in done})
        finished = execute(resumed, {**before, **part.written}, results)
        assert {**before, **part.written, **finished.written} == whole


def test_B25_the_result_names_what_was_created_edited_and_failed() -> None:
    made = plan()
    done = execute(made.subgraphs[0], {one.id: one for one in OLD}, destinations(made, {one.id: one for one in OLD}))
    good = after_audit(done.subgraph, [])
    bad = replace(good, subgraph_id="subgraph_2", status=SubgraphStatus.FAILED, audit_result="gone")
    partial = result_of(replace(made, subgraphs=(good, bad)))
    assert partial.created_pages == ("Environment:E8",)
    assert partial.edited_pages == ("Implementation:I1", "Principle:P1")
    assert (partial.failed, partial.overall) == ({"subgraph_2": "gone"}, Overall.PARTIAL)
    assert result_of(replace(made, subgraphs=(good,))).overall is Overall.SUCCESS
    assert result_of(replace(made, subgraphs=(bad,))).overall is Overall.FAILED


# -- B26, B27: plan.md


def test_B26_the_layout_is_the_documents() -> None:
    assert (
        render_plan(plan())
        == """# Merge Plan

Generated: 2026-02-01T12:30:00+00:00
Total SubGraphs: 1

What may be edited, and nothing else: the Decision of a page (MERGE, CREATE_NEW, DECLINE), and with MERGE its
Target, the id of a page of the same type. Change it in the row of the table; the step of the execution order and
the root's block may stay as they are or say the same. No row may be taken out, added or written twice: to leave a
page out, write DECLINE. In names, `\\u0020` and the like stand for white space and signs that the file itself uses.

---

## SubGraph 1: subgraph_1

### Root

- **Page**: Principle:P8
- **Type**: Principle
- **Decision**: MERGE
- **Target**: Principle:P1
- **Score**: 0.92

### Execution Order

1. Environment:E8 → CREATE_NEW
2. Implementation:I8 → MERGE with Implementation:I1
3. Principle:P8 → MERGE with Principle:P1

### Node Plans

| Node | Decision | Target | Score | Parent | Deferred Edge | Status |
| --- | --- | --- | --- | --- | --- | --- |
| Principle:P8 | MERGE | Principle:P1 | 0.92 | (root) | - | PENDING |
| Implementation:I8 | MERGE | Implementation:I1 | 0.95 | Principle:P8 | implemented_by | PENDING |
| Environment:E8 | CREATE_NEW | - | 0.31 | Implementation:I8 | requires_env | PENDING |

### Reasons

- Principle:P8: High similarity
- Implementation:I8: Scoped search in [I1]
- Environment:E8: No match in [E1]

### Audit Status

- **Status**: PENDING
- **Retry Count**: 0
- **Feedback**: -
"""
    )


def without_pages(plan: MergePlan) -> MergePlan:
    return plan.with_nodes({id: replace(node, page=None, result_page_id=None) for id, node in plan.nodes.items()})


def test_B27_it_can_be_parsed_back_whatever_the_state() -> None:
    made = plan()
    done = execute(
        made.subgraphs[0], {one.id: one for one in OLD}, destinations(made, {one.id: one for one in OLD})
    ).subgraph
    failed = after_audit(done, [AuditFailure(page_id="Environment:E8", message="a | pipe")])
    for subgraph in (made.subgraphs[0], done, after_audit(done, []), failed):
        state = replace(made, subgraphs=(subgraph,))
        assert parse_plan(render_plan(state)) == without_pages(state)


def test_B27_several_parents_and_odd_names_survive() -> None:
    odd = read_page("heuristics/H|8.md", "# Heuristic: odd\n\nText.\n").page
    made = planned([page("P8", "I8", "H8"), page("I8", "H8"), page("H8"), odd], [], {})
    assert parse_plan(render_plan(made)) == without_pages(made)


def edited(old: str, new: str) -> list[Edit]:
    text = render_plan(plan())
    assert old in text
    return edits_in(text.replace(old, new), plan())


def test_B27_an_edited_decision_is_recognised() -> None:
    assert edits_in(render_plan(plan()), plan()) == []
    assert edited("| Principle:P8 | MERGE | Principle:P1", "| Principle:P8 | CREATE_NEW | -") == [
        Edit(page_id="Principle:P8", decision=Verdict.CREATE_NEW)
    ]
    assert edited(
        "Implementation:I8 → MERGE with Implementation:I1", "Implementation:I8 → MERGE with Implementation:I2"
    ) == [Edit(page_id="Implementation:I8", decision=Verdict.MERGE, target="Implementation:I2")]
    assert edited("| Environment:E8 | CREATE_NEW", "| Environment:E8 | decline") == [
        Edit(page_id="Environment:E8", decision=Verdict.DECLINE)
    ]
    assert edited("- **Decision**: MERGE", "- **Decision**: DECLINE") == [
        Edit(page_id="Principle:P8", decision=Verdict.DECLINE)
    ]


def test_B27_two_places_that_disagree_are_refused() -> None:
    text = render_plan(plan()).replace("- **Decision**: MERGE", "- **Decision**: DECLINE")
    text = text.replace("| Principle:P8 | MERGE | Principle:P1", "| Principle:P8 | CREATE_NEW | -")
    with pytest.raises(InvalidInput, match="changed in two ways"):
        edits_in(text, plan())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("# Merge Plan", "# Something", "no merge plan"),
        ("| MERGE |", "| MELT |", "no decision"),
        ("| PENDING |", "| LATER |", "no status"),
        ("| 0.92 |", "| much |", "no score"),
        ("### Node Plans", "### Nodes", "no part"),
        ("1. Environment:E8 → CREATE_NEW", "and so on", "no step"),
        ("1. Environment:E8", "1. Environment:E7", "other pages"),
        (" | implemented_by | ", " | ", "6 cells"),
    ],
)
def test_B27_a_broken_file_is_refused_with_the_place(old: str, new: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        edited(old, new)


def test_B27_the_file_of_another_plan_is_refused_in_one_line() -> None:
    many = render_plan(planned([page(f"P{number}") for number in range(10, 40)], OLD, {}))
    with pytest.raises(InvalidInput, match="and 28 more") as refused:
        edits_in(many, plan())
    assert len(str(refused.value)) < 250


def changed(*edits: Edit) -> dict[str, tuple[Verdict, str | None]]:
    wiki = wiki_of([*OLD, page("P2"), page("I2")])
    after = with_edits(plan(), edits, wiki.pages, wiki.children)
    return {id.split(":")[1]: (node.decision, node.merge_target_id) for id, node in after.nodes.items()}


def test_B27_what_depended_on_an_edited_decision_follows_it() -> None:
    new = (Verdict.CREATE_NEW, None)
    assert changed(Edit(page_id="Principle:P8", decision=Verdict.CREATE_NEW)) == {"P8": new, "I8": new, "E8": new}
    assert changed(Edit(page_id="Principle:P8", decision=Verdict.MERGE, target="Principle:P2"))["I8"] == new
    gone = (Verdict.DECLINE, None)
    assert changed(Edit(page_id="Principle:P8", decision=Verdict.DECLINE)) == {"P8": gone, "I8": gone, "E8": gone}
    assert changed(Edit(page_id="Environment:E8", decision=Verdict.DECLINE))["I8"] == (
        Verdict.MERGE,
        "Implementation:I1",
    )


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (Edit(page_id="Principle:P9", decision=Verdict.DECLINE), "has no page"),
        (Edit(page_id="Principle:P8", decision=Verdict.MERGE), "does not say with which"),
        (Edit(page_id="Principle:P8", decision=Verdict.MERGE, target="Principle:P7"), "no such page"),
        (Edit(page_id="Principle:P8", decision=Verdict.MERGE, target="Environment:E1"), "another type"),
    ],
)
def test_B27_an_edit_that_cannot_be_honoured_is_refused(edit: Edit, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        changed(edit)


def test_B27_a_declined_page_leaves_no_link_behind() -> None:
    wiki = wiki_of(OLD)
    made = with_edits(plan(), [Edit(page_id="Environment:E8", decision=Verdict.DECLINE)], wiki.pages, wiki.children)
    after, _, failed = carried_out(made, OLD)
    assert failed == []
    assert edges(after["Implementation:I1"]) == {("requires_env", "E1")}
    assert "Environment:E8" not in after


def test_a_second_import_changes_nothing() -> None:
    after, _, _ = carried_out(plan(), OLD)
    scores = {("P8", "P1"): 0.95, ("I8", "I1"): 0.95, ("E8", "E8"): 1.0, ("E8", "E1"): 0.31}
    again, done, failed = carried_out(planned(NEW, list(after.values()), scores), list(after.values()))
    assert failed == []
    assert all(not one.written for one in done)
    assert all(same_content(again[id], after[id]) for id in after)


# -- B33: plan.md as people's editors leave it

ODD_NAMES = [
    "a  b",
    " a",
    "a\t",
    "a\nb",
    "a\u2028b",
    "a\u00a0b",
    "a → b",
    "a: b",
    "-",
    "(root)",
    "N/A",
    "x|y\\",
    "<br>",
    "\\u0020",
]


@pytest.mark.parametrize("name", ODD_NAMES)
def test_B33_a_name_of_any_white_space_is_read_back(name: str) -> None:
    old = replace(page("P1"), id=name, name=name, type="Note")
    new = replace(page("P2", "I2"), id=name, name=name, type="Note")
    made = plan_merge([new], wiki_of([old]), SuppliedScores(scores={(name, name): 1.0}))
    text = render_plan(made)
    assert {(one.page_id, one.merge_target_id) for one in parse_plan(text).nodes.values()} == {(name, name)}
    assert edits_in(text, made) == []
    alone = plan_merge([new], wiki_of([]), SuppliedScores(scores={}))
    assert edits_in(render_plan(alone), alone) == []


@given(st.text(st.characters(codec="utf-8"), min_size=1, max_size=12))
def test_B33_any_name_is_read_back(name: str) -> None:
    test_B33_a_name_of_any_white_space_is_read_back(name)


@pytest.mark.parametrize("change", [lambda text: "\ufeff" + text, lambda text: text.replace("\n", "\r\n")])
def test_B33_a_byte_order_mark_and_other_line_ends_are_no_edit(change: Callable[[str], str]) -> None:
    assert edits_in(change(render_plan(plan())), plan()) == []
    changed = change(render_plan(plan())).replace("| Environment:E8 | CREATE_NEW", "| Environment:E8 | DECLINE")
    assert edits_in(changed, plan()) == [Edit(page_id="Environment:E8", decision=Verdict.DECLINE)]


def test_B33_what_stands_twice_is_refused() -> None:
    text = render_plan(plan())
    row = next(line for line in text.split("\n") if line.startswith("| Environment:E8"))
    step = "1. Environment:E8 → CREATE_NEW"
    for line, message in ((row, "two rows"), (step, "stands twice in the execution order")):
        with pytest.raises(InvalidInput, match=message):
            edits_in(text.replace(line, f"{line}\n{line.replace('CREATE_NEW', 'DECLINE')}"), plan())
    with pytest.raises(InvalidInput, match="stands twice in the file"):
        edits_in(text + text[text.index("## SubGraph") :], plan())


def test_B33_the_head_says_what_may_be_edited() -> None:
    head = render_plan(plan()).partition("## SubGraph")[0]
    assert all(word in head for word in ("What may be edited", *("MERGE", "CREATE_NEW", "DECLINE")))
