"""What a text without a name is called, of the kinds of texts that people keep."""

import pytest

from recollect.graph.rules.titles import title_of


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("Linh prefers tea, never coffee", "Linh prefers tea, never coffee"),
        ("\n  two   spaces\nand a line", "two spaces"),
        ("# Recollect\n\n**A memory for AI agents.**", "Recollect"),
        ("intro\n\n## The `cache` and [its docs](https://a.b)\n", "The cache and its docs"),
        ("ONNX Runtime\n============\nIt runs.", "ONNX Runtime"),
        (
            '<p align="center">\n  <img alt="logo"\n   width="460" src="x.svg">\n</p>\n\n**deptry** finds it',
            "deptry finds it",
        ),
        ('<div align="center">\n  <h1>genai-prices</h1>\n</div>\n\n## Installation', "genai-prices"),
        ("[![Build](https://b/x.svg)](https://b)\n[![shield][s]][u]\nA badge above", "A badge above"),
        (".. image:: https://a/b.svg\n   :target: https://a\n\nAnyIO is asynchronous", "AnyIO is asynchronous"),
        (
            ".. |PyPI| image:: https://a\n|PyPI| |CI Status|\n\n``referencing`` does `it <https://a>`_",
            "referencing does it",
        ),
        ("| drink | who |\n|---|---|\n| tea | Linh |", "drink | who"),
        ("- [ ] renew passport\n- [x] book flights", "[ ] renew passport"),
        ("```python\ndef retry(): ...\n```", "def retry(): ..."),
        ("2 * 3 * 4 is 24, and snake_case stays", "2 * 3 * 4 is 24, and snake_case stays"),
        ("🍵🍵 tea at 4", "🍵🍵 tea at 4"),
        ("抹茶は80度", "抹茶は80度"),
        ("***", "***"),
        ("", ""),
    ],
)
def test_G06_a_title_is_read_aloud_without_markup(text: str, title: str) -> None:
    assert title_of(text) == title


@pytest.mark.parametrize(
    ("section", "title"),
    [
        ("Books", "Books › Links"),
        ("[SQL](https://a.b/sql) / Tools / Free", "SQL › Links"),
        ("Links", "Links"),
        ("", "Links"),
        (["no", "text"], "Links"),
    ],
)
def test_W06_a_piece_of_a_note_is_called_by_the_note_too(section: object, title: str) -> None:
    assert title_of("## Links\n\n- one", section) == title


def test_a_hostile_text_takes_no_longer_than_another() -> None:
    for sign in ("[", "*", "`", "<", "|", "_", "![", "<!--", ":a", "# "):
        assert len(title_of(sign * 100_000)) <= 200
