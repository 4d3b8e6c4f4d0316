"""G09: no test counts on how fast the machine is. It waits for a state (tests/waiting.py) or compares one effort with
another (tests/effort.py); whoever looks at a clock or naps elsewhere says why, on that line, after `# G09:`."""

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent
CLOCKS = re.compile(
    r"time\.(sleep|time|monotonic|perf_counter|process_time|thread_time)\(|wait_for_timeout\(|move_on_after\("
)
MAY = {"waiting.py", "effort.py", "test_web_support.py", "test_patience.py"}


def counting_on_speed(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if CLOCKS.search(line) and "# G09:" not in line]


def test_G09_no_test_looks_at_a_clock_or_naps() -> None:
    found = {
        str(file.relative_to(TESTS)): lines
        for file in TESTS.rglob("*.py")
        if file.name not in MAY and (lines := counting_on_speed(file.read_text(encoding="utf-8")))
    }
    assert found == {}


@pytest.mark.parametrize(
    "line", ["time.sleep(0.1)", "page.wait_for_timeout(50)", "assert time.monotonic() - began < 5"]
)
def test_G09_whoever_would_is_found(line: str) -> None:
    assert counting_on_speed(f"def test() -> None:\n    {line}\n") == [line]
    assert counting_on_speed(f"    {line}  # G09: another program naps here\n") == []
