"""Concepts: named ideas, each there once; why two are taken for one, and how to keep them two."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from fastapi import Body, Path, Query, Response
from pydantic import Field, SkipValidation

from recollect.concepts.compare import Duplicate, Why
from recollect.concepts.rules.detection.detect import THRESHOLD
from recollect.concepts.rules.tables import concept_from_mapping
from recollect.doors.api import access
from recollect.doors.api.access import Consolidating, Reading, Writing
from recollect.doors.api.memories import Atomic, Cursor, Limit, Word, parsed_batch
from recollect.doors.api.schemas import WITH_BODY, RequestBody, Time, examples, problems
from recollect.memories.rules.contract import parsed_time
from recollect.model import Concept, Formed, FormedMany, KeptApart
from recollect.plan import Outcome

router = access.router("concepts", problems(409))

Reference = Annotated[Word, Path(min_length=1, max_length=500, description="A name, an alias, an id or its beginning.")]
Node = Annotated[Word, Query(min_length=1, max_length=500, description="A name, an alias, an id or its beginning.")]
Type = Annotated[Word | None, Query(max_length=100, description="Only of this type.")]
Threshold = Annotated[float, Query(gt=0, le=1, description="From which score two are the same.")]


class ConceptIn(RequestBody):
    """A concept to be added. Only the name is required."""

    model_config = examples({"name": "consciousness_substrate", "energy": {"translator": 0.6}})

    name: Annotated[str, Field(description="What it is called.")]
    node_type: Annotated[str, Field(description="Concepts of one type are compared with each other.")] = "concept"
    text: Annotated[str | None, Field(description="What it is.")] = None
    energy: dict[str, float] = Field(default={}, description="By entity, from 0.")
    base_weight: Annotated[float | None, Field(description="From 0.")] = None
    metadata: dict[str, Any] = Field(default={}, description="What else is known; at most 4,096 bytes of JSON.")
    created_by: Annotated[str | None, Field(description="Who made it.")] = None
    created_at: Annotated[Time, Field(description="When it was made; without a zone it means UTC.")] = None
    threshold: Annotated[float, Field(gt=0, le=1, description="From which score it is one that is there.")] = THRESHOLD


class EnergyIn(RequestBody):
    """Energy to be added, by entity."""

    model_config = examples({"energy": {"architect": 0.4}})

    energy: Annotated[dict[str, float], Field(min_length=1, description="By entity, from 0.")]


class MergeIn(RequestBody):
    """Concepts that are one."""

    model_config = examples({"keep": "3f2a91bc", "others": ["91bc3f2a"]})

    keep: Annotated[str, Field(min_length=1, description="The one that stays: a name, or an id.")]
    others: Annotated[list[str], Field(min_length=1, max_length=100, description="Those that go into it.")]
    reason: Annotated[str | None, Field(max_length=1000, description="Kept in the history.")] = None


class ApartIn(RequestBody):
    """Two concepts that are two."""

    model_config = examples({"a": "3f2a91bc", "b": "91bc3f2a"})

    a: Annotated[str, Field(min_length=1, description="A concept: a name, or an id.")]
    b: Annotated[str, Field(min_length=1, description="Another.")]
    never: Annotated[bool, Field(description="For good; else until either changes, or for a while.")] = False


class PairIn(RequestBody):
    """Two names that never become one."""

    model_config = examples({"a": "consciousness", "b": "consciousness_engine"})

    a: Annotated[str, Field(min_length=1, description="A name.")]
    b: Annotated[str, Field(min_length=1, description="Another.")]
    reason: Annotated[str | None, Field(max_length=1000, description="Why they are two.")] = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ConceptPage:
    """A stretch of a listing; `next_cursor` leads on, null means this was the end."""

    items: Sequence[Concept]
    next_cursor: str | None


@router.post(
    "/concepts",
    status_code=201,
    summary="Add a concept",
    responses={**WITH_BODY, 200: {"model": Formed, "description": "It is there already, and gained what is new."}},
)
async def add_concept(new: ConceptIn, engine: Writing, response: Response) -> Formed:
    """A twin of its type that is there already is returned instead, with the reason, and gains energy and metadata."""
    given = {**new.model_dump(), "created_at": parsed_time("created_at", new.created_at)}
    formed = await engine.concepts.add(**given)
    response.status_code = 201 if formed.is_new else 200
    response.headers["Location"] = f"/api/v1/concepts/{formed.concept.id}"
    return formed


@router.post(
    "/concepts/batch",
    status_code=201,
    summary="Add many concepts",
    responses={
        **WITH_BODY,
        201: {"model": FormedMany, "description": "All are there now."},
        207: {"model": FormedMany, "description": "Some were refused: `refused` says which, by position, and why."},
    },
)
async def add_concepts(
    concepts: Annotated[list[SkipValidation[ConceptIn]], Body(min_length=1)],
    engine: Writing,
    response: Response,
    atomic: Atomic = False,
) -> FormedMany:
    """Each as by itself, after those before it. What is no field of a concept is one of its metadata."""
    parsed, refused = await parsed_batch(concepts, concept_from_mapping, engine, atomic=atomic)
    formed = await engine.concepts.add_many(list(parsed.values()), atomic=atomic)
    positions = list(parsed)
    moved = [replace(refusal, position=positions[refusal.position]) for refusal in formed.refused]
    everything = tuple(sorted([*refused, *moved], key=lambda refusal: refusal.position))
    response.status_code = 207 if everything else 201
    return replace(formed, refused=everything)


@router.get("/concepts", summary="List concepts, newest first")
async def list_concepts(
    engine: Reading, node_type: Type = None, limit: Limit = 50, cursor: Cursor = None
) -> ConceptPage:
    concepts, more = await engine.concepts.list(node_type=node_type, limit=limit, cursor=cursor)
    return ConceptPage(items=concepts, next_cursor=more)


@router.get("/concepts/duplicates", summary="Pairs of concepts that are alike, best first")
async def list_duplicates(
    engine: Reading,
    threshold: Threshold = THRESHOLD,
    node_type: Type = None,
    limit: Annotated[int, Query(ge=1, le=10_000, description="At most so many.")] = 100,
) -> Sequence[Duplicate]:
    """It looks, and changes nothing; the policy `merge_duplicate_concepts` proposes what to do."""
    return await engine.concepts.duplicates(threshold=threshold, node_type=node_type, limit=limit)


@router.post("/concepts/apart", summary="Say that two concepts are two", responses=WITH_BODY)
async def set_concepts_apart(said: ApartIn, engine: Consolidating) -> KeptApart:
    """They are not asked about again for a while, or never. DELETE /never-merge, with `a` and `b` of the answer,
    takes it back."""
    return await engine.concepts.set_apart(said.a, said.b, never=said.never)


@router.post("/concepts/merge", summary="Merge concepts by hand", responses=WITH_BODY)
async def merge_concepts(merge: MergeIn, engine: Consolidating) -> Outcome:
    """At once, as a plan; undoing it makes them two again."""
    return await engine.concepts.merge(merge.keep, *merge.others, reason=merge.reason)


@router.get("/concepts/{reference}", summary="One concept, with all that was merged into it")
async def get_concept(reference: Reference, engine: Reading, node_type: Type = None) -> Concept:
    return await engine.concepts.get(reference, node_type)


@router.post("/concepts/{reference}/energy", summary="Add energy to a concept", responses=WITH_BODY)
async def add_concept_energy(reference: Reference, given: EnergyIn, engine: Writing, node_type: Type = None) -> Concept:
    return await engine.concepts.add_energy(reference, given.energy, node_type)


@router.get("/why", summary="Why two nodes are, or are not, taken for one")
async def why_two(a: Node, b: Node, engine: Reading, threshold: Threshold = THRESHOLD) -> Why:
    """The factors, the bound that failed, what would change it, and what happened to both."""
    return await engine.concepts.why(a, b, threshold=threshold)


@router.get("/never-merge", summary="The pairs that never become one")
async def list_never_merge(engine: Reading) -> Sequence[KeptApart]:
    return await engine.concepts.kept_apart()


@router.post("/never-merge", status_code=201, summary="Keep two names apart", responses=WITH_BODY)
async def add_never_merge(pair: PairIn, engine: Consolidating) -> Sequence[KeptApart]:
    return await engine.concepts.keep_apart(pair.a, pair.b, reason=pair.reason)


@router.delete("/never-merge", summary="Take a pair off the list")
async def remove_never_merge(a: Node, b: Node, engine: Consolidating) -> Sequence[KeptApart]:
    return await engine.concepts.let_merge(a, b)
