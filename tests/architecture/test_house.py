"""The floor plan: every subject has the same rooms, SQL stays in its own, and a name means one thing."""

import ast
from collections import defaultdict
from pathlib import Path

import recollect

HOUSE = Path(recollect.__file__).parent
SUBJECTS = ("memories", "recall", "graph", "cases", "concepts", "pages", "plans", "schedules")
ROOMS = {"rules", "policies", "sql"}
DRIVERS = {"sqlalchemy", "asyncpg", "alembic", "pgvector"}
# What each policy's options are called (ARCHITECTURE: a policy's file has four parts).
SAME_IN_EVERY_POLICY = {"Options"}
LONGEST = 500


def modules() -> dict[str, ast.Module]:
    files = [file for file in HOUSE.rglob("*.py") if "migrations" not in file.parts]
    return {str(file.relative_to(HOUSE)): ast.parse(file.read_text(encoding="utf-8")) for file in files}


def imported(tree: ast.Module) -> set[str]:
    """The top-level packages that a module imports."""
    names = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
    names |= {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
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
        path: found for path, tree in modules().items() if (found := imported(tree) & DRIVERS) and not may(path)
    }
    assert strangers == {}


def test_no_class_name_stands_twice() -> None:
    homes = defaultdict(list)
    for path, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not (node.name in SAME_IN_EVERY_POLICY and "policies" in path):
                homes[node.name].append(path)
    assert {name: paths for name, paths in homes.items() if len(paths) > 1} == {}


def test_no_module_is_long_but_tables_and_migrations() -> None:
    lengths = {path: len((HOUSE / path).read_text(encoding="utf-8").splitlines()) for path in modules()}
    del lengths["store/tables.py"]
    assert {path: size for path, size in lengths.items() if size > LONGEST} == {}
