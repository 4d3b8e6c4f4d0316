"""Small graphs for tests: edges with everything else filled in, as the columns that rules read and as whole edges."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.cases.rules.cases import CaseColumns, CaseText, CaseVectors
from recollect.concepts.rules.concepts import KnownConcepts as Concepts
from recollect.concepts.rules.concepts import LastPass
from recollect.errors import NotFound
from recollect.graph.rules.arrays import EdgeColumns, as_ids
from recollect.model import Edge, Topic
from recollect.pages.rules.stored import PageBatch, StoredPage

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(days=400)
WEAK = 0.01

Vectors = tuple[NDArray[np.void], NDArray[np.float32], NDArray[np.float64]]


def node(number: int) -> UUID:
    return UUID(int=number << 64)


def edge_id(number: int) -> UUID:
    return UUID(int=(number << 64) + 1)


def edge(number: int, source: int, target: int, strength: float | None = WEAK, **more: object) -> Edge:
    """An edge that does not decay, made long ago by the machine and not used since, unless said otherwise."""
    plain = Edge(
        id=edge_id(number),
        source=node(source),
        target=node(target),
        relation="similar",
        strength=strength,
        confidence=None,
        explanation=None,
        activation_count=0,
        reinforce_count=0,
        decay_rate=0.0,
        similarity=None,
        source_topic=None,
        target_topic=None,
        created_by="auto",
        protected=False,
        status="active",
        merged_into=None,
        merged_from=None,
        metadata={},
        created_at=LONG_AGO,
        last_activated_at=None,
        last_reinforced_at=None,
    )
    return replace(plain, **more)  # type: ignore[arg-type]


def with_columns(one: Edge, after: Mapping[str, Any]) -> Edge:
    """An edge as the store would hand it out after a change of some columns."""
    times = {name: datetime.fromisoformat(value) for name, value in after.items() if name.endswith("_at") and value}
    return replace(one, **{**after, **times})


def columns(edges: Iterable[Edge]) -> EdgeColumns:
    """What the store would read of these edges."""
    rows = sorted(edges, key=lambda one: one.id)
    nodes = sorted({end for one in rows for end in (one.source, one.target)})
    place = {id_: number for number, id_ in enumerate(nodes)}
    relations = sorted({one.relation for one in rows})
    topics = sorted({key for one in rows for key in (one.source_topic, one.target_topic) if key is not None})
    return EdgeColumns(
        ids=as_ids([one.id for one in rows]),
        nodes=as_ids(nodes),
        source=_ints(place[one.source] for one in rows),
        target=_ints(place[one.target] for one in rows),
        relation=_ints(relations.index(one.relation) for one in rows),
        relations=tuple(relations),
        strength=np.array([np.nan if one.strength is None else one.strength for one in rows]),
        decay_rate=np.array([one.decay_rate for one in rows]),
        created_at=_times(one.created_at for one in rows),
        activated_at=_times(one.last_activated_at for one in rows),
        reinforced_at=_times(one.last_reinforced_at for one in rows),
        activation_count=_ints(one.activation_count for one in rows),
        protected=np.array([one.protected for one in rows], dtype=np.bool_),
        by_user=np.array([one.created_by == "user" for one in rows], dtype=np.bool_),
        source_topic=_ints(-1 if one.source_topic is None else topics.index(one.source_topic) for one in rows),
        target_topic=_ints(-1 if one.target_topic is None else topics.index(one.target_topic) for one in rows),
        topics=tuple(topics),
    )


def _ints(values: Iterable[int]) -> NDArray[np.int64]:
    return np.array(list(values), dtype=np.int64)


def _times(values: Iterable[datetime | None]) -> NDArray[np.float64]:
    return np.array([np.nan if time is None else time.timestamp() for time in values], dtype=np.float64)


class Known:
    """A Reader over what a test says is known."""

    executor = None  # all is worked out here

    def __init__(
        self,
        edges: Sequence[Edge] = (),
        *,
        topics: Sequence[Topic] = (),
        apart: Mapping[tuple[str, str], str | None] | None = None,
        vectors: Vectors | None = None,
        tags: Mapping[UUID, str] | None = None,
        last_applied: datetime | None = None,
        cases: CaseColumns | None = None,
        case_vectors: Sequence[CaseVectors] = (),
        case_texts: Mapping[UUID, CaseText] | None = None,
    ) -> None:
        self._case_texts = case_texts or {}
        self._cases, self._case_vectors = cases, case_vectors
        self._tags, self._last_applied = tags or {}, last_applied
        self._edges, self._topics, self._apart, self._vectors = edges, topics, apart or {}, vectors

    async def edges(self, *, retired: bool = False) -> EdgeColumns:
        return columns(one for one in self._edges if retired or one.status == "active")

    async def edges_in_full(self, ids: Sequence[UUID]) -> Mapping[UUID, Edge]:
        wanted = set(ids)
        return {one.id: one for one in self._edges if one.id in wanted}

    async def topics(self) -> Sequence[Topic]:
        return self._topics

    async def distinct_pairs(self, now: datetime) -> Mapping[tuple[str, str], str | None]:
        return self._apart

    async def vectors(self, *, kinds: Sequence[str]) -> Vectors:
        none = (as_ids([]), np.zeros((0, 2), np.float32), np.zeros(0))
        return none if self._vectors is None else self._vectors

    async def first_tags(self, *, kinds: Sequence[str]) -> Mapping[UUID, str]:
        return self._tags

    async def last_applied(self, policy: str, options: Mapping[str, Any]) -> datetime | None:
        return self._last_applied

    async def count_nodes(self) -> int:
        return len({end for one in self._edges for end in (one.source, one.target)})

    async def edges_of(self, ids: Sequence[UUID]) -> Mapping[UUID, Sequence[Edge]]:
        living = [one for one in self._edges if one.status == "active"]
        found = {id_: [one for one in living if id_ in (one.source, one.target)] for id_ in ids}
        return {id_: some for id_, some in found.items() if some}

    async def cases(self) -> CaseColumns:
        assert self._cases is not None, "this test has no cases"
        return self._cases

    async def case_vectors(self) -> Sequence[CaseVectors]:
        return self._case_vectors

    async def case_texts(self, ids: Sequence[UUID]) -> Sequence[CaseText]:
        return [self._case_texts.get(id_) or CaseText(id=id_, query="how?", answer="so", category=None) for id_ in ids]

    async def case_vectors_within(self, ids: Sequence[UUID], dim: int) -> Mapping[UUID, NDArray[np.float16]]:
        return {}

    async def edges_around(self, ids: Sequence[UUID]) -> Sequence[Edge]:
        return [one for one in self._edges if one.status == "active" and not {one.source, one.target}.isdisjoint(ids)]

    async def concepts(self, only: Sequence[UUID] | None = None) -> Concepts:
        raise AssertionError("this test has no concepts")

    async def concepts_changed_since(self, moment: datetime) -> Collection[UUID]:
        return []

    async def names_of(self, ids: Collection[UUID]) -> Mapping[UUID, frozenset[str]]:
        return {}

    async def keepers(self, ids: Collection[UUID]) -> Mapping[UUID, UUID]:
        return {id_: id_ for id_ in ids}

    async def last_pass(self, policy: str, options: Mapping[str, Any]) -> LastPass | None:
        return None

    async def pages(self, ids: Sequence[UUID] | None = None) -> Sequence[StoredPage]:
        return ()

    async def page_batch(self, batch: UUID, page_ids: Sequence[str] | None = None) -> PageBatch:
        raise NotFound(f"There is no batch of pages {batch}.")

    async def page_edges(self) -> Mapping[tuple[UUID, str, UUID], UUID]:
        return {}

    async def page_aliases(self) -> AbstractSet[tuple[str, UUID]]:
        return frozenset()
