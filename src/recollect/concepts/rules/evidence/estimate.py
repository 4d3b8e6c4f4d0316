"""The probability that two concepts are one, estimated from what this space teaches.

Each factor adds to the logarithm of the odds: how alike their words are, and the letters of their names, the rare ones
counting most; what their metadata weigh; the score of C03; a code that is theirs alone, or codes of their own; other
numbers; and how far the next rival is, for what is as near to five others belongs to a family and is no twin.

What a factor weighs was fitted on sets of records, texts and homonyms whose truth is known, one weight for all of
them, and checked by leaving out each set in turn (docs/adr). A pair against which no doubt speaks, and whose ends have
no nearer partner, is surer than its factors say: by CLEAN, and where its score reaches the threshold by REACHED more.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, pairwise

import numpy as np

from recollect.concepts.rules.certainty import FAMILY, codes_of, rivals
from recollect.concepts.rules.detection.blocks import Blocks
from recollect.concepts.rules.detection.columns import Floats, Ints, Mask, Sets
from recollect.concepts.rules.detection.compare import Bounds
from recollect.concepts.rules.detection.detect import FoundPairs, lower_left
from recollect.concepts.rules.detection.pairs import Pairs, scored, shared_counts
from recollect.concepts.rules.evidence.bags import Bag, of_grams, of_words, words_of
from recollect.concepts.rules.evidence.candidates import Blocked, block
from recollect.concepts.rules.evidence.fields import Fields, compare_fields, folded_value
from recollect.concepts.rules.names import name_of
from recollect.concepts.rules.similarity import WEIGHTS as SCORE_WEIGHTS
from recollect.concepts.rules.variants import NameVariant, variants

Ends = tuple[int, int]

# What one of each adds to the logarithm of the odds.
FACTORS = {
    "words": 2.42,
    "letters": 2.32,
    "score": 2.88,
    "metadata": 0.43,
    "no metadata": -4.2,
    "ahead of the nearer rival": 1.95,
    "ahead of the other rival": 3.11,
    "names of other words": 0.22,
    "equal names": -0.72,
    "a code of their own": 2.5,
    "different codes": -3.0,
    "different numbers": -2.0,
}
START = -3.72
CLEAN, REACHED = 3.9, 2.5
# Nearly the same in every factor: then a nearer partner is no rival, and three or more may be one.
NEARLY_EQUAL = 0.985
AHEAD = 0.5
# From here on a pair is looked at more closely; what is less likely is left alone.
LEAST = 0.05
# Namesakes are always looked at; of a crowd, each with the first.
FEW_NAMESAKES = 10
# With more rows than this of a space, only words lead to pairs: letters would take too much memory.
MOST_BY_LETTERS = 300_000
_NO_VARIANT = (NameVariant.SPELLING, 0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class PairEvidence:
    """One pair: what each factor adds to the logarithm of the odds, and who comes next for either end."""

    adds: tuple[tuple[str, float], ...]
    fields: tuple[tuple[str, float], ...]
    rival_of_left: float
    rival_of_right: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Evidence:
    """The pairs worth a thought, with all factors of C03; `odds` is the logarithm of the odds that each is one.

    `is_nearest`: neither end has a nearer partner. `agrees`: no metadata contradict each other, as values are used
    here.
    `skipped` rows have nothing rare enough to be found by, but for what C03 finds.
    """

    pairs: Pairs
    odds: Floats
    is_nearest: Mask
    is_named_alike: Mask
    agrees: Mask
    adds: dict[str, Floats]
    fields: Fields
    rivals: tuple[Floats, Floats]
    skipped: int

    def only(self, rows: Mask) -> "Evidence":
        return replace(
            self,
            pairs=self.pairs.only(rows),
            odds=self.odds[rows],
            is_nearest=self.is_nearest[rows],
            is_named_alike=self.is_named_alike[rows],
            agrees=self.agrees[rows],
            adds={name: column[rows] for name, column in self.adds.items()},
            fields=self.fields.only(rows),
            rivals=(self.rivals[0][rows], self.rivals[1][rows]),
        )

    def above(self, ask_from: float, review: float) -> "Evidence":
        """Without the pairs that can neither be merged nor be asked about."""
        hopeful = probability(self.odds) >= min(ask_from, LEAST)
        return self.only(hopeful | (self.pairs.score >= review) | self.is_named_alike)

    def around(self, changed: Mask | None) -> "Evidence":
        """The pairs of what changed, and of whatever hangs together with it."""
        if changed is None:
            return self
        left, right, reached = self.pairs.left, self.pairs.right, changed.copy()
        while (near := reached[left] != reached[right]).any():
            reached[left[near]] = reached[right[near]] = True
        return self.only(reached[left])

    def estimates(self, clean: Mask, threshold: float) -> Floats:
        """The probability of each pair; `clean` are those against which no doubt speaks."""
        unrivalled = clean & (self.is_nearest | (self.pairs.score >= NEARLY_EQUAL))
        reached = unrivalled & (self.pairs.score >= threshold)
        return probability(self.odds + CLEAN * unrivalled + REACHED * reached)

    def told(self, index: int) -> PairEvidence:
        parts = zip(self.fields.keys, self.fields.parts[index].tolist(), strict=True)
        return PairEvidence(
            adds=tuple((name, float(column[index])) for name, column in self.adds.items() if column[index]),
            fields=tuple((key, part) for key, part in parts if part),
            rival_of_left=float(self.rivals[0][index]),
            rival_of_right=float(self.rivals[1][index]),
        )


def probability(odds: Floats) -> Floats:
    chance: Floats = 1.0 / (1.0 + np.exp(-np.clip(odds, -30.0, 30.0)))
    return chance


def weigh(blocks: Blocks, detected: FoundPairs) -> Evidence:
    """What the concepts teach about the pairs found, and about those that share what is rare."""
    words, letters = bags_of(blocks)
    written = variants(names_of(blocks), blocks.types.tolist()) if len(blocks) <= MOST_BY_LETTERS else {}
    together = block(words, letters, must_be_looked_at(blocks, detected, list(written)))
    pairs = all_scored(blocks, together)
    left, right = together.left, together.right
    near = 0.5 * together.words + 0.5 * together.grams
    rival_of_left, rival_of_right = rivals(left, right, near, 0.0)
    behind, before = near - np.maximum(rival_of_left, rival_of_right), near - np.minimum(rival_of_left, rival_of_right)
    is_nearest: Mask = behind >= 0.0
    same_code, other_codes = codes_of_pairs(blocks, left, right)
    other_numbers = differ([name_of(name).numbers for name in names_of(blocks)], left, right)
    other_words = differ([name_of(name).words for name in names_of(blocks)], left, right)
    factors = {
        "words": together.words,
        "letters": together.grams,
        "score": np.nan_to_num(pairs.score),
        "ahead of the nearer rival": behind.clip(-AHEAD, AHEAD),
        "ahead of the other rival": before.clip(-AHEAD, AHEAD),
        "names of other words": other_words,
        "equal names": ~other_words & (blocks.plain_lengths[left] > 0),
        "a code of their own": same_code,
        "different codes": other_codes,
        "different numbers": other_numbers & ~same_code,
    }
    adds = {name: FACTORS[name] * np.asarray(value, np.float64) for name, value in factors.items()}
    surely = surely_one(near, is_nearest & ~other_numbers & ~other_codes)
    metadata = blocks.concepts.metadata
    rows = [metadata[row] for row in blocks.rows.tolist()] if metadata else None
    fields = compare_fields(rows, left, right, surely, probability(START + sum(adds.values(), np.zeros(len(left)))))
    adds |= {
        "metadata": FACTORS["metadata"] * fields.weight,
        "no metadata": FACTORS["no metadata"] * fields.says_nothing.astype(np.float64),
    }
    adds["another way to write it"] = lifted(sum(adds.values(), np.full(len(left), START)), written, left, right)
    odds = START + sum(adds.values(), np.zeros(len(left)))
    return Evidence(
        pairs=pairs,
        odds=odds,
        is_nearest=is_nearest,
        is_named_alike=(blocks.spelling[left] == blocks.spelling[right]) & (blocks.plain_lengths[left] > 0),
        agrees=~fields.conflict,
        adds=adds,
        fields=fields,
        rivals=(rival_of_left, rival_of_right),
        skipped=together.skipped,
    )


# -- what is compared


def names_of(blocks: Blocks) -> list[str]:
    return [blocks.concepts.names[row] for row in blocks.rows.tolist()]


def bags_of(blocks: Blocks) -> tuple[Bag, Bag]:
    """Of each place all its words, and the letters of its name; of what has no name, those of its text."""
    concepts, rows = blocks.concepts, blocks.rows.tolist()
    texts = [(concepts.texts[row] if concepts.texts else None) or "" for row in rows]
    names = names_of(blocks)
    values = [" ".join(map(folded_value, concepts.metadata[row].values())) if concepts.metadata else "" for row in rows]
    words = [words_of(f"{name} {text} {more}") for name, text, more in zip(names, texts, values, strict=True)]
    named = [name if name.strip() else text for name, text in zip(names, texts, strict=True)]
    if len(rows) > MOST_BY_LETTERS:
        named = [""] * len(rows)
    return of_words(words, blocks.types), of_grams(named, blocks.types)


def lifted(odds: Floats, written: Mapping[Ends, tuple[NameVariant, float]], left: Ints, right: Ints) -> Floats:
    """What a pair of variants lacks to be as likely as its kind is."""
    likely = [written.get(ends, _NO_VARIANT)[1] for ends in zip(left.tolist(), right.tolist(), strict=True)]
    likelihood = np.array(likely, np.float64).clip(1e-9, 1.0 - 1e-9)
    return np.where(likelihood > 1e-6, np.maximum(np.log(likelihood / (1.0 - likelihood)) - odds, 0.0), 0.0)


def must_be_looked_at(blocks: Blocks, detected: FoundPairs, more: Sequence[Ends]) -> tuple[Ints, Ints]:
    """What detection found, namesakes, and `more`, as places, the lower one left."""
    place_of = np.empty(len(blocks.concepts), np.int64)
    place_of[blocks.rows] = np.arange(len(blocks))
    ours, theirs = place_of[detected.pairs.left], place_of[detected.pairs.right]
    named = np.array([*namesakes(blocks), *more], np.int64).reshape(-1, 2)
    left, right = np.concatenate([ours, named[:, 0]]), np.concatenate([theirs, named[:, 1]])
    return np.minimum(left, right), np.maximum(left, right)


def namesakes(blocks: Blocks) -> Iterator[tuple[int, int]]:
    """Places of one type and name, each with each; of a crowd, each with the first."""
    equal = (blocks.spelling[1:] == blocks.spelling[:-1]) & (blocks.types[1:] == blocks.types[:-1])
    edges = [0, *(np.flatnonzero(~equal) + 1).tolist(), len(blocks)]
    for first, last in pairwise(edges):
        if last - first > 1 and blocks.plain_lengths[first]:
            few = last - first <= FEW_NAMESAKES
            yield from (
                combinations(range(first, last), 2) if few else ((first, later) for later in range(first + 1, last))
            )


def all_scored(blocks: Blocks, together: Blocked) -> Pairs:
    """The factors of C03 for each of these pairs, whatever they score, in their order."""
    bounds = Bounds(threshold=-1.0, weights=SCORE_WEIGHTS)
    return lower_left(scored(blocks, bounds, together.left, together.right))


def codes_of_pairs(blocks: Blocks, left: Ints, right: Ints) -> tuple[Mask, Mask]:
    """Whether the names share a code that hardly another bears; and whether both bear codes, but no such."""
    codes = [codes_of(name) for name in names_of(blocks)]
    bearers = Counter(code for own in codes for code in own)
    numbers = {code: number for number, code in enumerate(sorted(bearers))}
    rare = Sets.of([numbers[code] for code in own if bearers[code] <= FAMILY] for own in codes)
    has_code = np.fromiter(map(bool, codes), np.bool_, len(codes))
    same = np.zeros(len(left), np.bool_)
    if len(rare.values) and len(left):
        same = shared_counts(rare, left, right) > 0
    return same, has_code[left] & has_code[right] & ~same


def differ(values: Sequence[object], left: Ints, right: Ints) -> Mask:
    numbers: dict[object, int] = {}
    coded = np.fromiter((numbers.setdefault(value, len(numbers)) for value in values), np.int64, len(values))
    differs: Mask = coded[left] != coded[right]
    return differs


def surely_one(near: Floats, candidates: Mask) -> Mask:
    """The pairs to learn from: the better half of those that are each other's nearest."""
    if not candidates.any():
        return candidates
    better: Mask = candidates & (near >= np.median(near[candidates]))
    return better
