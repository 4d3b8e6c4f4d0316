"""Tables of cases: what is read, what is refused by which line, and that rates are never guessed."""

import json
from datetime import UTC, datetime
from uuid import UUID

import pytest

from recollect.cases.rules.cases import case_from_mapping, checked, checked_category, checked_outcome
from recollect.cases.rules.tables import csv_cases, jsonl_cases
from recollect.errors import InvalidInput
from recollect.memories.rules.contract import Contract
from recollect.model import CaseOutcome, NewCase

NOW = datetime(2026, 11, 15, tzinfo=UTC)


def read_csv(text: str, *, fractions: bool = False) -> list[NewCase | str | None]:
    rows = list(csv_cases(text.splitlines(keepends=True), fractions=fractions))
    return [row.made or row.problem for row in rows]


def test_a_csv_of_a_helpdesk_is_understood() -> None:
    (case,) = read_csv(
        "ID;Question;Answer;Category;Uses;Success Rate;Last used at;Agent\n"
        'T-17;"Where is my\ninvoice?";"Under; Billing";billing/invoices;42;87.5;2026-11-01T10:00:00Z;Ann\n'
    )
    assert case == NewCase(
        query="Where is my\ninvoice?",
        response_text="Under; Billing",
        category_path="billing/invoices",
        usage_count=42,
        success_rate=87.5,
        last_accessed_at=datetime(2026, 11, 1, 10, tzinfo=UTC),
        source_id="T-17",
        metadata={"extra": {"Agent": "Ann"}},
    )


def test_an_id_that_is_a_uuid_is_the_case_s_own() -> None:
    id_ = UUID(int=7)
    (case,) = read_csv(f"id,query,response_text\n{id_},q,a\n")
    assert isinstance(case, NewCase)
    assert (case.id, case.source_id) == (id_, None)


def test_fractions_are_said_and_never_guessed() -> None:
    table = "query,answer,success_rate\nq,a,0.29\n"
    (percent,), (fraction,) = read_csv(table), read_csv(table, fractions=True)
    assert isinstance(percent, NewCase)
    assert isinstance(fraction, NewCase)
    assert (percent.success_rate, fraction.success_rate) == (0.29, 29.0)
    (refused,) = read_csv("query,answer,success_rate\nq,a,85\n", fractions=True)
    assert isinstance(refused, str)
    assert "fractions" in refused


def test_what_is_wrong_with_a_row_is_said_by_its_line_and_the_others_are_read() -> None:
    lines = ["query,answer,usage_count", "q,a,many", "q", "", "q,a,3,4", "good,a,2"]
    found = list(csv_cases([f"{line}\n" for line in lines], fractions=False))
    assert [(row.line, row.problem is None) for row in found] == [(2, True), (3, False), (5, False), (6, True)]
    assert found[0].made is not None
    with pytest.raises(InvalidInput, match="whole number"):
        checked(found[0].made, Contract(), NOW)


@pytest.mark.parametrize("header", ["query,category", "a;b", "", "query,question,answer"])
def test_a_header_without_query_and_answer_is_refused(header: str) -> None:
    with pytest.raises(InvalidInput):
        list(csv_cases([f"{header}\n", "x,y\n"], fractions=False))


def test_json_lines() -> None:
    lines = [
        json.dumps({"query": "q", "response_text": "a", "case_id": "7", "success_rate": 50}),
        "",
        "[1]",
        "{",
        json.dumps({"query": "q", "response_text": "a", "colour": "red"}),
        json.dumps({"query": "q"}),
        json.dumps({"query": "q", "response_text": "a", "answer": "b"}),
    ]
    found = list(jsonl_cases(lines, fractions=False))
    assert [row.line for row in found] == [1, 3, 4, 5, 6, 7]
    assert found[0].made == NewCase(query="q", response_text="a", source_id="7", success_rate=50)
    assert ["not JSON" in (found[2].problem or ""), "colour" in (found[3].problem or "")] == [True, True]
    assert "response_text" in (found[4].problem or "")
    assert "twice" in (found[5].problem or "")


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"query": " "}, "query"),
        ({"response_text": "\0"}, "response_text"),
        ({"success_rate": 100.5}, "success_rate"),
        ({"success_rate": float("nan")}, "success_rate"),
        ({"success_rate": True}, "success_rate"),
        ({"usage_count": -1}, "usage_count"),
        ({"usage_count": 1.5}, "usage_count"),
        ({"category_path": 5}, "category_path"),
        ({"last_accessed_at": "2036-01-01"}, "last_accessed_at"),
        ({"id": "seven"}, "id"),
        ({"metadata": {"colour": "red"}}, "metadata.colour"),
    ],
)
def test_what_cannot_be_stored_is_refused_by_its_field(given: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked(case_from_mapping({"query": "q", "response_text": "a", **given}), Contract(), NOW)
    assert refused.value.field == field
    assert refused.value.message.endswith(".")


def test_a_category_is_a_path() -> None:
    assert checked_category("/billing/ refunds //") == "billing/refunds"
    assert checked_category(" / ") is None
    assert checked_category(None) is None


@pytest.mark.parametrize("milliseconds", [-1.0, float("inf"), float("nan")])
def test_E31_an_outcome_with_an_impossible_duration_is_refused(milliseconds: float) -> None:
    with pytest.raises(InvalidInput, match="Milliseconds"):
        checked_outcome(CaseOutcome(success=True, milliseconds=milliseconds), NOW)
