"""Which new tags look like slips of known ones, and which are simply other words (G08)."""

import pytest

from recollect.memories.rules.tags import REGISTERED_TAGS, can_be_tag, likely_meant, written_tags


@pytest.mark.parametrize(
    ("tag", "meant"),
    [
        ("helth", "health"),
        ("heatlh", "health"),
        ("Health", "health"),
        ("lessons", "lesson"),
        ("coed", "code"),
        ("musik", "music"),
        ("pyschology", "psychology"),
        ("knowlegde", "knowledge"),
        ("importent", "important"),
        ("machine learning", "machine-learning"),
    ],
)
def test_G08_a_slip_leads_to_the_known_tag(tag: str, meant: str) -> None:
    assert likely_meant(tag, {*REGISTERED_TAGS, "machine-learning"}) == meant


@pytest.mark.parametrize(
    "tag",
    [
        "film",
        "wealth",
        "mode",
        "art",
        "cod",
        "report",
        "live",
        "practice",
        "personal",
        "2024",
        "v2",
        "sức khoẻ",
        "健康",
        "🍵",
    ],
)
def test_G08_another_word_is_no_slip(tag: str) -> None:
    assert likely_meant(tag, {*REGISTERED_TAGS, "2025", "v1", "suc khoe", "健身"}) is None


def test_G08_a_known_tag_is_no_slip_and_a_registered_one_comes_first() -> None:
    assert likely_meant("files", {"file", "files"}) is None
    assert likely_meant("helth", {"helt", "health"}) == "health"
    assert likely_meant("lessson", {"Lessson", "lesson"}) == "lesson"


@pytest.mark.parametrize("tag", ["", " ", "x" * 101, "a\nb", "a\0b", "a\tb", "a\u2028b", "\ud800", None, 1])
def test_G08_what_cannot_be_a_tag(tag: object) -> None:
    assert not can_be_tag(tag)


@pytest.mark.parametrize(
    ("written", "tags"),
    [
        ("one two", ["one", "two"]),
        ("machine learning, #ai", ["machine learning", "ai"]),
        ("#one #one", ["one"]),
        (["#Area/Health", " tea ", "", None, 2024, True], ["Area/Health", "tea", "2024", "true"]),
        (None, []),
        ({"tea": None, "cake": None}, ["tea", "cake"]),
        (2024, ["2024"]),
    ],
)
def test_G08_tags_are_read_as_people_write_them(written: object, tags: list[str]) -> None:
    assert written_tags(written) == tags
