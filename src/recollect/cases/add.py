"""Adding cases, and changing them: a change is a plan, so that the old answer stays in the history."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID

from recollect.cases import sql
from recollect.cases.rules.cases import checked, checked_category, checked_part
from recollect.engine.core import Core
from recollect.engine.sql import spaces
from recollect.errors import Conflict, InvalidInput
from recollect.memories import embed
from recollect.memories.remember import models_of, warn_of
from recollect.memories.rules.batch import each_checked, refusal
from recollect.memories.rules.contract import Contract, checked_name
from recollect.memories.rules.text import checksum
from recollect.model import Added, Case, NewCase, Refused
from recollect.plan import Draft, patch
from recollect.plans.rules.plan_text import short_name
from recollect.plans.sql import changes
from recollect.recall.sql import lexicon

BATCH = 2000
# Columns that are called otherwise outside.
CALLED = {"text": "query"}


async def add(core: Core, space_id: UUID, case: NewCase, *, wait: bool) -> Case:
    """Add one case; InvalidInput when it cannot be."""
    added = await add_many(core, space_id, [case], wait=wait, atomic=True)
    warn_of(added)
    async with core.transaction(space_id) as db:
        return await sql.get(db, added.ids[0])


async def add_many(
    core: Core, space_id: UUID, new_cases: Sequence[NewCase], *, wait: bool, atomic: bool = False
) -> Added:
    """Add cases: the good are stored, each bad one is reported by its position; `atomic` adds all or none."""
    ids: list[UUID] = []
    refused: list[Refused] = []
    size = max(1, len(new_cases)) if atomic else BATCH
    for first in range(0, len(new_cases), size):
        part = await _store(core, space_id, new_cases[first : first + size], first=first, atomic=atomic)
        ids += part.ids
        refused += part.refused
    postponed = await embed.until_searchable(core, space_id, ids) if wait and ids else {}
    return Added(ids=tuple(ids), refused=tuple(refused), postponed=postponed)


async def _store(core: Core, space_id: UUID, batch: Sequence[NewCase], *, first: int, atomic: bool) -> Added:
    now = core.now()
    async with core.transaction(space_id) as db:
        space = await spaces.by_id(db)
        check = partial(checked, contract=core.contract(space), now=now)
        good, refused = each_checked(batch, check, atomic=atomic, first=first)
        attempts = core.settings.job_max_attempts
        models = models_of(core, space)
        ids = await sql.add_many(db, list(good.values()), models=models, max_attempts=attempts, now=now)
        for (position, case), id_ in zip(good.items(), ids, strict=True):
            if id_ is None and atomic:
                raise _taken(case)
            if id_ is None:
                refused.append(refusal(position, _taken(case)))
        stored = tuple(id_ for id_ in ids if id_ is not None)
        await lexicon.index_missing(db, stored)  # found by their words from now on (D50)
    return Added(ids=stored, refused=tuple(sorted(refused, key=lambda refusal: refusal.position)))


def _taken(case: NewCase) -> InvalidInput:
    if case.source_id is not None:
        why = f"{case.source_id!r:.60} of the source {case.source!r:.60}, or its id, belongs to another case already."
        return InvalidInput(why, field="source_id")
    return InvalidInput(f"The id {case.id} belongs to another node already.", field="id")


# -- changing


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """What is to change of a case; None leaves it as it is. An empty category takes it out of its category."""

    query: str | None = None
    response_text: str | None = None
    category_path: str | None = None
    protected: bool | None = None

    @property
    def is_nothing(self) -> bool:
        return all(getattr(self, name) is None for name in self.__slots__)


async def update(
    core: Core,
    space_id: UUID,
    id_: UUID,
    edit: Changes,
    *,
    updated_by: str | None = None,
    reason: str | None = None,
    if_version: int | None = None,
    wait: bool = True,
) -> Case:
    """A new version of a case. What it said before stays in its history; undoing the plan brings it back."""
    if edit.is_nothing:
        raise InvalidInput("There is nothing to change: give query, response_text, category_path or protected.")
    async with core.transaction(space_id) as db:
        space = await spaces.by_id(db)
        case = await sql.get(db, id_)
        if if_version is not None and case.version != if_version:
            raise Conflict(f"{id_} is at version {case.version}, not {if_version}: read it again and repeat.")
        node, answer = _rows(core.contract(space), edit)
        draft = _drafted(core, case, node, answer, checked_name("updated_by", updated_by), reason)
        if draft.decisions:
            title = f"Edit “{short_name(case.query)}”{f': {reason}' if reason else ''}"
            plan = draft.plan(policy="hand", title=title, now=core.now(), created_by=updated_by or "user")
            await changes.apply(db, plan, core.now())
    if wait and edit.query is not None:
        await embed.until_searchable(core, space_id, [id_])
    async with core.transaction(space_id) as db:
        return await sql.get(db, id_)


def _rows(contract: Contract, edit: Changes) -> tuple[dict[str, Any], dict[str, Any]]:
    """The columns of the node and those beside it that are to change."""
    node: dict[str, Any] = {}
    answer: dict[str, Any] = {}
    if edit.query is not None:
        query = checked_part("query", edit.query, contract)
        node |= {"text": query, "checksum": checksum(query)}
    if edit.protected is not None:
        node["protected"] = edit.protected
    if edit.response_text is not None:
        answer["response_text"] = checked_part("response_text", edit.response_text, contract)
    if edit.category_path is not None:
        answer["category_path"] = checked_category(edit.category_path)
    return node, answer


def _drafted(
    core: Core, case: Case, node: dict[str, Any], answer: dict[str, Any], updated_by: str | None, reason: str | None
) -> Draft:
    """One decision over both rows; a change of what it says is a new version, a protection is not."""
    draft = Draft()
    before = {
        "text": case.query,
        "checksum": checksum(case.query),
        "protected": case.protected,
        "version": case.version,
        "updated_at": case.updated_at.isoformat(),
    }
    answered = {"response_text": case.response_text, "category_path": case.category_path, "updated_by": case.updated_by}
    changed = [name for name, value in {**node, **answer}.items() if {**before, **answered}[name] != value]
    if not changed:
        return draft
    if changed != ["protected"]:
        node |= {"version": case.version + 1, "updated_at": core.now().isoformat()}
        answer["updated_by"] = updated_by
    shown = [CALLED.get(name, name) for name in changed if name != "checksum"]
    draft.decide(
        "edit",
        case.case_id,
        checked_name("reason", reason) or f"edit of {', '.join(shown)}",
        [
            patch(table="nodes", id=case.case_id, before=before, after=node),
            patch(table="cases", id=case.case_id, before=answered, after=answer),
        ],
    )
    return draft
