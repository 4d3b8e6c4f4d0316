"""The walkthrough of the knowledge merger's design, with its scores supplied (B19)."""

from recollect.pages.rules.audit import audit
from recollect.pages.rules.decisions import MergePlan, Verdict, plan_merge, wiki_of
from recollect.pages.rules.execution import destinations, execute
from recollect.pages.rules.page import WikiPage
from recollect.pages.rules.similarity import SuppliedScores
from recollect.pages.rules.stored import read_page

FOLDERS = {
    "Principle": "principles",
    "Implementation": "implementations",
    "Environment": "environments",
    "Heuristic": "heuristics",
}


def page(id: str, overview: str, *links: str) -> WikiPage:
    type, name = id.split(":")
    related = "".join(f"* [[{link}]]\n" for link in links)
    text = f"# {type}: {name}\n\n== Overview ==\n{overview}.\n" + (f"\n== Related Pages ==\n{related}" if links else "")
    return read_page(f"{FOLDERS[type]}/{name}.md", text).page


NEW = [
    page(
        "Principle:X'",
        "QLoRA fine-tuning theory",
        "implemented_by::Implementation:A'",
        "implemented_by::Implementation:C'",
        "uses_heuristic::Heuristic:H1'",
    ),
    page(
        "Implementation:A'",
        "FastLanguageModel loader",
        "requires_env::Environment:E1'",
        "requires_env::Environment:E2'",
    ),
    page("Implementation:C'", "Custom LoRA config", "requires_env::Environment:E3'"),
    page("Environment:E1'", "CUDA 11.8 + PyTorch 2.0"),
    page("Environment:E2'", "16GB VRAM minimum"),
    page("Environment:E3'", "bitsandbytes 0.41+"),
    page("Heuristic:H1'", "Memory optimization tips"),
]
OLD = [
    page(
        "Principle:X",
        "QLoRA parameter-efficient fine-tuning",
        "implemented_by::Implementation:A",
        "implemented_by::Implementation:B",
        "uses_heuristic::Heuristic:H2",
    ),
    page("Implementation:A", "FastLanguageModel.from_pretrained", "requires_env::Environment:E1"),
    page("Implementation:B", "get_peft_model for LoRA", "requires_env::Environment:E4"),
    page("Environment:E1", "CUDA 11.x + PyTorch"),
    page("Environment:E4", "PEFT library 0.5+"),
    page("Heuristic:H2", "Batch size tuning for QLoRA"),
    page("Principle:Y", "Another theory", "implemented_by::Implementation:D"),
    page("Implementation:D", "Something else", "requires_env::Environment:E5"),
    page("Environment:E5", "bitsandbytes 0.40+"),
]
SCORES = SuppliedScores(
    scores={
        ("Principle:X'", "Principle:X"): 0.92,
        ("Implementation:A'", "Implementation:A"): 0.95,
        ("Implementation:C'", "Implementation:B"): 0.45,
        ("Heuristic:H1'", "Heuristic:H2"): 0.35,
        ("Environment:E1'", "Environment:E1"): 0.88,
        ("Environment:E2'", "Environment:E1"): 0.25,
        ("Environment:E3'", "Environment:E5"): 1.00,
    }
)


def planned() -> MergePlan:
    return plan_merge(NEW, wiki_of(OLD), SCORES)


def edges(page: WikiPage) -> set[tuple[str, str]]:
    return {(link.relation, link.target) for link in page.links}


def test_B19_one_subgraph_with_the_principle_as_root() -> None:
    (subgraph,) = planned().subgraphs
    assert subgraph.root_id == "Principle:X'"
    assert set(subgraph.nodes) == {page.id for page in NEW}


def test_B19_decisions_scores_and_reasons() -> None:
    rows = {
        id: (node.decision, node.merge_target_id, node.best_match_score, node.reason)
        for id, node in planned().nodes.items()
    }
    scores = {id: None if row[2] is None else round(row[2], 2) for id, row in rows.items()}
    assert {id: (row[0], row[1], scores[id], row[3]) for id, row in rows.items()} == {
        "Principle:X'": (Verdict.MERGE, "Principle:X", 0.92, "High similarity"),
        "Implementation:A'": (Verdict.MERGE, "Implementation:A", 0.95, "Scoped search in [A, B]"),
        "Implementation:C'": (Verdict.CREATE_NEW, None, 0.45, "No good match in [A, B]"),
        "Heuristic:H1'": (Verdict.CREATE_NEW, None, 0.35, "No match in [H2]"),
        "Environment:E1'": (Verdict.MERGE, "Environment:E1", 0.88, "Scoped search in [E1]"),
        "Environment:E2'": (Verdict.CREATE_NEW, None, 0.25, "No match in [E1]"),
        "Environment:E3'": (
            Verdict.CREATE_NEW,
            None,
            None,
            "Inherited from parent (Implementation:C' is CREATE_NEW)",
        ),
    }


def test_B19_execution_order() -> None:
    names = [id.split(":")[1] for id in planned().subgraphs[0].execution_order]
    assert names == ["E1'", "E2'", "E3'", "H1'", "A'", "C'", "X'"]


def test_B19_final_graph() -> None:
    plan = planned()
    before = {page.id: page for page in OLD}
    results = destinations(plan, before)
    executed = execute(plan.subgraphs[0], before, results, updated="2026-02-01")
    after = {**before, **executed.written}

    assert audit(executed.subgraph, before, after, results) == []
    assert edges(after["Principle:X"]) == {
        ("implemented_by", "Implementation:A"),
        ("implemented_by", "Implementation:B"),
        ("implemented_by", "Implementation:C'"),
        ("uses_heuristic", "Heuristic:H1'"),
        ("uses_heuristic", "Heuristic:H2"),
    }
    assert edges(after["Implementation:A"]) == {
        ("requires_env", "Environment:E1"),
        ("requires_env", "Environment:E2'"),
    }
    assert edges(after["Implementation:C'"]) == {("requires_env", "Environment:E3'")}
    for id in ("Implementation:B", "Environment:E4", "Heuristic:H2", "Environment:E5", "Implementation:D"):
        assert after[id] == before[id]
    assert set(executed.written) == {
        *("Principle:X", "Implementation:A", "Environment:E1"),
        *("Implementation:C'", "Environment:E2'", "Environment:E3'", "Heuristic:H1'"),
    }


def test_B19_merged_pages_hold_both_views() -> None:
    plan = planned()
    before = {page.id: page for page in OLD}
    written = execute(plan.subgraphs[0], before, destinations(plan, before)).written
    assert written["Principle:X"].overview == "QLoRA parameter-efficient fine-tuning.\n\nQLoRA fine-tuning theory."
    assert [section.heading for section in written["Principle:X"].sections] == ["Overview", "Related Pages"]


def test_B19_the_other_environment_does_not_merge_even_at_one() -> None:
    node = planned().nodes["Environment:E3'"]
    assert (node.decision, node.merge_target_id) == (Verdict.CREATE_NEW, None)
