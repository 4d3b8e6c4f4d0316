"""Pages come in: files are read, compared with the pages there are, decided, kept as a batch, and proposed as a plan.

Nothing here changes a page. What cannot be read is a line of the report, and the rest goes on. The vectors of the new
pages are made here; those of the old ones are read from the store, and made where they are not there yet.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Literal, get_args
from uuid import UUID, uuid4

import anyio
import anyio.to_thread
import numpy as np

from recollect.engine.core import Core, log
from recollect.errors import InvalidInput, ProviderProblem
from recollect.memories.rules.text import is_storable
from recollect.memories.sources import SourceLine, shown, skipped
from recollect.pages import sql as page_store
from recollect.pages.files import LARGEST_PAGE, PageFile, check_folder, read_folder
from recollect.pages.policies.merge_pages import pair_of, state_of
from recollect.pages.rules.decisions import DecisionOptions, MergePlan, NodePlan, Verdict, plan_merge, wiki_of
from recollect.pages.rules.judging import question, verdict_in
from recollect.pages.rules.links import resolve
from recollect.pages.rules.page import PageFinding, WikiPage, page_path
from recollect.pages.rules.similarity import Scores, SuppliedScores, compare, text_for_vector
from recollect.pages.rules.stored import KnownFirst, PageBatch, StoredPage, distinct, known_results, read_page
from recollect.pages.rules.vetoes import veto
from recollect.plan import Plan
from recollect.plans import propose
from recollect.plans.sql.reader import StoreReader
from recollect.ports import LanguageModel, Vectors
from recollect.providers.embedders import embed_readable

Scope = Literal["subgraph", "type"]
JudgeName = Literal["thresholds", "model", "person"]
Progress = Callable[[int, int], None]
ASKED_AT_ONCE = 4


@dataclass(frozen=True, kw_only=True, slots=True)
class PageImport:
    """What came of reading pages: the plan that waits, and a line for everything worth knowing."""

    plan: Plan
    batch: UUID
    merge: MergePlan
    pages: int
    lines: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class How:
    """How pages come in. `scope="type"` compares each with all of its type; `scores` supplies what else is compared."""

    scope: Scope = "subgraph"
    judge: JudgeName | None = None
    scores: Scores | None = None
    created_by: str = "user"
    progress: Progress | None = None

    def __post_init__(self) -> None:
        for name, choices in (("scope", get_args(Scope)), ("judge", (None, *get_args(JudgeName)))):
            if getattr(self, name) not in choices:
                names = ", ".join(filter(None, choices))
                raise InvalidInput(f"There is no {name} {getattr(self, name)!r}: it is one of {names}.", field=name)


async def import_folder(
    core: Core, space_id: UUID, folder: Path, how: How | None = None, *, hidden: bool = False
) -> PageImport:
    """Propose to merge the pages of a folder."""
    await anyio.to_thread.run_sync(check_folder, folder)
    largest = min(LARGEST_PAGE, core.settings.max_text_bytes)
    files = await anyio.to_thread.run_sync(lambda: list(read_folder(folder, hidden=hidden, largest=largest)))
    label = shown(Path(folder.name or folder.resolve().name))
    return await _import(core, space_id, files, label, how or How())


async def import_texts(
    core: Core, space_id: UUID, files: Iterable[tuple[str, str]], how: How | None = None, *, label: str = "pages"
) -> PageImport:
    """Propose to merge pages that are handed over as paths and texts."""
    checked = _checked(files, core.settings.max_text_bytes)
    return await _import(core, space_id, checked or [skipped(label, "It holds no pages.")], label, how or How())


def _checked(files: Iterable[tuple[str, str]], largest: int) -> list[PageFile | SourceLine]:
    """Pages that are handed over, at their paths; where one cannot be kept, or comes twice, a line that says so."""
    checked: list[PageFile | SourceLine] = []
    taken: set[str] = set()
    for given, text in files:
        try:
            path = page_path(given)
        except ValueError as problem:
            checked.append(skipped(shown(Path(given.replace("\0", "?"))), str(problem)))
            continue
        if path in taken:
            checked.append(skipped(path, "There are two pages at this path: the first was taken."))
        elif len(text.encode(errors="replace")) > largest:
            message = f"It has {len(text):,} characters; a page has at most {largest:,} bytes: split it."
            checked.append(skipped(path, message))
        else:
            taken.add(path)
            checked.append(PageFile(path=path, text=text))
    return checked


async def _import(
    core: Core, space_id: UUID, files: Sequence[PageFile | SourceLine], label: str, how: How
) -> PageImport:
    new, from_reading = await anyio.to_thread.run_sync(_parsed, files)
    there = await _there(core, space_id, new)
    merge = await _decided(core, new, there, how)
    nowhere = await anyio.to_thread.run_sync(lambda: resolve(new, there.pages).findings)
    findings = dict.fromkeys((*from_reading, *merge.findings, *_in_doubt(merge), *nowhere))
    batch = PageBatch(id=uuid4(), label=label, plan=_without_review(merge), findings=tuple(findings))
    async with core.transaction(space_id) as db:
        await page_store.save_batch(db, batch, {"scope": how.scope}, core.now())
    options = {"batch": str(batch.id)}
    plan = await propose.propose(core, space_id, "merge_pages", options, created_by=how.created_by)
    return PageImport(plan=plan, batch=batch.id, merge=batch.plan, pages=len(new), lines=tuple(map(str, findings)))


@dataclass(frozen=True, kw_only=True, slots=True)
class _There:
    """What the new pages are compared with."""

    stored: Sequence[StoredPage]
    vectors: Mapping[UUID, Vectors]
    apart: Mapping[tuple[str, str], str | None]

    @property
    def pages(self) -> list[WikiPage]:
        return [stored_page.page for stored_page in self.stored]

    @property
    def known_vectors(self) -> dict[str, Vectors]:
        """The vectors that the store has, by the texts they are of."""
        there = (page for page in self.stored if page.node_id in self.vectors)
        return {text_for_vector(page.page): self.vectors[page.node_id] for page in there}


async def _there(core: Core, space_id: UUID, new: Sequence[WikiPage]) -> _There:
    """The living pages; and their vectors, if any of them is of a type that comes in."""
    async with core.database.snapshot(space_id) as db:
        reader = StoreReader(db)
        living = [page for page in await reader.pages() if page.is_living]
        may_meet = not {stored_page.page.type for stored_page in living}.isdisjoint(page.type for page in new)
        return _There(
            stored=living,
            vectors=await page_store.vectors(db, core.embedder().model) if may_meet else {},
            apart=await reader.distinct_pairs(core.now()),
        )


def _parsed(files: Sequence[PageFile | SourceLine]) -> tuple[list[WikiPage], list[PageFinding]]:
    """The pages of some files, each with an id of its own, and what is to be said about them and the others."""
    findings: list[PageFinding] = []
    read: list[WikiPage] = []
    for file in files:
        if isinstance(file, SourceLine):
            findings.append(PageFinding(page=file.file, message=file.message))
        elif not is_storable(file.text) or not is_storable(file.path):
            message = "It holds a NUL byte or a lone surrogate: it was left out."
            findings.append(PageFinding(page=file.path.replace("\0", "?"), message=message))
        else:
            parsed = read_page(file.path, file.text)
            read.append(parsed.page)
            findings += parsed.findings
    pages, doubled = distinct(read)
    return pages, [*findings, *doubled]


# -- deciding


async def _decided(core: Core, new: Sequence[WikiPage], there: _There, how: How) -> MergePlan:
    came_before = known_results(new, there.stored)
    scores = how.scores or await _compared(core, new, there, came_before, how.progress)
    first = KnownFirst(scores=scores, known=came_before, taken=frozenset(came_before.values()))
    options = DecisionOptions(
        scope="type" if how.scope == "type" else "parents", veto=_with_person(there.apart, came_before)
    )
    decide = partial(plan_merge, new, wiki_of(there.pages), first, options=options)
    plan = await _judged(core, decide, how.judge)
    return plan.with_nodes(_recognised(plan, came_before))


async def _compared(
    core: Core, new: Sequence[WikiPage], there: _There, came_before: Mapping[str, str], progress: Progress | None
) -> Scores:
    """The new pages with the old ones. One that came before, or has none of its type to meet, needs no vector."""
    old = there.pages
    both = {page.type for page in old} & {page.type for page in new if page.id not in came_before}
    meeting = [page for page in new if page.id not in came_before and page.type in both]
    if not meeting:
        return SuppliedScores(scores={})
    met = [page for page in old if page.type in both]
    vectors = await _vectors(core, map(text_for_vector, (*meeting, *met)), there.known_vectors, progress)
    mine, theirs = (_rows(pages, vectors, core.embedder().dim) for pages in (new, old))
    return await anyio.to_thread.run_sync(lambda: compare(new, old, new_vectors=mine, old_vectors=theirs))


async def _vectors(
    core: Core, texts: Iterable[str], stored: Mapping[str, Vectors], progress: Progress | None
) -> dict[str, Vectors]:
    """The vectors of some texts; those that the store has are not made again."""
    missing = [text for text in dict.fromkeys(texts) if text not in stored]
    size, vectors = core.settings.embedding_batch, dict(stored)
    for start in range(0, len(missing), size):
        batch = missing[start : start + size]
        embedded = zip(batch, await embed_readable(core.embedder(), batch), strict=True)
        vectors |= {text: vector for text, vector in embedded if vector is not None}
        if progress:
            progress(start + len(batch), len(missing))
    return vectors


def _rows(pages: Sequence[WikiPage], vectors: Mapping[str, Vectors], dim: int) -> Vectors:
    none = np.zeros(dim, np.float32)
    return np.array([vectors.get(text_for_vector(page), none) for page in pages], np.float32)


def _with_person(
    apart: Mapping[tuple[str, str], str | None], came_before: Mapping[str, str]
) -> Callable[[WikiPage, WikiPage], str | None]:
    """The vetoes of the rules, and those of people: a merge that was declined is not offered again (P11)."""

    def against(new: WikiPage, old: WikiPage) -> str | None:
        if came_before.get(new.id) == old.id:
            return None
        a, b = sorted(pair_of(new.id, old.id))
        if (a, b) in apart and apart[a, b] in (None, state_of(new, old)):
            return "a person keeps them apart"
        return veto(new, old)

    return against


def _recognised(plan: MergePlan, came_before: Mapping[str, str]) -> dict[str, NodePlan]:
    """Pages that came before, word for word, stay what they became, whatever scope they are in now."""
    nodes = plan.nodes
    taken = {node.merge_target_id: id for id, node in nodes.items() if node.decision is Verdict.MERGE}
    return {
        id: replace(
            nodes[id],
            decision=Verdict.MERGE,
            merge_target_id=result,
            best_match_score=1.0,
            reason="It came before and has not changed",
        )
        for id, result in came_before.items()
        if taken.get(result, id) == id
    }


# -- judging


async def _judged(core: Core, decide: Callable[..., MergePlan], name: JudgeName | None) -> MergePlan:
    """The decisions; a model is asked about what they turn on, level by level, until nothing is left to ask."""
    model = _model(core, name)
    if model is None:
        judge = None if name == "thresholds" else _a_person
        return await anyio.to_thread.run_sync(lambda: decide(judge=judge))
    notes = _Notes()
    while True:
        plan = await anyio.to_thread.run_sync(lambda: decide(judge=notes))
        if not notes.asked:
            return plan
        notes.verdicts |= await _answers(core, model, notes.asked)
        notes.asked.clear()


def _model(core: Core, name: JudgeName | None) -> LanguageModel | None:
    """The model that judges: the configured one, unless somebody else is to."""
    model = core.language_model() if name in (None, "model") else None
    if name == "model" and model is None:
        raise InvalidInput("No language model is configured: RECOLLECT_MODEL names one.", field="judge")
    return model


def _a_person(_new: WikiPage, _old: WikiPage, _score: float) -> Verdict:
    return Verdict.REVIEW


@dataclass(kw_only=True, slots=True)
class _Notes:
    """A judge that knows the answers so far, and notes what it is asked beyond them."""

    verdicts: dict[tuple[str, str], Verdict] = field(default_factory=dict)
    asked: dict[tuple[str, str], tuple[WikiPage, WikiPage, float]] = field(default_factory=dict)

    def __call__(self, new: WikiPage, old: WikiPage, score: float) -> Verdict | None:
        if (new.id, old.id) not in self.verdicts:
            self.asked[new.id, old.id] = (new, old, score)
        return self.verdicts.get((new.id, old.id))


async def _answers(
    core: Core, model: LanguageModel, asked: Mapping[tuple[str, str], tuple[WikiPage, WikiPage, float]]
) -> dict[tuple[str, str], Verdict]:
    verdicts: dict[tuple[str, str], Verdict] = {}
    few = anyio.CapacityLimiter(ASKED_AT_ONCE)

    async def ask(pair: tuple[str, str]) -> None:
        async with few:
            verdicts[pair] = await _answer(core, model, *asked[pair])

    async with anyio.create_task_group() as group:
        for pair in asked:
            group.start_soon(ask, pair)
    return verdicts


async def _answer(core: Core, model: LanguageModel, new: WikiPage, old: WikiPage, score: float) -> Verdict:
    system, prompt = question(new, old, score)
    try:
        answer = await model.complete(system, prompt, max_tokens=core.settings.model_max_tokens)
    except ProviderProblem as problem:
        log.warning("the judge could not be asked", new=new.id, old=old.id, why=problem.message)
        return Verdict.REVIEW
    return verdict_in(answer.text)


# -- review: new for now, and said


def _in_doubt(plan: MergePlan) -> list[PageFinding]:
    return [
        PageFinding(
            page=node.page_id,
            message=f"It may be the same as {node.merge_target_id} ({node.best_match_score or 0:.2f}): it is taken as "
            f"new; to merge them, write MERGE and {node.merge_target_id} into its row of plan.md.",
        )
        for node in plan.nodes.values()
        if node.decision is Verdict.REVIEW
    ]


def _without_review(plan: MergePlan) -> MergePlan:
    """What a person should look at is new unless the person says otherwise in plan.md."""
    return plan.with_nodes(
        {
            id: replace(
                node,
                decision=Verdict.CREATE_NEW,
                merge_target_id=None,
                reason=f"In doubt, to be reviewed: {node.merge_target_id} may be the same",
            )
            for id, node in plan.nodes.items()
            if node.decision is Verdict.REVIEW
        }
    )
