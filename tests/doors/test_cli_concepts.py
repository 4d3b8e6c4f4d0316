"""Concepts on the command line: added once, merged by a plan, told why, kept apart."""

from pathlib import Path

import pytest

from recollect.concepts.rules.never_merge import NEVER_MERGE_EXAMPLE
from tests.doors import test_cli_support as support
from tests.doors.test_cli_support import Cli
from tests.reference import ROOT

own_database, in_default, cli = support.own_database, support.in_default, support.cli

EXAMPLE = ROOT / "docs" / "concepts" / "never-merge.txt"
TEXT = ["--text", "what consciousness is made of"]


def concept(cli: Cli, name: str, *more: str) -> str:
    return str(cli.json("concepts", "add", name, *more)["concept"]["id"])


def test_C19_adding_a_twin_returns_the_one_that_is_there_with_the_reason(cli: Cli) -> None:
    first = cli("concepts", "add", "consciousness_substrate", *TEXT, "--energy", "translator=0.6")
    assert first.out.split("\t")[1:] == ["added", "consciousness_substrate\n"]
    assert first.err == ""
    again = cli("concepts", "add", "Consciousness Substrate", *TEXT, "--energy", "translator=0.3")
    assert again.out.split("\t")[1:] == ["there already", "consciousness_substrate\n"]
    assert "'Consciousness Substrate' is 'consciousness_substrate': it scores 1.000" in again.err
    assert cli.json("concepts", "show", "consciousness substrate")["raw_energy"]["translator"] == pytest.approx(0.9)
    assert "translator=0.844" in cli("concepts").out


def test_C09_energy_is_added_and_shown(cli: Cli) -> None:
    concept(cli, "tea")
    cli("concepts", "energy", "tea", "a=0.5", "b=1")
    shown = cli("concepts", "energy", "Tea", "a=5").out
    assert "a=1.98 b=0.924" in shown
    cli.refused("concepts", "energy", "tea", "much", code=2)
    cli.refused("concepts", "energy", "tea", "a=-1", code=2)
    cli.refused("concepts", "energy", "coffee", "a=1", code=3)


def test_C01_C16_duplicates_are_listed_merged_by_hand_and_two_again(cli: Cli) -> None:
    one, other = concept(cli, "tea house", *TEXT), concept(cli, "tea houses", *TEXT)
    listed = cli("concepts", "duplicates", "--threshold", "0.9").out.split("\t")
    assert {listed[1], listed[2]} == {one[:8], other[:8]}
    assert cli("concepts", "duplicates", "--threshold", "1.0").out == ""
    plan = cli.json("concepts", "merge", "tea house", "tea houses", "--reason", "the same")["plan_id"]
    assert cli.json("concepts", "show", other)["id"] == one
    assert cli.json("show", other)["id"] == one
    shown = cli("concepts", "show", "tea houses").out
    assert "made of\t2 concepts" in shown
    assert "aliases\ttea houses" in shown
    cli("undo", plan)
    assert cli.json("concepts", "show", "tea houses")["id"] == other


def test_C28_plan_duplicates_shows_groups_to_merge_and_to_review(cli: Cli) -> None:
    concept(cli, "tea house", *TEXT)
    concept(cli, "tea houses", *TEXT)
    shown = cli("plan", "duplicates")
    assert "may be the same" in shown.out + shown.err
    asked = cli.json("plan", "duplicates", "--set", "ask_about=[]", "--set", "threshold=0.9")
    (decision,) = asked["decisions"]
    assert decision["verb"] == "merge"
    cli("apply", asked["id"])
    assert len(cli.json("concepts")["items"]) == 1


def test_C30_why_shows_the_factors_as_a_waterfall_and_what_would_change_it(cli: Cli) -> None:
    concept(cli, "consciousness", "--text", "being aware")
    concept(cli, "consciousness_engine", "--text", "a machine that makes aware")
    told = cli("why", "consciousness", "consciousness_engine").out
    assert "cosine" in told
    assert "█" in told
    assert "nothing else can make up for it" in told
    assert cli.json("why", "consciousness", "consciousness_engine")["explanation"]["failed"]
    cli.refused("why", "consciousness", "consciousness", code=2)


def test_C21_C27_pairs_are_added_listed_and_removed_also_from_the_shipped_file(cli: Cli) -> None:
    assert cli("never-merge").err.startswith("No pair is kept apart")
    cli("never-merge", "add", "tea", "coffee", "--reason", "not the same")
    assert cli("never-merge", "list").out == "coffee\ttea\tfor good\tnot the same\n"
    cli("never-merge", "remove", "Coffee", "tea")
    added = cli.json("never-merge", "add", "--from", str(EXAMPLE))
    assert [(pair["a"], pair["b"]) for pair in added] == [
        (a.replace("_", " "), b.replace("_", " ")) for a, b in NEVER_MERGE_EXAMPLE
    ]
    cli.refused("never-merge", "add", "tea", code=2)
    cli.refused("never-merge", "remove", "tea", "coffee", code=3)


def test_C27_a_file_that_holds_no_pairs_is_refused(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "pairs.txt"
    file.write_text("tea coffee\n")
    assert "two names divided by a comma" in cli.refused("never-merge", "add", "--from", str(file), code=2)


def test_a_protected_concept_says_so(cli: Cli) -> None:
    concept(cli, "tea")
    assert cli("concepts", "protect", "tea").out == "tea is protected\n"
    assert cli.json("concepts", "show", "tea")["protected"]
    cli("concepts", "protect", "tea", "--off")
    assert not cli.json("concepts", "show", "tea")["protected"]


def test_C19_a_table_of_concepts_is_imported_and_what_is_refused_is_named(cli: Cli, tmp_path: Path) -> None:
    table = tmp_path / "glossary.csv"
    table.write_text("name,text,field\ntea,leaves in water,drinks\n,nothing,\n")
    done = cli("concepts", "import", str(table))
    assert (done.code, done.out) == (1, "1 added, 0 joined to one that is there, 0 there already, 1 refused.\n")
    assert "glossary.csv:3: A concept needs a name." in done.err
    assert cli.json("concepts", "show", "tea")["metadata"] == {"field": "drinks"}
    cli.refused("concepts", "import", str(tmp_path / "none.csv"), code=2)
