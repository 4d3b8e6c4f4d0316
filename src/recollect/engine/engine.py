"""The engine: one method a verb, each a call into the verb's own file. Bound to one space; `in_space` gives another."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self
from uuid import UUID

from recollect.engine import build, verbs
from recollect.engine.administration import Administration
from recollect.engine.core import Clock, Core, Reference, clock_of, utc_now
from recollect.engine.sql import spaces
from recollect.errors import InvalidInput
from recollect.memories.sql import nodes
from recollect.model import (
    Activity,
    Added,
    Answer,
    ContentType,
    Kind,
    Metadata,
    Mode,
    NewMemory,
    Node,
    NodeFilter,
    Order,
    Page,
    Query,
    Recall,
    RecallLog,
    RecallLogs,
    Replay,
    Space,
    Status,
)
from recollect.plan import HistoryEntry, Outcome, Plan
from recollect.settings import Settings
from recollect.store.database import reads
from recollect.wording import check_limit

if TYPE_CHECKING:
    from recollect.cases.cases import Cases
    from recollect.concepts.concepts import Concepts
    from recollect.engine.overview import Overview
    from recollect.graph.graph import Graph
    from recollect.memories import export, import_, remember
    from recollect.memories.edit import ManyChanged
    from recollect.memories.import_ import ImportReport
    from recollect.memories.sources import Format, ImportOptions
    from recollect.pages.pages import Pages
    from recollect.plans.plans import Plans
    from recollect.plans.questions import OpenQuestions
    from recollect.schedules.schedules import Schedules


class Engine(Administration):
    """Everything Recollect can do, in one space."""

    def __init__(self, settings: Settings, *, clock: Clock | None = None) -> None:
        self.settings = settings
        self._clock = utc_now if clock is None else clock_of(clock)
        self._stack = AsyncExitStack()
        self._core: Core | None = None
        self._space: Space | None = None

    # -- opening and closing

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self._core = await build.build(self.settings, self._clock)
            stack.push_async_callback(build.take_down, self._core)
            async with self._core.database.owner() as connection:
                self._space = await spaces.get(connection, self.settings.space)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop what was started; the database inside stops with its last user."""
        await self._stack.aclose()

    @property
    def core(self) -> Core:
        """What the verbs stand on: the database, the embedders, the settings."""
        if self._core is None:
            raise InvalidInput("The memory is not open: use it in a `with` block.")
        return self._core

    @property
    def space(self) -> Space:
        """The space this engine works in, as it was when it was opened."""
        assert self._space is not None, "not open"
        return self._space

    async def in_space(self, slug: str) -> "Engine":
        """The same engine in another space; it shares everything with this one and needs no closing."""
        async with self.core.database.owner() as connection:
            space = await spaces.get(connection, slug)
        other = Engine(self.settings.model_copy(update={"space": slug}))
        other._core, other._space = self.core, space
        return other

    # -- the parts with verbs of their own

    @property
    def plans(self) -> "Plans":
        """Tidying: propose, show, approve, decline, apply, undo."""
        return verbs.plans.Plans(self)

    @property
    def graph(self) -> "Graph":
        """Links between nodes."""
        return verbs.graph.Graph(self)

    @property
    def cases(self) -> "Cases":
        """Questions with the answers given, and how well they did."""
        return verbs.cases.Cases(self)

    @property
    def pages(self) -> "Pages":
        """Pages: import a wiki, merge it, look at it, export it."""
        return verbs.pages.Pages(self)

    @property
    def schedules(self) -> "Schedules":
        """What is done by itself: when, and what came of it; pause, resume, run now."""
        return verbs.schedules.Schedules(self)

    @property
    def concepts(self) -> "Concepts":
        """Named ideas, each there once: add, look, energy, duplicates, why, never-merge."""
        return verbs.concepts.Concepts(self)

    @property
    def questions(self) -> "OpenQuestions":
        """Whether two are one, where nobody has said so: look, list, answer, take back."""
        return verbs.questions.OpenQuestions(self)

    # -- remembering

    async def add(
        self,
        text: str,
        *,
        subtype: str = ContentType.NOTE,
        metadata: Metadata | None = None,
        importance: float | None = None,
        thread: str | None = None,
        position: int | None = None,
        created_at: datetime | None = None,
        id: UUID | None = None,
        source: str | None = None,
        source_id: str | None = None,
        wait: bool = True,
    ) -> Node:
        """Remember a text, for good. Returns when it can be found; `wait=False` returns when it is stored."""
        memory = NewMemory(
            text=text,
            subtype=subtype,
            metadata={} if metadata is None else metadata,
            importance=importance,
            thread=thread,
            position=position,
            created_at=created_at,
            id=id,
            source=source,
            source_id=source_id,
        )
        return await verbs.remember.add(self.core, self.space.id, memory, wait=wait)

    async def add_many(
        self,
        memories: "remember.Memories",
        *,
        wait: bool = True,
        atomic: bool = False,
        progress: "remember.Progress | None" = None,
    ) -> Added:
        """Remember a batch or a stream (any iterable, also asynchronous): the good are stored, the bad reported."""
        return await verbs.remember.add_many(
            self.core, self.space.id, memories, wait=wait, atomic=atomic, progress=progress
        )

    # -- looking

    @reads
    async def get(self, reference: Reference) -> Node:
        """A node by its id, or by a unique beginning of it (4 characters or more); a merged concept is its keeper."""
        async with self.core.transaction(self.space.id) as db:
            id_ = await nodes.resolve(db, str(reference))
            node = await nodes.get(db, id_)
            if node.kind is Kind.CONCEPT and node.status is Status.MERGED:
                node = await nodes.get(db, (await nodes.keepers(db, [id_]))[id_])
            return node

    @reads
    async def list(
        self,
        wanted: NodeFilter | None = None,
        *,
        limit: int = 50,
        cursor: str | None = None,
        order: Order = "newest",
    ) -> Page:
        """A stretch of what is remembered, newest (or oldest) first; pass the page's `next_cursor` to go on."""
        check_limit(limit)
        async with self.core.transaction(self.space.id) as db:
            return await nodes.list_page(db, wanted or NodeFilter(), limit=limit, cursor=cursor, order=order)

    @reads
    async def count(self, wanted: NodeFilter | None = None) -> int:
        async with self.core.transaction(self.space.id) as db:
            return await nodes.count(db, wanted or NodeFilter())

    @reads
    async def overview(self) -> "Overview":
        """The space at a glance: what there is, how it grew, how it is, what waits for a person."""
        return await verbs.overview.show(self.core, self.space.id)

    @reads
    async def labels(self, ids: Sequence[UUID]) -> Mapping[UUID, str]:
        """Short names of nodes, on one line each; what is not here is left out."""
        return await verbs.show.node_labels(self.core, self.space.id, ids)

    async def recall(
        self,
        query: str,
        *,
        mode: Mode = Mode.NEUTRAL,
        limit: int | None = None,
        threshold: float | None = None,
        wanted: NodeFilter | None = None,
        kinds: Sequence[Kind] = (Kind.MEMORY,),
        include_summaries: bool = False,
        budget_tokens: int | None = None,
        engagement: bool = False,
        graph: bool = False,
        weak: bool = False,
        noted: bool = True,
    ) -> Recall:
        """What is known about a question, best first, each score laid open.

        `mode` sets weights, floor and cap; NEUTRAL (plain search) shows what is related, all of it with `weak`. `graph`
        lets activation spread from the best hits along the edges. `noted=False` leaves no trace: not in the query log,
        and not in the counts of use.
        """
        asked = Query(
            text=query,
            mode=mode,
            limit=limit,
            threshold=threshold,
            wanted=wanted or NodeFilter(kinds=tuple(kinds), excluded=False),
            include_summaries=include_summaries,
            budget_tokens=budget_tokens,
            engagement=engagement,
            graph=graph,
            weak=weak,
        )
        return await verbs.recall.recall(self.core, self.space.id, asked, noted=noted)

    # -- reasoning, and what was asked

    async def ask(
        self,
        query: str,
        *,
        mode: Mode | str | None = None,
        limit: int | None = None,
        threshold: float | None = None,
        wanted: NodeFilter | None = None,
        kinds: Sequence[Kind] = (Kind.MEMORY,),
        include_summaries: bool = False,
        budget_tokens: int | None = None,
    ) -> Answer:
        """An answer from memories: a text with citations, the memories it stands on, and what is wrong with it.

        Without a mode: SYNTHESIZE where a language model is configured, else RECALL, the memories themselves.
        """
        default = Mode.SYNTHESIZE if self.core.settings.model.strip() else Mode.RECALL
        asked = Query(
            text=query,
            mode=default if mode is None else verbs.ask.mode_named(mode),
            limit=limit,
            threshold=threshold,
            wanted=wanted or NodeFilter(kinds=tuple(kinds), excluded=False),
            include_summaries=include_summaries,
            budget_tokens=budget_tokens,
        )
        return await verbs.ask.ask(self.core, self.space.id, asked)

    async def recalls(
        self, *, mode: Mode | str | None = None, limit: int = 20, cursor: str | None = None
    ) -> RecallLogs:
        """A stretch of the query log, newest first: what was asked, found and answered."""
        only = None if mode is None else verbs.ask.mode_named(mode)
        return await verbs.queries.list_logs(self.core, self.space.id, mode=only, limit=limit, cursor=cursor)

    async def recall_log(self, reference: Reference) -> RecallLog:
        """One entry of the query log, by its id or a unique beginning of it."""
        return await verbs.queries.show(self.core, self.space.id, str(reference))

    async def replay(self, reference: Reference) -> Replay:
        """Ask a question of the log again and compare: what is found now, what no longer, what at another place."""
        return await verbs.queries.replay(self.core, self.space.id, str(reference))

    async def helped(self, reference: Reference, helped: bool = True, *, recall: Reference | None = None) -> Activity:
        """Say whether a memory helped; `recall` names the entry of the query log that handed it out."""
        id_, log = await self.node_id(reference), None if recall is None else str(recall)
        return await verbs.feedback.judge(self.core, self.space.id, id_, helped=helped, recall=log)

    # -- changing, with a history

    async def edit(
        self,
        reference: Reference,
        *,
        metadata: Metadata | None = None,
        merge: bool = False,
        importance: float | None = None,
        if_version: int | None = None,
    ) -> Node:
        """Change metadata (replace it, or merge fields into it) or importance. The text is permanent."""
        return await verbs.edit.edit(
            self.core,
            self.space.id,
            await self.node_id(reference),
            metadata=metadata,
            merge=merge,
            importance=importance,
            if_version=if_version,
        )

    async def forget(self, reference: Reference, *, reason: str | None = None) -> Node:
        """Archive: out of recall, kept, and `restore` brings it back."""
        id_ = await self.node_id(reference)
        return await verbs.edit.set_status(self.core, self.space.id, id_, Status.ARCHIVED, reason=reason)

    async def restore(self, reference: Reference, *, reason: str | None = None) -> Node:
        """Bring an archived node back into recall."""
        id_ = await self.node_id(reference)
        return await verbs.edit.set_status(self.core, self.space.id, id_, Status.ACTIVE, reason=reason)

    async def correct(
        self, reference: Reference, text: str, *, metadata: Metadata | None = None, reason: str | None = None
    ) -> Node:
        """Put a corrected text in the place of a memory: the old one is archived, and undoing brings it back."""
        id_ = await self.node_id(reference)
        return await verbs.correct.correct(self.core, self.space.id, id_, text, metadata=metadata, reason=reason)

    async def change_many(
        self,
        ids: Sequence[UUID],
        *,
        archive: bool | None = None,
        protect: bool | None = None,
        add_tags: Sequence[str] = (),
        remove_tags: Sequence[str] = (),
        reason: str | None = None,
    ) -> "ManyChanged":
        """Archive (or with False restore), protect or tag many nodes at once, as one plan."""
        status = None if archive is None else Status.ARCHIVED if archive else Status.ACTIVE
        return await verbs.edit.change_many(
            self.core,
            self.space.id,
            ids,
            status=status,
            protected=protect,
            add_tags=add_tags,
            remove_tags=remove_tags,
            reason=reason,
        )

    async def exclude(self, reference: Reference, *, reason: str | None = None) -> Node:
        """Keep a node out of recall without archiving it."""
        id_ = await self.node_id(reference)
        return await verbs.edit.set_excluded(self.core, self.space.id, id_, True, reason=reason)

    async def include(self, reference: Reference, *, reason: str | None = None) -> Node:
        """Let an excluded node into recall again."""
        id_ = await self.node_id(reference)
        return await verbs.edit.set_excluded(self.core, self.space.id, id_, False, reason=reason)

    @reads
    async def history(self, reference: Reference) -> Sequence[HistoryEntry]:
        """What happened to a node or an edge: when, why, by which plan, before and after."""
        return await verbs.edit.history(self.core, self.space.id, reference)

    async def plan(self, reference: Reference) -> Plan:
        """A plan by its id, or by a unique beginning of it."""
        return await self.plans.get(reference)

    async def undo(
        self, plan: Reference, *, decisions: Sequence[int] | None = None, with_later: bool = False
    ) -> Outcome:
        """Take back a plan: every row as it was, later counts kept; first what came later, if asked. Twice is fine."""
        return await self.plans.undo(plan, decisions=decisions, with_later=with_later)

    # -- summaries (off unless RECOLLECT_SUMMARIES is set)

    async def summarise(self, reference: Reference, text: str, *, expires_at: datetime | None = None) -> Node:
        """Propose a short text that may stand in for a long memory; it waits for approval, out of recall."""
        id_ = await self.node_id(reference)
        return await verbs.summaries.propose(self.core, self.space.id, id_, text, expires_at=expires_at)

    async def approve_summary(self, reference: Reference) -> Node:
        """Let a proposed summary be recalled, where summaries are asked for."""
        return await verbs.summaries.approve(self.core, self.space.id, await self.node_id(reference))

    @reads
    async def summaries(self, reference: Reference) -> Sequence[Node]:
        """The summaries of a memory, approved or not."""
        return await verbs.summaries.of_memory(self.core, self.space.id, await self.node_id(reference))

    # -- moving in and out

    async def import_(
        self,
        sources: Sequence[str | Path],
        *,
        format: "Format" = "auto",
        stdin: BinaryIO | bytes | None = None,
        options: "ImportOptions | None" = None,
        dry_run: bool = False,
        wait: bool = True,
        progress: "import_.Progress | None" = None,
    ) -> "ImportReport":
        """Remember what files and folders hold (text, Markdown, JSONL, CSV, an export ...), or `-`, stdin."""
        return await verbs.import_.import_(
            self.core,
            self.space.id,
            [Path(source) for source in sources],
            format=format,
            stdin=stdin,
            options=options,
            dry_run=dry_run,
            wait=wait,
            progress=progress,
        )

    async def import_texts(
        self,
        files: Mapping[str, str],
        *,
        format: "Format" = "auto",
        options: "ImportOptions | None" = None,
        dry_run: bool = False,
        wait: bool = True,
    ) -> "ImportReport":
        """Remember what files hold that are given by name and text."""
        return await verbs.import_texts.import_texts(
            self.core, self.space.id, files, format=format, options=options, dry_run=dry_run, wait=wait
        )

    async def export(
        self,
        out: str | Path | BinaryIO,
        *,
        wanted: NodeFilter | None = None,
        with_vectors: bool = False,
        overwrite: bool = False,
        progress: "export.Progress | None" = None,
    ) -> int:
        """Write memories (all of them, whatever their status) as JSON lines that `import_` brings back as they are."""
        return await verbs.export.export(
            self.core,
            self.space.id,
            Path(out) if isinstance(out, str) else out,
            node_filter=wanted or NodeFilter(statuses=()),
            with_vectors=with_vectors,
            overwrite=overwrite,
            progress=progress,
        )

    async def stream(self, wanted: NodeFilter | None = None) -> AsyncGenerator[Node]:
        """Every node that fits, oldest first, from one snapshot."""
        async with self.core.transaction(self.space.id) as db:
            async for batch in nodes.stream(db, wanted or NodeFilter()):
                for node in batch:
                    yield node

    # -- which node is meant

    async def node_id(self, reference: Reference) -> UUID:
        """The node that a reference means: a whole id, or a unique beginning of one."""
        if isinstance(reference, UUID):
            return reference
        async with self.core.transaction(self.space.id) as db:
            return await nodes.resolve(db, reference)

    async def keeper_id(self, reference: Reference) -> UUID:
        """The same, but what was merged leads to the node that it is now part of."""
        id_ = await self.node_id(reference)
        async with self.core.transaction(self.space.id) as db:
            return (await nodes.keepers(db, [id_])).get(id_, id_)
