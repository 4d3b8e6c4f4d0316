"""Why two concepts are, or are not, taken for one (C30): the factors as a waterfall, the bound that failed, a remedy.

cosine      0.700 x 0.981  =  0.687   ████████████████████
name        0.200 x 0.909  =  0.182                       █████
metadata    0.100 x 1.000  =  0.100                            ███
score                         0.969   at least 0.95
not by itself: the names differ only in digits
"""

from collections.abc import Iterator
from dataclasses import dataclass

from recollect.concepts.rules.similarity import (
    BARE,
    CAPITALS,
    CONFLICT,
    DENIAL,
    DIGITS,
    DOUBTS,
    NAMELESS,
    NAMESAKES,
    NO_EMBEDDING,
    NUMBERS,
    OPPOSITES,
    ORDER,
    SIGNS,
    TEXT_NUMBERS,
    WEIGHTS,
    WORDS,
    Factors,
    FactorWeights,
    Traits,
    compare,
)

WIDTH = 30

# What a person can do about each doubt.
REMEDIES = {
    DIGITS: "if they are one thing all the same, merge them by hand",
    NUMBERS: "if they are one thing all the same, merge them by hand",
    WORDS: "give both the same name, or merge them by hand",
    SIGNS: "if they are one thing all the same, merge them by hand",
    CAPITALS: "write the name alike on both, or merge them by hand",
    CONFLICT: "make the values agree, or remove one",
    NO_EMBEDDING: "wait until both are embedded",
    BARE: "describe both (a text, or metadata), or merge them by hand",
    NAMELESS: "give them names, or merge them by hand",
    NAMESAKES: "tell the namesakes apart by their names, or merge them by hand",
    TEXT_NUMBERS: "if they are one thing all the same, merge them by hand",
    DENIAL: "if both mean the same, merge them by hand",
    OPPOSITES: "if both mean the same, merge them by hand",
    ORDER: "if both mean the same, merge them by hand",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One factor: what it counts for, what it is, what it adds."""

    name: str
    weight: float
    value: float

    @property
    def adds(self) -> float:
        return self.weight * self.value


@dataclass(frozen=True, kw_only=True, slots=True)
class PairEstimate:
    """How likely the two are one in their space (C38): what each factor and each metadata key adds to the logarithm of
    the odds, and how near the next rival of either is. `least` is what a merge without asking needs.
    """

    probability: float
    least: float
    adds: tuple[tuple[str, float], ...] = ()
    fields: tuple[tuple[str, float], ...] = ()
    rivals: tuple[float, float] = (0.0, 0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Explanation:
    """Everything there is to say about a pair."""

    factors: Factors
    steps: tuple[Step, ...]
    threshold: float
    is_same_type: bool
    is_apart: bool
    failed: tuple[str, ...]
    remedies: tuple[str, ...]
    estimate: PairEstimate | None = None

    @property
    def would_merge(self) -> bool:
        return not self.failed

    def __str__(self) -> str:
        return "\n".join(lines(self))


def why(
    left: Traits,
    right: Traits,
    *,
    threshold: float,
    weights: FactorWeights = WEIGHTS,
    is_same_type: bool = True,
    is_apart: bool = False,
    is_protected: bool = False,
    estimate: PairEstimate | None = None,
) -> Explanation:
    """Why these two would, or would not, become one by themselves."""
    factors = compare(left, right, weights)
    steps = steps_of(factors, weights)
    against = [
        *reasons(not is_same_type, "they are of different types", "only concepts of one type are compared"),
        *reasons(is_apart, "they are on the never-merge list", "take the pair off the list"),
        *reasons(is_protected, "one of them is protected", "take the protection off"),
        *not_sure(factors, steps, threshold, estimate),
    ]
    return Explanation(
        factors=factors,
        steps=steps,
        threshold=threshold,
        is_same_type=is_same_type,
        is_apart=is_apart,
        failed=tuple(reason for reason, _ in against),
        remedies=tuple(dict.fromkeys(remedy for _, remedy in against)),
        estimate=estimate,
    )


def steps_of(factors: Factors, weights: FactorWeights) -> tuple[Step, ...]:
    """The factors with the weights that were used: stretched where an embedding is missing (C04)."""
    if factors.cosine is None:
        share = weights.without_cosine
        return (
            Step(name="name", weight=weights.name / share, value=factors.name),
            Step(name="metadata", weight=weights.metadata / share, value=factors.metadata),
        )
    return (
        Step(name="cosine", weight=weights.cosine, value=factors.cosine),
        Step(name="name", weight=weights.name, value=factors.name),
        Step(name="metadata", weight=weights.metadata, value=factors.metadata),
    )


def reasons(holds: bool, reason: str, remedy: str) -> Iterator[tuple[str, str]]:
    if holds:
        yield reason, remedy


def not_sure(
    factors: Factors, steps: tuple[Step, ...], threshold: float, estimate: PairEstimate | None
) -> Iterator[tuple[str, str]]:
    """Too low an estimate, or score where none was made; and the doubts. A high enough estimate has none."""
    if estimate is not None and estimate.probability >= estimate.least:
        return
    yield from shortfalls(factors, steps, threshold)
    yield from ((DOUBTS[doubt], REMEDIES[doubt]) for doubt in factors.doubts)
    if estimate is not None and factors.score >= threshold and not factors.doubts:
        yield f"the estimate is below {100 * estimate.least:g} %: others are as near, or little is known", ""


def shortfalls(factors: Factors, steps: tuple[Step, ...], threshold: float) -> Iterator[tuple[str, str]]:
    """Why the score is too low: the factors that no other could make up for, and what each would have to be."""
    if factors.score >= threshold:
        return
    if factors.cosine is None and not factors.same_name:
        yield "without embeddings only the very same name counts", REMEDIES[NO_EMBEDDING]
        return
    missing = threshold - factors.score
    yield f"the score {factors.score:.3f} is {missing:.3f} below {threshold:g}", _what_would(steps, missing)
    for step in steps:
        least = 1.0 - (1.0 - threshold) / step.weight
        if step.value < least:
            yield f"the {step.name} {step.value:.3f} is below {least:.3f}: nothing else can make up for it", ""


def _what_would(steps: tuple[Step, ...], missing: float) -> str:
    """The factors that alone could close the gap, and how high they would have to be."""
    enough = [
        f"a {step.name} of {step.value + missing / step.weight:.3f}"
        for step in steps
        if step.value + missing / step.weight <= 1
    ]
    return f"{' or '.join(enough)} would be enough" if enough else "more than one factor would have to rise"


# -- as text


def lines(explanation: Explanation) -> Iterator[str]:
    before = 0.0
    for step in explanation.steps:
        yield f"{step.name:<10}{step.weight:6.3f} x {step.value:.3f}  = {step.adds:6.3f}   {bar(before, step.adds)}"
        before += step.adds
    verdict = "at least" if explanation.factors.score >= explanation.threshold else "below"
    yield f"{'score':<27}{explanation.factors.score:6.3f}   {verdict} {explanation.threshold:g}"
    if explanation.estimate is not None:
        yield from estimated(explanation.estimate)
    if explanation.factors.conflicts:
        yield f"contradicting: {', '.join(explanation.factors.conflicts)}"
    yield from (f"not by itself: {reason}" for reason in explanation.failed)
    yield from (f"what would change it: {remedy}" for remedy in explanation.remedies if remedy)
    if explanation.would_merge:
        yield "they would become one by themselves, unless others hang on them in a chain"


def estimated(estimate: PairEstimate) -> Iterator[str]:
    """The estimate, its factors with the weightiest first, and the rivals."""
    needed = f"a merge without asking needs {100 * estimate.least:g} %"
    yield f"estimate   {100 * estimate.probability:.1f} % that they are one; {needed}"
    for title, parts in (("factors", estimate.adds), ("metadata", estimate.fields)):
        weightiest = sorted(parts, key=lambda part: -abs(part[1]))
        if weightiest:
            yield f"{title:<11}" + ", ".join(f"{name} {value:+.1f}" for name, value in weightiest if abs(value) >= 0.05)
    left, right = estimate.rivals
    yield f"rivals     the next nearest comes to {left:.2f} for the first and {right:.2f} for the second"


def bar(before: float, adds: float) -> str:
    """A step of the waterfall: it begins where the last one ended."""
    start, end = round(before * WIDTH), round((before + adds) * WIDTH)
    return " " * start + "█" * (end - start)
