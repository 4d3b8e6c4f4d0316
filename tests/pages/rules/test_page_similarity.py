"""Scores of pairs of pages, from words and vectors."""

import numpy as np
import pytest

from recollect.pages.rules.decisions import Verdict, plan_merge, wiki_of
from recollect.pages.rules.page import WikiPage
from recollect.pages.rules.similarity import compare, lead, name_words, scaled
from recollect.pages.rules.stored import read_page


def page(name: str, overview: str, more: str = "") -> WikiPage:
    return read_page(f"implementations/{name}.md", f"# {name}\n\n## Overview\n{overview}\n\n## More\n{more}\n").page


OLD = [
    page(
        "Acme_Tool_load_weights", "Loads the weights of a model from disk into memory.", "Blocks are read one by one."
    ),
    page(
        "Acme_Tool_save_weights", "Saves the weights of a model from memory to disk.", "Blocks are written one by one."
    ),
    page("Acme_Tool_Tokenizer", "Cuts a text into tokens by a vocabulary.", "Unknown words become pieces."),
    page("Acme_Tool_Scheduler", "Decides when the learning rate falls.", "Cosine or linear."),
]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("FastCohereModel", ["fast", "cohere", "model"]),
        ("MoE_Block", ["moe", "block"]),
        ("get_peft_model", ["get", "peft", "model"]),
        ("LoRA adapters", ["lora", "adapter"]),
    ],
)
def test_a_name_has_words_however_it_is_written(name: str, words: list[str]) -> None:
    assert name_words(name) == words


def test_the_same_page_described_twice_scores_high_and_its_sister_low() -> None:
    new = page("Acme_Tool_WeightLoader", "Reads weights of a model from disk to memory, block by block.", "Loads fast.")
    loads, saves, *others = compare([new], OLD).of(new.id, [one.id for one in OLD])
    assert loads > saves > max(others)


def test_an_equal_page_scores_one() -> None:
    comparison = compare([OLD[0]], OLD)
    assert comparison.of(OLD[0].id, [OLD[0].id]) == [1.0]


def test_without_anything_in_common_nothing_merges_even_in_a_tiny_wiki() -> None:
    new = page("Gardening", "How roses are cut in spring.", "Use sharp scissors.")
    plan = plan_merge([new], wiki_of(OLD[:1]), compare([new], OLD[:1]))
    assert plan.nodes[new.id].decision is Verdict.CREATE_NEW


def test_a_lead_counts_the_best_other_of_both_sides() -> None:
    similarity = np.array([[0.9, 0.5], [0.7, 0.4]], np.float32)
    assert lead(similarity) == pytest.approx(np.array([[0.2, -0.4], [-0.2, -0.3]]), abs=1e-6)
    # Alone, it is measured from the background.
    assert lead(np.array([[0.8]], np.float32)) == pytest.approx(np.array([[0.5]]), abs=1e-6)


def test_the_scale_is_monotone_and_ends_at_one() -> None:
    evidence = np.linspace(-1, 2, 301, dtype=np.float32)
    scores = scaled(evidence)
    assert (np.diff(scores) >= 0).all()
    assert (scores.min(), scores.max()) == (0.0, 1.0)


def test_vectors_are_one_view_more_and_missing_views_do_not_count() -> None:
    vectors = np.eye(4, dtype=np.float32)
    with_vectors = compare(OLD, OLD, new_vectors=vectors, old_vectors=vectors)
    factors = with_vectors.factors(OLD[0].id, OLD[1].id)
    assert factors["meaning"] == 0.0
    assert "children" not in factors
    assert "meaning" not in compare(OLD, OLD).factors(OLD[0].id, OLD[1].id)


def test_scores_do_not_depend_on_the_order_of_pages() -> None:
    ids = [one.id for one in OLD]
    straight, turned = compare(OLD, OLD), compare(OLD[::-1], OLD[::-1])
    for id in ids:
        assert straight.of(id, ids) == pytest.approx(turned.of(id, ids), abs=1e-5)


def test_an_empty_wiki_has_no_scores() -> None:
    assert compare(OLD, []).of(OLD[0].id, []) == []
    assert {node.decision for node in plan_merge(OLD, wiki_of([]), compare(OLD, [])).nodes.values()} == {
        Verdict.CREATE_NEW
    }
