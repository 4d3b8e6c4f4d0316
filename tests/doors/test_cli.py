"""The command line, in process: every command, as text and as JSON, and every kind of refusal."""

import asyncio
import io
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from recollect.doors.cli import output
from recollect.doors.cli.app import CODES, EXIT_CODES, build, exit_code, run
from recollect.errors import DuplicateText, RecollectError, ServerDidNotStart
from tests.doors import test_cli_support as support
from tests.doors.test_cli_support import Cli, a_database, in_server
from tests.memories.rules.test_windows import FACT, long_note

own_database = support.own_database
in_default = support.in_default
cli = support.cli


# -- remembering and looking


def test_D09_add_prints_the_id_and_that_it_is_searchable(cli: Cli) -> None:
    answer = cli("add", "Linh", "prefers", "tea,", "never", "coffee")
    id_, state = answer.out.rstrip("\n").split("\t")
    assert state == "searchable"
    assert answer.err == ""
    assert cli.json("show", id_)["text"] == "Linh prefers tea, never coffee"


def test_D06_add_says_it_came_by_the_command_line(cli: Cli) -> None:
    assert cli.json("add", "one")["metadata"] == {"source": "cli"}
    given = cli.json("add", "two", "--metadata", '{"source": "telegram", "tags": ["code"]}', "--tag", "ai")
    assert given["metadata"] == {"source": "telegram", "tags": ["code", "ai"]}


def test_add_takes_everything_a_memory_has(cli: Cli) -> None:
    options = ["--type", "idea", "--tag", "ai", "--tag", "code", "--importance", "0.9", "--thread", "talk"]
    node = cli.json("add", "an idea", *options, "--created-at", "2026-01-02T03:04:05Z")
    assert (node["subtype"], node["importance"], node["thread"], node["position"]) == ("idea", 0.9, "talk", 0)
    assert node["metadata"]["tags"] == ["ai", "code"]
    assert node["created_at"] == "2026-01-02T03:04:05Z"
    assert node["searchable"] is True


def test_add_reads_stdin(cli: Cli) -> None:
    node = cli.json("add", "-", stdin="\ufeffmột dòng\r\nhai dòng\n".encode())
    assert node["text"] == "một dòng\nhai dòng"
    assert "is not UTF-8" in cli.refused("add", "-", stdin=b"\xff\xfe", code=2)


def test_D50_add_without_waiting_is_found_by_words_and_by_meaning_after_work(cli: Cli) -> None:
    node = cli.json("add", "later", "--no-wait")
    assert node["searchable"] is False
    assert cli.json("jobs")["pending"] == 1
    found = cli.json("recall", "later")
    assert [hit["source"] for hit in found["hits"]] == ["words"]
    assert "found by their words alone until then" in " ".join(found["notes"])
    assert cli("work").out == "1 text embedded.\n"
    assert cli.json("recall", "later")["hits"][0]["node"]["id"] == node["id"]
    assert cli("work").out == "Nothing is waiting.\n"
    assert cli.json("work") == {**cli.json("work"), "embedded": 0, "waiting": 0, "failed": 0}


@pytest.mark.parametrize("verb", ["recall", "search", "find"])
def test_D27_D46_G07_a_hit_is_one_line_score_relevance_date_id_and_text_shortened_unless_full(
    cli: Cli, verb: str
) -> None:
    text = "tea " + "and biscuits " * 30
    id_ = cli.add(text, "--created-at", "2026-01-02")
    score, relevance, day, prefix, shown = cli(verb, "tea", "--limit", "3").out.rstrip("\n").split("\t")
    assert 0 < float(score) <= 1
    assert 0 < float(relevance) <= 1
    assert (day, prefix) == ("2026-01-02", id_[:8])
    assert len(shown) <= output.SHORTENED
    assert text.startswith(shown.removesuffix("…"))
    assert cli(verb, "tea", "--full").out.rstrip("\n").split("\t")[4] == text.strip()
    assert cli.json(verb, "tea")["hits"][0]["node"]["text"] == text.strip()
    assert cli("list").out.rstrip("\n").endswith("…")
    assert cli("list", "--full").out.rstrip("\n").endswith(text.strip())


def test_recall_as_json_is_the_recall(cli: Cli) -> None:
    cli.add("green tea")
    found = cli.json("recall", "green", "tea", "-n", "1")
    assert (found["query"], found["model"], len(found["hits"])) == ("green tea", "hashing:64", 1)
    assert found["hits"][0]["node"]["text"] == "green tea"
    assert 0 < found["hits"][0]["score"] <= 1


SCORE_PARTS = (
    *("relevance", "words", "meaning", "cosine", "neighbour", "activation", "recency", "importance", "use", "bonus"),
    *("coverage", "standing"),
)


def test_A32_D40_recall_follows_the_graph_and_ranks_by_use_where_asked(cli: Cli) -> None:
    cli.add("Linh prefers green tea")
    plain = cli.json("recall", "green tea")
    by_graph, by_use = cli.json("recall", "green tea", "--graph"), cli.json("recall", "green tea", "--engagement")
    assert (plain["floor"], by_graph["floor"]) == (0.25, 0.3)
    assert plain["hits"][0]["parts"]["engagement"] == 0
    assert by_use["hits"][0]["parts"]["engagement"] > 0
    *_, text, parts = cli("recall", "green tea", "--graph", "--explain").out.rstrip("\n").split("\t")
    assert text == "Linh prefers green tea"
    assert {part.split()[0] for part in parts.split(", ")} <= set(SCORE_PARTS)


def test_D47_recall_shows_the_passage_of_a_long_text_and_in_full_all_of_it(cli: Cli) -> None:
    cli("add", long_note())
    shown = cli("recall", "the spare key of the boathouse").out
    passage = cli.json("recall", "the spare key of the boathouse")["hits"][0]["passage"]
    assert FACT in passage
    assert " ".join(passage.split())[:60] in shown
    assert "discussed item 0 of" not in shown
    assert "discussed item 0 of" in cli("recall", "--full", "the spare key of the boathouse").out


def test_recall_of_nothing_says_so_beside_the_answer(cli: Cli) -> None:
    answer = cli("recall", "anything")
    assert (answer.code, answer.out, answer.err) == (0, "", "Nothing is known about that.\n")


def test_list_goes_on_by_its_cursor_and_all_lists_everything(cli: Cli) -> None:
    ids = [cli.add(f"memory {number}", "--no-wait") for number in range(3)]
    first = cli.json("list", "--limit", "2")
    rest = cli.json("list", "--limit", "2", "--cursor", first["next_cursor"])
    assert [node["id"] for node in first["items"] + rest["items"]] == ids[::-1]
    assert rest["next_cursor"] is None
    assert len(cli.json("list", "--all")["items"]) == 3
    shown = cli("list", "-n", "2")
    assert shown.out.splitlines()[0].split("\t")[0] == ids[2][:8]
    assert "--cursor" in shown.err


def test_D25_D26_list_filters(cli: Cli) -> None:
    old = cli.add("old", "--type", "log", "--tag", "code", "--created-at", "2026-01-31T22:00:00Z", "--no-wait")
    new = cli.add("new", "--type", "idea", "--tag", "code", "--tag", "ai", "--thread", "talk", "--no-wait")

    def listed(*options: str) -> list[str]:
        return [node["id"] for node in cli.json("list", *options)["items"]]

    assert listed("--type", "log") == [old]
    assert listed("-t", "log", "-t", "idea") == [new, old]
    assert listed("--tag", "code") == [new, old]
    assert listed("--tag", "code", "--tag", "ai") == [new]
    assert listed("--thread", "talk") == [new]
    assert listed("--since", "1h") == [new]
    assert listed("--until", "2026-01-31") == [old]
    assert listed("--since", "2026-01-31T22:00:01Z", "--until", "2026-02-01") == []
    assert cli("list", "--thread", "none").err == "There is nothing to list.\n"


def test_show_prints_what_is_known_and_the_text(cli: Cli) -> None:
    id_ = cli.add("first line\nsecond line", "--importance", "0.5", "--thread", "talk")
    for verb in ("show", "get"):  # get is another word for it
        shown = cli(verb, id_[:6]).out
        assert shown.endswith("\nfirst line\nsecond line\n")
        assert f"id\t{id_}\n" in shown
        assert "importance\t0.5\n" in shown
        assert "thread\ttalk, position 0\n" in shown


def test_what_is_remembered_cannot_steer_a_terminal(cli: Cli) -> None:
    id_ = cli.json("add", "-", stdin=b"a \x1b[31mred\x1b[0m\x07 [bold]b[/bold]")["id"]
    shown = cli("list").out + cli("show", id_).out
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert "[bold]b[/bold]" in shown
    assert cli.json("show", id_)["text"] == "a \x1b[31mred\x1b[0m\x07 [bold]b[/bold]"


# -- changing, with a history


def test_edit_merges_metadata_and_replace_replaces_it(cli: Cli) -> None:
    id_ = cli.add("text", "--tag", "ai")
    merged = cli.json("edit", id_, "--metadata", '{"type": "todo"}', "--importance", "0.7")
    assert merged["metadata"] == {"source": "cli", "tags": ["ai"], "type": "todo"}
    assert (merged["importance"], merged["version"]) == (0.7, 2)
    replaced = cli.json("edit", id_, "--metadata", '{"tags": ["code"]}', "--replace")
    assert replaced["metadata"] == {"tags": ["code"]}
    assert cli("edit", id_[:8], "--importance", "0.1").out == f"Changed\t{id_[:8]}\ttext\n"
    assert "version 3, not 1" in cli.refused("edit", id_, "--importance", "0.2", "--if-version", "1", code=4)
    assert "nothing to change" in cli.refused("edit", id_, code=2)


def test_D37_forget_history_undo_restore(cli: Cli) -> None:
    id_ = cli.add("tea")
    assert cli("forget", id_[:8], "--reason", "out of date").out == f"Forgot\t{id_[:8]}\ttea\n"
    assert cli.json("recall", "tea")["hits"] == []
    assert [node["id"] for node in cli.json("list", "--archived")["items"]] == [id_]
    entries = cli.json("history", id_)
    assert [(entry["verb"], entry["reason"]) for entry in entries] == [
        ("add", "memory added"),
        ("archive", "out of date"),
    ]
    plan = entries[-1]["plan_id"]
    assert f"archive\t{plan[:8]}\tout of date (status active -> archived)\n" in cli("history", id_).out
    assert cli("undo", plan[:8]).out.startswith("Undone: 1 decision, by")
    assert cli("undo", plan).out == "That was undone already.\n"
    assert cli.json("undo", plan)["repeated"] is True
    assert len(cli.json("recall", "tea")["hits"]) == 1
    assert cli.json("forget", id_)["status"] == "archived"
    assert cli.json("restore", id_[:6])["status"] == "active"
    assert cli("restore", id_).out == f"Restored\t{id_[:8]}\ttea\n"


def test_W02_a_text_is_corrected_and_undo_brings_the_old_one_back(cli: Cli) -> None:
    id_ = cli.add("tea is green", "--tag", "kitchen")
    new = cli.json("correct", id_[:8], "tea", "is", "black", "--reason", "it was black")
    assert (new["text"], new["metadata"]["tags"]) == ("tea is black", ["kitchen"])
    assert [hit["node"]["text"] for hit in cli.json("recall", "tea")["hits"]] == ["tea is black"]
    last = cli.json("history", id_)[-1]
    assert (last["verb"], last["reason"]) == ("correct", "it was black")
    cli("undo", last["plan_id"])
    assert [hit["node"]["text"] for hit in cli.json("recall", "tea")["hits"]] == ["tea is green"]
    assert cli("correct", id_, "tea is white").out.startswith("Corrected\t")
    assert "is archived" in cli.refused("correct", id_, "tea is red", code=4)


def test_D37_several_are_forgotten_by_one_plan_and_come_back_together(cli: Cli) -> None:
    ids = [cli.add(text) for text in ("tea", "coffee", "cocoa")]
    assert "Nothing is remembered" in cli.refused("forget", ids[0], "00000000-0000-4000-8000-000000000000", code=3)
    assert len(cli.json("list")["items"]) == 3
    plan = cli.json("forget", *ids[:2], "--reason", "no more caffeine")["plan_id"]
    assert [node["id"] for node in cli.json("list")["items"]] == ids[2:]
    cli("undo", plan)
    assert len(cli.json("list")["items"]) == 3
    assert cli("forget", *ids).out == "Forgot 3 memories.\n"
    assert cli("forget", *ids).out == "Forgot 0 memories.\n"


def test_D37_exclude_and_include(cli: Cli) -> None:
    id_ = cli.add("tea")
    assert cli.json("exclude", id_)["exclude"] is True
    assert cli.json("recall", "tea")["hits"] == []
    assert cli("list", "--excluded").out.rstrip("\n").endswith("\t(excluded) tea")
    assert cli.json("include", id_)["exclude"] is False
    assert cli("exclude", id_).out == f"Excluded\t{id_[:8]}\ttea\n"
    assert cli("include", id_).out == f"Included\t{id_[:8]}\ttea\n"


# -- moving in and out


def test_D08_import_reports_what_it_did_and_repeating_it_does_no_harm(cli: Cli, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# Tea\n\nLinh drinks tea.")
    (notes / "b.txt").write_text("Tomás drinks coffee.")
    (notes / "picture.png").write_bytes(b"\x89PNG\x00\x00")
    rehearsed = cli.json("import", str(notes), "--dry-run")
    assert (rehearsed["added"], rehearsed["dry_run"], cli.json("list")["items"]) == (2, True, [])
    done = cli("import", str(notes), "--type", "article", "--tag", "knowledge")
    assert (done.code, done.out.split(",")[0]) == (0, "2 added")
    assert done.err.startswith("skipped: ")
    assert cli.json("import", str(notes))["already_there"] == 2
    node = cli.json("list")["items"][0]
    assert (node["subtype"], node["metadata"]["tags"], node["metadata"]["source"]) == (
        "article",
        ["knowledge"],
        "import",
    )


def test_import_of_bad_lines_takes_the_good_and_names_the_bad(cli: Cli) -> None:
    lines = b'{"text": "good"}\n{"text": ""}\nnonsense\n'
    report = cli("import", "-", "--format", "jsonl", "--json", stdin=lines)
    assert (report.code, report.json["added"]) == (1, 1)
    assert [one["line"] for one in report.json["refused"]] == [2, 3]
    empty = cli("import", "-", "--format", "jsonl", stdin=b"\n")
    assert (empty.code, empty.err.count("There was nothing to read")) == (1, 1)
    many = cli("import", "-", "--format", "jsonl", stdin=b"nonsense\n" * 50)
    assert many.err.endswith("And 30 more: --json tells all of them.\n")


def test_D54_what_a_vault_cannot_be_is_said(cli: Cli, tmp_path: Path) -> None:
    vault = str(tmp_path / "vault")
    assert "name one" in cli.refused("export", "--format", "markdown", code=2)
    assert "vectors" in cli.refused("export", vault, "--format", "markdown", "--with-vectors", code=2)
    assert not (tmp_path / "vault").exists()


def test_export_and_import_bring_everything_back(cli: Cli, tmp_path: Path) -> None:
    id_ = cli.add("trà", "--tag", "life")
    cli("forget", id_)
    file = tmp_path / "all.jsonl"
    assert cli("export", str(file)).out == f"Exported 1 memory to {file}.\n"
    cli.refused("export", str(file), code=4)
    assert cli.json("export", str(file), "--overwrite", "--with-vectors")["exported"] == 1
    assert json.loads(file.read_text())["vectors"]
    assert json.loads(cli("export").out)["text"] == "trà"
    other = f"o-{uuid4().hex[:8]}"
    cli("spaces", "add", other)
    assert cli.json("import", str(file), "--space", other)["added"] == 1
    back, before = cli.json("show", id_, "--space", other), cli.json("show", id_)
    assert back == before


# -- spaces, keys, jobs


def test_spaces_are_apart_and_named_before_or_after_the_command(cli: Cli) -> None:
    other = f"o-{uuid4().hex[:8]}"
    assert cli.json("spaces", "add", other, "--open-tags")["settings"] == {"strict_tags": False}
    id_ = cli.json("--space", other, "add", "there", "--tag", "garden")["id"]
    assert cli.json("list")["items"] == []
    assert cli.json("list", "--space", other)["items"][0]["id"] == id_
    assert json.loads(cli("--json", "--space", other, "list").out)["items"][0]["id"] == id_
    assert {cli.space, other, "default"} <= {space["slug"] for space in cli.json("spaces")}
    assert f"{other}\t" in cli("spaces").out


def test_D06_G08_a_space_can_be_strict_and_register_tags(cli: Cli) -> None:
    strict = ["--strict-tags", "--tag", "garden"]
    assert cli("spaces", "set", cli.space, "--strict-tags").out.endswith("\tonly the registered\n")
    assert "'garden' is not registered" in cli.refused("add", "x", "--tag", "garden", code=2)
    settings = {"strict_tags": True, "tags": ["garden"]}
    assert cli.json("spaces", "set", cli.space, *strict)["settings"] == settings
    cli.add("x", "--tag", "garden")
    cli.refused("add", "z", "--tag", "whatever", code=2)
    assert cli("spaces", "set", cli.space, "--open-tags").out.endswith("\tany, suggested garden\n")
    cli.add("y", "--tag", "whatever")


def test_G08_a_new_tag_that_looks_like_a_slip_is_pointed_out(cli: Cli) -> None:
    answer = cli("add", "roses", "--tag", "lessons")
    assert answer.code == 0
    assert "'lessons' is new here and was kept; if you meant 'lesson'" in answer.err
    assert cli.json("add", "tulips", "--tag", "helath")["notes"][0].startswith("The tag 'helath' is new here")
    assert cli.json("add", "daisies", "--tag", "helath")["notes"] == []
    assert "nothing to set" in cli.refused("spaces", "set", cli.space, code=2)


def test_a_space_named_by_the_environment_can_be_made(cli: Cli) -> None:
    cli.patch.setenv("RECOLLECT_SPACE", "brand-new")
    assert "`recollect spaces add` makes one" in cli.refused("list", code=3)
    assert cli("spaces", "add", "brand-new").code == 0
    assert cli("list").code == 0
    assert "exists already" in cli.refused("spaces", "add", "brand-new", code=4)


def test_keys_show_the_secret_once(cli: Cli) -> None:
    made = cli("keys", "add", "my agent", "--scope", "read", "--scope", "write", "--space", cli.space)
    secret = made.out.rstrip("\n")
    assert secret.startswith("rk_")
    assert "shown this once" in made.err
    prefix = secret.split("_")[1]
    assert secret not in cli("keys").out
    assert f"{prefix}\tread write\t{cli.space}\tnever\tvalid\tmy agent\n" in cli("keys").out
    assert f"{prefix}\t" in cli("keys", "revoke", prefix).out
    assert cli.json("keys", "revoke", prefix)["revoked_at"] is not None
    cli.refused("keys", "revoke", "nonesuch", code=3)


def test_keys_expire(cli: Cli) -> None:
    made = cli.json("keys", "add", "short", "--expires", "90d")
    assert made["secret"].startswith("rk_")
    assert (made["key"]["scopes"], made["key"]["space"]) == (["read"], None)
    assert made["key"]["expires_at"] > made["key"]["created_at"]
    assert made["key"]["prefix"] in {key["prefix"] for key in cli.json("keys")}
    assert "--expires is a time like" in cli.refused("keys", "add", "x", "--expires", "soon", code=2)
    cli.refused("keys", "add", "x", "--expires", "2020-01-01", code=2)
    cli.refused("keys", "add", "x", "--scope", "everything", code=2)


def test_D10_D50_an_embedder_that_is_away_loses_nothing_and_words_find(cli: Cli) -> None:
    cli.patch.setenv("RECOLLECT_EMBEDDER", "ollama:some-model:64")
    cli.patch.setenv("RECOLLECT_EMBEDDING_URL", "http://127.0.0.1:1")
    cli.patch.setenv("RECOLLECT_JOB_MAX_ATTEMPTS", "1")
    cli.patch.setenv("RECOLLECT_LOG_LEVEL", "error")
    answer = cli("add", "tea")
    assert (answer.code, answer.out.split("\t")[1]) == (0, "stored\n")
    assert answer.err.startswith("It is stored, and found by its words alone so far")
    assert cli("work").code == 1
    jobs = cli.json("jobs")
    assert (jobs["failed"], len(jobs["failures"])) == (1, 1)
    assert jobs["failures"][0]["why"] in cli("jobs").out
    found = cli("recall", "tea")
    assert (found.code, found.out.rstrip().endswith("tea")) == (0, True)
    assert "Searched by words alone: " in found.err
    answer = cli("ask", "tea")
    assert "tea" in answer.out
    assert "Searched by words alone: " in answer.err
    assert cli.json("jobs", "retry") == {"retried": 1}
    assert cli("jobs", "retry").out == "0 texts will be tried again.\n"


# -- care


def test_D34_verify_doctor_and_maintain(in_default: Cli, database_url: str) -> None:
    with a_database(database_url) as fresh:
        in_default.patch.setenv("RECOLLECT_DATABASE_URL", fresh)
        _verify_doctor_and_maintain(in_default)


def _verify_doctor_and_maintain(cli: Cli) -> None:
    cli.add("coffee", "--no-wait")
    advised = cli("doctor")
    assert (advised.code, "To do: 1 text of the space default waits to be embedded" in advised.out) == (1, True)
    assert cli.json("doctor")["healthy"] is False
    cli("work")
    assert cli.json("verify")["whole"] is True
    assert cli("verify").out.startswith("Everything is whole: ")
    assert cli("doctor", "--verify").out.startswith("Everything is whole: ")
    assert "backup" in cli.json("maintain")
    assert cli("maintain", "--no-backup", "--reindex").out.startswith("Vacuumed; ")
    assert cli.json("doctor")["healthy"] is True
    assert cli("doctor").out.endswith("\nAll is well.\n")


async def _damage(url: str, space: str) -> None:
    await in_server(
        url,
        "UPDATE recollect.embeddings SET dim = dim + 1 WHERE space_id IN"
        f" (SELECT id FROM recollect.spaces WHERE slug = '{space}')",
    )


def test_D34_verify_finds_damage(cli: Cli, own_database: str) -> None:
    id_ = cli.add("tea")
    asyncio.run(_damage(own_database, cli.space))
    found = cli("verify")
    assert (found.code, f"{id_}\ta vector whose length" in found.out) == (1, True)
    assert cli.json("verify")["whole"] is False
    asyncio.run(in_server(own_database, "UPDATE recollect.embeddings SET dim = vector_dims(vector)"))


def test_backup_and_restore(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "monday.dump"
    id_ = cli.add("tea")
    assert cli("backup", str(file)).out.startswith(f"Backed up to {file} (")
    assert "--overwrite" in cli.refused("backup", str(file), code=4)
    assert cli.json("backup", str(file), "--overwrite")["bytes"] == file.stat().st_size
    later = cli.add("coffee")
    assert "--overwrite" in cli.refused("restore", str(file), code=4)
    assert cli.json("restore", str(file), "--overwrite")["nodes"] >= 1
    assert cli.json("show", id_)["text"] == "tea"
    cli.refused("show", later, code=3)
    assert cli("restore", str(file), "--overwrite").out.startswith(f"Restored {file}: ")


def test_restore_tells_files_from_ids(cli: Cli, tmp_path: Path) -> None:
    cli.patch.chdir(tmp_path)
    Path("abcd").write_text("no backup")
    Path("notes").write_text("no backup")
    assert "Nothing is remembered under abcd" in cli.refused("restore", "abcd", code=3)
    assert "is not a backup" in cli.refused("restore", "./abcd", code=2)
    assert "is not a backup" in cli.refused("restore", "notes", code=2)
    assert "cannot be read" in cli.refused("restore", "missing.dump", code=2)
    assert "is not an id" in cli.refused("restore", "missing", code=2)


# -- the command line itself


def test_config_shows_origins_and_hides_secrets(in_default: Cli) -> None:
    cli = in_default
    cli.patch.setenv("RECOLLECT_EMBEDDING_API_KEY", "very-secret")
    cli.patch.setenv("RECOLLECT_PORT", "7701")
    shown = {one["name"]: one for one in cli.json("config")}
    assert (shown["RECOLLECT_PORT"]["value"], shown["RECOLLECT_PORT"]["origin"]) == ("7701", "RECOLLECT_PORT")
    assert shown["RECOLLECT_HNSW_M"]["origin"] == "default"
    text = cli("config").out
    assert "very-secret" not in text
    assert os.environ["RECOLLECT_DATABASE_URL"] not in text
    assert "RECOLLECT_PORT\t7701\tfrom RECOLLECT_PORT\t" in text


def test_json_is_json_where_the_letters_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii", write_through=True))
    output.document({"text": "trà"})
    assert json.loads(written.getvalue()) == {"text": "trà"}


def test_help_and_version(in_default: Cli) -> None:
    assert in_default("--version").out.startswith("recollect ")
    bare, asked = in_default(), in_default("--help")
    assert bare.out.rstrip() == asked.out.rstrip()
    for code, meaning in EXIT_CODES.items():
        assert f"{code} {meaning.split()[0]}" in " ".join(asked.out.split())


def _commands() -> list[list[str]]:
    from typer.core import TyperGroup
    from typer.main import get_command

    def below(group: TyperGroup, path: list[str]) -> Iterator[list[str]]:
        for name, found in group.commands.items():
            yield [*path, name]
            if isinstance(found, TyperGroup):
                yield from below(found, [*path, name])

    root = get_command(build())
    assert isinstance(root, TyperGroup)
    return list(below(root, []))


@pytest.mark.parametrize("path", _commands(), ids=" ".join)
def test_every_command_has_help_space_and_json(path: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        run([*path, "--help"])
    shown = capsys.readouterr().out
    assert left.value.code == 0
    assert "--json" in shown
    assert "--space" in shown
    assert len(shown.splitlines()[2].strip()) > 10


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["nonsense"], 2, "`recollect` has no command 'nonsense'"),
        (["add"], 2, "TEXT is missing: write it as in `recollect add "),
        (["add", "x", "--nonsense"], 2, "has no option --nonsense"),
        (["add", "  "], 2, "The text is empty"),
        (["add", "x", "--type", "novel"], 2, "novel"),
        (["add", "x", "--importance", "2"], 2, "Importance is a number from 0 to 1, not 2.0"),
        (["add", "x", "--importance", "nan"], 2, "Importance is a number from 0 to 1"),
        (["add", "x", "--metadata", "{"], 2, "--metadata is a JSON object"),
        (["add", "x", "--metadata", "[1]"], 2, "--metadata is a JSON object"),
        (["add", "x", "--metadata", '{"color": "red"}'], 2, "'color' is not a metadata field"),
        (["add", "x", "--metadata", '{"tags": "ai"}', "--tag", "code"], 2, "Tags is a list of texts"),
        (["add", "x", "--created-at", "yesterday"], 2, "--created-at is a time like"),
        (["add", "x", "--created-at", "2999-01-01"], 2, "lies in the future"),
        (["add", "caf\udce9"], 2, "is not UTF-8 text"),
        (["list", "--limit", "0"], 2, "The limit is from 1 to 1,000, not 0"),
        (["list", "--limit", "many"], 2, "--limit cannot be 'many': it must be a whole number"),
        (["list", "--cursor", "x"], 2, "This cursor is not one"),
        (["list", "--since", "99999999999d"], 2, "--since is a time like"),
        (["recall"], 2, "QUERY is missing"),
        (["recall", " "], 2, "The question is empty"),
        (["recall", "x", "--limit", "1001"], 2, "The limit is from 1 to 1,000"),
        (["show", "xyz"], 2, "'xyz' is not an id"),
        (["show", "0000"], 3, "Nothing is remembered under 0000"),
        (["show", "00000000-0000-4000-8000-000000000001"], 3, "Nothing is remembered"),
        (["forget", "0000"], 3, "Nothing is remembered"),
        (["forget", "0000", "--space", "nowhere"], 3, "There is no space 'nowhere'"),
        (["undo", "00000000-0000-4000-8000-000000000002"], 3, "There is no plan"),
        (["undo", "abcdef"], 3, "There is no plan"),
        (["undo", ""], 2, "'' is not an id"),
        (["undo", "%%%%"], 2, "'%%%%' is not an id"),
        (["import", "/no/such/place"], 2, "There is no file or folder"),
        (["import", "x", "--format", "word"], 2, "--format cannot be 'word'"),
        (["export", "--json"], 2, "name a file"),
        (["export", "/dev/null/x.jsonl"], 2, "cannot be written"),
        (["spaces", "add", "Not A Slug"], 2, "cannot name a space"),
        (["spaces", "set", "nowhere", "--strict-tags"], 3, "There is no space"),
        (["backup", "/dev/null/x.dump"], 2, "cannot be written"),
        (["serve", "--port", "99999"], 2, "port cannot be 99999: it must be at most 65535"),
    ],
    ids=lambda value: " ".join(value).encode(errors="replace").decode() if isinstance(value, list) else None,
)
def test_a_refusal_is_one_sentence_and_an_exit_code(
    in_default: Cli, arguments: list[str], code: int, said: str
) -> None:
    assert said in in_default.refused(*arguments, code=code)


def test_D05_a_duplicate_is_a_conflict_that_names_the_other(cli: Cli) -> None:
    id_ = cli.add("tea")
    assert id_ in cli.refused("add", " tea ", code=4)


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("RECOLLECT_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none", 6),
        ("RECOLLECT_DATABASE_URL", "nonsense", 6),
        ("RECOLLECT_POOL_SIZE", "many", 2),
        ("RECOLLECT_EMBEDDER", "nonsense", 2),
        ("RECOLLECT_LOG_LEVEL", "loud", 2),
    ],
)
def test_a_bad_setting_is_one_sentence(in_default: Cli, name: str, value: str, code: int) -> None:
    in_default.patch.setenv(name, value)
    in_default.refused("list", code=code)


def test_for_a_program_a_refusal_is_one_document_and_the_same_exit_code(cli: Cli) -> None:
    assert cli("add", "the kettle is red").code == 0
    again = cli("add", "the kettle is red", "--json")
    assert (again.code, again.out) == (4, "")
    told = json.loads(again.err)
    assert told == {
        "code": "duplicate",
        "message": f"This text is remembered already, as {told['existing_id']}.",
        "field": "text",
        "existing_id": told["existing_id"],
    }
    for arguments, code in ((("recall", "x", "--limit", "0"), 2), (("no-such-command",), 2), (("show", "ffff"), 3)):
        refused = cli("--json", *arguments)
        assert (refused.code, refused.out) == (code, "")
        assert json.loads(refused.err)["message"] in cli(*arguments).err
    assert cli("recall", "--limit", "0", "--", "--json").err.startswith("The limit is")


def test_exit_codes_follow_the_nearest_class() -> None:
    assert exit_code(DuplicateText(uuid4())) == 4
    assert exit_code(ServerDidNotStart("x")) == 6
    assert exit_code(RecollectError("x")) == 1
    assert set(CODES.values()) <= set(EXIT_CODES)
