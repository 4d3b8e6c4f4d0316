"""What goes in and out over HTTP besides the nouns of recollect.model: request bodies, the one shape of every refusal.

What a memory may hold is checked in one place, memories/rules/contract.py; so its fields are shown here with their JSON
schema but not validated a second time, and every door refuses with the same sentence.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from uuid import UUID

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from recollect.memories.rules.contract import FIELDS, LONGEST_NAME, SOURCES, TYPES, checked_metadata_filter, parsed_time
from recollect.memories.rules.tags import LONGEST_TAG, REGISTERED_TAGS
from recollect.memories.rules.text import is_storable
from recollect.memories.sources import Format
from recollect.model import ApiKey, ContentType, Kind, Mode, Node, NodeFilter, Note, Refused, Scope
from recollect.schedules.rules.timing import MOST_JITTER_SECONDS, MOST_MINUTES

Responses = dict[int | str, dict[str, Any]]
# A UUID, or a beginning of one.
ID = "^[0-9a-fA-F-]{4,36}$"

AnyCase = BeforeValidator(lambda given: given.upper() if isinstance(given, str) else given)
Time = Annotated[Any, WithJsonSchema({"type": "string", "format": "date-time"})]
Text = Annotated[Any, WithJsonSchema({"type": "string", "minLength": 1})]
Name = Annotated[Any, WithJsonSchema({"type": "string", "minLength": 1, "maxLength": LONGEST_NAME})]
_Subtype = Annotated[Any, WithJsonSchema({"type": "string", "enum": list(ContentType), "default": "note"})]
_Importance = Annotated[Any, WithJsonSchema({"type": "number", "minimum": 0, "maximum": 1})]
Count = Annotated[Any, WithJsonSchema({"type": "integer", "minimum": 0})]
OwnId = Annotated[Any, WithJsonSchema({"type": "string", "format": "uuid"})]
_Texts = {"type": "array", "items": {"type": "string", "minLength": 1}}
_Metadata = Annotated[
    Any,
    WithJsonSchema(
        {
            "type": "object",
            "description": f"Contract V1, at most 4,096 bytes of JSON: {', '.join(FIELDS)}; anything else in extra.",
            "additionalProperties": False,
            "properties": {
                "tags": {
                    "type": "array",
                    "items": {
                        "type": "string",
                        "minLength": 1,
                        "maxLength": LONGEST_TAG,
                        "examples": sorted(REGISTERED_TAGS),
                    },
                    "description": f"Any words; registered, and so with a meaning of their own, are "
                    f"{', '.join(sorted(REGISTERED_TAGS))}. A space with strict_tags accepts registered ones only.",
                },
                "type": {"type": "string", "enum": list(TYPES)},
                "source": {"type": "string", "enum": list(SOURCES)},
                "source_urls": _Texts,
                "extra": {"type": "object"},
                "parent_id": {"type": "string", "minLength": 1},
                "chunk_index": {"type": "integer", "minimum": 1},
                "total_chunks": {"type": "integer", "minimum": 1},
            },
        }
    ),
]


class RequestBody(BaseModel):
    """What a request brings; a field that is none of its own is refused."""

    model_config = ConfigDict(extra="forbid")

    def fields(self) -> dict[str, Any]:
        """What was given, as it was given (model_dump would copy, and give up on deep nesting)."""
        return {name: getattr(self, name) for name in self.model_fields_set}


def examples(*bodies: dict[str, Any], **schema: Any) -> ConfigDict:
    """How such a body looks, and what else its schema says."""
    return ConfigDict(json_schema_extra={**schema, "examples": list(bodies)})


class ScheduleIn(RequestBody):
    """How often something is done: every so many minutes, or by cron in a time zone. What is left out stays."""

    model_config = examples({"every_minutes": 1440}, {"cron": "0 2 * * sun", "time_zone": "Europe/Berlin"})

    every_minutes: Annotated[int | None, Field(ge=1, le=MOST_MINUTES)] = None
    cron: Annotated[
        str | None, Field(max_length=200, description="Minute, hour, day of month, month, day of week.")
    ] = None
    time_zone: Annotated[str | None, Field(max_length=64, description="A name like Europe/Berlin.")] = None
    jitter_seconds: Annotated[
        int | None, Field(ge=0, le=MOST_JITTER_SECONDS, description="Kept apart from others by up to so much.")
    ] = None
    options: Annotated[dict[str, Any] | None, Field(description="Options of the policy.")] = None


class MemoryIn(RequestBody):
    """A memory as it is handed in. Only the text is required; it is permanent once stored."""

    model_config = examples(
        {"text": "Linh prefers tea, never coffee", "metadata": {"tags": ["life"]}, "importance": 0.6},
        {"raw_text": "Retry with jitter fixed the stampede", "content_type": "reflection"},
        anyOf=[{"required": ["text"]}, {"required": ["raw_text"]}],
    )

    text: Annotated[Text, Field(description="What to remember.")] = None
    raw_text: Annotated[Text, Field(description="Another name of text.")] = None
    subtype: Annotated[_Subtype, Field(description="The content type.")] = None
    content_type: Annotated[_Subtype, Field(description="Another name of subtype.")] = None
    metadata: _Metadata = None
    importance: Annotated[_Importance, Field(description="From 0 to 1.")] = None
    importance_score: Annotated[_Importance, Field(description="Another name of importance.")] = None
    thread: Annotated[Name, Field(description="The conversation or document it came in.")] = None
    position: Annotated[Count, Field(description="Its place in the thread; assigned in order of arrival.")] = None
    created_at: Annotated[Time, Field(description="When it was said; without a zone it means UTC.")] = None
    id: Annotated[OwnId, Field(description="A UUID of yours; one is made otherwise.")] = None
    source: Annotated[Name, Field(description="Where source_id comes from.")] = None
    source_id: Annotated[Name, Field(description="Your own id, unique within its source.")] = None


class EditIn(RequestBody):
    """What to change of a memory. Its text is permanent."""

    model_config = examples({"metadata": {"tags": ["important"]}, "merge": True, "if_version": 1})

    metadata: Annotated[_Metadata, Field(description="Replaces the metadata, or with merge is merged into it.")] = None
    merge: Annotated[bool, Field(description="Change only the fields given; null takes a field away.")] = False
    importance: _Importance = None
    importance_score: Annotated[_Importance, Field(description="Another name of importance.")] = None
    if_version: Annotated[int | None, Field(description="Change it only if it is at this version.")] = None
    text: Annotated[Any, Field(description="Refused with 409: the text is permanent.")] = None
    raw_text: Annotated[Any, Field(description="Refused with 409: the text is permanent.")] = None


class ReasonIn(RequestBody):
    """Why, for the history."""

    model_config = examples({"reason": "out of date"})

    reason: Annotated[str | None, Field(description="Kept in the history.", max_length=1000)] = None


class CorrectIn(RequestBody):
    """The text that takes the place of a memory's, and why."""

    model_config = examples({"text": "Linh prefers green tea"})

    text: Annotated[str, Field(min_length=1, description="The corrected text.")]
    reason: Annotated[str | None, Field(description="Kept in the history.", max_length=1000)] = None


class ManyIn(RequestBody):
    """What to change of many nodes at once, as one plan."""

    ids: Annotated[list[UUID], Field(min_length=1, max_length=10_000, description="Which: up to 10,000.")]
    archive: Annotated[bool | None, Field(description="Archive them, or with false restore them.")] = None
    protect: Annotated[bool | None, Field(description="Whether tidying leaves them alone.")] = None
    add_tags: Annotated[list[str], Field(description="Tags that they get.")] = []
    remove_tags: Annotated[list[str], Field(description="Tags that they lose.")] = []
    reason: Annotated[str | None, Field(description="Kept in the history.", max_length=1000)] = None


class SentFile(RequestBody):
    """A file by name and text."""

    path: Annotated[str, Field(min_length=1, max_length=4096, description="Its name, below the folder it came from.")]
    text: str


class ImportIn(RequestBody):
    """Files to remember: text, Markdown, JSONL, CSV, or an export of another memory."""

    model_config = examples({"files": [{"path": "a.md", "text": "# Tea"}], "dry_run": True})

    files: Annotated[list[SentFile], Field(min_length=1, max_length=10_000)]
    format: Annotated[Format, Field(description="`auto` tells by the name and what is in it.")] = "auto"
    tags: Annotated[list[str], Field(description="Tags that every memory gets.")] = []
    dry_run: Annotated[bool, Field(description="Only say what would happen.")] = False


class SearchIn(RequestBody):
    """A question to the memory."""

    model_config = examples({"query": "what does Linh drink?", "limit": 5})

    query: Annotated[str, Field(min_length=1, description="What to look for.")]
    mode: Annotated[
        Annotated[Mode, AnyCase], Field(description="Which weights, floor and cap; plain search has no cap.")
    ] = Mode.NEUTRAL
    limit: Annotated[int, Field(ge=1, le=1000, description="At most so many hits.")] = 20
    threshold: Annotated[
        float | None, Field(ge=0, le=1, description="Nothing whose relevance is below 1 minus this.")
    ] = None
    kinds: Annotated[list[Kind] | None, Field(min_length=1, description="Memories, if nothing is said.")] = None
    content_types: Annotated[list[ContentType] | None, Field(min_length=1, description="Any of these.")] = None
    thread: Annotated[str | None, Field(min_length=1, description="Of this conversation or document.")] = None
    created_from: Annotated[Time, Field(description="Not before this moment.")] = None
    created_to: Annotated[Time, Field(description="Not after this moment.")] = None
    metadata: Annotated[
        dict[str, Any] | None, Field(description='What the metadata contains: `{"tags": ["life"]}`.')
    ] = None
    include_summaries: Annotated[bool, Field(description="Persisted summaries too.")] = False
    budget_tokens: Annotated[int | None, Field(ge=1, description="Only what fits into so many tokens.")] = None
    engagement: Annotated[bool, Field(description="Rank by use as well.")] = False
    graph: Annotated[
        bool, Field(description="Follow the links from what is found; `ways.paths` shows how hits were reached.")
    ] = False
    weak: Annotated[bool, Field(description="Also what is hardly related, behind what is.")] = False
    noted: Annotated[bool, Field(description="In the query log and in the counts of use; else it leaves no trace.")] = (
        True
    )


def wanted_by(asked: Any) -> NodeFilter:
    """Among what to look, as a search and a question for an answer say it by the same fields."""
    return NodeFilter(
        kinds=tuple(asked.kinds or (Kind.MEMORY,)),
        subtypes=tuple(asked.content_types or ()),
        excluded=False,
        thread=asked.thread if asked.thread is None or is_storable(asked.thread) else "",
        created_from=parsed_time("created_from", asked.created_from),
        created_to=parsed_time("created_to", asked.created_to),
        metadata={} if asked.metadata is None else checked_metadata_filter(asked.metadata),
    )


class CalibrationIn(RequestBody):
    """A calibration to use, as it was measured."""

    model_config = examples({"model": "minilm", "low": 0.02, "high": 0.61})

    model: Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, description="The embedder it was measured for.")]
    low: Annotated[float, Field(ge=-1, le=1, description="The cosine of unrelated texts.")]
    high: Annotated[float, Field(ge=-1, le=1, description="The cosine of texts about the same thing.")]


class SummaryIn(RequestBody):
    """A short text that may stand in for a long memory, once it is approved."""

    model_config = examples({"text": "Ana's kettle, in short", "expires_at": "2027-01-01T00:00:00Z"})

    text: Annotated[str, Field(min_length=1, description="The summary; permanent, as every text is.")]
    expires_at: Annotated[Time, Field(description="Out of recall again from then on; never, if nothing is said.")] = (
        None
    )


class SpaceIn(RequestBody):
    """A new space."""

    model_config = examples({"slug": "team-wiki"})

    slug: Annotated[str, Field(pattern="^[a-z0-9][a-z0-9_-]{0,62}$", description="Its name, for good.")]
    settings: Annotated[
        dict[str, Any], Field(description="`tags` it registers besides the common ones; `strict_tags`: no others.")
    ] = {}


class SpaceSettingsIn(RequestBody):
    """Settings of a space to change; the others stay."""

    model_config = examples({"settings": {"strict_tags": True, "tags": ["garden"]}})

    settings: dict[str, Any]


class KeyIn(RequestBody):
    """An API key to make."""

    model_config = examples({"name": "my agent", "scopes": ["read", "write"], "space": "default"})

    name: Annotated[str, Field(min_length=1, max_length=LONGEST_NAME, description="Whose key it is.")]
    scopes: Annotated[list[Scope], Field(min_length=1, description="What it may do; admin may do everything.")]
    space: Annotated[str | None, Field(description="The one space it works in; every space, if none is said.")] = None
    expires_at: Annotated[Time, Field(description="Never, if nothing is said.")] = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewKey:
    """A key just made. The secret is shown this once: it is kept only as a hash."""

    key: ApiKey
    secret: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """What became of a batch: how many were stored, their ids in order, each refusal by its position, and notes."""

    stored: int
    ids: tuple[UUID, ...]
    refused: tuple[Refused, ...]
    postponed: Mapping[UUID, str]
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Remembered(Node):
    """A memory that was just added, and what is worth knowing about that: a tag that looks like a slip."""

    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class JobFailure:
    """A node that could not be embedded, and why."""

    id: UUID
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Jobs:
    """The embedding jobs of a space, by state; the first failures with their reasons."""

    pending: int
    processing: int
    completed: int
    failed: int
    # Without a vector, because the model cannot read the text: found by words alone.
    unreadable: int
    failures: tuple[JobFailure, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Retried:
    """How many failed jobs get another round of attempts."""

    retried: int


class Problem(BaseModel):
    """Every refusal has this shape: a code for programs, a sentence for people, an id to find it in the log."""

    code: str
    message: str
    correlation_id: str
    field: Annotated[str | None, Field(description="The field that was wrong, where there is one.")] = None
    existing_id: Annotated[UUID | None, Field(description="The memory that has this text already.")] = None


_MEANINGS = {
    400: "The body cannot be read.",
    401: "No API key, or one that is not valid.",
    403: "The key lacks the scope or the space.",
    404: "There is no such thing here.",
    405: "This is not done to this.",
    409: "It conflicts with what is there.",
    413: "The body is too large.",
    429: "Too many large requests of one caller at a time.",
    415: "The body is not JSON.",
    422: "A value cannot be accepted; nothing was changed.",
    502: "An embedder outside does not do its work.",
    503: "The database or an embedder cannot be reached; try again.",
}


# Said by reference: as a model of each of the hundreds of refusals it would be built anew for each, at every start.
_SAID_AS_PROBLEM = {"application/json": {"schema": {"$ref": "#/components/schemas/Problem"}}}


def problems(*statuses: int) -> Responses:
    """The refusals of a route, for OpenAPI."""
    return {status: {"description": _MEANINGS[status], "content": _SAID_AS_PROBLEM} for status in statuses}


ALWAYS = problems(401, 403, 404, 422, 503)
WITH_BODY = problems(400, 413, 415, 429)
