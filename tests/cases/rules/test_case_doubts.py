"""Which cases whose queries are near may become one without asking (E34)."""

from uuid import UUID

import numpy as np
import pytest

from recollect.cases.rules.cases import CaseText
from recollect.cases.rules.doubts import ALL, Stance, doubts, stance
from recollect.cases.rules.duplicates import Agreement, duplicates
from recollect.concepts.rules.names import Name
from recollect.concepts.rules.similarity import name_doubts


def case(query: str, answer: str = "so", category: str | None = None) -> Stance:
    return stance(CaseText(id=UUID(int=1), query=query, answer=answer, category=category))


@pytest.mark.parametrize(
    ("one", "other", "doubt"),
    [
        ("How do I convert CSV to JSON?", "How do I convert JSON to CSV?", "order"),
        ("How do I move from X to Y?", "How do I move from Y to X?", "order"),
        ("Does Linh report to Minh?", "Does Minh report to Linh?", "order"),
        ("What does error E1041 mean?", "What does error E1042 mean?", "numbers"),
        ("How do I upgrade to v1.2?", "How do I upgrade to v12?", "numbers"),
        ("Does it work at -40 °C?", "Does it work at 40 °C?", "numbers"),
        ("Does it work at −40?", "Does it work at 40?", "numbers"),
        ("Can I pay 100 EUR?", "Can I pay 100 USD?", "numbers"),
        ("Can I pay $100?", "Can I pay €100?", "numbers"),
        ("Is 5 kg too heavy?", "Is 5 g too heavy?", "numbers"),
        ("Is it available in Hanoi?", "Is it not available in Hanoi?", "denial"),
        ("Why does it start?", "Why doesn't it start?", "denial"),
        ("Why does it start?", "Why doesn’t it start?", "denial"),
        ("Warum startet es?", "Warum startet es nicht?", "denial"),
        ("Vé này đổi được", "Vé này không đổi được", "denial"),
        ("ตั๋วนี้คืนได้", "ตั๋วนี้คืนไม่ได้", "denial"),
        ("Почему он работает?", "Почему он не работает?", "denial"),
        ("Is it available?", "Is it unavailable?", "opposites"),
        ("How do I enable it?", "How do I disable it?", "opposites"),
        ("Do I turn left?", "Do I turn right?", "opposites"),
        ("What do I do before lunch?", "What do I do after lunch?", "opposites"),
        ("Wie biege ich links ab?", "Wie biege ich rechts ab?", "opposites"),
        ("Làm sao để bật đèn?", "Làm sao để tắt đèn?", "opposites"),
    ],
)
def test_E34_what_makes_a_question_of_near_queries_though_the_answers_agree(one: str, other: str, doubt: str) -> None:
    assert doubts(case(one), case(other)) == doubts(case(other), case(one)) == [doubt]
    assert doubts(case(one), case(one)) == []
    assert doubts(case(one), case(other), set(ALL) - {doubt}) == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("How do I reset my password?", "how can I reset my password"),
        ("How do I reset my password?", "How to reset the password?"),
        ("Please reset my password", "Reset my password, please!"),
        ("Why can't I log in?", "Why can I not log in?"),
        ("What does error E-1041 mean?", "What does error E-1041 mean"),
        ("Can I pay 100 EUR?", "Can I pay 100 eur"),
        ("ตั๋วนี้คืนได้ไหม", "ตั๋วนี้คืนได้ไหม?"),
    ],
)
def test_E34_the_same_question_in_other_words_is_no_question(one: str, other: str) -> None:
    assert doubts(case(one), case(other)) == doubts(case(other), case(one)) == []


@pytest.mark.parametrize(
    ("one", "other", "agree"),
    [
        ("Settings, Security, Reset.", "settings, security,  reset", True),
        ("Settings, Security, Reset.", "Settings, Security, Delete.", False),
        ("You can.", "You can not.", False),
        ("Set it to -40", "Set it to 40", False),
        ("Set it to 1.5", "Set it to 15", False),
        ("Use C++", "Use C#", False),
        ("It takes 3 days", "It takes 3 weeks", False),
        ("", "", True),
    ],
)
def test_E34_answers_agree_where_they_are_the_same_text(one: str, other: str, agree: bool) -> None:
    assert doubts(case("q", one), case("q", other)) == ([] if agree else ["answer"])


def test_E34_another_category_is_a_doubt_and_several_are_named() -> None:
    assert doubts(case("q", category="a/b"), case("q", category="a")) == ["category"]
    assert doubts(case("q", category="a/b"), case("q")) == ["category"]
    found = doubts(case("Is E1 available?", "yes"), case("Is E2 not available?", "no", "x"))
    assert found == ["answer", "category", "numbers", "denial"]


def test_E34_each_case_is_asked_about_once_and_those_that_agree_are_joined() -> None:
    said = ["E1", "E2", "E1", "E3", "E2"]
    codes = np.array([int(one[1]) for one in said])
    agreement = Agreement(codes=codes, differ=lambda _one, _other: False)
    found = duplicates(np.ones((5, 3)), np.ones(5, np.bool_), above=0.95, agreement=agreement)
    assert [(group.keeper, group.members) for group in found.groups] == [(0, (2,)), (1, (4,))]
    assert [pair[:2] for pair in found.doubtful] == [(0, 1), (0, 3)]  # 4 went into 1, so nobody is asked about it
    apart = duplicates(np.ones((5, 3)), np.ones(5, np.bool_), above=0.95, agreement=agreement, apart=[(0, 1)])
    assert [pair[:2] for pair in apart.doubtful] == [(0, 3)]


def test_E34_a_sign_tells_the_names_of_concepts_apart_too() -> None:
    assert name_doubts(Name(given="range -40"), Name(given="range 40")) == ["digits"]
    assert name_doubts(Name(given="E-40"), Name(given="E40")) == []
