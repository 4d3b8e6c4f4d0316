"""Plans and links on the command line: proposed, shown, declined, applied, stale, undone; and every bad command."""

import asyncio
import json
import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest

from recollect.engine.engine import Engine
from recollect.model import NewEdge, NewMemory
from recollect.settings import Settings
from tests.doors import test_cli_support as support
from tests.doors.test_cli_support import Cli

own_database, in_default, cli = support.own_database, support.in_default, support.cli
T = TypeVar("T")
SOME_ID = re.compile(r"[0-9a-f]{8}")
NOBODY = "00000000-0000-4000-8000-000000000009"


def directly(verb: Callable[[Engine], Awaitable[T]]) -> T:
    """Something done to the memory of this test past the command line, where that takes fewer steps."""

    async def run() -> T:
        async with Engine(Settings.load()) as engine:
            return await verb(engine)

    return asyncio.run(run())


def doubled(cli: Cli, pairs: int = 2) -> list[str]:
    """Pairs of memories with two links each; returns the links that win when they are merged."""

    async def make(engine: Engine) -> list[str]:
        texts = [text for n in range(pairs) for text in (f"tea number {n}", f"cup number {n}")]
        ids = (await engine.add_many([NewMemory(text=text) for text in texts], wait=False)).ids
        winners = []
        for a, b in zip(ids[::2], ids[1::2], strict=True):
            await engine.graph.link(a, b, "similar", strength=0.3)
            winners.append(str((await engine.graph.link(a, b, "extends", strength=0.5)).id))
        return winners

    return directly(make)


def weak_rim(cli: Cli, rim: int) -> list[str]:
    """A hub with protected spokes and weak, idle links along the rim: those can be pruned."""

    async def make(engine: Engine) -> list[str]:
        ids = (await engine.add_many([NewMemory(text=f"node {n}") for n in range(rim + 2)], wait=False)).ids
        old: dict[str, Any] = {"created_by": "auto", "created_at": engine.core.now() - timedelta(days=90)}
        spokes = await engine.graph.link_many([NewEdge(source=ids[0], target=id_) for id_ in ids[1:]])
        await engine.graph.protect(spokes[0])
        weak = [NewEdge(source=a, target=b, strength=0.1, **old) for a, b in pairwise(ids[1:])]
        return [str(id_) for id_ in await engine.graph.link_many(weak)]

    return directly(make)


def proposed(cli: Cli, policy: str = "merge-edges", *more: str) -> str:
    return str(cli.json("plan", policy, *more)["id"])


def decisions(cli: Cli, plan: str) -> dict[str, str]:
    return {one["subject"]: one["status"] for one in cli.json("plan", "show", plan)["decisions"]}


# -- proposing and showing


def test_P02_a_proposal_shows_what_comes_changes_and_goes_and_writes_nothing_else(cli: Cli) -> None:
    (winner,) = doubled(cli, 1)
    answer = cli("plan", "merge-edges")
    facts = dict(line.split("\t") for line in answer.out.partition("\n\n")[0].splitlines())
    assert facts["what"] == "Merge 2 parallel links into 1"
    assert facts["rows"] == "+ 0, ~ 1, - 1"
    assert facts["state"] == "waiting; 1 waiting"
    first, second = answer.out.partition("\n\n")[2].splitlines()
    assert first.startswith(f"1\t~\t{winner[:8]}\ttea number 0 —extends→ cup number 0\t2 edges between the same ends")
    assert "(strength 0.5 -> 0.65, " in first
    assert second.startswith("\t-\t")
    assert "tea number 0 —similar→ cup number 0" in second
    assert answer.err == (
        "The schedule would not run this yet: the graph has 2 edges, fewer than 50. You can still apply it.\n"
    )
    assert decisions(cli, facts["plan"]) == {winner: "proposed"}
    assert cli("plan", "show", facts["plan"][:8]).out == answer.out, "the plan that is shown is the plan that is saved"
    assert cli("plan", "propose", "merge_parallel_edges").code == 0


def test_A12_a_proposal_says_what_was_left_alone_and_by_which_rule(cli: Cli) -> None:
    weak = weak_rim(cli, 3)
    cli("protect", weak[0])
    shown = cli("plan", "prune", "--set", "min_inactive_days=14").out
    assert "report\t" in shown
    assert all(figure in shown for figure in ("total 7", "pruned 2", "kept 5", "kept by protected 1"))
    assert "min_inactive_days 14" in shown
    left = shown.partition("\n\nSkipped: 1 protected\n")[2]
    assert left.startswith(f"protected\t{weak[0][:8]}\tnode 1 —similar→ node 2\t")
    assert "kept because it is protected" in left


def test_P02_of_a_long_plan_the_first_decisions_are_shown_and_how_to_see_the_rest(cli: Cli) -> None:
    weak = weak_rim(cli, 60)
    answer = cli("plan", "prune")
    plan = answer.out.split("\t")[1].splitlines()[0]
    assert answer.out.count("\t-\t") == 50
    assert f"These are the first 50 of 60 decisions: `recollect plan show {plan[:8]} --all` shows all.\n" in answer.err
    assert "This plan waits for your approval: it touches 60 of 121 links" in answer.err
    assert cli("plan", "show", plan, "--all").out.count("\t-\t") == 60
    assert {one["subject"] for one in cli.json("plan", "show", plan)["decisions"]} == set(weak)
    markdown = cli("plan", "show", plan, "--md").out
    assert markdown.startswith("# Prune 60 of 121 links\n")
    assert markdown.count("| `-` |") == 60


def test_P02_a_plan_as_json_is_one_document_with_every_row_before_and_after(cli: Cli) -> None:
    (winner,) = doubled(cli, 1)
    document = json.loads(cli("plan", "merge-edges", "--json").out)
    (one,) = document["decisions"]
    assert (one["subject"], one["label"]) == (winner, "tea number 0 —extends→ cup number 0")
    assert one["changes"][0]["after"]["strength"] == 0.65
    assert document["tally"] == {"comes": 0, "returns": 0, "changes": 1, "goes": 1}
    empty = cli.json("plan", "topics")
    assert (empty["decisions"], empty["counts"], empty["warnings"]) == ([], {}, [])


def test_P02_links_and_topics_that_do_not_exist_yet_have_names_too(cli: Cli) -> None:
    cli.add("green tea in the morning", "--thread", "a")
    cli.add("green tea in the evening", "--thread", "b")
    shown = cli("plan", "link", "--set", "min_similarity=0.2").out
    assert "—similar→ green tea in the" in shown
    assert "\t+\t" in shown
    plan = shown.split("\t")[1].splitlines()[0]
    cli("apply", plan)
    undone = cli.json("undo", plan)["plan_id"]
    assert "—similar→ green tea in the" in cli("plan", "show", undone).out, "although it is no longer stored"

    async def topics(engine: Engine) -> None:
        ids = (await engine.add_many([NewMemory(text=f"hook {n}") for n in range(3)], wait=False)).ids
        for other in ids[1:]:
            await engine.graph.link(ids[0], other, source_topic="tag:react", target_topic="tag:react")

    directly(topics)
    assert "\t+\t" in cli("plan", "topics").out
    assert "tag:react\ttag:react has 3 members" in cli("plan", "topics").out


def test_P24_nothing_to_do_is_said_without_an_id_that_is_listed_nowhere(cli: Cli) -> None:
    answer = cli("plan", "prune")
    assert answer.err == "There is nothing to do.\n"
    assert not SOME_ID.search(answer.out)
    assert cli.json("plan", "prune")["id"] is None
    assert not SOME_ID.search(cli("tidy", "prune").out)
    assert cli.json("plan", "list")["items"] == []


# -- deciding


def test_P18_undo_with_later_shows_the_chain_and_undoes_it_as_one_plan(cli: Cli) -> None:
    node = cli.add("more and more important")
    made = []
    for importance in ("0.2", "0.4"):
        cli("edit", node, "--importance", importance)
        made.append(cli.json("history", node)[-1]["plan_id"])
    first, second = made
    assert second in cli("undo", first).err
    shown = cli("undo", first, "--dry-run").out
    assert shown.index(second[:8]) < shown.index(first[:8])
    assert cli.json("show", node)["importance"] == 0.4
    done = cli.json("undo", first, "--with-later")
    assert [one["id"] for one in done["chain"]] == [second, first]
    assert cli.json("show", node)["importance"] is None
    assert cli("undo", first, "--dry-run").out == "That was undone already.\n"


def test_P03_P07_a_plan_is_declined_in_part_applied_shown_and_undone(cli: Cli) -> None:
    first, second = doubled(cli)
    plan = proposed(cli)
    number = next(one["number"] for one in cli.json("plan", "show", plan)["decisions"] if one["subject"] == second)
    assert cli("apply", plan[:8], "--decline", str(number)).out == (
        f"The plan {plan[:8]} is applied: 1 applied, 1 declined.\n"
    )
    assert decisions(cli, plan) == {first: "applied", second: "declined"}
    assert "[declined]" in cli("plan", "show", plan).out
    assert cli("apply", plan).out == f"The plan {plan[:8]} was applied already: 1 applied, 1 declined.\n"
    shown = cli("history", first[:10]).out
    assert f"merge\t{plan[:8]}\t2 edges between the same ends" in shown
    assert cli("undo", plan).out.startswith("Undone: 1 decision, by")
    assert cli("undo", plan).out == "That was undone already.\n"
    assert decisions(cli, plan) == {first: "undone", second: "declined"}
    actions = [line.split("\t")[2:4] for line in cli("plan", "runs", plan[:8]).out.splitlines()]
    assert actions == [["undo", "done"], ["apply", "done"]]
    assert "merged share 0.5 (out of target, under 0.05)" in cli("plan", "runs").out


def test_P04_what_a_person_protected_since_is_stale(cli: Cli) -> None:
    first, second = doubled(cli)
    plan = proposed(cli)
    assert cli("protect", first[:8]).out.startswith(f"Protected\t{first[:8]}\t0.50\tuser\ttea number 0")
    answer = cli("apply", plan)
    head, stale = answer.out.splitlines()
    assert head == f"The plan {plan[:8]} is partly applied: 1 applied, 1 stale."
    assert stale.startswith("stale\t")
    assert stale.endswith(": it is protected now")
    assert answer.code == 0
    assert decisions(cli, plan) == {first: "stale", second: "applied"}
    assert "[stale: it is protected now]" in cli("plan", "show", plan, "--status", "stale").out
    assert second[:8] not in cli("plan", "show", plan, "--status", "stale").out


def test_P04_a_plan_of_which_nothing_stands_is_told_by_the_exit_code(cli: Cli) -> None:
    (winner,) = doubled(cli, 1)
    plan = proposed(cli)
    cli("unlink", winner, "--reason", "wrong")
    answer = cli("apply", plan)
    assert (answer.code, answer.out.splitlines()[0]) == (1, f"The plan {plan[:8]} is stale: 0 applied, 1 stale.")
    assert "it cannot be approved any more" in cli.refused("plan", "approve", plan, code=4)


def test_P07_one_decision_is_undone(cli: Cli) -> None:
    doubled(cli)
    plan = proposed(cli)
    cli("apply", plan)
    assert cli.json("undo", plan, "--decision", "2")["applied"] == 1
    assert sorted(decisions(cli, plan).values()) == ["applied", "undone"]


def test_P23_declining_shows_a_way_back(cli: Cli) -> None:
    doubled(cli)
    plan = proposed(cli)
    said = cli("plan", "decline", plan[:8], "--decision", "2")
    assert f"`recollect plan accept {plan[:8]} --decision 2` takes that back." in said.err
    assert "\twaiting\t2 waiting\t" in cli("plan", "accept", plan[:8], "--decision", "2").out
    cli("plan", "decline", plan[:8])
    assert "\twaiting\t2 waiting\t" in cli("plan", "accept", plan[:8]).out


def test_P11_approve_decline_and_never(cli: Cli) -> None:
    doubled(cli, 3)
    plan = proposed(cli)
    assert "\tapproved\t3 waiting\t" in cli("plan", "approve", plan).out
    assert "\tapproved\t1 waiting, 2 declined\t" in cli("plan", "decline", plan, "--decision", "2-3", "--never").out
    assert "\tdeclined\t3 declined\t" in cli("plan", "decline", plan).out
    assert cli.json("plan", "merge-edges")["decisions"] == []
    assert "is declined: propose a new one" in cli.refused("apply", plan, code=4)


def test_P03_tidy_applies_what_may_be_applied_and_the_brake_makes_the_rest_wait(cli: Cli) -> None:
    doubled(cli, 1)
    answer = cli("tidy")
    assert "Prune 0 of 2 links\tThere is nothing to do.\n" in answer.out
    assert "Merge 2 parallel links into 1\tapplied: 1 applied\n" in answer.out
    assert "The schedule would not run this yet" in answer.err
    weak_rim(cli, 60)
    waiting = cli("tidy", "prune").out
    assert "The plan waits for approval: it touches 60 of 122 links" in waiting
    assert cli.json("plan", "list", "--status", "waiting", "--policy", "prune")["items"][0]["counts"] == {
        "proposed": 60
    }
    done = cli.json("tidy", "prune", "--set", "threshold=0")
    assert (done[0]["plan"]["summary"]["pruned"], done[0]["outcome"]) == (0, None)


def test_P14_plans_and_policies_are_listed(cli: Cli) -> None:
    assert cli("plan").err == "There are no plans: `recollect plan policies` says what can be tidied.\n"
    doubled(cli, 1)
    plans = [proposed(cli, "merge-edges", *more) for more in ((), ("--set", "review_contradictions=false"))]
    listed = [line.split("\t")[0] for line in cli("plan", "list").out.splitlines()]
    assert listed == [plan[:8] for plan in reversed(plans)]
    first = cli.json("plan", "--limit", "1")
    assert cli.json("plan", "list", "-n", "1", "--cursor", first["next_cursor"])["items"][0]["id"] == plans[0]
    assert cli("plan", "runs").err == "Nothing was run yet.\n"
    proposed(cli, "prune")
    assert len(cli("plan", "list").out.splitlines()) == 2, "what found nothing is no plan"
    assert "\tlook\tdone\t" in cli("plan", "runs").out
    policies = {line.split("\t")[0]: line for line in cli("plan", "policies").out.splitlines()}
    assert {"prune", "merge-edges", "topics", "link"} <= set(policies)
    assert "low risk\tevery 1 day\tthreshold=0.05, min_inactive_days=7.0" in policies["prune"]


# -- links


def test_A00b_A00c_links_are_made_used_protected_and_taken_away(cli: Cli) -> None:
    tea, cup = cli.add("tea"), cli.add("cup")
    linked = cli("link", tea[:8], cup[:8], "--relation", "extends", "--strength", "0.4", "--explanation", "both warm")
    verb, edge, strength, by, label = linked.out.rstrip("\n").split("\t")
    assert (verb, strength, by, label) == ("Linked", "0.40", "user", "tea —extends→ cup")
    again = cli.json("link", tea, cup, "-r", "extends", "--strength", "0.5", "-e", "-", stdin=b"from stdin")
    assert (again["id"][:8], again["strength"], again["explanation"]) == (edge, 0.5, "from stdin")
    assert cli.json("reinforce", edge)["strength_now"] == pytest.approx(0.7, abs=0.01)
    assert cli.json("reinforce", edge, "--kind", "highlight")["strength_now"] == pytest.approx(0.8, abs=0.01)
    assert cli("graph", "edges", cup).out == f"{edge}\t0.80\tuser\ttea —extends→ cup\n"
    assert cli("protect", edge).out.endswith("tea —extends→ cup (protected)\n")
    assert cli.json("protect", edge, "--off")["protected"] is False
    assert cli("unlink", edge).out.endswith("tea —extends→ cup (pruned)\n")
    assert cli("graph", "edges", tea).out == ""
    verbs = [line.split("\t")[1] for line in cli("history", edge).out.splitlines()]
    assert verbs == ["add", "link", "protect", "unprotect", "unlink"]
    assert "that plan" in cli.refused("reinforce", edge, code=4)


# -- bad commands: one sentence, an exit code, and nothing is changed


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["plan", "nonsense"], 2, "There is no policy 'nonsense': it is one of prune, merge-edges"),
        (["plan", "prune", "--set", "threshold"], 2, "--set takes NAME=VALUE"),
        (["plan", "prune", "--set", "=1"], 2, "--set takes NAME=VALUE"),
        (["plan", "prune", "--set", "colour=red"], 2, "prune has no option 'colour'"),
        (["plan", "prune", "--set", "threshold=2"], 2, "The option threshold must be between 0 and 1"),
        (["plan", "prune", "--set", "threshold=NaN"], 2, "The option threshold must be between 0 and 1"),
        (["plan", "prune", "--set", "threshold=low"], 2, "The option threshold cannot be 'low'"),
        (["plan", "prune", "--nonsense"], 2, "has no option --nonsense"),
        (["plan", "--nonsense"], 2, "has no option --nonsense"),
        (["plan", "show", NOBODY], 3, "There is no plan"),
        (["plan", "show", "xyz"], 2, "'xyz' is not an id"),
        (["plan", "show", "0000", "--status", "odd"], 2, "odd"),
        (["plan", "approve", NOBODY], 3, "There is no plan"),
        (["plan", "decline", NOBODY], 3, "There is no plan"),
        (["plan", "decline", NOBODY, "--decision", "three"], 2, "--decision takes numbers like 3,8 or 10-20"),
        (["plan", "decline", NOBODY, "--decision", "8-3"], 2, "--decision takes numbers"),
        (["plan", "decline", NOBODY, "--decision", "1-999999999"], 2, "--decision takes numbers"),
        (["plan", "decline", NOBODY, "--decision", "0"], 2, "There is no decision 0"),
        (["plan", "list", "--status", "odd"], 2, "There is no status 'odd'"),
        (["plan", "list", "--limit", "0"], 2, "The limit is from 1 to 1,000"),
        (["plan", "runs", NOBODY], 3, "There is no plan"),
        (["apply", NOBODY], 3, "There is no plan"),
        (["apply", NOBODY, "--decline", ""], 2, "--decline takes numbers"),
        (["undo", NOBODY, "--decision", "1"], 3, "There is no plan"),
        (["tidy", "topics", "nonsense"], 2, "There is no policy 'nonsense'"),
        (["tidy", "--set", "threshold=0.1"], 2, "--set is for one policy"),
        (["link", "0000", "0001"], 3, "Nothing is remembered under 0000"),
        (["unlink", "0000"], 3, "There is no edge 0000"),
        (["protect", NOBODY], 3, "There is no edge"),
        (["reinforce", "0000"], 3, "There is no edge"),
        (["reinforce", "0000", "--kind", "shouting"], 2, "There is no reinforcement 'shouting'"),
        (["graph", "edges", "0000"], 3, "Nothing is remembered"),
        (["history", NOBODY], 3, "Nothing is remembered under"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_P01_a_bad_command_is_one_sentence_and_an_exit_code(
    in_default: Cli, arguments: list[str], code: int, said: str
) -> None:
    assert said in in_default.refused(*arguments, code=code)


def test_P07_what_was_never_applied_and_unknown_numbers_are_refused(cli: Cli) -> None:
    doubled(cli, 1)
    plan = proposed(cli)
    assert "only what was applied can be undone" in cli.refused("undo", plan, code=4)
    for command in (
        ("plan", "decline", plan, "--decision"),
        ("apply", plan, "--decline"),
        ("undo", plan, "--decision"),
    ):
        assert "has no decision 9" in cli.refused(*command, "1,9", code=2)
    assert set(decisions(cli, plan).values()) == {"proposed"}
    assert cli("plan", "runs").out == ""


def test_P03_a_plan_of_another_space_is_not_found(cli: Cli) -> None:
    doubled(cli, 1)
    plan = proposed(cli)
    cli("spaces", "add", other := f"t-{uuid4().hex[:12]}")
    for command in (["plan", "show"], ["plan", "approve"], ["plan", "decline"], ["apply"], ["undo"]):
        assert "There is no plan" in cli.refused(*command, plan, "--space", other, code=3)
    assert set(decisions(cli, plan).values()) == {"proposed"}


def test_C12_a_bad_link_is_refused_and_nothing_is_linked(cli: Cli) -> None:
    tea, cup = cli.add("tea"), cli.add("cup")
    assert "begins and ends at the same" in cli.refused("link", tea, tea, code=2)
    assert "Nothing is remembered" in cli.refused("link", tea, str(UUID(int=9)), code=3)
    for strength in ("nan", "inf", "1.5"):
        assert "The strength of an edge is from 0 to 1" in cli.refused("link", tea, cup, "--strength", strength, code=2)
    megabytes = b"x" * 10_000_000
    said = cli.refused("link", tea, cup, "--explanation", "-", stdin=megabytes, code=2)
    assert said == "The explanation is 10,000,000 characters long: at most 10,000.\n"
    assert cli("graph", "edges", tea).err.startswith("It has no links")
