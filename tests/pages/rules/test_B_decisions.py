"""Sub-graphs and decisions about pages (B01-B15, B28, B29)."""

import random
from dataclasses import replace

import pytest

from recollect.pages.rules.decisions import DecisionOptions, MergePlan, Verdict
from recollect.pages.rules.hierarchy import (
    WIKI,
    EdgeKind,
    Hierarchy,
    PageType,
    detect_subgraphs,
    execution_order,
    findings,
)
from recollect.pages.rules.links import resolve
from recollect.pages.rules.page import WikiPage
from recollect.pages.rules.stored import read_page
from recollect.pages.rules.vetoes import veto
from tests.pages.rules.page_support import carried_out, edges, id_of, page, planned

MERGE, CREATE_NEW = Verdict.MERGE, Verdict.CREATE_NEW


def decisions(plan: MergePlan) -> dict[str, tuple[Verdict, str | None]]:
    return {id.split(":")[1]: (node.decision, node.merge_target_id) for id, node in plan.nodes.items()}


def reason(plan: MergePlan, short: str) -> str:
    return plan.nodes[id_of(short)].reason


# -- B01: the hierarchy


def test_B01_a_principle_without_an_implementation_is_a_finding() -> None:
    (finding,) = findings([page("P1", "H1")])
    assert "needs at least one Implementation" in finding.message
    assert findings([page("P1", "I1")]) == []


def test_B01_a_leaf_with_a_forward_edge_is_a_finding_and_not_followed() -> None:
    leaf = read_page("environments/E1.md", "# Environment: E1\n\n* [[requires_env::Environment:E2]]\n").page
    (finding,) = findings([leaf])
    assert "is a leaf" in finding.message
    assert detect_subgraphs([leaf, page("E2")]).edges == ()


def test_B01_unknown_types_and_relations_are_findings() -> None:
    odd = read_page("implementations/I1.md", "# Implementation: I1\n\n* [[powered_by::Environment:E1]]\n").page
    assert ["not known" in finding.message for finding in findings([odd])] == [True]
    (other,) = findings([replace(odd, type="Recipe", lead="")])
    assert "not one of the hierarchy's" in other.message


def test_B01_another_hierarchy_is_another_table() -> None:
    table = Hierarchy(
        types=(PageType(name="Step", folder="steps", is_leaf=True), PageType(name="Recipe", folder="recipes")),
        edges=(EdgeKind(name="has_step", sources=("Recipe",), target="Step"),),
    )
    recipe = read_page("recipes/Soup.md", "# Soup\n\n* [[has_step::Step:Boil]]\n", table).page
    step = read_page("steps/Boil.md", "# Boil\n", table).page
    (subgraph,) = detect_subgraphs([step, recipe], table).subgraphs
    assert (subgraph.root, subgraph.execution_order) == ("Recipe:Soup", ("Step:Boil", "Recipe:Soup"))


def test_B01_a_workflow_carries_its_repository() -> None:
    text = "# Workflow: W1\n\n== GitHub URL ==\n[[github_url::https://example.org/repo]]\n"
    assert read_page("workflows/W1.md", text).page.github_url == "https://example.org/repo"


# -- B02-B05, B10, B11


def test_B02_a_page_is_compared_only_with_its_own_type() -> None:
    plan = planned([page("H1")], [page("E1"), page("H9")], {("H1", "E1"): 1.0, ("H1", "H9"): 0.9})
    assert decisions(plan) == {"H1": (MERGE, "Heuristic:H9")}


def test_B03_children_look_only_under_the_parents_target() -> None:
    old = [page("P1", "I1"), page("I1"), page("P2", "I2"), page("I2")]
    scores = {("P8", "P1"): 0.9, ("I8", "I1"): 0.86, ("I8", "I2"): 0.99}
    plan = planned([page("P8", "I8"), page("I8")], old, scores)
    assert decisions(plan)["I8"] == (MERGE, "Implementation:I1")
    assert reason(plan, "I8") == "Scoped search in [I1]"


def test_B04_no_merge_across_principles_even_at_one() -> None:
    old = [page("P1", "I1"), page("I1"), page("P2", "I2"), page("I2")]
    plan = planned([page("P8", "I8"), page("I8")], old, {("P8", "P1"): 0.9, ("I8", "I2"): 1.0})
    assert decisions(plan)["I8"] == (CREATE_NEW, None)


def test_B05_everything_below_a_new_page_is_new_and_unsearched() -> None:
    old = [page("P1", "I1"), page("I1", "E1"), page("E1")]
    scores = {("P8", "P1"): 0.2, ("I8", "I1"): 1.0, ("E8", "E1"): 1.0}
    plan = planned([page("P8", "I8"), page("I8", "E8"), page("E8")], old, scores)
    assert {verdict for verdict, _ in decisions(plan).values()} == {CREATE_NEW}
    below = [plan.nodes[id_of(short)] for short in ("I8", "E8")]
    assert [node.best_match_score for node in below] == [None, None]
    assert below[1].reason == "Inherited from parent (Implementation:I8 is CREATE_NEW)"


def test_B10_a_root_searches_the_whole_graph_for_its_type() -> None:
    old = [page("P1", "I1"), page("I1", "E1"), page("E1")]
    plan = planned([page("I8")], old, {("I8", "I1"): 0.9})
    assert decisions(plan) == {"I8": (MERGE, "Implementation:I1")}


def test_B11_levels_go_from_the_top_down_whatever_the_order_of_the_pages() -> None:
    old = [page("P1", "I1"), page("I1", "E1"), page("E1")]
    new = [page("P8", "I8"), page("I8", "E8"), page("E8")]
    scores = {("P8", "P1"): 0.9, ("I8", "I1"): 0.9, ("E8", "E1"): 0.9}
    straight = planned(new, old, scores)
    for seed in range(5):
        random.Random(seed).shuffle(new)
        assert planned(new, old, scores) == straight
    assert {verdict for verdict, _ in decisions(straight).values()} == {MERGE}


def test_scope_type_drops_the_scoping() -> None:
    old = [page("P1", "I1"), page("I1"), page("P2", "I2"), page("I2")]
    scores = {("P8", "P1"): 0.9, ("I8", "I2"): 1.0}
    plan = planned([page("P8", "I8"), page("I8")], old, scores, options=DecisionOptions(scope="type"))
    assert decisions(plan)["I8"] == (MERGE, "Implementation:I2")


# -- B09: sub-graphs


def test_B09_a_shared_child_is_decided_once_and_referenced_by_the_other() -> None:
    found = detect_subgraphs([page("P1", "I1"), page("P2", "I2"), page("I1", "E1"), page("I2", "E1"), page("E1")])
    first, second = found.subgraphs
    assert (first.root, second.root) == ("Principle:P1", "Principle:P2")
    assert "Environment:E1" in first.nodes
    assert second.nodes == ("Principle:P2", "Implementation:I2")
    assert second.shared == ("Environment:E1",)


def test_B09_an_isolated_page_is_a_subgraph_of_one() -> None:
    (one,) = detect_subgraphs([page("E1")]).subgraphs
    assert (one.root, one.nodes) == ("Environment:E1", ("Environment:E1",))


def test_B09_back_links_are_not_edges() -> None:
    heuristic = read_page(
        "heuristics/H1.md",
        "# Heuristic: H1\n\n* [[uses_heuristic::Implementation:I1]]\n* [[used_by::Implementation:I1]]\n",
    ).page
    implementation = read_page("implementations/I1.md", "# Implementation: I1\n\n* [[implements::Principle:P1]]\n").page
    found = detect_subgraphs([heuristic, implementation, page("P1", "I1")])
    assert [(edge.source, edge.target) for edge in found.edges] == [("Principle:P1", "Implementation:I1")]
    assert findings([heuristic, implementation]) == []


def test_B09_a_link_out_of_the_batch_is_no_edge_and_is_said_only_where_it_leads_nowhere() -> None:
    new = [page("P1", "I1")]
    assert detect_subgraphs(new).edges == ()
    assert "leads nowhere" in resolve(new).findings[0].message
    assert resolve(new, [page("I1")]).findings == ()


NOTES = Hierarchy(
    types=(PageType(name="Low", folder="low"), PageType(name="High", folder="high")),
    edges=(
        EdgeKind(name="to", sources=("Low", "High"), target="Low"),
        EdgeKind(name="to", sources=("Low", "High"), target="High"),
    ),
)


def note(type: str, name: str, *targets: str) -> WikiPage:
    links = "".join(f"* [[to::{target}]]\n" for target in targets)
    return read_page(f"{type.lower()}/{name}.md", f"# {name}\n\n{links}", NOTES).page


def test_B09_a_cycle_is_cut_where_it_points_up() -> None:
    found = detect_subgraphs([note("High", "a", "Low:b"), note("Low", "b", "High:a")], NOTES)
    assert [one.root for one in found.subgraphs] == ["High:a"]
    assert found.findings[0].page == "Low:b"
    assert "points up" in found.findings[0].message


def test_B09_a_cycle_of_one_type_is_cut_at_the_smallest_id() -> None:
    found = detect_subgraphs([note("Low", "b", "Low:c"), note("Low", "c", "Low:a"), note("Low", "a", "Low:b")], NOTES)
    assert [one.root for one in found.subgraphs] == ["Low:a"]
    assert [(one.page, "closes a cycle" in one.message) for one in found.findings] == [("Low:c", True)]


def test_B09_a_cycle_below_a_root_keeps_the_root() -> None:
    pages = [note("Low", "z", "Low:m"), note("Low", "m", "Low:b"), note("Low", "b", "Low:m"), note("Low", "s", "Low:s")]
    found = detect_subgraphs(pages, NOTES)
    assert {one.root: one.nodes for one in found.subgraphs} == {
        "Low:z": ("Low:z", "Low:m", "Low:b"),
        "Low:s": ("Low:s",),
    }
    assert len(found.findings) == 2


# -- B12-B15


def test_B12_each_decision_carries_score_and_reason() -> None:
    old = [page("P1", "I1", "I2"), page("I1"), page("I2")]
    plan = planned([page("P8", "I8"), page("I8")], old, {("P8", "P1"): 0.9, ("I8", "I2"): 0.88})
    node = plan.nodes["Implementation:I8"]
    assert (node.best_match_score, node.reason, node.parent_id) == (0.88, "Scoped search in [I1, I2]", "Principle:P8")


def test_B13_a_heuristic_of_two_levels_looks_under_the_lower_parent_first() -> None:
    old = [page("P1", "I1", "H1"), page("I1", "H2"), page("H1"), page("H2")]
    new = [page("P8", "I8", "H8"), page("I8", "H8"), page("H8")]
    both = {("P8", "P1"): 0.9, ("I8", "I1"): 0.9, ("H8", "H1"): 0.99, ("H8", "H2"): 0.86}
    assert decisions(planned(new, old, both))["H8"] == (MERGE, "Heuristic:H2")


def test_B13_a_parent_that_merged_wins_over_one_that_is_new() -> None:
    old = [page("P1", "H1"), page("H1")]
    new = [page("P8", "I8", "H8"), page("I8", "H8"), page("H8")]
    plan = planned(new, old, {("P8", "P1"): 0.9, ("H8", "H1"): 0.9})
    assert decisions(plan)["I8"] == (CREATE_NEW, None)
    assert decisions(plan)["H8"] == (MERGE, "Heuristic:H1")


def test_B14_execution_is_bottom_up_with_ties_by_id() -> None:
    pages = [page("W1"), page("P1"), page("I2"), page("I1"), page("H1"), page("E2"), page("E1")]
    order = execution_order({one.id: one.type for one in pages}, WIKI)
    assert [id.split(":")[1] for id in order] == ["E1", "E2", "H1", "I1", "I2", "P1", "W1"]


def test_B15_deferred_edges_name_parent_and_type() -> None:
    plan = planned([page("P8", "I8", "H8"), page("I8", "H8"), page("H8")], [], {})
    edges = plan.nodes["Heuristic:H8"].deferred_edges
    assert {(edge.parent_id, edge.edge_type) for edge in edges} == {
        ("Principle:P8", "uses_heuristic"),
        ("Implementation:I8", "uses_heuristic"),
    }


# -- B28: the eight rows of "Edge Cases Handled"


def test_B28_basic_merge_and_create() -> None:
    plan = planned([page("P7"), page("P8")], [page("P1")], {("P7", "P1"): 0.9, ("P8", "P1"): 0.1})
    assert decisions(plan) == {"P7": (MERGE, "Principle:P1"), "P8": (CREATE_NEW, None)}


def test_B28_scoped_search() -> None:
    old = [page("P1", "I1"), page("I1"), page("I2")]
    plan = planned([page("P8", "I8"), page("I8")], old, {("P8", "P1"): 0.9, ("I8", "I2"): 0.95})
    assert decisions(plan)["I8"] == (CREATE_NEW, None)


def test_B28_inherited_create_new() -> None:
    plan = planned([page("P8", "I8"), page("I8")], [page("I1")], {("I8", "I1"): 1.0})
    assert reason(plan, "I8").startswith("Inherited from parent")


def test_B28_multi_parent_heuristics_escalate() -> None:
    old = [page("P1", "I1", "H1"), page("I1", "H2"), page("H1"), page("H2")]
    new = [page("P8", "I8", "H8"), page("I8", "H8"), page("H8")]
    plan = planned(new, old, {("P8", "P1"): 0.9, ("I8", "I1"): 0.9, ("H8", "H1"): 0.9, ("H8", "H2"): 0.2})
    assert decisions(plan)["H8"] == (MERGE, "Heuristic:H1")
    nowhere = planned(new, old, {("P8", "P1"): 0.9, ("I8", "I1"): 0.9})
    assert decisions(nowhere)["H8"] == (CREATE_NEW, None)
    assert reason(nowhere, "H8") == "No good match in [H2], then in [H1]"


def test_B28_deferred_edges_are_made_with_the_parent() -> None:
    old = [page("P1", "I1"), page("I1")]
    plan = planned([page("P8", "I8"), page("I8")], old, {("P8", "P1"): 0.9})
    after, _, failures = carried_out(plan, old)
    assert failures == []
    assert edges(after["Principle:P1"]) == {("implemented_by", "I1"), ("implemented_by", "I8")}


def test_B28_edges_to_one_target_are_one() -> None:
    old = [page("P1", "I1"), page("I1")]
    plan = planned([page("P8", "I8"), page("I8")], old, {("P8", "P1"): 0.9, ("I8", "I1"): 0.9})
    after, _, failures = carried_out(plan, old)
    assert failures == []
    assert [link.target for link in after["Principle:P1"].links] == ["Implementation:I1"]


# Partial failure, and audit and retry: tests/pages/rules/test_B_execution.py


# -- B29: deciding


@pytest.mark.parametrize(
    ("score", "verdict"), [(0.85, MERGE), (0.8499, CREATE_NEW), (0.60, CREATE_NEW), (0.2, CREATE_NEW)]
)
def test_B29_without_a_judge_only_the_threshold_merges(score: float, verdict: Verdict) -> None:
    assert decisions(planned([page("P8")], [page("P1")], {("P8", "P1"): score}))["P8"][0] is verdict


def test_B29_the_judge_is_asked_only_in_between() -> None:
    asked: list[float] = []

    def judge(new: WikiPage, old: WikiPage, score: float) -> Verdict:
        asked.append(score)
        return Verdict.MERGE if old.name == "P1" else Verdict.REVIEW

    for score in (0.59, 0.60, 0.84, 0.85):
        plan = planned([page("P8")], [page("P1")], {("P8", "P1"): score}, judge=judge)
        assert decisions(plan)["P8"][0] is (CREATE_NEW if score < 0.6 else MERGE)
    assert asked == [0.60, 0.84]
    review = planned([page("P8", "I8"), page("I8")], [page("P2", "I2"), page("I2")], {("P8", "P2"): 0.7}, judge=judge)
    assert decisions(review) == {"P8": (Verdict.REVIEW, "Principle:P2"), "I8": (CREATE_NEW, None)}


def test_B29_only_a_mutual_best_match_merges() -> None:
    plan = planned([page("P7"), page("P8")], [page("P1")], {("P7", "P1"): 0.95, ("P8", "P1"): 0.9})
    assert decisions(plan) == {"P7": (MERGE, "Principle:P1"), "P8": (CREATE_NEW, None)}
    assert "P1 is closer to Principle:P7" in reason(plan, "P8")


def test_B29_a_tie_is_broken_by_id_and_nothing_is_merged_twice() -> None:
    plan = planned([page("P8"), page("P7")], [page("P1")], {("P7", "P1"): 0.9, ("P8", "P1"): 0.9})
    assert decisions(plan) == {"P7": (MERGE, "Principle:P1"), "P8": (CREATE_NEW, None)}


def code(short: str, source: str) -> WikiPage:
    return page(short, body=f"\n```python\n{source}\n```\n")


def test_B29_an_implementation_of_another_api_is_vetoed() -> None:
    load, save = code("I1", "def load_model(name): ..."), code("I8", "def save_model(name): ...")
    assert veto(save, load) == "another API: save_model here, load_model there"
    plan = planned([save], [load], {("I8", "I1"): 0.99})
    assert decisions(plan) == {"I8": (CREATE_NEW, None)}
    assert "Vetoed: another API" in reason(plan, "I8")
    assert veto(code("I8", "def load_model(path): ..."), load) is None
    assert veto(code("I8", "class Loader: ...  # see load_model"), load) is None


def test_B29_a_vetoed_page_may_merge_with_the_next_best() -> None:
    old = [code("I1", "def load_model(name): ..."), code("I2", "def save_model(name): ...")]
    scores = {("I8", "I1"): 0.99, ("I8", "I2"): 0.9}
    plan = planned([code("I8", "def save_model(name): ...")], old, scores)
    assert decisions(plan) == {"I8": (MERGE, "Implementation:I2")}


@pytest.mark.parametrize(
    ("here", "there", "vetoed"),
    [
        ("CUDA 11.8 and PyTorch 2.0", "CUDA 11.x and PyTorch", False),
        ("CUDA 11.8", "CUDA 12.1", True),
        ("torch >= 2.4", "torch >= 2.1", False),
        ("torch == 1.13.1", "torch >= 2.0", True),
        ("torch < 2.0", "torch >= 2.0", True),
        ("torch <= 2.0", "torch >= 2.0", False),
        ("bitsandbytes 0.41+", "bitsandbytes 0.40+", False),
        ("Python 3.10", "a graphics card", False),
        ("numpy ~= 1.26", "numpy 2.0+", True),
    ],
)
def test_B29_environments_merge_only_with_compatible_versions(here: str, there: str, vetoed: bool) -> None:
    reason = veto(page("E8", text=f"Needs {here}."), page("E1", text=f"Needs {there}."))
    assert (reason is not None and reason.startswith("incompatible versions")) is vetoed


@pytest.mark.parametrize(
    ("here", "there", "vetoed"),
    [
        ("Use gradient checkpointing with large batches.", "Avoid gradient checkpointing with large batches.", True),
        ("Increase the batch size first.", "Reduce the batch size first.", True),
        ("Don't use packed sequences here.", "Use packed sequences here.", True),
        ("Use packed sequences here.", "Use packed sequences here.", False),
        ("Avoid tiny learning rates for adapters.", "Use gradient checkpointing with large batches.", False),
    ],
)
def test_B29_heuristics_that_contradict_never_merge(here: str, there: str, vetoed: bool) -> None:
    reason = veto(page("H8", text=here), page("H1", text=there))
    assert (reason is not None and reason.startswith("contradicting advice")) is vetoed
