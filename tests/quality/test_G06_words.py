"""What people read is plain English: words that sound translated were replaced everywhere, and stay away (G06)."""

import re
from pathlib import Path

import pytest

from recollect.wording import chance

ROOT = Path(__file__).parents[2]
REPLACED = {
    "Waits for you": "Needs your review",
    "Lately": "Recent activity",
    "How it is": "Status",
    "Next by itself": "Scheduled",
    "What is known of it": "Details",
    "What happened to it": "History",
    "What is around it": "Links",
    "What came of it": "Result",
    "How it does": "Performance",
    "Seen and left alone": "Skipped",
    "Why the next ones are not here": "Not shown, and why",
    "Let the other stay": "Keep the other",
    "The main of it": "Overview",
    "As system": "System theme",
    "Do it now": "Run now",
    "The bank needs somebody": "Needs attention",
    "is CREATE_NEW": "new, because its parent page is new",
    "Skip to what is here": "Skip to content",
    "It did not": "Not helpful",
    "% of success": "success rate 61%",
}
COMMENTS = re.compile(r"<!--.*?-->|/\*.*?\*/|^\s*//.*?$", re.DOTALL | re.MULTILINE)


def read_by_people() -> list[Path]:
    page = [file for kind in ("*.svelte", "*.ts") for file in (ROOT / "web/src").rglob(kind) if file.name != "api.d.ts"]
    docs = [file for file in (ROOT / "docs").rglob("*.md") if "adr" not in file.parts]
    return [*page, *docs, ROOT / "README.md", ROOT / "docs/reference/openapi.json"]


def test_G06_there_is_something_to_read() -> None:
    assert len(read_by_people()) > 40


@pytest.mark.parametrize(("sounds_translated", "plain"), REPLACED.items())
def test_G06_words_that_sound_translated_are_gone(sounds_translated: str, plain: str) -> None:
    found = [
        str(file.relative_to(ROOT))
        for file in read_by_people()
        if re.search(rf"(?<!\w){re.escape(sounds_translated)}(?!\s?\w)", COMMENTS.sub("", file.read_text()))
    ]
    assert not found, f"say {plain!r}"


def test_C36_what_is_asked_about_is_never_shown_as_certain() -> None:
    assert [chance(likely) for likely in (0.4, 0.914, 0.9994, 1.0)] == ["40%", "91%", "99%", "99%"]
