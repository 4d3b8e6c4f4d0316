"""Documents cannot lie: their Python runs, their links lead somewhere, their commands exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reference import DOCUMENTS, REFERENCE, ROOT, cli

PAGES = sorted(
    page
    for page in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if "reference" not in page.relative_to(ROOT).parts
)
PYTHON = [
    pytest.param(code, id=f"{page.name}-{number}")
    for page in PAGES
    for number, code in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
]


@pytest.mark.parametrize("code", PYTHON)
def test_the_python_in_the_documents_runs(code: str, new_home: Path) -> None:
    environment = {"RECOLLECT_HOME": str(new_home), "PATH": "/usr/bin:/bin", "HOME": str(new_home.parent)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout


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
