"""Asking memory: the question, the hits with their scores laid open, answers, and the log of what was asked."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, overload
from uuid import UUID

from recollect.model.memories import Node, NodeFilter


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
    """A question put to the memory. `limit` and `threshold` of None leave it to the mode.

    `weak` shows also what is hardly related, behind what is (D46); the modes of `ask` never do.
    """

    text: str
    mode: Mode = Mode.NEUTRAL
    limit: int | None = None
    threshold: float | None = None
    wanted: NodeFilter = field(default_factory=lambda: NodeFilter(excluded=False))
    include_summaries: bool = False
    budget_tokens: int | None = None
    graph: bool = False
    engagement: bool = False
    weak: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """A score laid open. `cosine` is raw; `similarity` is the same on the calibrated scale.

    relevance joins similarity, lexical match, the flow from neighbours, how much of the question's words a text covers
    (`coverage`) and how far its meaning stands out from that of other candidates (`standing`); `says` is how much a
    turn of a thread says of itself. The score weighs relevance with recency, importance and (where asked for)
    engagement, and adds the bonus.
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
    coverage: float = 0.0
    says: float = 1.0
    standing: float = 0.0
    rerank: float = 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Hit:
    """One answer of a recall. Of a long text, `passage` is the part that was found (D47)."""

    node: Node
    score: float
    parts: Parts
    source: str = "vector"
    passage: str | None = None

    @property
    def similarity(self) -> float:
        return self.parts.similarity

    @property
    def relevance(self) -> float:
        return self.parts.relevance

    @property
    def text(self) -> str:
        """What is shown: the passage of a long text, else all of it."""
        return self.passage or self.node.text or self.node.name or ""

    def __str__(self) -> str:
        text = " ".join(self.text.split())
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
