"""The floor plan: every subject has the same rooms, SQL stays in its own, and a name means one thing."""

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import recollect
from recollect.plans.registry import POLICIES

HOUSE = Path(recollect.__file__).parent
SUBJECTS = ("memories", "recall", "graph", "cases", "concepts", "pages", "plans", "schedules")
ROOMS = {"rules", "policies", "sql"}
DRIVERS = {"sqlalchemy", "asyncpg", "alembic", "pgvector"}
# What each policy's options are called (ARCHITECTURE: a policy's file has four parts).
SAME_IN_EVERY_POLICY = {"Options"}
LONGEST = 500
ROOT = Path(__file__).parents[2]
# Where a policy is named outside its subject, and why.
NAMED_ELSEWHERE = {
    ("merge_pages", "plans/sql/plans.py"),  # the tries of one import are undone as one
    ("merge_pages", "doors/cli/plans.py"),  # its plan.md is kept current
    ("link_similar", "memories/policies/note_similar_memories.py"),  # memories that say the same are linked as alike
}
# What a call tells the time by. A verb hands it down.
CLOCKS = re.compile(r"\b(datetime\.now|datetime\.utcnow|time\.time|time\.monotonic|utc_now|date\.today)\(")
# Which subject may know more of another than its nouns and its rules; all may know plans and memories.
MEETINGS = {
    "recall": {"graph"},  # activation spreads along edges, which recalls reinforce
    "cases": {"recall", "schedules"},  # a case is recalled by its question; how its last tidying went
    "concepts": {"recall", "graph"},  # a concept is found by words and vectors, and has edges
    "pages": {"graph"},  # a page's links are edges
    "schedules": {"concepts"},  # concepts grow by themselves
    "memories": {"recall", "graph", "concepts", "cases"},  # each import is named in pyproject.toml
    "plans": {"graph", "cases", "concepts", "pages"},  # the reader reads for every policy, the registry names them
}


@cache
def modules() -> dict[str, list[ast.AST]]:
    """All that each module is made of, walked through once: that takes longer than anything that is asked of it."""
    files = [file for file in HOUSE.rglob("*.py") if "migrations" not in file.parts]
    return {str(file.relative_to(HOUSE)): [*ast.walk(ast.parse(file.read_text(encoding="utf-8")))] for file in files}


def imported(module: list[ast.AST]) -> set[str]:
    """The top-level packages that a module imports."""
    names = {name.name for node in module if isinstance(node, ast.Import) for name in node.names}
    names |= {node.module for node in module if isinstance(node, ast.ImportFrom) and node.module}
    return {name.partition(".")[0] for name in names}


def test_every_subject_has_the_same_rooms() -> None:
    for subject in SUBJECTS:
        rooms = {one.name for one in (HOUSE / subject).iterdir() if one.is_dir() and one.name != "__pycache__"}
        assert rooms <= ROOMS, subject
        assert rooms | {one.stem for one in (HOUSE / subject).glob("sql.py")} >= {"rules", "sql"}, subject


def test_sql_stays_in_its_rooms() -> None:
    def may(path: str) -> bool:
        return path.startswith("store/") or "sql" in Path(path).with_suffix("").parts

    strangers = {
        path: found for path, module in modules().items() if (found := imported(module) & DRIVERS) and not may(path)
    }
    assert strangers == {}


def test_no_class_name_stands_twice() -> None:
    homes = defaultdict(list)
    for path, module in modules().items():
        for node in module:
            if isinstance(node, ast.ClassDef) and not (node.name in SAME_IN_EVERY_POLICY and "policies" in path):
                homes[node.name].append(path)
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_no_module_is_long_but_tables_and_migrations() -> None:
    lengths = {path: len((HOUSE / path).read_text(encoding="utf-8").splitlines()) for path in modules()}
    del lengths["store/tables.py"]
    assert {path: size for path, size in lengths.items() if size > LONGEST} == {}


def subjects_met(module: list[ast.AST]) -> Iterator[str]:
    """The subjects of which a module imports more than rules."""
    for node in module:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("recollect."):
            parts = [*node.module.split("."), *(name.name for name in node.names)]
            if parts[1] in SUBJECTS and parts[2] != "rules":
                yield parts[1]


def test_subjects_meet_only_through_nouns_plans_memories_and_where_it_is_said() -> None:
    met: dict[str, set[str]] = defaultdict(set)
    for path, module in modules().items():
        own = path.partition("/")[0]
        if own in SUBJECTS:
            met[own] |= {*subjects_met(module)} - {own, "plans", "memories"}
    assert {subject: others for subject, others in met.items() if others} == MEETINGS


def test_every_exception_of_the_import_contract_is_a_single_line_with_its_reason() -> None:
    said = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = next(one for one in said["tool"]["importlinter"]["contracts"] if one["type"] == "layers")
    assert [one for one in layers["ignore_imports"] if one.startswith("recollect.** ->")] == []
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lines = text[text.index("ignore_imports") :].split("]\n")[0].splitlines()[1:]
    assert lines[0].lstrip().startswith("#")


def test_no_policy_is_named_outside_its_subject() -> None:
    homes = {name: POLICIES[name].propose.__module__.split(".")[1] for name in POLICIES}
    found = set()
    for path, module in modules().items():
        documents = {document for node in module for document in _documents(node)}
        for node in module:
            words = _words(node) if node not in documents else ()
            found |= {(name, path) for name in words if name in homes and path.partition("/")[0] != homes[name]}
    assert {one for one in found if one[1] != "plans/registry.py"} == NAMED_ELSEWHERE


def _documents(node: ast.AST) -> list[ast.AST]:
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return []
    return [first.value for first in node.body[:1] if isinstance(first, ast.Expr)]


def _words(node: ast.AST) -> list[str]:
    """What a name, an import or a string says."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.findall(r"\w+", node.value)
    if isinstance(node, ast.ImportFrom):
        return [*(node.module or "").split("."), *(name.name for name in node.names)]
    return [node.id] if isinstance(node, ast.Name) else []


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_is_one_file_with_its_parts_in_order(name: str) -> None:
    """Options, then propose, then what it asks, then POLICY, by which it is known (DESIGN 2)."""
    file = HOUSE.joinpath(*POLICIES[name].propose.__module__.split(".")[1:]).with_suffix(".py")
    assert (file.parent.name, file.stem) == ("policies", name)
    body = ast.parse(file.read_text(encoding="utf-8")).body
    names = [node.name for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)]
    assert names.index("Options") < names.index("propose")
    assert ast.unparse(body[-1]).startswith("POLICY = ")
    tests = ROOT / "tests" / file.parent.parent.name
    assert any(name in test.read_text(encoding="utf-8") for test in tests.rglob("test_*.py")), "it has no test"


def test_time_is_a_parameter_of_rules_policies_and_statements() -> None:
    def is_below(path: str) -> bool:
        return bool({"rules", "policies", "sql"} & {*Path(path).with_suffix("").parts})

    tellers = [path for path in modules() if is_below(path) and CLOCKS.search((HOUSE / path).read_text("utf-8"))]
    assert tellers == []


def test_doors_have_the_same_file_names_one_a_subject() -> None:
    for door in ("api", "cli"):
        files = {file.stem for file in (HOUSE / "doors" / door).glob("*.py")}
        assert {*SUBJECTS} <= files, door


def test_a_change_and_its_test_are_found_by_one_name() -> None:
    for subject in (*SUBJECTS, "engine", "store", "providers", "doors", "integrations"):
        assert list((ROOT / "tests" / subject).glob("test_*.py")), subject
    for subject in SUBJECTS:
        has_rules = any(file.stem != "__init__" for file in (HOUSE / subject / "rules").glob("*.py"))
        assert not has_rules or list((ROOT / "tests" / subject / "rules").glob("test_*.py")), subject


def test_a_transaction_knows_its_space() -> None:
    """No statement takes the pair of a connection and a space; the owner's connection, which is in none, may."""
    pairs = {
        (path, node.name)
        for path, module in modules().items()
        for node in module
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and {"db", "space_id"} <= {argument.arg for argument in (*node.args.args, *node.args.kwonlyargs)}
    }
    assert pairs == set()
