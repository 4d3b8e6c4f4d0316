"""Databases that older versions made, with something of every kind in each: what an upgrade has to carry (S08).

    python -m tests.store.old_homes          writes one of this version's schema; run it when a version is released

It uses only what every version has had, so that it can be run with an older one as well.
"""

import asyncio
import tempfile
from pathlib import Path

from recollect.engine.engine import Engine
from recollect.model import Scope
from recollect.settings import Settings
from recollect.store.migrations import HEAD

HOMES = Path(__file__).parent / "homes"
TEXTS = (
    "Linh prefers jasmine tea",
    "喝茉莉花茶 in Đà Nẵng 🍵",
    "two lines\n\tand a tab \x7f",
    "The heron nests in Oosterwold",
)
FORGOTTEN = "An old address in the Dorpsstraat"
PAGE = "# Heron\n\nIt nests in **Oosterwold**, see [[tea]].\n\n- one\n- two\n"
OTHER_PAGE = "# Tea\n\nJasmine.\n"


async def furnish(engine: Engine) -> None:
    """Memories, links, cases, concepts, pages, plans that were applied and one that waits, a key, a schedule."""
    first, second, third, fourth = [
        await engine.add(text, thread="t", metadata={"tags": ["ai"], "extra": {"place": {"n": 1.5}}}) for text in TEXTS
    ]
    await engine.forget((await engine.add(FORGOTTEN)).id, reason="moved")
    await engine.edit(third.id, importance=0.9)
    await engine.graph.link(first.id, second.id, strength=0.5)
    await engine.graph.link(first.id, second.id, "supports", strength=0.4)
    await engine.plans.apply((await engine.plans.propose("merge-edges")).id)
    await engine.graph.link(third.id, fourth.id, strength=0.5)
    await engine.graph.link(third.id, fourth.id, "supports", strength=0.4)
    await engine.plans.propose("merge-edges")
    case = await engine.cases.add("How do I reset my password?", "Use the link below the field.", "account")
    await engine.cases.add("Where is the invoice?", "In the mail.", success_rate=80, usage_count=3)
    await engine.cases.archive(case.id)
    await engine.concepts.add("Machine Learning", text="Learning from data.")
    await engine.concepts.add("ML", text="Learning from data, in short.")
    await engine.concepts.merge("Machine Learning", "ML")
    wiki = await engine.pages.import_texts([("heron.md", PAGE), ("tea.md", OTHER_PAGE)])
    await engine.plans.apply(wiki.plan.id)
    await engine.add_space("team", {"tags": ["work"]})
    await (await engine.in_space("team")).add("Only for the team", wait=False)
    await engine.recall("tea")
    await engine.add_key("a key", scopes=(Scope.READ,), space="team")
    await engine.schedules.pause("prune")


async def write(folder: Path) -> Path:
    with tempfile.TemporaryDirectory(prefix="recollect-") as home:
        Path(home).chmod(0o755)
        async with Engine(Settings.load(home=Path(home) / "home", embedder="hashing:16")) as engine:
            await furnish(engine)
            return (await engine.backup(folder / f"{HEAD}.dump", overwrite=True)).file


if __name__ == "__main__":
    print(asyncio.run(write(HOMES)))
