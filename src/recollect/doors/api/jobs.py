"""Embedding jobs: what waits, what failed, and another try."""

from recollect.doors.api import access
from recollect.doors.api.access import Reading, Writing
from recollect.doors.api.schemas import JobFailure, Jobs, Retried

router = access.router("jobs")


@router.get("/jobs", summary="Embedding jobs of a space, by state")
async def list_jobs(engine: Reading) -> Jobs:
    counts, failures = await engine.jobs(), await engine.job_failures()
    return Jobs(
        pending=counts.pending,
        processing=counts.processing,
        completed=counts.completed,
        failed=counts.failed,
        unreadable=counts.unreadable,
        failures=tuple(JobFailure(id=id_, why=why) for id_, why in failures),
    )


@router.post("/jobs/retry", summary="Give failed embeddings another round of attempts")
async def retry_jobs(engine: Writing) -> Retried:
    return Retried(retried=await engine.retry_jobs())
