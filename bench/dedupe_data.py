"""Duplicates on evaluation data: how often a merge is right, what is asked, how good the order of the pairs is (C38).

./run bench dedupe --data DIR [--cache DIR] [--out run.jsonl] [--clusters-out clusters.jsonl]

DIR is one set (records.jsonl, pairs.jsonl) or a folder with several below it. Each set is decided as the engine decides
by default, with one configuration for all. With several, the bars of C38 are figures: over all of them, and of the
worst. The plain order that ours is held against is tf-idf: over all words, and over the 3-grams of the names, whichever
is better on that set. In the run file a pair's score is its estimated probability.
"""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.figures import Figure
from bench.recall import rows
from recollect.concepts.policies.merge_duplicate_concepts import blocked, found_around
from recollect.concepts.rules.clusters import ClusterOptions, Decided, decide
from recollect.concepts.rules.detection import ConceptColumns, FoundPairs
from recollect.concepts.rules.evidence import Evidence, weigh
from recollect.concepts.rules.evidence.estimate import FACTORS, probability
from recollect.providers.minilm import MiniLMEmbedder

# Of these sets nothing may be merged: they have no true pairs, and no recall.
FEW_MERGES = 50

Floats = NDArray[np.float64]
Ends = tuple[int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Measured:
    """What came of one set."""

    name: str
    true: int
    merged: int
    right: int
    largest_wrong: int
    asked: int
    asked_right: int
    best_f1: float
    plain_f1: float

    @property
    def wrong(self) -> int:
        return self.merged - self.right

    def __str__(self) -> str:
        true = max(1, self.true)
        return (
            f"{self.name}: best F1 {self.best_f1:.3f} (tf-idf {self.plain_f1:.3f}); "
            f"merged {self.merged}, wrong {self.wrong}, largest wrong {self.largest_wrong}, "
            f"recall {self.right / true:.3f}; asked {self.asked / true:.2f} for each true pair, "
            f"with {self.asked_right / true:.3f} of them"
        )


def quality(data: Path, out: Path | None, clusters_out: Path | None, cache: Path | None) -> list[Figure]:
    sets = sorted(file.parent for file in data.rglob("records.jsonl") if (file.parent / "pairs.jsonl").exists())
    measured = []
    for one in sets:
        measured.append(measure(one, _of_set(out, one, sets), _of_set(clusters_out, one, sets), cache))
        print(measured[-1], flush=True)
    return [*(figure for one in measured for figure in figures_of(one)), *(bars(measured) if len(sets) > 1 else [])]


def _of_set(file: Path | None, one: Path, sets: Sequence[Path]) -> Path | None:
    """With several sets, each has a file of its own."""
    return file if file is None or len(sets) == 1 else file.with_name(f"{file.stem}-{one.name}{file.suffix}")


def measure(data: Path, out: Path | None, clusters_out: Path | None, cache: Path | None) -> Measured:
    records, truth = rows(data / "records.jsonl"), things(rows(data / "pairs.jsonl"))
    concepts = read(records, None if cache is None else cache / f"{data.name}.npy")
    options = ClusterOptions(most_merges=len(concepts))
    blocks = blocked(concepts, options.review)
    found = found_around(concepts, options.review, None, blocks)
    evidence = weigh(blocks, found)
    result = decide(concepts, found, options, None, evidence.above(options.ask_from, options.review))
    scores = all_scores(found, evidence, probability(evidence.odds), result)
    if out:
        write_run(out, concepts, scores, decisions(result))
    if clusters_out:
        lines = ([concepts.ids[row] for row in group.rows] for group in result.merges)
        clusters_out.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return compared(data.name, concepts, found, evidence, result, scores, truth)


def read(records: Sequence[dict[str, Any]], cache: Path | None) -> ConceptColumns:
    """Records as concepts: a vector is that of the text, or else of the name (DESIGN 7)."""
    texts = [record.get("text") or record["name"].replace("_", " ").lower() for record in records]
    return ConceptColumns.of(
        names=[record["name"] for record in records],
        vectors=embedded(texts, cache),
        ids=[record["id"] for record in records],
        types=[record["type"] for record in records],
        metadata=[record.get("metadata", {}) for record in records],
        has_text=[bool(record.get("text")) for record in records],
        texts=[record.get("text") for record in records],
    )


def embedded(texts: Sequence[str], cache: Path | None) -> NDArray[np.float32]:
    if cache is not None and cache.exists():
        kept: NDArray[np.float32] = np.load(cache)
        if len(kept) == len(texts):
            return kept
    vectors = asyncio.run(MiniLMEmbedder().embed(texts))
    if cache is not None:
        cache.parent.mkdir(parents=True, exist_ok=True)
        np.save(cache, vectors)
    return vectors


def things(pairs: Iterable[dict[str, str]]) -> dict[str, str]:
    """Which thing each record is: the truth, closed."""
    parent: dict[str, str] = {}

    def find(one: str) -> str:
        while parent.setdefault(one, one) != one:
            one = parent[one]
        return one

    for pair in pairs:
        parent[find(pair["a"])] = find(pair["b"])
    return {one: find(one) for one in list(parent)}


# -- pairs, copies included


def all_scores(
    found: FoundPairs, evidence: Evidence, values: Floats, result: Decided | None = None
) -> dict[Ends, float]:
    """Every pair with its value; copies stand where the one does that was compared, and what was merged is sure."""
    copies = {int(group[0]): group.tolist() for group in found.copies}
    scores: dict[Ends, float] = {}
    for one, other, value in zip(
        evidence.pairs.left.tolist(), evidence.pairs.right.tolist(), values.tolist(), strict=True
    ):
        for a, b in product(copies.get(one, [one]), copies.get(other, [other])):
            scores[min(a, b), max(a, b)] = value
    for group in copies.values():
        scores |= dict.fromkeys(combinations(sorted(group), 2), 1.0)
    for group in result.merges if result else ():
        for ends in combinations(sorted(group.rows), 2):
            scores[ends] = max(scores.get(ends, 0.0), group.certainty)
    return scores


def decisions(result: Decided) -> dict[Ends, str]:
    """Of each pair in a group what becomes of it; a merge goes before a question."""
    return {ends: group.verdict.value for group in result.groups[::-1] for ends in combinations(sorted(group.rows), 2)}


def write_run(out: Path, concepts: ConceptColumns, scores: dict[Ends, float], verdicts: dict[Ends, str]) -> None:
    with out.open("w", encoding="utf8") as file:
        for one, other in sorted(scores.keys() | verdicts.keys()):
            score = round(scores.get((one, other), 0.0), 5)
            line = {"a": concepts.ids[one], "b": concepts.ids[other], "score": score}
            file.write(json.dumps(line | {"decision": verdicts.get((one, other), "apart")}) + "\n")


# -- what came of it


def compared(
    name: str,
    concepts: ConceptColumns,
    found: FoundPairs,
    evidence: Evidence,
    result: Decided,
    scores: dict[Ends, float],
    truth: dict[str, str],
) -> Measured:
    entities = [truth.get(str(id_), str(id_)) for id_ in concepts.ids]
    verdicts = decisions(result)
    merged = [ends for ends, verdict in verdicts.items() if verdict == "merge"]
    asked = [ends for ends, verdict in verdicts.items() if verdict == "review"]
    wrong = [group for group in result.merges if len({entities[row] for row in group.rows}) > 1]
    plain = [all_scores(found, evidence, evidence.adds[factor] / FACTORS[factor]) for factor in ("words", "letters")]
    types = concepts.types.tolist()
    return Measured(
        name=name,
        true=true_pairs(entities),
        merged=len(merged),
        right=sum(entities[a] == entities[b] for a, b in merged),
        largest_wrong=max((len(group.rows) for group in wrong), default=0),
        asked=len(asked),
        asked_right=sum(entities[a] == entities[b] for a, b in asked),
        best_f1=best_f1(scores, entities, types),
        plain_f1=max(best_f1(one, entities, types) for one in plain),
    )


def true_pairs(entities: Iterable[str]) -> int:
    return sum(size * (size - 1) // 2 for size in Counter(entities).values())


def best_f1(scores: dict[Ends, float], entities: Sequence[str], types: Sequence[int]) -> float:
    """Of the best cut through the order; where a set has several types, the mean over those that have true pairs."""
    by_type: defaultdict[int, list[tuple[float, bool]]] = defaultdict(list)
    for (one, other), value in scores.items():
        by_type[types[one]].append((value, entities[one] == entities[other]))
    members: defaultdict[int, list[str]] = defaultdict(list)
    for kind, entity in zip(types, entities, strict=True):
        members[kind].append(entity)
    found = [_best_cut(by_type[kind], true) for kind, some in members.items() if (true := true_pairs(some))]
    return float(np.mean(found)) if found else 0.0


def _best_cut(pairs: Sequence[tuple[float, bool]], true: int) -> float:
    if not pairs:
        return 0.0
    values, right = np.array([value for value, _ in pairs]), np.array([is_right for _, is_right in pairs])
    order = np.argsort(-values, kind="stable")
    counts, hits = np.arange(1, len(pairs) + 1), np.cumsum(right[order])
    is_cut = np.append(values[order][1:] != values[order][:-1], True)
    return float(np.where(is_cut, 2 * hits / (counts + true), 0.0).max())


def figures_of(one: Measured) -> list[Figure]:
    how, true = str(one), max(1, one.true)
    return [
        Figure(name=f"{one.name}: best F1 of the order", value=one.best_f1, bar=one.plain_f1, how=how),
        Figure(name=f"{one.name}: merged wrongly, pairs", value=one.wrong, better="lower", how=how),
        Figure(name=f"{one.name}: largest wrong group", value=one.largest_wrong, bar=2, better="lower", how="rows"),
        Figure(name=f"{one.name}: recall of merges", value=one.right / true, how=how),
        Figure(name=f"{one.name}: merged or asked", value=(one.right + one.asked_right) / true, how=how),
        Figure(name=f"{one.name}: questions for each true pair", value=one.asked / true, better="lower", how=how),
    ]


def bars(measured: Sequence[Measured]) -> list[Figure]:
    """Those of C38, over all sets."""
    with_truth = [one for one in measured if one.true]
    merged, wrong = sum(one.merged for one in measured), sum(one.wrong for one in measured)
    many = [one for one in measured if one.merged >= FEW_MERGES]
    few = [one for one in measured if one.merged < FEW_MERGES]
    how = f"{len(measured)} sets, one configuration; {merged} pairs merged, {wrong} wrong"
    found = [(one.right + one.asked_right) / one.true for one in with_truth]
    return [
        Figure(name="wrong merges, all sets", value=wrong / max(1, merged), bar=1 / 200, better="lower", how=how),
        Figure(
            name="wrong merges, worst set",
            value=max((one.wrong / one.merged for one in many), default=0.0),
            bar=0.02,
            better="lower",
            how=f"of {len(many)} sets with {FEW_MERGES} merges or more",
        ),
        Figure(
            name="wrong merges, sets with few",
            value=max((one.wrong for one in few), default=0),
            bar=1,
            better="lower",
            how=f"pairs, the most in one of {len(few)} sets with fewer than {FEW_MERGES} merges",
        ),
        Figure(
            name="largest wrong group, all sets",
            value=max(one.largest_wrong for one in measured),
            bar=2,
            better="lower",
            how="rows",
        ),
        Figure(
            name="order beside tf-idf, worst set",
            value=min(one.best_f1 - one.plain_f1 for one in with_truth),
            bar=0.0,
            how="best F1 less that of the better of two plain orders",
        ),
        Figure(
            name="order beside tf-idf, mean",
            value=float(np.mean([one.best_f1 - one.plain_f1 for one in with_truth])),
            bar=0.001,
            how="the same over all sets with true pairs",
        ),
        Figure(name="merged or asked, mean", value=float(np.mean(found)), bar=0.70, how="of the true pairs"),
        Figure(
            name="questions for each true pair, most",
            value=max(one.asked / one.true for one in with_truth),
            bar=3,
            better="lower",
            how="pairs asked about, in the set that asks most",
        ),
        Figure(
            name="merged unasked, mean",
            value=float(np.mean([one.right / one.true for one in with_truth])),
            bar=0.15,
            how="of the true pairs",
        ),
    ]
