"""Concepts: formed once, found under every name they ever had, merged by plans, and two again when those are undone."""

import re
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from recollect.concepts.rules.concepts import words_of
from recollect.concepts.sql import concepts
from recollect.engine.engine import Engine
from recollect.engine.sql import spaces
from recollect.errors import Conflict, InvalidInput, NotFound, ProviderUnavailable
from recollect.model import Kind, NewConcept, Status
from recollect.plan import Plan, PlanStatus
from recollect.plans.sql import declined
from recollect.store.database import driver

pytestmark = pytest.mark.anyio

NOW = datetime(2026, 11, 15, 8, 0, tzinfo=UTC)
TEXT = "what consciousness is made of, whatever carries it"


@pytest.fixture
async def there(memory: Engine) -> Engine:
    memory.core.now = lambda: NOW
    return memory


async def rows(memory: Engine, table: str) -> list[dict[str, Any]]:
    async with memory.core.transaction(memory.space.id) as db:
        raw = await driver(db)
        found = await raw.fetch(f"SELECT to_jsonb(t) - 'changed_in' AS row FROM {table} t ORDER BY 1")
    return [row["row"] for row in found]


async def world(memory: Engine) -> list[list[dict[str, Any]]]:
    return [await rows(memory, table) for table in ("nodes", "edges", "activity", "aliases")]


async def make(memory: Engine, name: str, **more: Any) -> UUID:
    """A concept as it came in by another way, unchecked: what is there is not looked at."""
    new = NewConcept(name=name, **{"text": TEXT, "created_at": NOW, **more})
    embedder, id_ = memory.core.embedder(), uuid4()
    (vector,) = await embedder.embed([words_of(new.name, new.text)])
    told: dict[str, Any] = {
        "model": embedder.model,
        "models": [embedder.model],
        "max_attempts": 1,
        "now": memory.core.now(),
    }
    async with memory.core.transaction(memory.space.id) as db:
        await concepts.insert(db, [(id_, new, vector)], **told)
        await spaces.use_model(db, embedder.model)
    return id_


async def twins(memory: Engine, **more: Any) -> tuple[UUID, UUID]:
    """Two concepts that the policy merges by itself."""
    one = await make(memory, "consciousness_substrate", created_at=NOW - timedelta(days=2), **more)
    return one, await make(memory, "Consciousness Substrate")


async def test_C19_a_twin_is_returned_instead_of_a_second(there: Engine) -> None:
    first = await there.concepts.add("consciousness_substrate", energy={"translator": 0.6}, metadata={"area": "mind"})
    again = await there.concepts.add(
        "Consciousness  substrate", energy={"translator": 0.3, "architect": 0.4}, metadata={"area": "mind"}
    )
    assert first.is_new
    assert not again.is_new
    assert again.concept.id == first.concept.id
    assert again.score == 1.0
    assert "consciousness_substrate" in again.reason
    assert again.concept.raw_energy == pytest.approx({"translator": 0.9, "architect": 0.4})


async def test_C19_the_name_given_becomes_an_alias_and_metadata_that_it_lacks_is_added(there: Engine) -> None:
    first = await there.concepts.add("café society", text=TEXT, metadata={"area": "mind"})
    again = await there.concepts.add(
        "Cafe\u0301 Society", text=TEXT, metadata={"area": "mind", "by": "Luca"}, threshold=0.9
    )
    assert not again.is_new
    assert (await there.get(first.concept.id)).metadata == {"area": "mind", "by": "Luca"}
    assert again.concept.version == first.concept.version + 1
    (_, edited) = await there.history(first.concept.id)
    assert edited.verb == "merge"
    await there.undo(edited.plan_id or "")
    assert (await there.concepts.get(first.concept.id)).metadata == {"area": "mind"}


async def test_C19_what_is_alike_but_doubtful_is_made_and_says_what_it_resembles(there: Engine) -> None:
    one = await there.concepts.add("ASR1603", text=TEXT)
    other = await there.concepts.add("ASR1605", text=TEXT)
    assert other.is_new
    assert other.resembles == (one.concept.id,)
    assert "digits" in other.reason
    bare = await there.concepts.add("tea")
    assert (bare.is_new, bare.resembles, bare.score) == (True, (), None)


async def test_C02_C19_another_type_and_another_text_is_another_concept(there: Engine) -> None:
    planet = await there.concepts.add("mercury", text="the planet nearest to the sun, small and hot")
    metal = await there.concepts.add("mercury", text="a silver liquid used once in thermometers")
    name = await there.concepts.add("mercury", "name", text="the planet nearest to the sun, small and hot")
    assert len({planet.concept.id, metal.concept.id, name.concept.id}) == 3
    with pytest.raises(Conflict, match=str(planet.concept.id)[:8]):
        await there.concepts.get("mercury", "concept")
    assert (await there.concepts.get("Mercury", "name")).id == name.concept.id


async def test_of_names_that_differ_in_capitals_the_one_spelled_alike_is_meant(there: Engine) -> None:
    country = await there.concepts.add("US")
    people = await there.concepts.add("us")
    assert people.is_new
    assert [(await there.concepts.get(name)).id for name in ("US", "us")] == [country.concept.id, people.concept.id]
    with pytest.raises(Conflict, match="Several"):
        await there.concepts.get("Us")


async def test_C04_without_an_embedder_the_same_words_still_are_the_same(there: Engine) -> None:
    class Gone:
        model, dim = "hashing:64", 64

        def can_read(self, text: str) -> bool:
            return True

        def knows(self, text: str) -> float:
            return 1.0

        async def embed(self, texts: list[str]) -> Any:
            raise ProviderUnavailable("away")

        async def close(self) -> None: ...

    core = there.core
    (spec,) = {core.settings.embedder}
    core.embedder()
    before = dict(core.embedders)
    core.embedders = dict.fromkeys((spec, "hashing:64"), Gone())  # type: ignore[arg-type]
    first = await there.concepts.add("tea ceremony")
    again = await there.concepts.add("tea_ceremony")
    other = await there.concepts.add("tea ceremonies")
    core.embedders = before
    assert (first.is_new, again.is_new, other.is_new) == (True, False, True)
    assert (await there.jobs()).pending == 2
    await there.work()
    assert (await there.jobs()).pending == 0


async def test_C19_what_cannot_be_a_concept_is_refused(there: Engine) -> None:
    for given in (
        {"name": "_ "},
        {"name": "x", "node_type": ""},
        {"name": "x", "node_type": "t" * 101},
        {"name": "x", "energy": {"a": -1}},
        {"name": "x", "energy": {"a": float("nan")}},
        {"name": "x", "base_weight": float("inf")},
        {"name": "x", "metadata": {"merge_history": []}},
        {"name": "x", "metadata": {"a": "b" * 5000}},
        {"name": "x", "text": "a\0b"},
        {"name": "x", "threshold": 0.0},
    ):
        with pytest.raises(InvalidInput):
            await there.concepts.add(**given)
    assert await there.concepts.list() == ([], None)


# -- merging


async def proposed(memory: Engine, **options: Any) -> Plan:
    return await memory.plans.propose("duplicates", options)


async def test_C08_C16_twins_become_one_the_older_stays_and_the_other_leads_to_it(there: Engine) -> None:
    one, other = await twins(there)
    plan = await proposed(there)
    (decision,) = plan.decisions
    assert (decision.verb, decision.subject) == ("merge", other)
    assert decision.score == decision.factors["score"] >= 0.95
    outcome = await there.plans.apply(plan.id)
    assert (outcome.status, outcome.applied) == (PlanStatus.APPLIED, 1)
    kept = await there.concepts.get(one)
    assert kept.absorbed == (other,)
    for reference in (other, str(other), str(other)[:8], "Consciousness Substrate", "consciousness_substrate", one):
        assert (await there.concepts.get(reference)).id == one
    assert (await there.get(other)).id == one
    assert [concept.id for concept in (await there.concepts.list())[0]] == [one]


async def test_C08_strategies_choose_who_stays(there: Engine) -> None:
    old, new = await twins(there)
    friend = await make(there, "friend", text="somebody else entirely, far away")
    await there.graph.link(new, friend, "extends")
    await there.concepts.add_energy(new, {"a": 0.1})
    kept = {
        strategy: (await proposed(there, strategy=strategy)).decisions[0].factors["keeper"]
        for strategy in ("prefer_older", "prefer_more_links")
    }
    assert kept == {"prefer_older": str(old), "prefer_more_links": str(new)}


async def test_C08_the_heavier_stays_and_takes_the_older_age(there: Engine) -> None:
    old, new = await twins(there, base_weight=0.2)
    async with there.core.transaction(there.space.id) as db:
        raw = await driver(db)
        await raw.execute(
            "INSERT INTO activity (space_id, node_id, base_weight) VALUES ($1, $2, 0.8)", there.space.id, new
        )
    before = await world(there)
    plan = await proposed(there, strategy="prefer_higher_weight")
    await there.plans.apply(plan.id)
    kept = await there.concepts.get(new)
    assert (kept.id, kept.created_at) == (new, NOW - timedelta(days=2))
    assert kept.base_weight == pytest.approx(0.5)
    assert (await there.concepts.get(old)).id == new
    await there.undo(plan.id)
    assert await world(there) == before


async def test_C09_C10_C24_energy_is_summed_and_weight_is_the_mean_of_all_that_merged(there: Engine) -> None:
    for number, (name, energy) in enumerate(
        [("consciousness_substrate", 0.4), ("consciousness substrate", 0.3), ("Consciousness_Substrate", 0.2)]
    ):
        await make(
            there,
            name,
            energy={"translator": energy},
            base_weight=0.1 + 0.3 * number,
            created_at=NOW - timedelta(days=number),
        )
    plan = await proposed(there)
    assert len(plan.decisions) == 2
    assert {one.group for one in plan.decisions} == {0}
    await there.plans.apply(plan.id)
    kept = await there.concepts.get("consciousness substrate")
    assert kept.raw_energy == pytest.approx({"translator": 0.9})
    assert kept.energy["translator"] == pytest.approx(0.844, abs=5e-4)
    assert kept.base_weight == pytest.approx(0.4)
    assert kept.made_of == 3


async def test_C25_merging_preserves_energy_as_the_document_tests_it_in_the_store(there: Engine) -> None:
    one = await make(there, "test_a", energy={"translator": 0.6})
    other = await make(there, "test_b", energy={"translator": 0.3, "architect": 0.4})
    await there.concepts.merge(one, other)
    merged = await there.concepts.get(one)
    assert merged.energy["translator"] >= 0.8
    assert merged.energy["architect"] >= 0.35


async def test_C25_C11_links_are_redirected_as_the_document_tests_it(there: Engine) -> None:
    one, other = await make(there, "duplicate_a"), await make(there, "duplicate_b")
    x = await make(there, "other_node", text="something else entirely")
    await there.graph.link(x, one, strength=0.5)
    await there.graph.link(other, x, strength=0.6)
    await there.concepts.merge(one, other)
    ends = {(edge.source, edge.target) for edge in await there.graph.edges(one)}
    assert ends == {(x, one), (one, x)}
    assert await there.graph.edges(other) == await there.graph.edges(one)


async def test_C11_C12_parallel_links_become_one_mean_and_loops_go(there: Engine) -> None:
    one, other = await twins(there)
    x = await make(there, "x", text="something else entirely")
    kept = await there.graph.link(one, x, "extends", strength=0.4, created_by="auto", confidence=0.3)
    absorbed = await there.graph.link(other, x, "extends", strength=0.8, confidence=0.9, explanation="said so")
    loop = await there.graph.link(other, one, "similar", strength=0.5)
    await there.graph.reinforce(absorbed.id, "traversal")
    await there.graph.protect(absorbed.id)
    before = await world(there)
    plan = await proposed(there)
    await there.plans.apply(plan.id)
    (edge,) = await there.graph.edges(one)
    assert edge.id == kept.id
    assert edge.strength == pytest.approx((0.4 + 0.85) / 2)
    assert (edge.activation_count, edge.confidence, edge.explanation, edge.protected) == (1, 0.9, "said so", True)
    gone = {row["id"]: (row["status"], row["merged_into"]) for row in await rows(there, "edges")}
    assert gone[str(absorbed.id)] == ("merged", str(kept.id))
    assert gone[str(loop.id)][0] == "pruned"
    await there.undo(plan.id)
    assert await world(there) == before


async def test_C11_the_mean_weighs_each_link_for_as_many_as_it_is_made_of(there: Engine) -> None:
    names = ["consciousness_substrate", "consciousness substrate", "Consciousness_Substrate"]
    ids = [await make(there, name, created_at=NOW - timedelta(days=3 - place)) for place, name in enumerate(names)]
    x = await make(there, "x", text="something else entirely")
    for id_, strength in zip(ids, (0.2, 0.4, 0.9), strict=True):
        await there.graph.link(id_, x, "extends", strength=strength)
    plan = await proposed(there)
    assert plan.decisions[1].needs == (1,)
    await there.plans.apply(plan.id)
    (edge,) = await there.graph.edges(ids[0])
    assert edge.strength == pytest.approx(0.5)


async def test_C13_C14_C15_metadata_is_united_and_the_history_tells_of_every_merge(there: Engine) -> None:
    one = await make(there, "consciousness_substrate", metadata={"area": "mind"}, created_at=NOW - timedelta(days=1))
    other = await make(there, "consciousness substrate", metadata={"area": "mind", "by": "Luca"})
    plan = await proposed(there, threshold=0.94)
    await there.plans.apply(plan.id)
    kept = await there.concepts.get(one)
    (entry,) = kept.metadata.pop("merge_history")
    assert kept.metadata == {"area": "mind", "by": "Luca"}
    assert entry == {
        "merged_node_id": str(other),
        "merged_node_name": "consciousness substrate",
        "merge_timestamp": NOW.isoformat(),
        "similarity_score": plan.decisions[0].score,
    }


async def test_C17_a_chain_of_merges_keeps_its_provenance_and_its_names(there: Engine) -> None:
    a, b, c = [await make(there, name, text=f"{name} is different") for name in ("alpha", "beta", "gamma")]
    await there.concepts.add_energy("alpha", {"x": 0.5})
    await there.concepts.merge(b, a)
    later = await there.concepts.merge(c, b)
    kept = await there.concepts.get("alpha")
    assert (kept.id, set(kept.absorbed), kept.raw_energy) == (c, {a, b}, {"x": 0.5})
    assert kept.aliases == ("alpha", "beta")
    assert [entry["merged_node_id"] for entry in kept.metadata["merge_history"]] == sorted([str(a), str(b)])
    await there.undo(later.plan_id)
    assert (await there.concepts.get("alpha")).id == b
    assert (await there.concepts.get(c)).absorbed == ()


async def test_P07_a_merge_is_not_undone_before_the_later_one_that_it_went_into(there: Engine) -> None:
    a, b, c = [await make(there, name, text=f"{name} is different") for name in ("alpha", "beta", "gamma")]
    first = await there.concepts.merge(b, a)
    later = await there.concepts.merge(c, b)
    before = await world(there)
    with pytest.raises(Conflict, match=str(later.plan_id)):
        await there.undo(first.plan_id)
    assert await world(there) == before
    await there.undo(later.plan_id)
    await there.undo(first.plan_id)
    assert {concept.name for concept in (await there.concepts.list())[0]} == {"alpha", "beta", "gamma"}


async def test_P07_energy_and_links_that_came_after_a_merge_stay_with_the_keeper(there: Engine) -> None:
    one, other = await twins(there, energy={"a": 0.5})
    await there.concepts.add_energy(other, {"a": 0.25})
    x = await make(there, "x", text="something else entirely")
    plan = await proposed(there)
    await there.plans.apply(plan.id)
    await there.concepts.add_energy(other, {"a": 0.125})
    await there.graph.link(other, x)
    await there.undo(plan.id)
    assert (await there.concepts.get(one)).raw_energy == {"a": 0.625}
    assert (await there.concepts.get(other)).raw_energy == {"a": 0.25}
    assert [edge.source for edge in await there.graph.edges(x)] == [one]


async def test_P07_a_merge_taken_back_and_made_again_leaves_nothing_hanging(there: Engine) -> None:
    _, other = await twins(there)
    plan = await proposed(there)
    await there.plans.apply(plan.id)
    undone = await there.undo(plan.id)
    x = await make(there, "x", text="something else entirely")
    await there.graph.link(other, x)
    with pytest.raises(Conflict, match="would hang on"):
        await there.undo(undone.plan_id)
    assert (await there.concepts.get(other)).status is Status.ACTIVE


# -- what is left alone


async def test_C21_never_merge_pairs_are_honoured_in_every_path(there: Engine) -> None:
    await there.concepts.keep_apart("consciousness_substrate", "substrate of consciousness", reason="not the same")
    one = await make(there, "consciousness substrate")
    other = await there.concepts.add("substrate_of_consciousness", text=TEXT, threshold=0.5)
    assert other.is_new
    assert not (await proposed(there, ask_about=[], threshold=0.6, review=0.6)).decisions
    with pytest.raises(Conflict, match="never-merge"):
        await there.concepts.merge(one, other.concept.id)
    assert "they are on the never-merge list" in (await there.concepts.why(one, other.concept.id)).explanation.failed
    await there.concepts.let_merge("Substrate of Consciousness", "consciousness substrate")
    assert await there.concepts.kept_apart() == []
    assert len((await proposed(there, ask_about=[], threshold=0.6, review=0.6)).decisions) == 1


async def test_C21_a_pair_holds_through_names_already_absorbed(there: Engine) -> None:
    await there.concepts.keep_apart("alpha", "gamma")
    a, b, c = [await make(there, name) for name in ("alpha", "beta", "gamma")]
    await there.concepts.merge(b, a)
    with pytest.raises(Conflict, match="never-merge"):
        await there.concepts.merge(c, b)
    plan = await proposed(there, ask_about=[], threshold=0.5, review=0.5)
    assert not plan.decisions
    again = await there.concepts.add("gamma", text=TEXT, threshold=0.5)
    assert again.concept.id == c


async def test_C21_a_pair_that_was_added_since_makes_a_waiting_merge_stale(there: Engine) -> None:
    await twins(there)
    plan = await proposed(there)
    async with there.core.transaction(there.space.id) as db:
        ids = plan.decisions[0].factors["pair"]
        await declined.keep_apart(db, [(ids[0], ids[1], None)], now=NOW, days=None, reason="no")
    outcome = await there.plans.apply(plan.id)
    assert outcome.applied == 0
    assert "never-merge" in outcome.stale[0]


async def test_C21_C27_the_shipped_example_can_be_added_and_a_pair_needs_two_names(there: Engine) -> None:
    listed = await there.concepts.keep_all_apart()
    assert [(pair.a, pair.b) for pair in listed] == [
        ("consciousness", "consciousness engine"),
        ("entity", "sub entity"),
    ]
    assert len(await there.concepts.keep_all_apart()) == 2
    with pytest.raises(InvalidInput, match="the same name"):
        await there.concepts.keep_apart("a_b", "A  b")
    with pytest.raises(NotFound):
        await there.concepts.let_merge("a", "b")


async def test_P11_a_declined_merge_rests_until_either_changes_and_never_is_for_good(there: Engine) -> None:
    one, other = await twins(there)
    plan = await proposed(there)
    await there.plans.decline(plan.id, [1])
    assert not (await proposed(there, only_newer_than="")).decisions
    for id_ in (one, other):
        await there.edit(id_, metadata={"by": "Ada"})
    again = await proposed(there, only_newer_than="")
    assert [decision.subject for decision in again.decisions] == [other]
    await there.plans.decline(again.id, [1], never=True)
    for id_ in (one, other):
        await there.edit(id_, metadata={"by": "Felix"})
    assert not (await proposed(there, only_newer_than="")).decisions
    assert [pair.until for pair in await there.concepts.kept_apart()] == [None]


async def test_protected_concepts_and_identities_are_left_alone(there: Engine) -> None:
    one, _ = await twins(there)
    await there.concepts.protect(one)
    await make(there, "me", node_type="Identity")
    await make(there, "Me", node_type="Identity")
    assert not (await proposed(there)).decisions
    await there.concepts.protect(one, False)
    assert len((await proposed(there, leave_types=[])).decisions) == 2


async def test_P04_a_merge_goes_stale_when_the_world_has_moved(there: Engine) -> None:
    one, other = await twins(there)
    x = await make(there, "x", text="something else entirely")
    # Asked otherwise, for of two plans that were asked the same only the later one waits.
    linked, edited, guarded = [await proposed(there, most_merges=100 + number) for number in range(3)]
    edge = await there.graph.link(other, x)
    assert "links" in (await there.plans.apply(linked.id)).stale[0]
    await there.graph.unlink(edge.id)
    await there.concepts.protect(one)
    assert "protected" in (await there.plans.apply(guarded.id)).stale[0]
    await there.concepts.protect(one, False)
    await there.edit(other, metadata={"by": "Ada"})
    assert "changed since" in (await there.plans.apply(edited.id)).stale[0]


async def test_P04_C03_a_keeper_that_changed_since_takes_nothing_in(there: Engine) -> None:
    one, other = await twins(there, metadata={"area": "mind"})
    await there.edit(other, metadata={"area": "mind"})
    plan = await proposed(there)
    assert [decision.subject for decision in plan.decisions] == [other]
    await there.edit(one, metadata={"area": "software"})
    assert "changed since" in (await there.plans.apply(plan.id)).stale[0]
    assert (await there.concepts.get(other)).id == other


async def test_P04_what_a_group_adds_to_its_keeper_is_no_change(there: Engine) -> None:
    one, _ = await twins(there)
    await make(there, "consciousness substrate", metadata={"area": "mind"})
    await make(there, "consciousness_Substrate", metadata={"by": "Ada"})
    plan = await there.plans.propose("duplicates", {"ask_about": [], "threshold": 0.85, "precision": 0})
    outcome = await there.plans.apply(plan.id)
    assert (outcome.applied, outcome.stale) == (3, ())
    assert {"area": "mind", "by": "Ada"}.items() <= (await there.concepts.get(one)).metadata.items()


async def test_C29_chains_go_to_review_and_the_literal_reading_can_be_chosen(there: Engine) -> None:
    names = ["one beta gamma delta epsilon six", "one beta gamma delta epsilon two", "ten beta gamma delta epsilon two"]
    for name in names:
        await make(there, name, text=name)
    scores = sorted(pair.score for pair in await there.concepts.duplicates(threshold=0.3))
    assert len(scores) == 3
    threshold = (scores[0] + scores[1]) / 2
    literal = {"threshold": threshold, "review": threshold, "precision": 0, "ask_about": []}
    plan = await proposed(there, **literal)
    assert not plan.decisions
    (finding,) = plan.findings
    assert (finding.rule, "a chain" in finding.text) == ("review", True)
    assert len((await proposed(there, **literal, linkage="keeper")).decisions) >= 1


async def test_C28_a_person_is_asked_before_much_moves_and_a_run_makes_only_so_many(there: Engine) -> None:
    one, _ = await twins(there)
    await there.concepts.add_energy(one, {"a": 5.0})
    plan = await proposed(there)
    assert not plan.decisions
    assert "energy" in plan.findings[0].text
    await make(there, "tea house", text="where tea is drunk")
    await make(there, "Tea_House", text="where tea is drunk")
    limited = await proposed(there, ask_from_energy=100.0, most_merges=1)
    assert (len(limited.decisions), limited.summary["postponed"]) == (1, 1)


async def test_C18_a_second_pass_compares_only_what_changed(there: Engine) -> None:
    there.core.now = lambda: NOW - timedelta(days=1)
    await twins(there)
    there.core.now, later = lambda: NOW, NOW + timedelta(days=1)
    first = await there.plans.run("duplicates")
    assert (first.plan.summary["compared"], first.outcome.applied if first.outcome else 0) == (2, 1)
    there.core.now = lambda: later
    second = await proposed(there)
    assert (second.summary["concepts"], second.summary["compared"]) == (1, 0)
    await make(there, "tea house", text="where tea is drunk")
    await make(there, "Tea_House", text="where tea is drunk")
    third = await proposed(there)
    assert (third.summary["compared"], len(third.decisions)) == (2, 1)
    again = await proposed(there)
    assert len(again.decisions) == 1, "a plan that waits settles nothing"
    everything = await proposed(there, only_newer_than="")
    assert everything.summary["compared"] == 3
    other_options = await proposed(there, review=0.9)
    assert other_options.summary["compared"] == 3


@pytest.mark.parametrize(("since", "found"), [("0001-01-01", 1), ("9999-12-31T23:59:59-12:00", 0)])
async def test_C18_any_time_of_the_calendar_can_be_given(there: Engine, since: str, found: int) -> None:
    await twins(there)
    assert len((await proposed(there, only_newer_than=since)).decisions) == found


async def test_C18_what_was_postponed_is_compared_again(there: Engine) -> None:
    there.core.now = lambda: NOW - timedelta(days=1)
    for name in ("tea house", "rice bowl", "green field"):
        for spelling in (name, name.replace(" ", "_")):
            await make(there, spelling, text=f"about {name} and nothing else")
    there.core.now = lambda: NOW
    first = await there.plans.run("duplicates", {"most_merges": 1})
    assert first.outcome is not None
    there.core.now = lambda: NOW + timedelta(days=1)
    second = await there.plans.run("duplicates", {"most_merges": 1})
    assert (second.plan.summary["compared"], len(second.plan.decisions)) == (4, 1)


async def test_C18_an_incremental_group_is_judged_by_all_its_pairs(there: Engine) -> None:
    await make(there, "tea house", text="where tea is drunk")
    plan = await proposed(there, most_merges=0)
    await there.plans.apply(plan.id)
    there.core.now = lambda: NOW + timedelta(days=1)
    for spelling in ("Tea House", "tea_house"):
        await make(there, spelling, text="where tea is drunk")
    decisions = (await proposed(there)).decisions
    assert len(decisions) == 2
    assert len({one.group for one in decisions}) == 1


# -- looking


async def test_C01_C07_duplicates_are_listed_best_first_and_nothing_changes(there: Engine) -> None:
    await twins(there)
    await make(there, "consciousness substrates")
    before = await world(there)
    found = await there.concepts.duplicates(threshold=0.8)
    scores = [pair.score for pair in found]
    assert scores == sorted(scores, reverse=True)
    assert len(found) == 3
    assert scores[1] == scores[2] < 1
    assert [pair.score for pair in await there.concepts.duplicates(threshold=scores[1])] == scores
    assert [pair.score for pair in await there.concepts.duplicates(threshold=scores[1] + 1e-6)] == scores[:1]
    assert await there.concepts.duplicates(node_type="person") == []
    assert await world(there) == before


async def test_C30_why_tells_the_factors_the_bound_that_failed_and_what_happened(there: Engine) -> None:
    one, other = await twins(there)
    told = await there.concepts.why(str(one)[:8], other)
    assert not told.is_one
    assert told.explanation.would_merge
    assert told.explanation.estimate is not None
    assert told.explanation.estimate.probability >= 0.995
    assert "% that they are one" in str(told)
    assert "rivals" in str(told)
    plan = await proposed(there)
    await there.plans.apply(plan.id)
    after = await there.concepts.why(one, other)
    assert after.is_one
    assert [entry.verb for entry in after.history] == ["add", "add", "merge"]
    assert "cosine" in str(after)
    x = await make(there, "elephant", text="a large animal")
    assert any("nothing else can make up" in reason for reason in (await there.concepts.why(one, x)).explanation.failed)
    with pytest.raises(InvalidInput, match="same node"):
        await there.concepts.why(x, "elephant")
    with pytest.raises(NotFound):
        await there.concepts.why(x, "nothing of that name")


async def test_merging_by_hand_refuses_what_cannot_be_one(there: Engine) -> None:
    one, other = await twins(there)
    person = await make(there, "Ada", node_type="person", text="wrote the first program")
    with pytest.raises(Conflict, match="only one type"):
        await there.concepts.merge(one, person)
    with pytest.raises(InvalidInput):
        await there.concepts.merge(one)
    with pytest.raises(InvalidInput, match="one concept already"):
        await there.concepts.merge(one, one)
    await there.concepts.protect(other)
    with pytest.raises(Conflict, match="protected"):
        await there.concepts.merge(one, other)
    note = await there.add("a memory")
    with pytest.raises(InvalidInput, match="not a concept"):
        await there.concepts.merge(one, note.id)


async def test_concepts_are_recalled_by_their_own_kind(there: Engine) -> None:
    one, other = await twins(there)
    hits = await there.recall("consciousness", kinds=[Kind.CONCEPT])
    assert {hit.node.id for hit in hits} == {one, other}
    await there.plans.run("duplicates")
    assert [hit.node.id for hit in await there.recall("consciousness", kinds=[Kind.CONCEPT])] == [one]


async def test_near_duplicate_memories_are_linked_and_named_and_never_merged(there: Engine) -> None:
    first = await there.add("The tea house on the corner opens at eight in the morning")
    second = await there.add("The tea house on the corner opens at eight in the morning!")
    await there.add("Elephants remember")
    tidied = await there.plans.run("twins")
    assert tidied.outcome is not None
    (edge,) = await there.graph.edges(second.id)
    assert {edge.source, edge.target} == {first.id, second.id}
    assert (edge.relation, edge.explanation) == ("similar", "probably the same")
    assert "probably the same" in tidied.plan.findings[0].text
    assert {node.status for node in (await there.list()).items} == {Status.ACTIVE}
    again = await there.plans.propose("twins")
    assert (len(again.decisions), len(again.findings)) == (0, 1)


async def test_C26_a_merge_is_drawn_before_and_after_with_its_keeper_and_its_links(there: Engine) -> None:
    _, other = await twins(there)
    bare = await there.graph.plan_picture((await proposed(there)).id, format="svg")
    assert re.findall(r">(\d+ nodes?, \d+ links?)<", bare) == ["2 nodes, 0 links", "1 node, 0 links"]
    x = await make(there, "x", text="something else entirely")
    await there.graph.link(other, x, "extends", strength=0.5)
    plan = await proposed(there)
    for _ in ("proposed", "applied"):
        drawn = await there.graph.plan_picture(plan.id, format="svg")
        assert re.findall(r">(\d+ nodes?, \d+ links?)<", drawn) == ["3 nodes, 1 link", "2 nodes, 1 link"]
        assert drawn.count('class="dot concept removed"') == 1
        await there.plans.apply(plan.id)
