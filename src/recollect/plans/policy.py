"""What a policy is: it reads what is known, and returns a Plan. It cannot write.

A policy's file has four parts in this order: `Options`, `propose`, its predicates (each a sentence), and `POLICY`.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from recollect.cases.rules.cases import CaseColumns, CaseText, CaseVectors
from recollect.concepts.rules.concepts import KnownConcepts, LastPass
from recollect.errors import InvalidInput
from recollect.graph.rules.arrays import EdgeColumns
from recollect.model import Edge, QuestionSide, Topic
from recollect.pages.rules.stored import PageBatch, StoredPage
from recollect.plan import Decision, Draft, Plan, Risk, Waiting
from recollect.ports import Executor

# For who looks only at what is new since the last time. Who wrote when is said by several clocks, and a transaction is
# seen when it ends: look a little further back.
OVERLAP = timedelta(minutes=10)


def newer_than(time: str | None) -> datetime | None:
    """The option `only_newer_than`: a time, without a zone that of UTC, or none."""
    if not time:
        return None
    try:
        moment = datetime.fromisoformat(time)
    except ValueError:
        raise InvalidInput(
            f"{time!r} is no time: write it like 2026-11-15T08:00:00Z.", field="only_newer_than"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


class Reader(Protocol):
    """One consistent look at a space: everything a policy may know."""

    @property
    def executor(self) -> Executor | None:
        """Where very many comparisons are worked out, if not in this process (X01)."""

    async def edges(self, *, retired: bool = False) -> EdgeColumns:
        """The living edges between living nodes; with `retired`, every edge there ever was."""

    async def edges_in_full(self, ids: Sequence[UUID]) -> Mapping[UUID, Edge]: ...

    async def topics(self) -> Sequence[Topic]:
        """The topics of the last gathering."""

    async def distinct_pairs(self, now: datetime) -> Mapping[tuple[str, str], str | None]:
        """Pairs a person keeps apart: for good (None), or while both are in the state that was declined (P11)."""

    async def vectors(
        self, *, kinds: Sequence[str]
    ) -> tuple[NDArray[np.void], NDArray[np.float32], NDArray[np.float64]]:
        """Ids, normalised vectors, and when they were made (seconds), of the recallable nodes of some kinds."""

    async def first_tags(self, *, kinds: Sequence[str]) -> Mapping[UUID, str]:
        """The first tag of each node of some kinds that has one."""

    async def last_applied(self, policy: str, options: Mapping[str, Any]) -> datetime | None:
        """When the last plan was made that a policy proposed with these options and that was applied; None if never."""

    async def count_nodes(self) -> int:
        """How many living nodes there are."""

    async def edges_of(self, ids: Sequence[UUID]) -> Mapping[UUID, Sequence[Edge]]:
        """The living edges of some nodes, by node; nodes without any are not among them."""

    async def cases(self) -> CaseColumns:
        """The active cases and how they stand."""

    async def case_vectors(self) -> Sequence[CaseVectors]:
        """The vectors of the active cases, each length for itself; not those whose text is waiting to be embedded."""

    async def case_texts(self, ids: Sequence[UUID]) -> Sequence[CaseText]:
        """What some cases say."""

    async def case_vectors_within(self, ids: Sequence[UUID], dim: int) -> Mapping[UUID, NDArray[np.float16]]:
        """The vectors, of one length, of all that was merged into some cases before; nothing for most."""

    async def edges_around(self, ids: Sequence[UUID]) -> Sequence[Edge]:
        """The living edges that begin or end at any of some nodes, in full."""

    async def concepts(self, only: Sequence[UUID] | None = None) -> KnownConcepts:
        """The living concepts, or some of them, each with what was merged into it."""

    async def concepts_changed_since(self, moment: datetime) -> Collection[UUID]:
        """The concepts that were made, embedded or changed from some moment on."""

    async def names_of(self, ids: Collection[UUID]) -> Mapping[UUID, frozenset[str]]:
        """Every name of some concepts, those they have absorbed included, as names are compared."""

    async def keepers(self, ids: Collection[UUID]) -> Mapping[UUID, UUID]:
        """Where each node is now: itself, or what it was merged into in the end."""

    async def last_pass(self, policy: str, options: Mapping[str, Any]) -> LastPass | None:
        """The last pass of a policy with these options whose outcome is settled; None if there was none."""

    async def pages(self, ids: Sequence[UUID] | None = None) -> Sequence[StoredPage]:
        """The pages there are, archived ones too; or some of them."""

    async def page_batch(self, batch: UUID, page_ids: Sequence[str] | None = None) -> PageBatch:
        """Pages that came in together, and what is planned for them; or some of them."""

    async def page_edges(self) -> Mapping[tuple[UUID, str, UUID], UUID]:
        """The living edges that begin at pages, by source, relation and target."""

    async def page_aliases(self) -> AbstractSet[tuple[str, UUID]]:
        """The aliases of pages, each with the node it means."""


Propose = Callable[[Reader, Any, datetime], Awaitable[Plan]]
# Decisions that no longer make sense in the world as it is, with the reason; asked at the start of an applying.
Recheck = Callable[[Reader, Sequence[Waiting], Any, datetime], Awaitable[Mapping[int, str]]]
# What is wrong after a group was written, seen from inside its transaction; nothing wrong: nothing returned.
Audit = Callable[[Reader, Sequence[Decision]], Awaitable[Sequence[str]]]
# The options under which a policy proposes what a plan of its holds but for some decisions (P21).
Without = Callable[[Plan, Sequence[Decision]], Mapping[str, Any]]
# The options of another try at the decisions of a plan that failed; None once they were tried often enough.
Again = Callable[[Plan, Sequence[Decision]], Mapping[str, Any] | None]
# What was done, in the words of `says`, from the plan's summary and those of its decisions that were applied.
Tally = Callable[[Mapping[str, Any], Sequence[Decision]], Mapping[str, int]]
# A29: figures of a run, from the plan's summary and what was measured, each {"value", "target", "in_target"}.
Metrics = Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, Mapping[str, Any]]]


# How what a person says is one becomes one (C36): groups of nodes, the one that stays first, and by node the score that
# led to it, as decisions on a draft. A node that cannot go is a finding about it, named REFUSED.
Join = Callable[[Reader, Sequence[Sequence[UUID]], Mapping[UUID, float], datetime], Awaitable[Draft]]
REFUSED = "refused"
# Two sides as a pair that is kept apart, and what they are like now: once that changes, they may be asked about again.
Remember = Callable[[QuestionSide, QuestionSide], tuple[str, str, str]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """A way of tidying, by name."""

    name: str
    about: str
    risk: Risk
    options: type[Any]
    propose: Propose
    # How a person names it on the command line.
    short: str
    # Which of A29's words a scheduled run logs, with the number of what it did.
    says: str
    # How that number is counted where not all was applied; None: the decisions that were.
    tally: Tally | None = None
    # The title under which a report is sent after every scheduled run; None where the run's record suffices.
    report: str | None = None
    # E02: the number of the summary of which somebody is told before it takes effect; nobody to tell: the plan waits.
    announces: str | None = None
    every_minutes: int | None = None
    cron: str | None = None
    # A27: whether the gate (enough edges, old enough) is asked before a scheduled run.
    gated: bool = False
    # Whether a scheduled run that did nothing says nothing (C18).
    quiet: bool = False
    # So many groups may be written in one transaction; where that fails, each in its own (P05 holds either way).
    together: int = 1
    # Whether its plans make nodes, which must be embedded.
    makes_nodes: bool = False
    recheck: Recheck | None = None
    # Whether that asks about nothing but nodes and edges: while they are as the plan saw them, it need not be asked.
    rechecks_the_graph_alone: bool = False
    audit: Audit | None = None
    # Whether the audit looks at the changes of the decisions, or only at the decisions.
    audits_changes: bool = True
    metrics: Metrics | None = None
    # How it plans anew where decisions are declined; None: what needs a declined decision falls away with it.
    without: Without | None = None
    # What its questions are about, in a word, and how they are answered with yes; None: it asks none.
    asks_about: str | None = None
    join: Join | None = None
    # And with no (P11).
    remember: Remember | None = None
    # How what failed is tried again; None: it waits until somebody applies the plan again.
    again: Again | None = None
