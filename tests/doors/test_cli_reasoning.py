"""Reasoning on the command line: ask, recalls, helped."""

from collections.abc import Iterator

import pytest

from tests.doors import test_cli_support as support
from tests.doors.test_cli_support import Cli
from tests.model_server import ModelServer

own_database, in_default, cli = support.own_database, support.in_default, support.cli
TEA = "Linh prefers green tea at home"


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    with ModelServer() as models:
        monkeypatch.setenv("RECOLLECT_MODEL", "ollama:test")
        monkeypatch.setenv("RECOLLECT_MODEL_URL", models.url)
        yield models


def test_D42_ask_without_a_model_gives_the_memories(cli: Cli) -> None:
    id_ = cli.add(TEA)
    answer = cli("ask", *TEA.split())
    assert answer.out.startswith("[Memory 1] [")
    assert TEA in answer.out
    assert id_[:8] in answer.out
    assert answer.err == ""
    said = cli("ask", TEA, "--mode", "synthesize")
    assert TEA in said.out
    assert "No language model is configured" in said.err


def test_D42_ask_with_a_model_answers_with_citations(cli: Cli, models: ModelServer) -> None:
    id_ = cli.add(TEA)
    models.says = "Tea [Memory 1], coffee [Memory 2].\nConfidence: 0.6"
    answer = cli("ask", TEA)
    assert answer.out.startswith("Tea [Memory 1], coffee [Memory 2].\n\n[Memory 1]*\t")
    assert id_[:8] in answer.out
    assert "cites [Memory 2], but 1 memory was given" in answer.err
    found = cli.json("ask", TEA, "-m", "expand")
    assert (found["mode"], found["confidence"], found["citations"]) == ("EXPAND", 0.6, [{"number": 1, "id": id_}])


def test_D21_ask_about_what_was_never_told(cli: Cli, models: ModelServer) -> None:
    cli.add(TEA)
    answer = cli("ask", "quarterly zirconium exports")
    assert (answer.out, answer.err, models.received) == ("Nothing is known about that.\n", "", [])


def test_asking_badly(cli: Cli) -> None:
    assert "There is no mode 'guess'" in cli.refused("ask", "x", "--mode", "guess", code=2)
    assert "The question is empty" in cli.refused("ask", " ", code=2)
    assert "The limit is from 1" in cli.refused("ask", "x", "--limit", "0", code=2)
    assert "The threshold is from 0 to 1" in cli.refused("ask", "x", "--threshold", "2", code=2)


def test_D11_recalls_are_listed_shown_and_replayed(cli: Cli) -> None:
    assert cli("recalls").err == "Nothing was asked yet.\n"
    first = cli.add(TEA)
    asked = cli.json("ask", TEA)["id"]
    (line,) = cli("recalls").out.splitlines()
    assert line.split("\t")[0] == asked[:8]
    assert line.endswith(TEA)
    assert cli.json("recalls", "--mode", "expand")["items"] == []
    shown = cli("recalls", "show", asked[:6]).out
    assert f"question\t{TEA}\n" in shown
    assert first[:8] in shown
    assert cli("recalls", "replay", asked).out == "The same 1 hit, in the same order.\n"
    cli("forget", first)
    assert cli("recalls", "replay", asked).out == f"no longer found\t{first[:8]}\t\n"
    assert "No recall is logged under" in cli.refused("recalls", "show", "0000", code=3)


def test_D40_helped_and_not_helped_are_counted(cli: Cli) -> None:
    id_ = cli.add(TEA)
    asked = cli.json("ask", TEA)["id"]
    assert cli("helped", id_[:8], "--recall", asked).out == "Counted: helped 1 of 1 time; used 1.\n"
    assert cli.json("not-helped", id_)["judged"] == 2
    assert "Nothing is remembered under" in cli.refused("helped", "00000000", code=3)
