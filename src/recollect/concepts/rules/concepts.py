"""Concepts before they are stored: what they may hold, what they are embedded by, and how two of them are told apart.

A concept that resembles one of its type beyond doubt is that one (C19). `Known` is what is known of those that are
there, read once for a pass over all of them.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

import numpy as np

from recollect.concepts.rules.detection import ConceptColumns
from recollect.concepts.rules.names import Name, name_of, plain
from recollect.concepts.rules.similarity import (
    BARE,
    NOT_COMPARED,
    WEIGHTS,
    Factors,
    Traits,
    Vector,
    compare,
    name_doubts,
    statements,
)
from recollect.concepts.rules.similarity import likeness as name_likeness
from recollect.errors import InvalidInput
from recollect.memories.rules.contract import checked_metadata_filter, checked_name, checked_time
from recollect.memories.rules.text import is_storable, normalise
from recollect.model import Metadata, NewConcept

LONGEST_TYPE = 100
MOST_ENTITIES = 1000
MOST_ENERGY = 1e6
# A pair kept apart by ids, not by names, is written like this.
NODE = "node:"
# Embedded by the same words, two concepts have the same vector, whatever it is.
SAME: Vector = np.ones(1, np.float32)


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownConcepts:
    """The living concepts of a space as columns, and what a merge of them must know besides, row by row."""

    columns: ConceptColumns
    ids: Sequence[UUID]
    types: Sequence[str]
    metadata: Sequence[Metadata]
    versions: Sequence[int]
    created_at: Sequence[datetime]
    updated_at: Sequence[datetime]


@dataclass(frozen=True, kw_only=True, slots=True)
class LastPass:
    """When everything was last compared, and which nodes are to be compared again all the same (None: all)."""

    at: datetime
    again: Sequence[UUID] | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Wording:
    """One way in which a concept was put: a name, perhaps a text, and the vector of the same model, if there is one."""

    name: str
    text: str | None = None
    vector: Vector | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ConceptCandidate:
    """A concept that a new one may duplicate, with every wording that it has: its own first, then what it absorbed."""

    id: UUID
    wordings: tuple[Wording, ...]
    metadata: Metadata
    created_at: datetime
    names: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        return self.wordings[0].name

    @property
    def is_described(self) -> bool:
        return bool(statements(self.metadata)) or any(wording.text for wording in self.wordings)


@dataclass(frozen=True, kw_only=True, slots=True)
class Likeness:
    """How a new concept compares with one that is there, in the wording that comes nearest.

    `by_name`: nothing but a name was given, and this alone is described under it. `namesakes`: others are, too (C33).
    """

    candidate: ConceptCandidate
    factors: Factors
    by_name: bool = False
    namesakes: tuple[UUID, ...] = ()

    @property
    def is_certain(self) -> bool:
        """No doubts, but that little may be known: to give the same name twice is to mean the same."""
        return not self.namesakes and not set(self.factors.doubts) - {BARE}

    @property
    def reason(self) -> str:
        if self.by_name:
            return "no other of its type is described under that name"
        if self.namesakes:
            return f"{len(self.namesakes)} of its type are described under that name"
        return f"it scores {self.factors.score:.3f}"


# -- what may be stored


def checked(new: NewConcept, now: datetime, *, max_text_bytes: int, max_metadata_bytes: int) -> NewConcept:
    """The concept as it will be stored, or InvalidInput saying what is wrong with it."""
    return replace(
        new,
        name=checked_concept_name(new.name),
        node_type=checked_type(new.node_type),
        text=_checked_text(new.text, max_text_bytes),
        energy=checked_energy(new.energy),
        base_weight=_checked_weight(new.base_weight),
        metadata=checked_open_metadata(new.metadata, max_metadata_bytes),
        created_by=checked_name("created_by", new.created_by),
        created_at=checked_time(new.created_at, now),
    )


def checked_concept_name(name: object) -> str:
    full_name = checked_name("name", name)
    if full_name is None or not plain(full_name):
        raise InvalidInput("A concept needs a name.", field="name")
    return normalise(full_name)


def checked_type(node_type: object) -> str:
    if not isinstance(node_type, str) or not node_type.strip() or not is_storable(node_type):
        raise InvalidInput(f"A type is a name, such as concept, not {node_type!r:.60}.", field="node_type")
    if len(node_type) > LONGEST_TYPE:
        raise InvalidInput(f"A type is a name of 1 to {LONGEST_TYPE} characters, such as concept.", field="node_type")
    return node_type.strip()


def checked_energy(energy: object) -> dict[str, float]:
    """Energy by entity: it is added up and never taken away, so it is not negative."""
    if not isinstance(energy, Mapping) or len(energy) > MOST_ENTITIES:
        raise InvalidInput(
            f'Energy is an object like {{"translator": 0.6}}, for {MOST_ENTITIES:,} at most.', field="energy"
        )
    for entity, value in energy.items():
        checked_name("entity", entity)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= MOST_ENERGY:
            raise InvalidInput(f"The energy of {entity!r} is a number from 0 to {MOST_ENERGY:,.0f}.", field="energy")
    return {entity: float(value) for entity, value in energy.items()}


def checked_open_metadata(metadata: object, most_bytes: int) -> Metadata:
    """Any JSON object: what describes concepts is not known beforehand. What a merge shows of itself is not given."""
    fields = checked_metadata_filter(metadata)
    size = len(json.dumps(fields, ensure_ascii=False).encode())
    if size > most_bytes:
        raise InvalidInput(f"Metadata has {size:,} bytes as JSON, the limit is {most_bytes:,}.", field="metadata")
    if taken := sorted(NOT_COMPARED & fields.keys()):
        raise InvalidInput(f"{taken[0]} is kept by Recollect itself: leave it out.", field=f"metadata.{taken[0]}")
    return fields


def _checked_text(text: object, most_bytes: int) -> str | None:
    if text is None:
        return None
    if not isinstance(text, str) or not is_storable(text) or len(text.encode()) > most_bytes:
        raise InvalidInput(f"The text of a concept is a text of at most {most_bytes:,} bytes.", field="text")
    return normalise(text) or None


def _checked_weight(weight: object) -> float | None:
    if weight is None:
        return None
    if not isinstance(weight, int | float) or isinstance(weight, bool) or not math.isfinite(weight) or weight < 0:
        raise InvalidInput(f"base_weight is a number from 0, not {weight!r}.", field="base_weight")
    return float(weight)


# -- whether it is there already


def words_of(name: str, text: str | None) -> str:
    """What a concept is embedded by: its text if it has one, else its name in plain words."""
    return text if text and text.strip() else name.lower().replace("_", " ")


def best_likeness(
    new: NewConcept,
    vector: Vector | None,
    candidates: Sequence[ConceptCandidate],
    threshold: float,
    apart: frozenset[str],
) -> Likeness | None:
    """The candidate that the new concept duplicates most surely, if any reaches the threshold; none kept apart."""
    free = [candidate for candidate in candidates if candidate.names.isdisjoint(apart)]
    likenesses = [likeness(new, vector, candidate) for candidate in free]
    if not new.text and not statements(new.metadata) and (meant := _meant_by_name(new.name, likenesses)):
        return meant
    return min((alike for alike in likenesses if alike.factors.score >= threshold), key=_rank, default=None)


def likeness(new: NewConcept, vector: Vector | None, candidate: ConceptCandidate) -> Likeness:
    """Scored against every name and every text that the candidate has (C32): its best name, with each of its texts."""
    ours = name_of(new.name)
    name = min({wording.name for wording in candidate.wordings}, key=lambda given: _unlikeness(ours, name_of(given)))
    compared = [
        _compared(new, vector, candidate.metadata, replace(wording, name=name) if wording.text else wording)
        for wording in candidate.wordings
    ]
    best = min(compared, key=lambda factors: (bool(set(factors.doubts) - {BARE}), -factors.score))
    return Likeness(candidate=candidate, factors=best)


def _unlikeness(left: Name, right: Name) -> tuple[object, ...]:
    alike = max(name_likeness(left.plain, right.plain), name_likeness(left.ordered, right.ordered))
    return bool(name_doubts(left, right)), -alike, right.given


def _compared(new: NewConcept, vector: Vector | None, metadata: Metadata, wording: Wording) -> Factors:
    theirs = wording.vector
    if words_of(new.name, new.text) == words_of(wording.name, wording.text):
        vector = theirs = SAME
    left, right = (
        Traits(name=side.name, vector=own, metadata=fields, has_text=bool(side.text), text=side.text)
        for side, own, fields in ((new, vector, new.metadata), (wording, theirs, metadata))
    )
    return compare(left, right, WEIGHTS)


def _meant_by_name(name: str, likenesses: Sequence[Likeness]) -> Likeness | None:
    """A bare name is the one concept described under it; of several, the one that comes nearest is a question (C33)."""
    bearers = [alike for alike in likenesses if alike.factors.same_name and alike.candidate.is_described]
    if not bearers:
        return None
    if len(bearers) == 1:
        return replace(bearers[0], by_name=True)
    return replace(min(bearers, key=_rank), namesakes=tuple(alike.candidate.id for alike in bearers))


def _rank(alike: Likeness) -> tuple[object, ...]:
    """Certain ones first, then the most alike, then the oldest."""
    candidate = alike.candidate
    return not alike.is_certain, -alike.factors.score, candidate.created_at, candidate.id.bytes


# -- pairs that are kept apart


def pair_of(left: UUID, right: UUID) -> tuple[str, str]:
    low, high = sorted((f"{NODE}{left}", f"{NODE}{right}"))
    return low, high


def ids_of(pair: tuple[str, str]) -> tuple[UUID, UUID] | None:
    """The nodes that a pair names by their ids; None where it names something else."""
    if not all(part.startswith(NODE) for part in pair):
        return None
    left, right = (UUID(part.removeprefix(NODE)) for part in pair)
    return left, right


def state_of(names: Sequence[str], versions: Sequence[int]) -> str:
    """What two concepts were like when they were compared: once that changes, a declined merge may be offered again."""
    return " ".join(sorted(f"{name}@{version}" for name, version in zip(names, versions, strict=True)))
