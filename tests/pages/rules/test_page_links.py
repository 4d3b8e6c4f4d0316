"""Where links lead (B30)."""

import pytest

from recollect.pages.rules.links import resolve
from recollect.pages.rules.page import WikiPage
from recollect.pages.rules.stored import read_page


def note(path: str, text: str = "Text.") -> WikiPage:
    return read_page(path, text).page


OTHERS = [
    note("top.md"),
    note("a/deep.md", "---\naliases: [The Depth]\n---\nText."),
    note("b/deep.md"),
    note("b/with space.md"),
    note("a/readme.md"),
    note("principles/My_Page.md"),
]


@pytest.mark.parametrize(
    ("link", "target"),
    [
        ("[[top]]", "top"),
        ("[[Top|shown]]", "top"),
        ("[[deep]]", "a/deep"),
        ("[[b/deep]]", "b/deep"),
        ("[[deep#Part]]", "a/deep"),
        ("[[The depth]]", "a/deep"),
        ("![[with space]]", "b/with space"),
        ("[[with_space]]", "b/with space"),
        ("[[#here]]", "a/here"),
        ("[x](deep.md)", "a/deep"),
        ("[x](../b/deep.md#part)", "b/deep"),
        ("[x](../b/with%20space.md)", "b/with space"),
        ("[x](<../b/with space.md>)", "b/with space"),
        ("[x](/top.md)", "top"),
        ("[[related::Principle:My_Page]]", "Principle:My_Page"),
        ("[[related::Principle:my page]]", "Principle:My_Page"),
        ("[[nothing]]", None),
        ("[x](README.md)", None),
        ("[[related::Principle:None]]", None),
    ],
)
def test_B30_a_link_is_resolved(link: str, target: str | None) -> None:
    resolution = resolve([note("a/here.md", f"See {link} there.")], OTHERS)
    assert [one.target for one in resolution.links] == [target]
    assert any(link.target is None for link in resolution.links) is (target is None)
    assert len(resolution.findings) == (target is None or "my page" in link)


def test_B30_a_link_to_nowhere_says_what_it_may_have_meant() -> None:
    (finding,) = resolve([note("a/here.md", "[x](README.md)")], OTHERS).findings
    assert "leads nowhere" in finding.message
    assert "a/readme differs from it only in case" in finding.message


def test_B30_addresses_pictures_and_code_are_no_links() -> None:
    text = "[a](https://example.org/x.md) ![b](pic.md) `[[c]]` [d](file.pdf)\n```\n[[e]]\n```\n"
    assert note("a.md", text).links == ()
