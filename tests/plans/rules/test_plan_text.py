"""A plan as people read it: signs, lines, what changed in words, and Markdown that nothing in a text can break."""

from datetime import UTC, datetime
from uuid import UUID

import pytest

from recollect.plan import Change, Decision, DecisionStatus, Finding, Plan
from recollect.plans.rules import plan_text
from recollect.plans.rules.plan_text import Tally

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
A, B, C = (UUID(int=number) for number in (1, 2, 3))


def change(id_: UUID, before: dict[str, object] | None, after: dict[str, object] | None) -> Change:
    return Change(table="edges", id=id_, before=before, after=after)


def decision(*changes: Change, subject: UUID = A, **more: object) -> Decision:
    return Decision(number=7, verb="merge", subject=subject, reason="because", changes=changes, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("before", "after", "sign"),
    [
        (None, {"id": "x"}, "+"),
        ({"id": "x"}, None, "-"),
        ({"status": "active"}, {"status": "pruned"}, "-"),
        ({"status": "active"}, {"status": "archived"}, "-"),
        ({"status": "pruned"}, {"status": "active"}, "+"),
        ({"strength": 0.5}, {"strength": 0.6}, "~"),
        ({"protected": False}, {"protected": True}, "~"),
    ],
)
def test_P02_the_sign_says_what_comes_changes_and_goes(
    before: dict[str, object] | None, after: dict[str, object] | None, sign: str
) -> None:
    assert plan_text.sign_of(change(A, before, after)) == sign


def test_P02_a_decision_is_a_line_for_its_subject_and_one_for_each_other_row() -> None:
    merge = decision(
        change(B, {"status": "active", "merged_into": None}, {"status": "merged", "merged_into": str(A)}),
        change(A, {"strength": 0.5}, {"strength": 0.65}),
    )
    first, second = plan_text.lines_of(merge, {A: "tea —extends→ cup", B: "tea —similar→ cup"})
    assert (first.number, first.sign, first.id, first.what) == (7, "~", A, "tea —extends→ cup")
    assert first.why == "because (strength 0.5 -> 0.65)"
    assert (second.number, second.sign, second.id, second.what) == (None, "-", B, "tea —similar→ cup")
    assert second.why == "merged into 00000000"


def test_P02_a_row_without_a_name_is_called_by_its_id() -> None:
    (line,) = plan_text.lines_of(decision(change(A, None, {"id": str(A)})), {})
    assert (line.sign, line.what) == ("+", str(A))


def test_P02_a_decision_that_changes_many_rows_counts_the_rest() -> None:
    rows = [change(UUID(int=100 + n), {"strength": 0}, {"strength": 1}) for n in range(20)]
    lines = plan_text.lines_of(decision(*rows), {})
    assert len(lines) == 1 + plan_text.MOST_ROWS + 1
    assert lines[-1].what == "and 12 more rows: ~ 12"


@pytest.mark.parametrize(
    ("status", "note", "said"),
    [
        (DecisionStatus.PROPOSED, None, ""),
        (DecisionStatus.APPLIED, None, "applied"),
        (DecisionStatus.STALE, "it is protected now", "stale: it is protected now"),
    ],
)
def test_P04_the_state_of_a_decision_is_said(status: DecisionStatus, note: str | None, said: str) -> None:
    (line,) = plan_text.lines_of(decision(change(A, None, {}), status=status, note=note), {})
    assert line.state == said


def test_P09_a_difference_is_in_few_words() -> None:
    assert plan_text.difference({"importance": None}, {"importance": 0.9}) == " (importance null -> 0.9)"
    assert plan_text.difference({"version": 1}, {"version": 2}) == ""
    assert plan_text.difference(None, {"a": 1}) == ""
    many = dict.fromkeys("abcde", 1)
    assert plan_text.difference({}, many) == " (a null -> 1, b null -> 1, c null -> 1, and d, e)"
    long = plan_text.difference({"text": "x" * 10_000}, {"text": ["y"] * 10_000})
    assert len(long) < 120


def plan(**more: object) -> Plan:
    given: dict[str, object] = {
        "policy": "prune_weak_edges",
        "title": "Prune 1 of 3 links",
        "created_at": NOW,
        "decisions": (),
        "options": {"threshold": 0.05, "kinds": ["memory"]},
        "summary": {"total": 3000, "pruned": 1, "kept_by": {"leaf": 2, "splits": 0}, "scope": {"edges": 3}},
        "counts": {"proposed": 1},
        **more,
    }
    return Plan(**given)  # type: ignore[arg-type]


def test_A12_the_report_of_a_plan_is_one_line() -> None:
    assert plan_text.report_of(plan()) == "total 3,000, pruned 1, kept by leaf 2"
    assert plan_text.options_of(plan()) == 'threshold 0.05, kinds ["memory"]'
    assert plan_text.states_of(plan(counts={"applied": 2, "stale": 1})) == "2 applied, 1 stale"


def test_P02_a_plan_in_markdown() -> None:
    head = plan_text.markdown_head(plan(), Tally(goes=1))
    assert head.startswith("# Prune 1 of 3 links\n\n| | |\n|---|---|\n| plan | `")
    assert "| rows | + 0, ~ 0, - 1 |" in head
    assert "2026-11-15 08:00Z by user" in head
    table = plan_text.markdown_decisions([decision(change(A, {"status": "active"}, {"status": "pruned"}))], {A: "x"})
    assert table.endswith("| 7 | `-` | x | because |  |\n")
    again = plan_text.markdown_decisions([decision(change(A, None, {}))], {A: "x"}, with_heading=False)
    assert again == "| 7 | `+` | x | because |  |\n"
    left = plan_text.markdown_left_alone([Finding(rule="leaf", text="kept", subject=A)], {A: "x"})
    assert left.endswith("| leaf | x | kept |\n")
    assert plan_text.markdown_left_alone([], {}) == ""


@pytest.mark.parametrize("text", ["a | b", "<script>", "`x`", "[l](u)", "a\nb", "**b**", "![i](u)", "\\|", "a\r\n|b"])
def test_P02_nothing_in_a_text_is_markup(text: str) -> None:
    said = plan_text.markdown_decisions([decision(change(A, None, {}))], {A: text}, with_heading=False)
    assert said.count("\n") == 1
    bare = said.replace("\\\\", "")
    for sign in "|<`[*!":
        assert bare.count(sign) - bare.count(f"\\{sign}") == {"|": 6, "`": 2}.get(sign, 0)
