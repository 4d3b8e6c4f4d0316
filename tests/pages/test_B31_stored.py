"""Two wikis become one in the store: links, a second import, undo, and the files that come out (B31, B32, B35)."""

from pathlib import Path

import pytest
from hypothesis import Phase, given, seed
from hypothesis import settings as trying

from recollect.engine.engine import Engine
from recollect.errors import InvalidInput
from recollect.pages.files import PageFile, read_folder
from recollect.pages.rules.audit import Overall
from recollect.pages.rules.links import Directory
from recollect.pages.rules.page import WikiPage
from recollect.pages.rules.similarity import SuppliedScores
from recollect.pages.rules.stored import distinct, read_page
from recollect.settings import Settings
from tests.conftest import fresh_space
from tests.pages.rules.test_B31_links import led_to
from tests.pages.rules.wikis import Wiki, wikis

pytestmark = pytest.mark.anyio

NO_SCORES = SuppliedScores(scores={})


def pairs(number: int) -> list[tuple[Wiki, Wiki]]:
    """Some of any two wikis."""
    found: list[tuple[Wiki, Wiki]] = []

    @seed(31)
    @trying(max_examples=number, database=None, phases=[Phase.generate], deadline=None)
    @given(wikis("old"), wikis("new"))
    def collect(old: Wiki, new: Wiki) -> None:
        found.append((old, new))

    collect()
    return found


async def exported(memory: Engine, folder: Path) -> dict[str, bytes]:
    await memory.pages.export(folder)
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*.md")}


def pages_in(folder: Path) -> list[WikiPage]:
    files = [one for one in read_folder(folder) if isinstance(one, PageFile)]
    return distinct(read_page(one.path, one.text).page for one in files)[0]


def leads(folder: Path) -> dict[str, str]:
    """Where each link of a folder leads, from the file it is in."""
    pages = pages_in(folder)
    directory = Directory(pages)
    return {f"{page.path} {link.written}": directory.find(page, link) or "" for page in pages for link in page.links}


async def test_B31_B32_any_two_wikis_in_the_store(settings: Settings, tmp_path: Path) -> None:
    for number, (old, new) in enumerate(pairs(6)):
        async with Engine(await fresh_space(settings)) as space:
            here = tmp_path / str(number)
            first = await space.pages.import_texts(old.files.items(), scores=NO_SCORES)
            await space.pages.apply(first.plan.id)
            before = await exported(space, here / "before")
            assert before == {path: text.encode() for path, text in old.files.items()}
            alike = {(page.id, page.id): 1.0 for page in new.pages[::2]}
            found = await space.pages.import_texts(new.files.items(), scores=SuppliedScores(scores=alike))
            merged = await space.pages.apply(found.plan.id)
            assert merged.result.overall is Overall.SUCCESS, merged.result.failed
            after = await exported(space, here / "after")
            assert led_to(pages_in(here / "after")).keys() >= led_to(old.pages).keys()
            for files in (old.files, new.files, {path: text.decode() for path, text in after.items()}):
                again = await space.pages.import_texts(files.items())
                assert again.plan.decisions == []
            await space.plans.undo(merged.plans[-1])
            assert await exported(space, here / "undone") == before


async def test_B31_links_of_every_kind_follow_a_page_that_gets_another_name(memory: Engine, tmp_path: Path) -> None:
    there = [("guide/setup.md", "# Setup\n\nHow the old thing is set up.\n"), ("a.md", "[[setup]]\n")]
    await memory.pages.apply((await memory.pages.import_texts(there, scores=NO_SCORES)).plan.id)
    text = "[Setup](setup.md#first), [[setup]], [[guide/setup|so]] and [[Start]].\n"
    comes = [
        ("guide/setup.md", "---\naliases: [Start]\n---\n# Another\n\nSomething else.\n"),
        ("guide/more.md", text),
        ("setup.md", "# At the top\n\nNothing to do with either.\n"),
    ]
    found = await memory.pages.import_texts(comes, scores=NO_SCORES)
    assert sorted(one.verb for one in found.plan.decisions) == ["create", "create", "create", "relink"]
    merged = await memory.pages.apply(found.plan.id)
    assert merged.result.overall is Overall.SUCCESS
    out = await exported(memory, tmp_path)
    assert out["guide/more.md"].decode() == (
        "[Setup](setup_2.md#first), [[setup]], [[guide/setup_2|so]] and [[Start]].\n"
    ), "a name alone means the page at the top, where there is one"
    assert out["a.md"].decode() == "[[guide/setup|setup]]\n", "a newcomer at the top would take the name"
    assert set(leads(tmp_path).values()) == {"setup", "guide/setup", "guide/setup_2"}
    await memory.plans.undo(merged.plans[-1])
    again = await memory.pages.import_texts(comes, scores=NO_SCORES)
    relink = next(one.number for one in again.plan.decisions if one.verb == "relink")
    with pytest.raises(InvalidInput, match="decline the page that takes their name"):
        await memory.plans.apply(again.plan.id, decline=[relink])


async def test_B35_paths_are_normal_on_the_way_in_and_export_goes_on(memory: Engine, tmp_path: Path) -> None:
    given = [("./a//b.md", "One."), ("a/b.md", "Two."), ("a/b.md/c.md", "Three."), ("x" * 300 + ".md", "Four.")]
    found = await memory.pages.import_texts(given, scores=NO_SCORES)
    assert found.pages == 2
    assert sum("two pages at this path" in line or "too long" in line for line in found.lines) == 2
    await memory.pages.apply(found.plan.id)
    done = await memory.pages.export(tmp_path)
    assert (done.pages, [line.file for line in done.left_out]) == (1, ["a/b.md/c.md"])
    assert (tmp_path / "a/b.md").read_text() == "One."
