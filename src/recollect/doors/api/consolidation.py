"""Consolidation of the case bank: run it, rehearse it, bring a case back; always with an API key (E26-E28)."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Depends, Path
from pydantic import Field

from recollect.cases.look import CaseHealth, Summary
from recollect.cases.rules.doubts import ALL
from recollect.cases.tidy import Consolidation
from recollect.doors.api import access
from recollect.doors.api.access import Asking, Consolidating
from recollect.doors.api.schemas import WITH_BODY, RequestBody, examples, problems

router = access.router("consolidation", problems(409))
router.dependencies.append(Depends(access.need_key))

CaseId = Annotated[str, Path(description="The UUID of an archived case, or a unique beginning of it.")]


class ConsolidationIn(RequestBody):
    """Thresholds that differ from the usual ones. Rates are percent."""

    model_config = examples({"success_rate_below": 25, "inactive_days": 180})

    success_rate_below: Annotated[
        float, Field(ge=0, le=100, description="A case that succeeds less often is removed.")
    ] = 30.0
    min_usage_count: Annotated[int, Field(ge=0, description="Only a case with more uses is.")] = 10
    similarity_threshold: Annotated[
        float, Field(gt=0, lt=1, description="Cases whose queries are more similar may be merged.")
    ] = 0.95
    success_rates: Annotated[
        Literal["weighted", "plain"], Field(description="Combined weighted by uses, or each alike.")
    ] = "weighted"
    ask_about: Annotated[
        tuple[Literal["answer", "category", "denial", "numbers", "opposites", "order"], ...],
        Field(description="What makes a question of two cases that differ in it; [] merges whatever is similar."),
    ] = tuple(sorted(ALL))  # type: ignore[arg-type]
    inactive_days: Annotated[float, Field(ge=0, le=36500, description="A case idle for longer is archived.")] = 90.0
    keep_usage_count: Annotated[int, Field(ge=0, description="Not one with more uses than this.")] = 100
    recent_days: Annotated[float, Field(ge=0, le=36500, description="What was used within so many days stays.")] = 7.0
    protected_usage_count: Annotated[int, Field(ge=0, description="A case with more uses is never removed.")] = 500

    def options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.model_fields_set}


@dataclass(frozen=True, kw_only=True, slots=True)
class Restored:
    case_id: UUID
    status: Literal["restored"]


@router.post(
    "/consolidation/run", summary="Retire what fails, merge what repeats, shelve the unused", responses=WITH_BODY
)
async def run_consolidation(
    engine: Consolidating, caller: Asking, wanted: ConsolidationIn | None = None
) -> Consolidation:
    """Applied at once where it may be; else (in production, when much would change, or when nobody can be told of
    removals beforehand) its plan waits, and `POST /api/v1/plans/{plan_id}/apply` carries it out."""
    return await engine.cases.consolidate((wanted or ConsolidationIn()).options(), by=caller.name)


@router.post("/consolidation/dry-run", summary="Say what a run would do", responses=WITH_BODY)
async def dry_run_consolidation(
    engine: Consolidating, caller: Asking, wanted: ConsolidationIn | None = None
) -> Consolidation:
    """Nothing is changed. The plan is kept: applying it does exactly this, as far as it still fits by then."""
    return await engine.cases.consolidate((wanted or ConsolidationIn()).options(), dry_run=True, by=caller.name)


@router.post("/consolidation/restore/{case_id}", summary="Bring an archived case back")
async def restore_archived_case(case_id: CaseId, engine: Consolidating, caller: Asking) -> Restored:
    """A case that was merged is taken out of its keeper again, each with its own counts."""
    case = await engine.cases.restore(case_id, by=caller.name)
    return Restored(case_id=case.case_id, status="restored")


@router.get("/consolidation/summary", summary="The case bank at a glance")
async def consolidation_summary(engine: Consolidating) -> Summary:
    return await engine.cases.summary()


@router.get("/consolidation/health", summary="Does the case bank need somebody?")
async def consolidation_health(engine: Consolidating) -> CaseHealth:
    return await engine.cases.health()
