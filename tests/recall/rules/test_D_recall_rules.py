"""The numbers of the source document on ranking and selection, by hand."""

import math
from collections import Counter
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InvalidInput
from recollect.model import Mode
from recollect.recall.rules import lexical, ranking, selection
from recollect.recall.rules.ranking import Calibration, histogram, measured_calibration, shipped, soft


def numbers(*values: float) -> ranking.Numbers:
    return np.array(values, dtype=np.float64)


@pytest.mark.parametrize(
    ("mode", "weights"),
    [
        (Mode.NEUTRAL, (0.60, 0.15, 0.25)),
        (Mode.RECALL, (0.70, 0.10, 0.20)),
        (Mode.RECALL_LLM_RERANK, (0.70, 0.10, 0.20)),
        (Mode.SYNTHESIZE, (0.60, 0.05, 0.35)),
        (Mode.REFLECT, (0.40, 0.30, 0.30)),
        (Mode.CHALLENGE, (0.50, 0.10, 0.40)),
        (Mode.EXPAND, (0.70, 0.05, 0.25)),
    ],
)
def test_D17_weights_of_each_mode(mode: Mode, weights: tuple[float, float, float]) -> None:
    found = ranking.PROFILES[mode].weights
    assert (found.relevance, found.recency, found.importance) == weights
    assert sum(weights) == pytest.approx(1.0)


def test_D16_the_score_is_the_weighted_sum_and_missing_importance_is_half() -> None:
    score = ranking.score(
        ranking.PROFILES[Mode.NEUTRAL].weights,
        relevance=numbers(0.8, 0.8),
        recency=numbers(0.5, 0.5),
        importance=ranking.importance([1.0, None]),
    )
    assert score == pytest.approx([0.6 * 0.8 + 0.15 * 0.5 + 0.25, 0.6 * 0.8 + 0.15 * 0.5 + 0.125])


@pytest.mark.parametrize(("days", "value"), [(1, 0.97), (7, 0.79), (30, 0.37), (60, 0.14)])
def test_D18_recency(days: float, value: float) -> None:
    assert round(float(ranking.recency(numbers(days))[0]), 2) == value


def test_D18_what_lies_in_the_future_is_not_more_recent_than_now() -> None:
    assert ranking.recency(numbers(-3.0))[0] == 1.0


def test_D19_the_bonus_is_small_shrinks_with_use_and_needs_similarity() -> None:
    bonus = ranking.bonus(numbers(0.70, 0.70, 0.70, 0.69), numbers(0, 1, 9, 0))
    assert bonus == pytest.approx([0.02, 0.01, 0.002, 0.0])


@pytest.mark.parametrize(
    ("mode", "floor"),
    [
        (Mode.RECALL, 0.65),
        (Mode.RECALL_LLM_RERANK, 0.60),
        (Mode.SYNTHESIZE, 0.60),
        (Mode.REFLECT, 0.55),
        (Mode.CHALLENGE, 0.60),
        (Mode.EXPAND, 0.55),
    ],
)
def test_D20_floor_of_each_mode(mode: Mode, floor: float) -> None:
    assert selection.floor_in_effect(ranking.PROFILES[mode].floor, None) == pytest.approx(floor)


def test_D20_a_narrower_threshold_raises_the_floor_a_wider_one_does_not_lower_it() -> None:
    assert selection.floor_in_effect(0.60, 0.2) == pytest.approx(0.8)
    assert selection.floor_in_effect(0.60, 0.9) == pytest.approx(0.6)


def test_D16a_D46_plain_search_shows_what_is_related_unless_told_otherwise() -> None:
    assert selection.floor_in_effect(None, None) == ranking.RELATED
    assert selection.floor_in_effect(None, None, weak=True) is None
    assert selection.floor_in_effect(None, 0.7) == pytest.approx(0.3)


def test_D46_neither_age_nor_importance_lifts_what_is_hardly_related_above_what_is() -> None:
    relevance, score = numbers(0.1, 0.5, 0.24, 0.9), numbers(0.9, 0.3, 0.8, 0.6)
    chosen = selection.select(
        [0, 2, 3, 1],
        ranking.PROFILES[Mode.NEUTRAL],
        ids=[uuid4() for _ in range(4)],
        relevance=relevance,
        score=score,
        cosine=lambda _a, _b: 0.0,
        weak=True,
    )
    assert chosen.kept == [3, 1, 0, 2]


def test_D49_a_turn_is_matched_together_with_the_turns_beside_it() -> None:
    """BM25 over the three texts as one, found again from what is stored of each: the same as if they were one text."""
    texts = ["where did you put the passport", "in the blue drawer upstairs", "thanks blue it is"]
    mean, asked = 4.0, sorted(map(lexical.term, lexical.words("blue passport")))
    counts = [Counter(map(lexical.term, lexical.words(text))) for text in texts]
    lengths = numbers(*(one.total() for one in counts))
    weights = [lexical.document_weights(one, length=one.total(), mean_length=mean) for one in counts]
    held = np.array([[one.get(term, 0.0) for term in asked] for one in weights])
    rarities = numbers(1.5, 0.7)
    before, after = np.array([-1, 0, 1]), np.array([1, 2, -1])
    whole = sum(counts, Counter[int]())
    joined = lexical.document_weights(whole, length=whole.total(), mean_length=3 * mean)
    expected = sum(rarity * joined[term] for term, rarity in zip(asked, rarities, strict=True))
    assert ranking.together(held, lengths, rarities, mean, before, after)[1] == pytest.approx(expected)
    alone = np.full(3, -1)
    assert ranking.together(held, lengths, rarities, mean, alone, alone) == pytest.approx(held @ rarities)


def test_D49_a_short_turn_says_less_of_itself_and_what_stands_alone_is_taken_as_it_is() -> None:
    lengths = numbers(2, 20, 60, 2)
    says = ranking.says(lengths, np.array([True, True, True, False]), 20)
    assert says == pytest.approx([0.1**0.2, 1, 1, 1])


def test_D49_a_long_turn_says_less_of_any_one_thing_unless_all_are_as_long() -> None:
    lengths, turns = numbers(60, 120, 240, 100_000, 240), np.array([True, True, True, True, False])
    assert ranking.says(lengths, turns, 20) == pytest.approx([1, 0.5**0.3, 0.25**0.3, 0.6, 1])
    assert ranking.says(lengths, turns, 480) == pytest.approx([1, 1, 1, 0.6, 1])


def sureness(*, similarity: float, coverage: float, standing: float = 0.0) -> float:
    """The relevance of the one with most evidence."""
    one = (numbers(similarity), numbers(coverage), numbers(standing))
    match = ranking.own_relevance(numbers(coverage), one[0])
    return float(ranking.relevance(ranking.evidence(match, *one[1:]), *one, read=numbers(1.0))[0])


FLOOR = max(profile.floor or 0 for profile in ranking.PROFILES.values())


def test_D45_a_full_match_by_words_alone_passes_every_floor() -> None:
    assert sureness(similarity=0.0, coverage=1.0) > FLOOR + 0.1
    assert sureness(similarity=0.0, coverage=0.0) < 0.02


def test_D45_D46_a_misspelled_word_is_related_to_what_it_means_however_far_its_vector_lies() -> None:
    """ "badmington" counts 0.8 of badminton, and its vector is that of other pieces."""
    assert sureness(similarity=0.1, coverage=0.8) > ranking.RELATED


def test_D45_a_word_in_common_makes_near_what_need_not_be_about_the_same() -> None:
    assert sureness(similarity=0.66, coverage=0.0, standing=0.4) > FLOOR
    assert sureness(similarity=0.66, coverage=0.3, standing=0.4) < FLOOR
    assert sureness(similarity=0.85, coverage=0.4, standing=0.6) > FLOOR
    assert sureness(similarity=0.66, coverage=0.7) > FLOOR


def test_D45_the_best_is_judged_and_the_others_follow_it_by_their_evidence() -> None:
    evidence = numbers(1.2, 1.0, 1.1)
    alike = (numbers(0.5, 0.9, 0.9), numbers(0.5, 0.5, 0.5), numbers(0.0, 0.0, 0.0))
    known = ranking.relevance(evidence, *alike, read=numbers(1.0, 1.0, 1.0))
    assert list(np.argsort(-known)) == [0, 2, 1]
    assert known[0] < FLOOR  # what lies behind it is no surer than the best


def test_D45_D50_words_speak_for_what_has_no_vector_yet() -> None:
    match = ranking.own_relevance(numbers(1.0), numbers(0.0))
    evidence = ranking.evidence(match, numbers(0.85), numbers(0.0))
    unread, read = (
        ranking.relevance(evidence, numbers(0.0), numbers(0.85), numbers(0.0), read=numbers(known))[0]
        for known in (0.0, 1.0)
    )
    assert unread > FLOOR > read


def test_D45_where_the_model_has_only_pieces_of_a_language_words_decide() -> None:
    """Near each other are all texts of such a language: a question about something else is as near."""
    near = (numbers(0.92), numbers(0.3), numbers(0.25))
    evidence = ranking.evidence(ranking.own_relevance(numbers(0.5), near[0]), *near[1:])
    read, in_between, in_pieces = (
        ranking.relevance(evidence, *near, read=numbers(ranking.how_well_read(known)))[0] for known in (0.8, 0.68, 0.5)
    )
    assert read > FLOOR > in_pieces
    assert read > in_between > in_pieces
    covering = (numbers(0.92), numbers(0.6), numbers(0.25))
    assert ranking.relevance(evidence, *covering, read=numbers(0.0))[0] > FLOOR


def test_D45_where_everything_is_alike_being_alike_says_little() -> None:
    alone = ranking.standing_out(numbers(0.8, *[0.2] * 30))
    crowd = ranking.standing_out(numbers(0.8, *[0.7] * 30))
    assert alone[0] == pytest.approx(0.6)
    assert crowd[0] == pytest.approx(0.1)
    assert ranking.standing_out(numbers(0.8, 0.0, 0.1))[0] == pytest.approx(0.8 - ranking.UNRELATED)


def test_D28_few_results_widen_the_threshold_step_by_step_but_not_below_the_floors() -> None:
    relevance = numbers(0.9, 0.71, 0.66, 0.62, 0.5)
    assert selection.relaxed_floor(relevance, 0.60, 0.2, enough=2) == pytest.approx(0.70)
    assert selection.relaxed_floor(relevance, 0.60, 0.2, enough=5) == pytest.approx(0.60)
    assert selection.relaxed_floor(relevance, 0.65, None, enough=5) == pytest.approx(0.65)


def choose(mode: Mode, relevance: list[float], **given: object) -> selection.Selection:
    """Selection where the score is 0.7 of the relevance."""
    values = numbers(*relevance)
    ids = given.pop("ids", None) or [uuid4() for _ in relevance]
    cosine = given.pop("cosine", lambda a, b: 0.0)
    order = [int(i) for i in np.argsort(-values, kind="stable")]
    return selection.select(
        order,
        ranking.PROFILES[mode],
        ids=ids,  # type: ignore[arg-type]
        relevance=values,
        score=0.7 * values,
        cosine=cosine,  # type: ignore[arg-type]
        **given,  # type: ignore[arg-type]
    )


def test_D20_exactly_the_floor_is_kept() -> None:
    assert choose(Mode.RECALL, [0.65, 0.6499]).kept == [0]


def test_D21_nothing_above_the_floor_is_nothing_at_all() -> None:
    chosen = choose(Mode.RECALL, [0.64, 0.2])
    assert chosen.kept == []
    assert [drop.step for drop in chosen.dropped] == ["floor", "floor"]
    assert "relevance 0.64 is below the floor 0.65" in chosen.dropped[0].why


def test_D22_the_gap_to_the_best() -> None:
    chosen = choose(Mode.SYNTHESIZE, [1.0, 1.0 - 0.149 / 0.7, 1.0 - 0.151 / 0.7])
    assert chosen.kept == [0, 1]
    assert [(drop.place, drop.step) for drop in chosen.dropped] == [(2, "gap")]


@pytest.mark.parametrize(
    ("mode", "cap"),
    [
        (Mode.RECALL, 5),
        (Mode.RECALL_LLM_RERANK, 12),
        (Mode.SYNTHESIZE, 8),
        (Mode.REFLECT, 8),
        (Mode.CHALLENGE, 4),
        (Mode.EXPAND, 10),
    ],
)
def test_D23_cap_of_each_mode(mode: Mode, cap: int) -> None:
    assert len(choose(mode, [0.9] * 20).kept) == cap


def test_D24_what_was_answered_lately_moves_behind_and_none_is_dropped() -> None:
    ids = [uuid4() for _ in range(3)]
    assert choose(Mode.RECALL, [0.9, 0.88, 0.86], ids=ids, lately={ids[0]}).kept == [1, 2, 0]
    assert choose(Mode.SYNTHESIZE, [0.9, 0.88, 0.86], ids=ids, lately={ids[0]}).kept == [0, 1, 2]


def test_D24_the_steps_come_in_their_order() -> None:
    """Of two twins the better stays although it was answered lately: the guard comes before the cooldown."""
    ids = [uuid4() for _ in range(3)]
    chosen = choose(
        Mode.RECALL, [0.9, 0.89, 0.88], ids=ids, lately={ids[0]}, cosine=lambda a, b: 0.96 if {a, b} == {0, 1} else 0.0
    )
    assert chosen.kept == [2, 0]
    assert [(drop.place, drop.step) for drop in chosen.dropped] == [(1, "twin")]


@pytest.mark.parametrize(("cosine", "kept"), [(0.95, [0, 1]), (0.951, [0])])
def test_D30_of_two_that_say_the_same_the_better_ranked_stays(cosine: float, kept: list[int]) -> None:
    assert choose(Mode.RECALL, [0.9, 0.89], cosine=lambda a, b: cosine).kept == kept


def test_D29_D31_what_does_not_fit_is_skipped_and_named_and_the_next_is_tried() -> None:
    tokens = [2000, 5000, 900, 200]
    chosen = selection.Selection(kept=[0, 1, 2, 3])
    selection.within_budget(chosen, tokens.__getitem__, selection.CONTEXT_TOKENS)
    assert chosen.kept == [0, 2]
    assert [(drop.place, drop.step) for drop in chosen.dropped] == [(1, "budget"), (3, "budget")]
    assert "5000 tokens do not fit into the budget of 3000: available on expand" in chosen.dropped[0].why


def test_D29_strict_break_is_the_literal_loop() -> None:
    tokens = [2000, 5000, 900, 200]
    chosen = selection.Selection(kept=[0, 1, 2, 3])
    selection.within_budget(chosen, tokens.__getitem__, 3000, strict_break=True)
    assert chosen.kept == [0]


def test_D29_at_most_thirty_records() -> None:
    chosen = selection.Selection(kept=list(range(40)))
    selection.within_budget(chosen, lambda _: 1, 3000)
    assert len(chosen.kept) == 30


def test_D40_engagement_and_decay() -> None:
    assert ranking.engagement(numbers(0, 50, 500)) == pytest.approx([0.0, 1.0, 1.0])
    assert ranking.engagement(numbers(10))[0] == pytest.approx(math.log(11) / math.log(51))
    assert ranking.decay(numbers(0, 30)) == pytest.approx([1.0, math.exp(-1)])
    weights = ranking.ENGAGED
    assert (weights.relevance, weights.recency, weights.importance, weights.engagement, weights.decay) == (
        0.50,
        0.10,
        0.20,
        0.10,
        0.10,
    )


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=50), st.floats(-0.2, 0.4), st.floats(0.05, 0.6))
def test_D28a_a_calibration_keeps_the_order_and_stays_within_0_and_1(
    cosines: list[float], low: float, width: float
) -> None:
    similar = Calibration(low=low, high=low + width).similarity(numbers(*cosines))
    assert ((similar >= 0) & (similar <= 1)).all()
    order = np.argsort(cosines, kind="stable")
    assert (np.diff(similar[order]) >= -1e-12).all()


def test_D28a_the_ends_of_the_scale_mean_unrelated_and_the_same() -> None:
    calibration = shipped("minilm")
    low, middle, high = calibration.similarity(numbers(0.0, 0.3, 0.6))
    assert (low, middle) == (0.0, 0.5)
    assert 0.85 < high < 0.95
    assert soft(numbers(0.5))[0] == 0.5


def test_D28a_a_measured_calibration_comes_from_the_two_distributions() -> None:
    unrelated = [n / 100 for n in range(100)]
    found = measured_calibration(unrelated, [0.7] * 50)
    assert found == Calibration(low=0.05, high=0.7)
    with pytest.raises(InvalidInput, match="too few memories"):
        measured_calibration(unrelated, [0.7] * 3)
    assert histogram([-0.5, 0.0, 0.51, 1.0], bins=2) == [2, 2]


# -- relevance


def test_D16a_a_lexical_hit_is_relevant_without_any_similarity() -> None:
    lexical = ranking.lexical_match(numbers(8.0, 4.0, 0.0), most_possible=10.0)
    assert lexical == pytest.approx([1.0, 0.5, 0.0])
    assert ranking.own_relevance(lexical, numbers(0, 0, 0))[0] == pytest.approx(0.45)


def test_D16a_the_best_of_a_poor_lot_is_no_full_match() -> None:
    assert ranking.lexical_match(numbers(0.3), most_possible=10.0)[0] == pytest.approx(0.1)


def test_flow_comes_from_the_better_neighbour() -> None:
    own = numbers(0.5, 1.0, 0.2, 0.7)
    before, after = np.array([-1, 0, 1, -1]), np.array([1, 2, -1, -1])
    assert ranking.flow(own, before, after) == pytest.approx([0.2, 0.1, 0.2, 0.0])


# -- a fact that was updated


@pytest.mark.parametrize(
    ("question", "now"),
    [
        ("How many sources are in my library?", True),
        ("What is the deadline of the first sprint?", True),
        ("When did I first mention the sprint?", False),
        ("When is my call with the director?", True),
        ("When did Caroline go to the museum?", False),
        ("What was the old quota?", False),
        ("Tell me about the garden", False),
    ],
)
def test_a_question_about_now_is_told_from_one_about_the_past(question: str, now: bool) -> None:
    assert ranking.asks_for_the_present(question) is now


def arrange(question: str, texts: list[str], relevance: list[float], cosine: float) -> list[int]:
    """Texts in the order they were said; ranked by relevance."""
    order = [int(i) for i in np.argsort(-np.array(relevance), kind="stable")]
    return ranking.newest_first(
        order,
        question=question,
        relevance=numbers(*relevance),
        moments=list(range(len(texts))),
        texts=dict(enumerate(texts)),
        cosines=np.full((len(texts), len(texts)), cosine),
    )


def test_the_newer_of_two_values_of_the_same_thing_comes_first() -> None:
    said = ["I have 40 sources in Zotero", "now it is 55 sources in Zotero"]
    assert arrange("How many sources are in my Zotero library?", said, [0.9, 0.8], 0.7) == [1, 0]


@pytest.mark.parametrize(
    ("question", "said", "relevance", "cosine"),
    [
        ("How many sources did I have?", ["40 sources", "55 sources"], [0.9, 0.8], 0.7),
        ("How many sources are there?", ["40 sources", "55 sources"], [0.9, 0.8], 0.2),
        ("How many sources are there?", ["40 sources", "55 sources"], [0.9, 0.4], 0.7),
        ("How many sources are there?", ["40 sources", "many sources"], [0.9, 0.8], 0.7),
        ("How many sources are there?", ["40 sources", "40 sources, as I said"], [0.9, 0.8], 0.7),
    ],
)
def test_the_order_stays_where_nothing_was_updated(
    question: str, said: list[str], relevance: list[float], cosine: float
) -> None:
    assert arrange(question, said, relevance, cosine) == [0, 1]
