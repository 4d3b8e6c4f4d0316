"""The one script, `./run`: bash takes the last of two functions with one name and says nothing."""

import re
from pathlib import Path

RUN = Path(__file__).parents[2] / "run"


def test_G01_the_script_says_each_thing_once() -> None:
    names = re.findall(r"^(\w+)\(\) \{", RUN.read_text(), re.MULTILINE)
    assert "prepare" in names
    assert sorted(names) == sorted(set(names))
