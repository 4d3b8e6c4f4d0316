"""Pictures of every view in both themes, for docs/pictures and for the eyes of whoever changes the page.

python -m tests.web.pictures        (needs Chromium; a small memory is made for it, and taken away again)
"""

import random
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from recollect.settings import Settings
from recollect.store.embedded import EmbeddedServer
from tests.conftest import open_directory
from tests.doors.test_api_support import listening
from tests.web.test_web_support import ARGUMENTS, MISSING

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PICTURES = Path(__file__).parent.parent.parent / "docs" / "pictures"
# What is shown: a view, and what to click before its picture is taken. `{node}` is the memory in the midst of it all.
VIEWS = {
    "home": ("#/", None),
    "recall": ("#/recall?q=what does Linh drink&mode=RECALL", "ol.hits summary"),
    "node": ("#/node/{node}", None),
}
SCREEN, PHONE = {"width": 1280, "height": 860}, {"width": 360, "height": 740}

PEOPLE = ("Linh", "Ana", "Tomás", "Mira", "Jonas")
FACTS = (
    "prefers tea, never coffee",
    "moved to Lisbon in May",
    "is allergic to hazelnuts",
    "runs the Friday review",
    "owns the billing service",
    "wants release notes every second Tuesday",
    "keeps the spare key with the neighbours",
    "plays the cello in a quartet",
    "broke the staging cluster with a bad migration, and fixed it the same night",
)
NOTES = (
    "Retry with jitter fixed the stampede on the cache: 5 attempts, 200 ms base, full jitter.",
    "The staging database runs PostgreSQL 16; production runs 18 since October.",
    "The kettle in the office needs descaling every six weeks.",
    "How to restore: stop the worker, restore the dump, start the worker, verify.",
    "抹茶は80度のお湯で淹れる。",
    "هذه ملاحظة قصيرة عن الشاي الأخضر في المكتب",
)
CONCEPTS = ("retry with jitter", "exponential backoff", "cache stampede", "cache_stampede", "thundering herd")


def furnish(address: str) -> str:
    """A small memory to look at; the id of the memory in the midst of it."""
    chance, now = random.Random(4), datetime.now(UTC)
    with httpx.Client(base_url=f"{address}/api/v1", timeout=120) as api:

        def said(method: str, path: str, body: Any = None) -> Any:
            return api.request(method, path, json=body).raise_for_status().json()

        def add(text: str) -> str:
            fields = {
                "content_type": chance.choice(["note", "note", "idea", "conversation"]),
                "importance": round(chance.random(), 2),
                "metadata": {"tags": chance.sample(["code", "life", "finance", "health", "product"], 2)},
                "created_at": (now - timedelta(days=chance.expovariate(1 / 9))).isoformat(),
                "thread": "office",
            }
            return str(said("POST", "/memories?wait=true", {"text": text, **fields})["id"])

        ids = [add(text) for text in (*(f"{who} {what}." for who in PEOPLE for what in FACTS), *NOTES)]
        for other in ids[1:6]:
            link = {
                "target": other,
                "relation": "supports",
                "strength": round(chance.random(), 2),
                "created_by": "auto",
            }
            said("POST", "/edges", {"source": ids[0], "explanation": "said in the same week", **link})
        for name in CONCEPTS:
            said("POST", "/concepts", {"name": name})
        said(
            "POST",
            "/cases?wait=true",
            {"query": "How do I restore a backup?", "response_text": "recollect restore FILE"},
        )
        said("PATCH", f"/memories/{ids[0]}", {"importance": 0.9})
        said("POST", f"/memories/{ids[0]}/archive", {"reason": "out of date"})
        said("POST", f"/memories/{ids[0]}/restore", {"reason": "still true, Linh says"})
        for policy in ("link", "duplicates"):
            said("POST", "/plans", {"policy": policy})
        return ids[0]


@contextmanager
def furnished() -> Iterator[tuple[str, str]]:
    """The address of a server with something to look at, and that memory."""
    directory = open_directory()
    try:
        with EmbeddedServer(directory / "home") as server, listening(Settings.load(database_url=server.url)) as address:
            yield address, furnish(address)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def take(browser: "Browser", address: str, node: str) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    for scheme, ending, screen in (("light", "light", SCREEN), ("dark", "dark", SCREEN), ("light", "phone", PHONE)):
        context = browser.new_context(viewport=screen, color_scheme=scheme)  # type: ignore[arg-type]
        for name, (view, click) in VIEWS.items():
            page = context.new_page()
            page.goto(f"{address}/{view.format(node=node)}")
            page.locator("[data-row]").first.wait_for()
            page.wait_for_load_state("networkidle")
            if click:
                page.locator(click).first.click()
            page.screenshot(path=PICTURES / f"{name}-{ending}.png")
            page.close()
        context.close()


def main() -> int:
    chromium = shutil.which("chromium")
    if chromium is None:
        print(MISSING)
        return 1
    from playwright.sync_api import sync_playwright

    with furnished() as (address, node), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        take(browser, address, node)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
