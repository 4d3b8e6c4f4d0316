"""Documents cannot lie: their links lead somewhere, their commands exist, and they name what there is."""

import json
import re
from pathlib import Path
from types import ModuleType

import pytest

from bench import figures, results
from recollect import model, plan
from tests.reference import DOCUMENTS, REFERENCE, ROOT, cli

PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if "reference" not in page.relative_to(ROOT).parts
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_the_documents_exist(page: Path) -> None:
    known = set(re.findall(r"^## recollect ([a-z-]+)", cli(), re.MULTILINE))
    blocks = "\n".join(re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL))
    own = {"demo", "serve", "test", "check", "bench", "web", "fix", "COMMAND"}
    used = set(re.findall(r"^\s*recollect ([a-z-]+)", blocks, re.MULTILINE))
    used |= set(re.findall(r"^\s*\./run ([a-zA-Z-]+)", blocks, re.MULTILINE)) - own
    assert used <= known


def test_every_generated_page_is_there() -> None:
    made = {str(page.relative_to(ROOT)) for page in REFERENCE.iterdir()}
    assert made == {name for name in DOCUMENTS if name.startswith("docs/reference/")}
    assert all((ROOT / name).exists() for name in DOCUMENTS)


PACKAGE = ROOT / "src" / "recollect"


def test_G05_the_architecture_names_every_package_and_every_noun_module() -> None:
    said = (ROOT / "ARCHITECTURE.md").read_text()
    packages = [file.parent.relative_to(PACKAGE) for file in PACKAGE.rglob("__init__.py") if file.parent != PACKAGE]
    modules = [Path(file.stem) for file in PACKAGE.glob("*.py") if not file.stem.startswith("__")]
    missing = [str(one) for one in (*packages, *modules) if not re.search(rf"\b{one}\b", said)]
    assert missing == []
    assert "(to come)" not in said


def test_G05_what_the_architecture_names_is_there() -> None:
    said = set(
        re.findall(
            r"`((?:doors|engine|store|providers|memories|recall|graph|cases|concepts|pages|plans|schedules)/[\w/.]+)`",
            _architecture(),
        )
    )
    assert said
    assert [one for one in said if not any((PACKAGE / f"{one}{end}").exists() for end in ("", ".py"))] == []


def _architecture() -> str:
    # `plans/sql/changes.apply` is a function of the file `plans/sql/changes`.
    return re.sub(r"`([\w/]+)\.(?!py)\w+`", r"`\1`", (ROOT / "ARCHITECTURE.md").read_text())


def test_G05_the_picture_of_the_architecture_names_files_that_are_there() -> None:
    """A line of it is a package, some of its files, and what they are about."""
    picture = (ROOT / "ARCHITECTURE.md").read_text().split("```text\n")[1].split("```")[0]
    named = re.findall(r"^ (\w+) +((?:[a-z_]+ )+)", picture, re.MULTILINE)
    packages = [(one, files.split()) for one, files in named if (PACKAGE / one).is_dir() and one not in NOT_BY_FILES]
    assert {one for one, _ in packages} >= {"memories", "recall", "graph", "cases", "concepts", "pages", "plans"}
    missing = [
        f"{one}/{file}" for one, files in packages for file in files if not (PACKAGE / one / f"{file}.py").exists()
    ]
    assert missing == []


# Whose line says what there is in other words.
NOT_BY_FILES = {"integrations", "doors", "providers"}


def test_G05_the_architecture_is_one_page_with_its_walks() -> None:
    said = (ROOT / "ARCHITECTURE.md").read_text()
    assert len(said.splitlines()) <= 110
    walks = {"A new memory", "A change", "A recall", "The way of a tidying", "The end"}
    assert walks <= {*re.findall(r"^## (.+)$", said, re.MULTILINE)}


def test_G05_what_contributing_names_is_there() -> None:
    said = re.findall(r"`((?:[\w.]+/)+[\w.]*)`", (ROOT / "CONTRIBUTING.md").read_text())
    assert said
    paths = [re.sub("NAME", "*", one.replace("SUBJECT", "*")) for one in said]
    assert [one for one in paths if not [*ROOT.glob(one), *PACKAGE.glob(one)]] == []


def test_G05_the_glossary_says_each_word_once() -> None:
    words = re.findall(r"^\| ([^|]+) \|", (ROOT / "GLOSSARY.md").read_text(), re.MULTILINE)
    words = [one for one in words if one not in ("word", "here") and not one.startswith("-")]
    assert sorted({one for one in words if words.count(one) > 1}) == []


def test_G05_the_glossary_names_every_noun_and_nothing_that_is_not_there() -> None:
    nouns = {name for module in (model, plan) for name, one in vars(module).items() if is_noun(module, name, one)}
    said = set(re.findall(r"`([A-Z]\w+)`", (ROOT / "GLOSSARY.md").read_text()))
    assert nouns - said == set()
    assert said - nouns == {"Metadata", "Row"}


def is_noun(module: ModuleType, name: str, one: object) -> bool:
    is_ours = isinstance(one, type) and f"{one.__module__}.".startswith(f"{module.__name__}.")
    return is_ours and not name.startswith("_")


def test_G05_nothing_is_claimed_for_a_system_that_was_never_tried() -> None:
    assert "MacOS" not in (ROOT / "pyproject.toml").read_text()
    assert re.search(r"macOS may work; nobody has tried it", (ROOT / "README.md").read_text())


def test_G05_the_figures_are_those_that_were_measured() -> None:
    every = {name: one for file in results.RESULTS.glob("*.json") for name, one in results.kept(file.stem).items()}
    assert len(results.TEN) == 10
    assert results.readme() == (ROOT / "README.md").read_text()
    for name, one in every.items():
        bar, value = one["bar"], one["value"]
        assert one["holds"] == (bar is None or (value >= bar if one["better"] == "higher" else value <= bar)), name
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", one["date"]), name
        assert re.fullmatch(r"[0-9a-f]{7,}\+?", one["commit"]), name
        assert one["command"].startswith("./run bench "), name


def test_G05_a_benchmark_writes_what_the_page_of_figures_reads(tmp_path: Path) -> None:
    measured = figures.Figure(name="a / b", value=0.4, bar=0.5, better="lower", how="in words")
    command = figures.as_typed("recall", 500, ["--data", str(tmp_path), "--million"])
    figures.save([measured], tmp_path / "x.json", command)
    (one,) = json.loads((tmp_path / "x.json").read_text()).values()
    assert (one["value"], one["bar"], one["better"], one["holds"], one["how"]) == (0.4, 0.5, "lower", True, "in words")
    assert one["command"] == "./run bench recall --size 500 --data DIR --million"
    assert one["date"]
    assert one["commit"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_G04_commands_in_sentences_and_their_options_exist(page: Path) -> None:
    helps = dict(re.findall(r"^## (recollect[^\n]*)\n\n```text\n(.*?)```", cli(), re.MULTILINE | re.DOTALL))
    for said in re.findall(r"`(recollect [a-z][^`]*)`", page.read_text()):
        words = said.split()
        name = next(" ".join(words[:n]) for n in (3, 2, 1) if " ".join(words[:n]) in helps)
        assert name != "recollect", f"{page.name}: {said}"
        for option in re.findall(r"--[a-z][a-z-]*", said):
            assert option in helps[name], f"{page.name}: {said}"
