"""Open questions, whether two are one (C36): kept when a policy asks them, read, answered, asked again.

A question is numbered once: a pair that is found again keeps its number, and one that was answered is open again if
a policy asks it again (a declined pair after its rest, a merge that was undone). Nothing of the world is copied here: a
side that was merged since is followed to its keeper, and one that changed since makes the question fall away.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from recollect.model import PairQuestion
from recollect.plans.rules.questions import StoredQuestion
from recollect.store.database import Transaction

HOLD = "SELECT pg_advisory_xact_lock(hashtextextended('recollect questions ' || $1::uuid, 0))"
KEEP = """
WITH given AS (
    SELECT g.*, row_number() OVER (ORDER BY g.probability DESC, g.keep, g.other) AS place
      FROM unnest($2::text[], $3::uuid[], $4::uuid[], $5::int[], $6::int[], $7::float8[], $8::text[], $9::text[])
        AS g(policy, keep, other, keep_version, other_version, probability, reason, factors)
), known AS (
    SELECT g.*, q.number FROM given g LEFT JOIN questions q ON q.space_id = $1
       AND least(q.keep, q.other) = least(g.keep, g.other) AND greatest(q.keep, q.other) = greatest(g.keep, g.other)
), numbered AS (
    SELECT *, coalesce(number, (SELECT coalesce(max(number), 0) FROM questions WHERE space_id = $1)
                               + row_number() OVER (PARTITION BY number IS NULL ORDER BY place)) AS its_number
      FROM known
)
INSERT INTO questions AS q (space_id, number, policy, keep, other, keep_version, other_version, probability, reason,
                            factors, asked_at)
SELECT $1, its_number, policy, keep, other, keep_version, other_version, probability, reason, factors::jsonb, $10
  FROM numbered
ON CONFLICT (space_id, number) DO UPDATE SET policy = excluded.policy, keep = excluded.keep, other = excluded.other,
    keep_version = excluded.keep_version, other_version = excluded.other_version, probability = excluded.probability,
    reason = excluded.reason, factors = excluded.factors, answer = NULL, answered_at = NULL, answered_by = NULL,
    outcome = '{}', asked_at = CASE WHEN q.answer IS NULL THEN q.asked_at ELSE excluded.asked_at END
"""
OPEN = """
SELECT q.number, q.policy, q.keep, q.other, q.probability, q.postponed_at, a.status AS keep_status,
       b.status AS other_status
  FROM questions q JOIN nodes a ON a.space_id = $1 AND a.id = q.keep JOIN nodes b ON b.space_id = $1 AND b.id = q.other
 WHERE q.space_id = $1 AND q.answer IS NULL AND a.version = q.keep_version AND b.version = q.other_version
   AND NOT a.protected AND NOT b.protected AND a.status <> 'archived' AND b.status <> 'archived'
 ORDER BY q.number
"""
DETAILS = """
SELECT number, reason, factors, asked_at FROM questions WHERE space_id = $1 AND number = ANY($2)
"""
STATES = """
SELECT number, keep, other, answer, outcome FROM questions WHERE space_id = $1 AND number = ANY($2)
"""
ANSWER = """
UPDATE questions q SET answer = g.answer, answered_at = $5, answered_by = $6, outcome = g.outcome::jsonb
  FROM unnest($2::int8[], $3::text[], $4::text[]) AS g(number, answer, outcome)
 WHERE q.space_id = $1 AND q.number = g.number
"""
CLOSE = """
WITH g AS MATERIALIZED (
    SELECT right(a, 36)::uuid AS one, right(b, 36)::uuid AS other,
           jsonb_build_object('pair', jsonb_build_array(a, b)) AS outcome
      FROM unnest($2::text[], $3::text[]) AS p(a, b) WHERE a ~ $6 AND b ~ $6)
UPDATE questions q SET answer = $4, answered_at = $5, outcome = g.outcome FROM g
 WHERE q.space_id = $1 AND q.answer IS NULL AND least(q.keep, q.other) = least(g.one, g.other)
   AND greatest(q.keep, q.other) = greatest(g.one, g.other)
"""
AN_ID = "^(node:)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
RESTAMP = """
UPDATE questions q SET keep_version = a.version, other_version = b.version FROM nodes a, nodes b
 WHERE q.space_id = $1 AND q.number = ANY($2) AND a.space_id = $1 AND a.id = q.keep AND b.space_id = $1
   AND b.id = q.other AND (a.version, b.version) IS DISTINCT FROM (q.keep_version, q.other_version)
"""


async def keep(db: Transaction, asked: Sequence[PairQuestion], now: datetime) -> None:
    """Store what a policy asks; a pair that is asked about already keeps its number."""
    rows = {tuple(sorted((question.keep, question.other))): question for question in asked}
    if not rows:
        return
    await db.run(HOLD)
    columns = zip(*map(_row, rows.values()), strict=True)
    await db.run(KEEP, *columns, now)


def _row(question: PairQuestion) -> tuple[Any, ...]:
    ends = (question.keep, question.other, *question.versions)
    return question.policy, *ends, question.probability, question.reason, json.dumps(dict(question.factors))


async def open_ones(db: Transaction) -> list[StoredQuestion]:
    """The questions nobody has answered whose sides are as they were, or were merged since, by number."""
    return [StoredQuestion(**row) for row in await db.fetch(OPEN)]


async def details(db: Transaction, numbers: Collection[int]) -> dict[int, Mapping[str, Any]]:
    """Why each is asked, and by what."""
    return {row["number"]: dict(row) for row in await db.fetch(DETAILS, list(numbers))}


async def states(db: Transaction, numbers: Collection[int]) -> dict[int, Mapping[str, Any]]:
    """What became of some questions: the answer, None while there is none, and what taking it back needs."""
    return {row["number"]: dict(row) for row in await db.fetch(STATES, list(numbers))}


async def answer(
    db: Transaction,
    answers: Mapping[int, tuple[str | None, Mapping[str, Any]]],
    *,
    by: str | None,
    now: datetime | None,
) -> None:
    """Write answers, each with what taking it back needs; None opens a question again."""
    verdicts = [verdict for verdict, _ in answers.values()]
    outcomes = [json.dumps(dict(outcome)) for _, outcome in answers.values()]
    await db.run(ANSWER, list(answers), verdicts, outcomes, now, by)


async def postpone(db: Transaction, numbers: Collection[int], now: datetime | None) -> None:
    statement = "UPDATE questions SET postponed_at = $3 WHERE space_id = $1 AND number = ANY($2)"
    await db.run(statement, list(numbers), now)


async def close(db: Transaction, pairs: Sequence[tuple[str, str]], said: str, now: datetime) -> None:
    """A pair of nodes that is kept apart, from wherever that was said, is no question any more."""
    await db.run(CLOSE, [a for a, _ in pairs], [b for _, b in pairs], said, now, AN_ID)


async def restamp(db: Transaction, numbers: Collection[int]) -> None:
    """What an answer, or taking it back, changed of the sides of other open questions is no reason to drop them."""
    await db.run(RESTAMP, list(numbers))
