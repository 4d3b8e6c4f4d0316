"""The nouns: what is remembered, what is asked, what is found.

The only set of classes for these nouns: the store makes them from rows, the doors print them.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, overload
from uuid import UUID

Metadata = dict[str, Any]


class Kind(StrEnum):
    MEMORY = "memory"
    CASE = "case"
    CONCEPT = "concept"
    PAGE = "page"


class Status(StrEnum):
    ACTIVE = "active"
    ARCHIVED = "archived"
    MERGED = "merged"


class ContentType(StrEnum):
    """The six subtypes of a memory."""

    NOTE = "note"
    CONVERSATION = "conversation"
    REFLECTION = "reflection"
    IDEA = "idea"
    ARTICLE = "article"
    LOG = "log"


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """Anything remembered."""

    id: UUID
    kind: Kind
    subtype: str
    name: str | None
    text: str | None
    checksum: str | None
    metadata: Metadata
    importance: float | None
    status: Status
    merged_into: UUID | None
    protected: bool
    exclude: bool
    is_summary: bool
    source: str | None
    source_id: str | None
    thread: str | None
    position: int | None
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class NewMemory:
    """A memory as it is handed in. Only the text is required."""

    text: str
    subtype: str = ContentType.NOTE
    metadata: Metadata = field(default_factory=dict)
    importance: float | None = None
    thread: str | None = None
    position: int | None = None
    created_at: datetime | None = None
    id: UUID | None = None
    source: str | None = None
    source_id: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportedMemory(NewMemory):
    """A memory that comes back from an export, in the state in which it left.

    A class of its own, so that a plain new memory can never claim a version, a status or a vector.
    `vectors` holds, for each model, the numbers as little-endian float16.
    """

    status: Status = Status.ACTIVE
    merged_into: UUID | None = None
    protected: bool = False
    exclude: bool = False
    is_summary: bool = False
    version: int = 1
    updated_at: datetime | None = None
    vectors: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Refused:
    """One memory of a batch that was not stored, and why."""

    position: int
    code: str
    message: str
    existing_id: UUID | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Note:
    """Something worth knowing about one of a batch, which was stored all the same: a tag that looks like a slip."""

    position: int
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Added:
    """What became of a batch: the ids stored, in order, and what was refused, by position.

    `postponed` names what is stored but not searchable yet, with the reason: nothing is lost, the worker tries again.
    """

    ids: tuple[UUID, ...]
    refused: tuple[Refused, ...] = ()
    postponed: Mapping[UUID, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeFilter:
    """Which nodes a listing (and later a recall) may return. Everything given must hold."""

    kinds: tuple[Kind, ...] = (Kind.MEMORY,)
    subtypes: tuple[str, ...] = ()
    statuses: tuple[Status, ...] = (Status.ACTIVE,)
    excluded: bool | None = None
    thread: str | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    # Cases of this category, and of those below it.
    category: str | None = None

    @property
    def is_selective(self) -> bool:
        """Whether anything beyond kind and status was asked for."""
        span = self.created_from or self.created_to
        return bool(self.subtypes or self.thread or span or self.metadata or self.category)


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """A stretch of a listing; `next_cursor` leads on, None means this was the end."""

    items: tuple[Node, ...]
    next_cursor: str | None


class Mode(StrEnum):
    """A named set of weights, floors and caps (D17). NEUTRAL is plain search: no floor, gap, cooldown or cap."""

    NEUTRAL = "NEUTRAL"
    RECALL = "RECALL"
    RECALL_LLM_RERANK = "RECALL_LLM_RERANK"
    SYNTHESIZE = "SYNTHESIZE"
    REFLECT = "REFLECT"
    CHALLENGE = "CHALLENGE"
    EXPAND = "EXPAND"


@dataclass(frozen=True, kw_only=True, slots=True)
class Query:
    """A question put to the memory. `limit` and `threshold` of None leave it to the mode."""

    text: str
    mode: Mode = Mode.NEUTRAL
    limit: int | None = None
    threshold: float | None = None
    wanted: NodeFilter = field(default_factory=lambda: NodeFilter(excluded=False))
    include_summaries: bool = False
    budget_tokens: int | None = None
    graph: bool = False
    engagement: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """A score laid open. `cosine` is raw; `similarity` is the same on the calibrated scale.

    relevance joins similarity, lexical match and the flow from neighbours; the score weighs it with recency,
    importance and (where asked for) engagement, and adds the bonus.
    """

    relevance: float
    similarity: float
    cosine: float
    lexical: float
    flow: float
    activation: float
    recency: float
    importance: float
    engagement: float = 0.0
    decay: float = 0.0
    bonus: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """One answer of a recall."""

    node: Node
    score: float
    parts: Parts
    source: str = "vector"

    @property
    def similarity(self) -> float:
        return self.parts.similarity

    def __str__(self) -> str:
        text = " ".join((self.node.text or self.node.name or "").split())
        return f"{self.score:.2f}  {self.node.created_at:%Y-%m-%d}  {text}"


@dataclass(frozen=True, kw_only=True, slots=True)
class LeftOut:
    """A candidate that was not returned, and the step that left it out: floor, twin, gap, cap, limit or budget."""

    id: UUID
    score: float
    step: str
    why: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Recall(Sequence[Hit]):
    """The hits of one recall, best first; prints one line a hit.

    `weights` says what each part counts for: a score is the sum of parts times weights.
    """

    query: str
    hits: tuple[Hit, ...]
    model: str
    mode: Mode = Mode.NEUTRAL
    floor: float | None = None
    left_out: tuple[LeftOut, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    ways: Mapping[str, Any] = field(default_factory=dict)
    id: UUID | None = None
    latency_ms: float = 0.0
    notes: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> Hit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hit, ...]: ...
    def __getitem__(self, index: int | slice) -> Hit | tuple[Hit, ...]:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __str__(self) -> str:
        return "\n".join(str(hit) for hit in self.hits) or "Nothing is known about that."


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenUsage:
    """What a model read and wrote."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Citation:
    """A memory that an answer cites: [Memory `number`] is the hit of that place."""

    number: int
    id: UUID


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What `ask` gives: a text, the memories it stands on ([Memory N] is `recall[N - 1]`), and what is wrong with it.

    `problems` are sentences for the reader: no model, a model that failed, claims without a memory behind them.
    """

    text: str
    mode: Mode
    recall: Recall
    citations: tuple[Citation, ...] = ()
    problems: tuple[str, ...] = ()
    external_knowledge_used: bool = False
    confidence: float = 0.5
    token_usage: TokenUsage = field(default_factory=TokenUsage)
    latency_ms: float = 0.0
    model: str | None = None
    id: UUID | None = None

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, kw_only=True, slots=True)
class LoggedHit:
    """A hit as the query log keeps it: which node, its score, and the parts of that."""

    id: UUID
    score: float
    parts: Mapping[str, float]


@dataclass(frozen=True, kw_only=True, slots=True)
class RecallLog:
    """One entry of the query log (D11, D12).

    `hits` is the ranking as it was; `memory_ids` is what was handed out of it, in that order; `asked` is the query in
    full, so that it can be replayed.
    """

    id: UUID
    user_query: str
    mode: Mode
    memory_ids: tuple[UUID, ...]
    hits: tuple[LoggedHit, ...] = ()
    asked: Mapping[str, Any] = field(default_factory=dict)
    embedding_model: str | None = None
    floor: float | None = None
    prompt_hash: str | None = None
    debug_prompt: str | None = None
    external_knowledge_used: bool = False
    confidence_score: float = 0.5
    response: str | None = None
    token_usage: TokenUsage = field(default_factory=TokenUsage)
    latency_ms: float | None = None
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class RecallLogs:
    """A stretch of the query log, newest first; `next_cursor` leads on, None means this was the end."""

    items: tuple[RecallLog, ...]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Move:
    """A hit that two rankings of the same question hold at different places, counted from 1."""

    id: UUID
    before: int
    after: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Replay:
    """A question of the log asked again: what the ranking holds now that it did not, and the other way round."""

    log: RecallLog
    recall: Recall
    added: tuple[UUID, ...]
    removed: tuple[UUID, ...]
    moved: tuple[Move, ...]

    @property
    def is_same(self) -> bool:
        return not (self.added or self.removed or self.moved)


@dataclass(frozen=True, kw_only=True, slots=True)
class Activity:
    """How a node is used: handed out so often, judged so often, and found helpful in so many of those."""

    uses: int = 0
    successes: int = 0
    judged: int = 0
    last_used_at: datetime | None = None
    decay_score: float = 1.0


class CaseStatus(StrEnum):
    """A case is used, or rests; one that was merged rests too, and names its keeper."""

    ACTIVE = "active"
    ARCHIVED = "archived"


@dataclass(frozen=True, kw_only=True, slots=True)
class NewCase:
    """A case as it is handed in: a question and the answer given. `usage_count`, `success_rate` (percent) and
    `last_accessed_at` are what another bank knows of it."""

    query: str
    response_text: str
    category_path: str | None = None
    usage_count: int = 0
    success_rate: float | None = None
    last_accessed_at: datetime | None = None
    metadata: Metadata = field(default_factory=dict)
    created_at: datetime | None = None
    id: UUID | None = None
    source: str | None = None
    source_id: str | None = None
    updated_by: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A question with the answer given, how often it was used, and how well it did (percent; None: not known).

    The counts are those of all cases that were merged into it. `judged` is how many recorded outcomes the rate stands
    on.
    """

    case_id: UUID
    query: str
    response_text: str
    category_path: str | None
    usage_count: int
    success_rate: float | None
    judged: int
    last_accessed_at: datetime | None
    status: CaseStatus
    merged_into: UUID | None
    archived_reason: str | None
    archived_at: datetime | None
    protected: bool
    version: int
    metadata: Metadata
    source: str | None
    source_id: str | None
    created_at: datetime
    updated_at: datetime
    updated_by: str | None

    @property
    def id(self) -> UUID:
        return self.case_id


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseFilter:
    """Which cases a listing returns. Everything given must hold; a case without a rate has none to compare."""

    status: CaseStatus | None = CaseStatus.ACTIVE
    category: str | None = None
    success_below: float | None = None
    success_at_least: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CasePage:
    """A stretch of a listing; `next_cursor` leads on, None means this was the end."""

    items: tuple[Case, ...]
    next_cursor: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseHit:
    """A case that was found, with its score and the raw cosine of its query."""

    case: Case
    score: float
    similarity: float


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseHits(Sequence[CaseHit]):
    """The cases that answer a question, best first. `id` names the entry of the query log."""

    query: str
    hits: tuple[CaseHit, ...]
    id: UUID | None = None
    latency_ms: float = 0.0
    notes: tuple[str, ...] = ()

    @overload
    def __getitem__(self, index: int) -> CaseHit: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[CaseHit, ...]: ...
    def __getitem__(self, index: int | slice) -> CaseHit | tuple[CaseHit, ...]:
        return self.hits[index]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[CaseHit]:
        return iter(self.hits)


@dataclass(frozen=True, kw_only=True, slots=True)
class CaseOutcome:
    """How one use of a case went."""

    success: bool
    error_type: str | None = None
    milliseconds: float | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Edge:
    """A directed link between two nodes. `strength` is as it was stored; it decays from then on (rules/strength)."""

    id: UUID
    source: UUID
    target: UUID
    relation: str
    strength: float | None
    confidence: float | None
    explanation: str | None
    activation_count: int
    reinforce_count: int
    decay_rate: float
    similarity: float | None
    source_topic: str | None
    target_topic: str | None
    created_by: str
    protected: bool
    status: str
    merged_into: UUID | None
    merged_from: Any
    metadata: Metadata
    created_at: datetime
    last_activated_at: datetime | None
    last_reinforced_at: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewEdge:
    """A link to be made, as a door hands it in."""

    source: UUID
    target: UUID
    relation: str = "similar"
    strength: float | None = None
    confidence: float | None = None
    explanation: str | None = None
    source_topic: str | None = None
    target_topic: str | None = None
    similarity: float | None = None
    created_by: str = "user"
    created_at: datetime | None = None
    metadata: Metadata = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Topic:
    """A named group of nodes: metadata about the graph, never a node of it."""

    id: UUID
    key: str
    member_ids: tuple[UUID, ...]
    internal_edges: int
    connectivity: float
    gathered_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class NewConcept:
    """A concept as it is handed in. Only the name is required; without a text, the name is all that is known of it."""

    name: str
    node_type: str = "concept"
    text: str | None = None
    energy: Mapping[str, float] = field(default_factory=dict)
    base_weight: float | None = None
    metadata: Metadata = field(default_factory=dict)
    created_by: str | None = None
    created_at: datetime | None = None
    id: UUID | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Concept:
    """A named idea, with everything that was merged into it.

    `raw_energy` is the plain sum by entity, `energy` the same as it is shown (at most 2, rules/energy); `aliases` are
    other names that lead here; `made_of` says how many concepts it is, `absorbed` which others those are. What it is
    made of is derived from what points at it, never copied: so a merge can be undone whatever came after it.
    """

    id: UUID
    node_type: str
    name: str
    text: str | None
    metadata: Metadata
    energy: Mapping[str, float]
    raw_energy: Mapping[str, float]
    base_weight: float | None
    aliases: tuple[str, ...]
    absorbed: tuple[UUID, ...]
    links: int
    protected: bool
    status: Status
    version: int
    created_by: str | None
    created_at: datetime
    updated_at: datetime

    @property
    def made_of(self) -> int:
        return 1 + len(self.absorbed)


@dataclass(frozen=True, kw_only=True, slots=True)
class Formed:
    """What became of a concept that was handed in: made, or taken for one that was there; and why."""

    concept: Concept
    is_new: bool
    reason: str
    score: float | None = None
    resembles: tuple[UUID, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptApart:
    """Two names (or two nodes, by id) that never become one; until some time, where a declined merge rests."""

    a: str
    b: str
    reason: str | None
    until: datetime | None
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Space:
    """A tenant: nothing crosses it."""

    id: UUID
    slug: str
    settings: Mapping[str, Any]
    embedding_model: str | None
    created_at: datetime


class Scope(StrEnum):
    """What a key may do; each scope is its own, admin holds all."""

    READ = "read"
    WRITE = "write"
    CONSOLIDATE = "consolidate"
    ADMIN = "admin"


@dataclass(frozen=True, kw_only=True, slots=True)
class ApiKey:
    """A key as it can be shown: the secret itself is kept only as a hash."""

    id: UUID
    name: str
    prefix: str
    scopes: tuple[Scope, ...]
    space: str | None
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class JobCounts:
    """Embedding jobs of a space, by state."""

    pending: int = 0
    processing: int = 0
    completed: int = 0
    failed: int = 0
    # Without a vector, because the model cannot read the text: found by words alone.
    unreadable: int = 0

    @property
    def waiting(self) -> int:
        return self.pending + self.processing

    @property
    def finished(self) -> int:
        return self.completed + self.unreadable
