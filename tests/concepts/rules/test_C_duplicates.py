"""The worked examples of the source document on duplicate nodes, as far as they are rules."""

import asyncio

import numpy as np
import pytest

from recollect.concepts.rules import energy, similarity
from recollect.concepts.rules.clusters import ClusterOptions, decide
from recollect.concepts.rules.detection import ConceptColumns
from recollect.concepts.rules.never_merge import NEVER_MERGE_EXAMPLE, Apart
from recollect.providers.minilm import MiniLMEmbedder
from tests.concept_sets import detect

NAMES = ["consciousness_substrate", "consciousness substrate", "substrate_for_consciousness"]


def embedded(names: list[str]) -> ConceptColumns:
    given = [name.replace("_", " ").lower() for name in names]
    return ConceptColumns.of(names=names, vectors=asyncio.run(MiniLMEmbedder(threads=1).embed(given)))


def test_C25_duplicate_detection_as_the_document_tests_it() -> None:
    found = detect(embedded(NAMES), 0.90)
    assert len(found.pairs) >= 1
    assert any({one, other} == {0, 1} for one, other, _ in found.pairs)


def test_C06_underscore_and_space_are_found_at_090_and_so_is_the_other_word_order() -> None:
    scores = {(one, other): score for one, other, score in detect(embedded(NAMES), 0.5).pairs}
    assert scores[0, 1] == 1.0
    assert scores[0, 2] >= 0.90


def test_C25_merging_preserves_energy_as_the_document_tests_it() -> None:
    merged = energy.summed([{"translator": 0.6}, {"translator": 0.3, "architect": 0.4}])
    assert energy.shown(merged["translator"]) >= 0.8
    assert energy.shown(merged["architect"]) >= 0.35


def test_C22_C21_consciousness_and_its_engine_stay_two() -> None:
    concepts = embedded(["consciousness", "consciousness_engine", "entity", "sub_entity"])
    assert not len(detect(concepts, 0.95).pairs)
    apart = Apart(names=NEVER_MERGE_EXAMPLE)
    assert apart.forbids(concepts, [0, 1])
    assert apart.forbids(concepts, [2, 3])
    anything = ClusterOptions(threshold=0.3, review=0.3, ask=frozenset())
    merged = decide(concepts, detect(concepts, 0.3), anything, apart).groups
    assert not any({0, 1} <= set(group.rows) or {2, 3} <= set(group.rows) for group in merged)


def test_C24_the_three_of_the_document_become_one_that_is_strong_enough() -> None:
    vectors = np.tile(np.array([0.6, 0.8], np.float32), (3, 1))
    concepts = ConceptColumns.of(names=[NAMES[0], NAMES[1], "Consciousness Substrate"], vectors=vectors)
    trusting = ClusterOptions(ask=frozenset(similarity.DOUBTS) - {similarity.BARE})
    (group,) = decide(concepts, detect(concepts, 0.85), trusting).merges
    assert set(group.rows) == {0, 1, 2}
    assert energy.shown(0.4 + 0.3 + 0.2) == pytest.approx(0.844, abs=5e-4)
