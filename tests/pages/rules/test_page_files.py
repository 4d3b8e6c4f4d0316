"""Reading a folder of pages: everything bad is one line, the rest goes on."""

from pathlib import Path

import pytest

from recollect.errors import InvalidInput
from recollect.pages.files import PageFile, PagesWritten, check_folder, read_folder, write_folder
from recollect.pages.rules.page import page_path


def read(folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The pages by path, and what was said about the other files."""
    found = list(read_folder(folder, largest=1000))
    pages = {one.path: one.text for one in found if isinstance(one, PageFile)}
    return pages, {one.file: one.message for one in found if not isinstance(one, PageFile)}


def test_bad_files_are_said_and_the_rest_goes_on(tmp_path: Path) -> None:
    (tmp_path / "principles").mkdir()
    (tmp_path / "principles" / "Good.md").write_bytes("\ufeff# Güte\r\n".encode())
    (tmp_path / "binary.md").write_bytes(b"\0\1\2")
    (tmp_path / "large.md").write_text("x" * 1001)
    (tmp_path / "latin.md").write_bytes("Grüße".encode("latin-1"))
    (tmp_path / "utf16.md").write_bytes("Text".encode("utf-16"))
    (tmp_path / "picture.png").write_bytes(b"png")
    (tmp_path / ".hidden.md").write_text("x")
    pages, said = read(tmp_path)
    assert pages == {"principles/Good.md": "\ufeff# Güte\r\n"}
    assert said["binary.md"] == "It is a binary file."
    assert said["large.md"].startswith("It has 1,001 bytes; a page has at most 1,000")
    assert "not UTF-8" in said["latin.md"]
    assert "UTF-16" in said["utf16.md"]
    assert said["picture.png"] == "It is not a page."
    assert len(said) == 6


def test_links_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside.md"
    outside.write_text("secret")
    folder = tmp_path / "wiki"
    folder.mkdir()
    (folder / "page.md").write_text("page")
    (folder / "loop").symlink_to(folder)
    (folder / "out.md").symlink_to(outside)
    pages, said = read(folder)
    assert pages == {"page.md": "page"}
    assert len(said) == 2
    assert all("links are not followed" in message for message in said.values())


def test_an_empty_folder_is_said(tmp_path: Path) -> None:
    assert ["no pages" in message for message in read(tmp_path)[1].values()] == [True]


def test_a_file_or_nothing_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file.md").write_text("x")
    check_folder(tmp_path)
    with pytest.raises(InvalidInput, match="is a file"):
        check_folder(tmp_path / "file.md")
    with pytest.raises(InvalidInput, match="There is no folder"):
        check_folder(tmp_path / "none")


def test_what_is_written_is_read_back_byte_by_byte(tmp_path: Path) -> None:
    pages = {"a/b.md": "\ufeffx\r\ny", "c.md": "ü"}
    assert write_folder(tmp_path / "out", pages.items()) == PagesWritten(pages=2)
    assert read(tmp_path / "out")[0] == pages


def test_B35_a_page_that_cannot_be_written_is_named_and_the_rest_goes_on(tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "led").symlink_to(outside)
    long = "x" * 256 + ".md"
    pages = [("../bad.md", "x"), ("a.md", "x"), ("a.md/b.md", "y"), (long, "x"), ("led/c.md", "x"), ("z.md", "x")]
    done = write_folder(tmp_path / "out", pages)
    assert (done.pages, [line.file for line in done.left_out]) == (2, ["../bad.md", "a.md/b.md", long, "led/c.md"])
    assert (tmp_path / "out" / "z.md").read_text() == "x"
    assert not (tmp_path / "bad.md").exists()
    assert list(outside.iterdir()) == []


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("a.md", "a.md"),
        ("./a.md", "a.md"),
        ("a//b/./c.md", "a/b/c.md"),
        ("ü" * 126 + ".md", "ü" * 126 + ".md"),
        ("", None),
        (".", None),
        ("a/ ", None),
        ("/a.md", None),
        ("a/../b.md", None),
        ("a\\b.md", None),
        ("a\0.md", None),
        ("\udcff.md", None),
        ("ü" * 127 + ".md", None),
        ("/".join(["folder"] * 200), None),
    ],
)
def test_B35_a_path_is_normal_and_bounded(given: str, kept: str | None) -> None:
    if kept is None:
        with pytest.raises(ValueError, match="Its path"):
            page_path(given)
    else:
        assert page_path(given) == kept
