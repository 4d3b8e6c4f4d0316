"""Cases on the command line."""

from pathlib import Path

from tests.doors import test_cli_support as support
from tests.doors.test_cli_support import Cli

own_database, in_default, cli = support.own_database, support.in_default, support.cli

TABLE = """id,question,answer,category,uses,success_rate,last_accessed_at
1,How do I reset my password?,Open Settings.,account,40,92,2026-11-01
2,Why was I charged twice?,It is a hold.,billing,30,12,2026-06-01
3,Where is my invoice?,Under Billing.,billing,5,,2026-05-01
4,,nothing,billing,,,
"""


def imported(cli: Cli, tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "answers.csv"
    file.write_text(TABLE)
    answer = cli("cases", "import", str(file))
    assert (answer.code, answer.out) == (1, "3 added, 0 updated, 0 there already, 1 refused.\n")
    assert f"{file}:5: A case needs a query." in answer.err
    return {case["source_id"]: case["case_id"] for case in cli.json("cases", "--status", "all")["items"]}


def test_a_bank_from_a_table_to_a_tidied_one(cli: Cli, tmp_path: Path) -> None:
    ids = imported(cli, tmp_path)
    listed = cli("cases", "--below", "50").out.splitlines()
    assert [line.split("\t")[0] for line in listed] == [ids["2"][:8]]
    found = cli.json("cases", "search", "reset", "password", "-c", "account")
    assert [hit["case"]["case_id"] for hit in found["hits"]] == [ids["1"]]
    dry = cli.json("cases", "tidy", "--dry-run")
    assert (dry["removed_cases"], dry["archived_cases"], dry["status"]) == (1, 1, "waiting")
    done = cli("cases", "tidy")
    assert done.out.startswith("1 would be removed, 0 would be merged, 1 would be archived.\n")
    assert "RECOLLECT_NOTIFY" in done.err
    plan = cli.json("cases", "summary")["waiting"][0]["plan_id"]
    assert f"`recollect apply {plan[:8]}` carries it out" in done.err
    assert "wait" in cli("cases", "health").out
    assert cli("apply", plan).code == 0
    assert {case["case_id"] for case in cli.json("cases", "--status", "archived")["items"]} == {ids["2"], ids["3"]}
    shown = cli("cases", "show", ids["2"][:8])
    assert "low_performance" in shown.out
    assert "cases restore" in shown.err
    assert cli.json("cases", "restore", ids["2"])["status"] == "active"
    assert cli.refused("cases", "restore", ids["2"], code=3) == "Archived case not found.\n"
    assert "at rest\t1 (inactive 1)" in cli("cases", "summary").out


def test_add_update_and_outcomes(cli: Cli) -> None:
    case = cli("cases", "add", "What", "is", "new?", "--answer", "Nothing.", "-c", "misc").out.split("\t")[0]
    changed = cli.json("cases", "update", case, "--answer", "A lot.", "--protect", "--reason", "it grew")
    assert (changed["response_text"], changed["protected"], changed["version"]) == ("A lot.", True, 2)
    assert "Nothing." in cli("history", case).out
    said = cli("cases", "outcome", case, "--failure", "--error", "outdated", "--ms", "12.5")
    assert said.out == f"{case[:8]}: success rate unknown until there are 10 outcomes (1 so far).\n"
    assert "unknown until there are 10 outcomes (1 so far)" in cli("cases", "show", case).out
    for _ in range(9):
        said = cli("cases", "outcome", case, "--failure", "--error", "outdated", "--ms", "12.5")
    assert said.out == f"{case[:8]}: success rate 0.0 % of the last 10 outcomes.\n"
    assert "outdated 10" in cli("cases", "reflect").out
    assert "--success or --failure" in cli.refused("cases", "outcome", case, code=2)
    assert cli.json("cases", "archive", case)["archived_reason"] == "by_hand"
    assert cli("cases").out == ""


def test_fractions_and_thresholds_are_said_not_guessed(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "bank.jsonl"
    file.write_text('{"query": "q", "response_text": "a", "success_rate": 0.5}\n')
    assert "fractions" in cli("cases", "import", str(file), "--dry-run").err
    assert cli.json("cases", "import", str(file), "--fractions")["added"] == 1
    assert cli.json("cases")["items"][0]["success_rate"] == 50.0
    assert "inactive_days" in cli.refused("cases", "tidy", "--set", "inactive_days=-1", code=2)
    assert "no option" in cli.refused("cases", "tidy", "--set", "colour=1", code=2)
    assert cli.json("cases", "tidy", "--set", "inactive_days=180")["status"] == "applied"
