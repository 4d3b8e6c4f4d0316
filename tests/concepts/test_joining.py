"""C31: what is joined to a concept on adding is kept, and undone like any merge; a contradiction is not joined."""

import pytest

from recollect.engine.engine import Engine
from recollect.errors import Conflict, InvalidInput
from recollect.model import Status

pytestmark = pytest.mark.anyio
TEXT = "what carries consciousness, whatever it is made of"
SAID_AGAIN = "what carries consciousness, whatever it is made of, says Mai"


@pytest.fixture
async def there(memory: Engine) -> Engine:
    await memory.concepts.add("Kyoto protocol", text=TEXT, base_weight=0.2, created_by="Linh")
    return memory


async def test_C31_the_second_text_is_kept_with_its_weight_and_its_maker(there: Engine) -> None:
    again = await there.concepts.add(
        "kyoto_protocol", text=SAID_AGAIN, base_weight=0.6, created_by="Mai", energy={"reader": 0.5}, threshold=0.9
    )
    assert not again.is_new
    (variant,) = again.concept.variants
    assert (variant.text, variant.base_weight, variant.created_by) == (SAID_AGAIN, 0.6, "Mai")
    assert again.concept.text == TEXT
    assert again.concept.base_weight == pytest.approx(0.4)
    assert again.concept.raw_energy == {"reader": 0.5}
    assert again.concept.absorbed == (variant.id,)
    assert (await there.concepts.get(variant.id)).id == again.concept.id


async def test_C31_the_join_is_a_plan_that_the_history_tells_of_and_undo_makes_two(there: Engine) -> None:
    again = await there.concepts.add(
        "Kyoto Protocol", text=SAID_AGAIN, metadata={"area": "climate"}, created_by="Mai", threshold=0.8
    )
    (variant,) = again.concept.variants
    assert again.concept.metadata["area"] == "climate"
    for id_ in (again.concept.id, variant.id):
        entry = (await there.history(id_))[-1]
        assert (entry.verb, entry.plan_id) == ("merge", again.plan_id)
    await there.undo(again.plan_id or "")
    kept, other = [await there.concepts.get(id_) for id_ in (again.concept.id, variant.id)]
    assert (kept.variants, kept.metadata, kept.base_weight) == ((), {}, 0.2)
    assert (other.status, other.text, other.created_by) == (Status.ACTIVE, SAID_AGAIN, "Mai")


async def test_C31_what_was_said_before_is_counted_and_makes_no_plan(there: Engine) -> None:
    told = {"text": TEXT, "base_weight": 0.2, "created_by": "Linh"}
    for more in (told, {"created_by": "import"}, {}):
        again = await there.concepts.add("Kyoto protocol", **more, energy={"reader": 0.5}, threshold=0.2)
        assert (again.is_new, again.plan_id, again.concept.variants) == (False, None, ())
    assert again.concept.raw_energy == {"reader": 1.5}
    assert (await there.plans.list())[0] == []


async def test_C31_the_same_said_by_another_or_weighed_otherwise_is_news(there: Engine) -> None:
    await there.concepts.add("Kyoto protocol", text=TEXT, created_by="Mai")
    again = await there.concepts.add("Kyoto protocol", base_weight=0.4, created_by="Linh", threshold=0.2)
    assert [one.created_by for one in again.concept.variants] == ["Mai", "Linh"]
    assert again.concept.base_weight == pytest.approx(0.3)
    twice = await there.concepts.add("Kyoto protocol", base_weight=0.4, created_by="Linh", threshold=0.2)
    assert (twice.plan_id, len(twice.concept.variants)) == (None, 2)


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ("the deploy needs approval by two people", "the deploy needs approval by three people at 5 pm", "numbers"),
        ("the deploy needs approval", "the deploy needs no approval", "says “not”"),
        ("the deploy may be enabled by anybody", "the deploy may be disabled by anybody", "opposite"),
        ("it turns CSV into JSON", "it turns JSON into CSV", "order"),
        ("die Freigabe dauert 5 Tage", "die Freigabe dauert 50 Tage", "numbers"),
        ("phê duyệt được cần đến", "phê duyệt không được cần đến", "says “not”"),
        ("この手順は承認がいる", "この手順は承認がいらない", "says “not”"),
    ],
)
async def test_C31_a_text_that_contradicts_is_not_joined_and_says_why(
    memory: Engine, first: str, second: str, why: str
) -> None:
    one = await memory.concepts.add("deploy rule", text=first)
    other = await memory.concepts.add("deploy rule", text=second, threshold=0.3)
    assert other.is_new
    assert other.resembles == (one.concept.id,)
    assert why in other.reason
    # Nor does the next tidying merge them unasked.
    plan = await memory.plans.propose("duplicates", {"threshold": 0.3, "review": 0.3})
    assert not plan.decisions
    assert any(finding.rule == "review" for finding in plan.findings)


async def test_C31_an_id_given_with_it_leads_to_the_one_that_was_there_unless_it_is_taken(there: Engine) -> None:
    kept = await there.concepts.get("kyoto protocol")
    again = await there.concepts.add("Kyoto protocol", id=kept.id, threshold=0.2)
    assert again.plan_id is None
    with pytest.raises(InvalidInput, match="taken"):
        await there.concepts.add("Kyoto protocol", text=SAID_AGAIN, id=kept.id, threshold=0.8)
    assert (await there.plans.list())[0] == []


async def test_C31_protection_does_not_stop_what_is_said_of_a_concept(there: Engine) -> None:
    await there.concepts.protect("kyoto protocol")
    again = await there.concepts.add("Kyoto protocol", text=SAID_AGAIN, threshold=0.8)
    assert not again.is_new
    assert [one.text for one in again.concept.variants] == [SAID_AGAIN]
    assert again.concept.protected


async def test_C31_a_later_merge_of_the_keeper_is_named_when_a_join_is_undone(there: Engine) -> None:
    again = await there.concepts.add("Kyoto protocol", text=SAID_AGAIN, threshold=0.8)
    other = await there.concepts.add("climate treaty of 1997", text="an agreement between states about the air")
    merged = await there.concepts.merge(other.concept.id, again.concept.id)

    with pytest.raises(Conflict, match=str(merged.plan_id)[:8]):
        await there.undo(again.plan_id or "")
    await there.undo(merged.plan_id)
    await there.undo(again.plan_id or "")
    assert (await there.concepts.get(again.concept.id)).variants == ()
