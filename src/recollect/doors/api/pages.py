"""Pages: a wiki that other wikis are merged into, as plans."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal
from uuid import UUID

from fastapi import Path, Query, Response
from pydantic import Field

from recollect.doors.api import access
from recollect.doors.api.access import Asking, Consolidating, Reading
from recollect.doors.api.memories import Cursor, Limit, Word
from recollect.doors.api.plans import Id as PlanId
from recollect.doors.api.schemas import WITH_BODY, RequestBody, examples, problems
from recollect.model import Page as Stretch
from recollect.pages.apply import Merged
from recollect.pages.look import PageView, Version
from recollect.plan import Plan
from recollect.plans.show import ShownPlan

router = access.router("pages", problems(409))

Name = Annotated[
    str,
    Path(
        min_length=1,
        max_length=1000,
        description="A page: its id (Principle:Loading), name, alias, or its node's UUID.",
    ),
]


class PageIn(RequestBody):
    """A page as its file is."""

    path: Annotated[str, Field(max_length=1000, description="Where it would be in a folder: principles/Loading.md.")]
    text: Annotated[str, Field(description="The text of the file.")]


class PagesIn(RequestBody):
    """Pages that are to be merged."""

    model_config = examples({"pages": [{"path": "principles/Loading.md", "text": "# Principle: Loading\n\nHow to."}]})

    pages: list[PageIn]
    scope: Annotated[
        Literal["subgraph", "type"], Field(description="Compare below the parent's match, or with all of the type.")
    ] = "subgraph"
    judge: Annotated[
        Literal["thresholds", "model", "person"] | None, Field(description="Who decides about pairs in doubt.")
    ] = None


class PlanEditIn(RequestBody):
    """An edited plan.md, decisions to leave out, or both."""

    model_config = examples({"decline": [3]})

    plan_md: Annotated[str | None, Field(description="The file as it was edited.")] = None
    decline: list[Annotated[int, Field(ge=1, le=2**31 - 1)]] = Field(default=[], description="Numbers of decisions.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    """The plan that waits, as an object and as a file, and a line for everything that is worth knowing."""

    plan: ShownPlan
    plan_md: str
    lines: Sequence[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Difference:
    """What changed between two versions, as a unified diff."""

    page: str
    diff: str


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanFile:
    plan_id: UUID
    plan_md: str


@router.get("/pages", summary="List pages, newest first")
async def list_pages(
    engine: Reading,
    type: Annotated[Word | None, Query(description="Only pages of this type.")] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Stretch:
    return await engine.pages.list(type=type, limit=limit, cursor=cursor)


@router.post("/pages/import", status_code=201, summary="Propose to merge pages", responses=WITH_BODY)
async def import_pages(given: PagesIn, engine: Consolidating, caller: Asking, response: Response) -> Imported:
    """Nothing is changed: the plan waits, like any other. What cannot be read is a line, and the rest goes on."""
    files = [(page.path, page.text) for page in given.pages]
    imported = await engine.pages.import_texts(files, scope=given.scope, judge=given.judge, created_by=caller.name)
    response.headers["Location"] = f"/api/v1/plans/{imported.plan.id}"
    return Imported(
        plan=await engine.plans.show(imported.plan.id),
        plan_md=await engine.pages.plan_md(imported.plan.id),
        lines=imported.lines,
    )


@router.get("/pages/plans/{id}", summary="A plan about pages as plan.md")
async def get_plan_md(id: PlanId, engine: Reading) -> PlanFile:
    """What becomes of each page, sub-graph by sub-graph, and how far it is."""
    plan = await engine.plans.get(id, decisions=False)
    return PlanFile(plan_id=plan.id, plan_md=await engine.pages.plan_md(plan.id))


@router.post("/pages/plans/{id}/revise", summary="Hand back an edited plan.md", responses=WITH_BODY)
async def revise_plan(id: PlanId, engine: Consolidating, caller: Asking, edit: PlanEditIn) -> Plan:
    """The plan as the file says it: a new plan takes the place of the old, unless nothing was changed."""
    return await engine.pages.revise(id, edit.plan_md, decline=edit.decline, by=caller.name)


@router.post("/pages/plans/{id}/apply", summary="Carry a merge of pages out", responses=WITH_BODY)
async def apply_pages(id: PlanId, engine: Consolidating, caller: Asking, edit: PlanEditIn | None = None) -> Merged:
    """As the file says it; what fails its audit is tried again with the findings, three times at most."""
    edits = edit or PlanEditIn()
    return await engine.pages.apply(id, plan_md=edits.plan_md, decline=edits.decline, by=caller.name)


@router.get("/pages/{name:path}/versions", summary="Every text a page has had, oldest first")
async def page_versions(name: Name, engine: Reading) -> Sequence[Version]:
    return await engine.pages.versions(name)


@router.get("/pages/{name:path}/diff", summary="What changed in a page between two versions")
async def page_diff(
    name: Name,
    engine: Reading,
    first: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="The one before the last, else.")] = None,
    second: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="The last, else.")] = None,
) -> Difference:
    return Difference(page=name, diff=await engine.pages.diff(name, first, second))


# Last: a page of a vault is named by its path, and this takes any.
@router.get("/pages/{name:path}", summary="A page with its links, back-links and history")
async def get_page(name: Name, engine: Reading) -> PageView:
    return await engine.pages.get(name)
