"""Exporting a vault: notes that people can read, links that lead somewhere, texts that come back as they were (D54)."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from recollect.doors.cli.moving import _export
from recollect.engine.engine import Engine
from recollect.errors import Conflict, InvalidInput
from recollect.graph.rules.notes import LONGEST_BYTES, Names, title
from recollect.model import NewMemory, NodeFilter

pytestmark = pytest.mark.anyio

TEXTS = [
    "Linh prefers tea, never coffee",
    "linh prefers: TEA, never coffee",
    "Linh prefers TEA never coffee",
    "---\ntitle: no front matter of ours\n---\nbut a text",
    "# Trà sen\n\nBa phút, 80 độ.",
    "緑茶" * 200,
    "con",
    "???",
    "a [[wikilink]] | and a #tag",
    "two\nlines\n---\nand a rule",
]


def front_of(file: Path) -> dict[str, object]:
    found = re.match(r"---\n(.*?)\n---\n", file.read_text(), re.DOTALL)
    assert found
    front: dict[str, object] = yaml.safe_load(found[1])
    return front


async def test_D54_a_vault_links_its_notes_and_comes_back_as_it_was(memory: Engine, tmp_path: Path) -> None:
    metadata = {"tags": ["life", "trà"], "extra": {"mood": "calm"}}
    ids = (await memory.add_many([NewMemory(text=text, metadata=metadata, importance=0.5) for text in TEXTS])).ids
    concept = (await memory.concepts.add("Linh_Tran", node_type="person")).concept
    await memory.graph.link(ids[0], concept.id, "about")
    await memory.graph.link(ids[0], ids[4], "similar")
    await memory.forget((await memory.add("archived")).id)

    vault = tmp_path / "vault"
    assert await memory.graph.export_vault(vault) == len(TEXTS) + 1
    files = {str(front_of(file)["id"]): file for file in vault.rglob("*.md")}
    assert len(files) == len(TEXTS) + 1
    assert files[str(concept.id)] == vault / "concepts" / "Linh_Tran.md"
    links = front_of(files[str(ids[0])])["links"]
    assert isinstance(links, list)
    targets = [vault / f"{link[2:].partition('|')[0]}.md" for link in links]
    assert {*targets} == {files[str(concept.id)], files[str(ids[4])]}

    again = await memory.import_([vault / "memories"])
    assert (again.added, again.already_there, again.refused, again.notes) == (0, len(TEXTS), (), ())
    slug = f"{memory.space.slug}-b"
    await memory.add_space(slug)
    other = await memory.in_space(slug)
    assert (await other.import_([vault / "memories"])).added == len(TEXTS)
    before = {node.text: node async for node in memory.stream()}
    async for node in other.stream():
        known = before[node.text]
        assert (node.created_at, node.importance, node.metadata["tags"]) == (known.created_at, 0.5, ["life", "trà"])
        assert node.metadata["extra"]["mood"] == "calm"


async def test_D54_a_folder_with_something_in_it_is_left_alone(memory: Engine, tmp_path: Path) -> None:
    await memory.add("one", wait=False)
    (tmp_path / "mine.md").write_text("mine")
    with pytest.raises(Conflict, match="overwrite"):
        await memory.graph.export_vault(tmp_path)
    with pytest.raises(InvalidInput, match="is a file"):
        await memory.graph.export_vault(tmp_path / "mine.md")
    assert [file.name for file in tmp_path.iterdir()] == ["mine.md"]
    assert await memory.graph.export_vault(tmp_path, overwrite=True) == 1
    assert (tmp_path / "mine.md").read_text() == "mine"
    assert await memory.count(NodeFilter()) == 1


async def test_D54_names_are_short_and_fit_everywhere(memory: Engine) -> None:
    nodes = [await memory.add(text, wait=False) for text in TEXTS]
    names = Names()
    paths = [names.path_of(node) for node in nodes]
    assert len({path.casefold() for path in paths}) == len(TEXTS)
    assert paths[0] == "memories/Linh prefers tea, never coffee"
    for node in nodes:
        assert len(title(node).encode()) <= LONGEST_BYTES
        assert not set(title(node)) & set('[]#^|\\/:*?"<>\n')
    assert title(replace(nodes[0], name="NUL.txt")).startswith("memory ")


async def test_D54_one_command_writes_notes_and_pages(memory: Engine, tmp_path: Path) -> None:
    await memory.add("a note", wait=False)
    merge = await memory.pages.import_texts([("guide/tea.md", "# Tea\n\nThree minutes, see [water](water.md).\n")])
    await memory.pages.apply(merge.plan.id)
    out = tmp_path / "vault"
    assert await _export(memory, out=out, format="markdown", with_vectors=False, overwrite=False) == 2
    written = sorted(str(file.relative_to(out)) for file in out.rglob("*.md"))
    assert written == ["memories/a note.md", "pages/guide/tea.md"]
