"""What the policies of the case bank share: who is never touched, and how a case is archived or merged in a plan.

A bank is the active cases as they will be: what one step archives or merges, the next one sees.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID, uuid4

import numpy as np

from recollect.cases.rules.cases import MOST_USES, CaseColumns
from recollect.concepts.rules.similarity import CASE_DOUBTS
from recollect.graph.rules.arrays import Flags
from recollect.model import Edge, PairQuestion
from recollect.plan import Change, Decision, Draft, Look, LookAtMany, Row
from recollect.wording import counted, listed, require

LOW_PERFORMANCE, DUPLICATE, INACTIVE, BY_HAND = "low_performance", "duplicate", "inactive", "by_hand"
# So many findings are listed; the summary counts all.
LISTED = 1_000

# The edges of the cases that may go, by case.
Links = Mapping[UUID, Sequence[Edge]]
T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Protection:
    """Who is left alone by every policy (E09, E10), and how many decisions are applied at a time."""

    recent_days: float = 7.0
    protected_usage_count: int = 500
    batch: int = 100

    def __post_init__(self) -> None:
        require(0 <= self.recent_days < math.inf, "recent_days", "a number of days, 0 or more")
        require_uses(self.protected_usage_count, "protected_usage_count")
        require(1 <= self.batch <= 100, "batch", "from 1 to 100")


def require_uses(number: int, field: str) -> None:
    """Refuse what is no number of uses."""
    require(0 <= number <= MOST_USES, field, f"from 0 to {MOST_USES:,}")


def part_of(options: Any, kind: type[T]) -> T:
    """The options of one step, out of those of the whole run."""
    return kind(**{field.name: getattr(options, field.name) for field in fields(kind)})  # type: ignore[arg-type]


class Bank:
    """The active cases as they will be after the decisions made so far."""

    def __init__(self, cases: CaseColumns, now: datetime, draft: Draft | None = None) -> None:
        self.cases, self.now = cases, now
        self.draft = draft or Draft()
        self.idle_days = cases.idle_days_at(now)
        self.uses = cases.uses.copy()
        self.gone = np.zeros(len(cases), dtype=np.bool_)
        # What the step under way asks of the cases: it must still be so of each that goes.
        self.asked = LookAtMany("nodes", status="active")
        self.questions: list[Row] = []
        self._batches: dict[str, int] = {}
        self._groups = 0

    def may_go(self, protection: Protection) -> Flags:
        """Active, not protected by a person, not used lately (E09), not used a lot (E10). A step begins with this."""
        asked = self.asked = LookAtMany("nodes", status="active")
        rested = asked.above("case_idle_days_over", self.idle_days, protection.recent_days)
        little_used = asked.at_most("case_uses_at_most", self.uses, protection.protected_usage_count)
        return np.asarray(
            ~self.gone & asked.lacks("protected", self.cases.protected) & rested & little_used, dtype=np.bool_
        )

    def archive(self, row: int, why: str, reason: str, batch: int) -> None:
        """A case goes to rest, with a copy of it as it was."""
        case = self.cases.id_of(row)
        self.draft.decide(
            "archive",
            case,
            reason,
            [
                Change(table="nodes", id=case, before={"status": "active"}, after={"status": "archived"}),
                copied(case, why, self.now),
            ],
            factors={"archived_reason": why, **self.standing(row), "usage_count": int(self.uses[row])},
            group=self._group(why, batch),
            look=self.asked.one(self.draft, case),
        )
        self.gone[row] = True

    def merge(
        self, keeper: int, absorbed: int, similarity: float, batch: int, *, rates: str, links: "Relinking"
    ) -> None:
        """One case goes into another: it is archived with its data and points there, its links go along."""
        keeper_id, case = self.cases.id_of(keeper), self.cases.id_of(absorbed)
        look = self.asked.one(self.draft, case)
        relinked = links.moved(case, keeper_id, look)
        merged = {"status": "merged", "merged_into": str(keeper_id)}
        self._note_both(look, keeper, absorbed)
        self.draft.decide(
            "merge",
            case,
            self._why_merged(keeper, absorbed, similarity),
            [
                Change(table="nodes", id=case, before={"status": "active", "merged_into": None}, after=merged),
                copied(case, DUPLICATE, self.now),
                *relinked,
                self._combining(keeper, rates),
            ],
            score=similarity,
            factors=self._factors(keeper, absorbed, similarity),
            group=self._group(DUPLICATE, batch),
            look=look,
        )
        self.uses[keeper] += self.uses[absorbed]
        self.idle_days[keeper] = min(self.idle_days[keeper], self.idle_days[absorbed])
        self.gone[absorbed] = True

    def _note_both(self, look: Look, keeper: int, absorbed: int) -> None:
        """Both as they were seen, and nobody keeps them apart."""
        keeper_id, case = self.cases.id_of(keeper), self.cases.id_of(absorbed)
        look.finds("nodes", keeper_id, status="active", version=int(self.cases.version[keeper]))
        look.finds("nodes", case, version=int(self.cases.version[absorbed]))
        look.not_apart("nodes", case, (str(keeper_id), str(case)), self.state_of(keeper, absorbed))

    def ask(
        self,
        keeper: int,
        other: int,
        similarity: float,
        doubts: Sequence[str],
        shown: tuple[str, str],
        *,
        policy: str,
    ) -> None:
        """Two cases that may be the same, and what speaks against it, for a person to look at (E34)."""
        keeper_id, case = self.cases.id_of(keeper), self.cases.id_of(other)
        self.questions.append(
            {
                "keeper": str(keeper_id),
                "other": str(case),
                "similarity": similarity,
                "doubts": list(doubts),
                "keeps": self.standing(keeper),
                "goes": self.standing(other),
            }
        )
        self.draft.questions.append(
            PairQuestion(
                policy=policy,
                keep=keeper_id,
                other=case,
                versions=(int(self.cases.version[keeper]), int(self.cases.version[other])),
                probability=similarity,
                reason=f"their questions are alike ({similarity:.4f}), but {_listed(doubts)}",
                factors={"score": similarity, "doubts": [CASE_DOUBTS[doubt] for doubt in doubts]},
            )
        )
        if len(self.questions) <= LISTED:
            self.draft.note(
                "review",
                f"{shown[1]!r} ({str(case)[:8]}, {said(self.standing(other))}) may be the same as {shown[0]!r} "
                f"({str(keeper_id)[:8]}, {said(self.standing(keeper))}): similarity {similarity:.4f}, "
                f"but {_listed(doubts)}",
                case,
            )

    def _combining(self, keeper: int, rates: str) -> Change | None:
        """How the keeper's rate is derived from now on, where that is not how it was."""
        stored = {"success_rates": "plain" if self.cases.plain[keeper] else "weighted"}
        return self.draft.patch("cases", self.cases.id_of(keeper), stored, {"success_rates": rates})

    def standing(self, row: int) -> Row:
        """How a case stood when the plan was made."""
        rate = float(self.cases.success_rate[row])
        return {
            "usage_count": int(self.cases.uses[row]),
            "success_rate": None if math.isnan(rate) else rate,
            "idle_days": round(float(self.idle_days[row]), 4),
        }

    def state_of(self, *places: int) -> str:
        """What a declined pair was like: once a case changes, it may be offered again (P11)."""
        return state_of([(self.cases.id_of(row), int(self.cases.version[row])) for row in places])

    def _factors(self, keeper: int, absorbed: int, similarity: float) -> Row:
        keeper_id, case = str(self.cases.id_of(keeper)), str(self.cases.id_of(absorbed))
        return {
            "archived_reason": DUPLICATE,
            "keeper": keeper_id,
            "removed": case,
            "similarity": similarity,
            "keeps": self.standing(keeper),
            "goes": self.standing(absorbed),
            "pair": sorted((keeper_id, case)),
            "state": self.state_of(keeper, absorbed),
        }

    def _why_merged(self, keeper: int, absorbed: int, similarity: float) -> str:
        """E03: both sides, so that a reader sees why this one stays."""
        return (
            f"similarity {similarity:.4f} with {str(self.cases.id_of(keeper))[:8]}, which is kept: "
            f"{said(self.standing(keeper))} against {said(self.standing(absorbed))}"
        )

    def _group(self, kind: str, batch: int) -> int:
        """The number of the group that a decision joins; every so many begin a new one."""
        number = self._batches.get(kind, 0)
        self._batches[kind] = number + 1
        if number % batch == 0:
            self._groups += 1
        return self._groups

    def summary(self) -> Row:
        """E26, and what the brake is computed from."""
        reasons = [decision.factors["archived_reason"] for decision in self.draft.decisions]
        return {
            "cases": len(self.cases),
            "removed": reasons.count(LOW_PERFORMANCE),
            "merged": reasons.count(DUPLICATE),
            "archived": reasons.count(INACTIVE),
            "review": sum(finding.rule == "chain" for finding in self.draft.findings) + len(self.questions),
            "doubtful": len(self.questions),
            "questions": self.questions[:LISTED],
            "scope": {"cases": len(self.cases)},
            "touched": {"cases": len(reasons)},
        }


class Relinking:
    """Where the links of merged cases go: to the keeper, but no link twice and none from a case to itself."""

    def __init__(self, draft: Draft, links: Links) -> None:
        self.draft, self.links = draft, links
        self.living = {_key(_row(edge)): edge.id for edges in links.values() for edge in edges}

    def moved(self, case: UUID, keeper: UUID, look: Look) -> list[Change | None]:
        """What becomes of the links of a case. What an earlier decision retired must be so by then."""
        seen = [(edge, look.row("edges", edge.id, _row(edge))) for edge in self.links.get(case, ())]
        living = [(edge, row) for edge, row in seen if row["status"] == "active"]
        look.edges_of(case, [edge.id for edge, _ in living])
        return [self._moved(edge, row, str(case), str(keeper)) for edge, row in living]

    def _moved(self, edge: Edge, seen: Row, case: str, keeper: str) -> Change | None:
        ends = {end: keeper if seen[end] == case else seen[end] for end in ("source", "target")}
        if ends["source"] == ends["target"]:
            return self.draft.patch("edges", edge.id, _row(edge), {"status": "pruned"})
        there = self.living.setdefault(_key({**seen, **ends}), edge.id)
        if there != edge.id:
            return self.draft.patch("edges", edge.id, _row(edge), {"status": "merged", "merged_into": str(there)})
        return self.draft.patch("edges", edge.id, _row(edge), ends)


def copied(case: UUID, why: str, now: datetime) -> Change:
    """The entry of the archive; the database copies the case into it at the moment of archiving (E24, E25)."""
    archive = uuid4()
    row = {"archive_id": str(archive), "case_id": str(case), "archived_reason": why, "archived_at": now.isoformat()}
    return Change(table="case_archive", id=archive, before=None, after=row)


def state_of(cases: Sequence[tuple[UUID, int]]) -> str:
    """Cases and their versions, in one text whatever their order."""
    return " ".join(sorted(f"{id_} {version}" for id_, version in cases))


def tally(_summary: Mapping[str, Any], applied: Sequence[Decision]) -> Mapping[str, int]:
    """What a run did, of each kind."""
    reasons = [decision.factors["archived_reason"] for decision in applied]
    return {
        "removed": reasons.count(LOW_PERFORMANCE),
        "merged": reasons.count(DUPLICATE),
        "archived": reasons.count(INACTIVE),
    }


def said(standing: Row) -> str:
    """`40 uses, 12.5 % success`."""
    return f"{counted(standing['usage_count'], 'use')}, {percent(standing['success_rate'])} success"


def _listed(doubts: Sequence[str]) -> str:
    return listed(CASE_DOUBTS[doubt] for doubt in doubts)


def percent(rate: float | None) -> str:
    return "unknown" if rate is None else f"{rate:.6g} %"


def _row(edge: Edge) -> Row:
    return {
        "source": str(edge.source),
        "target": str(edge.target),
        "relation": edge.relation,
        "status": edge.status,
        "merged_into": None,
    }


def _key(row: Row) -> tuple[str, str, str]:
    return row["source"], row["target"], row["relation"]
