"""The web page over a large memory, in a real browser: how soon the first view is there, what a keystroke costs.

Times are those of the page itself: from the moment its address is entered, and the processor time that the browser's
main thread used.
"""

import asyncio
import gzip
import shutil
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from bench.figures import Figure
from bench.store import texts
from recollect.doors.web.page import STATIC
from recollect.engine.engine import Engine
from recollect.errors import NotInstalled
from recollect.model import NewMemory
from recollect.settings import Settings
from recollect.store.embedded import EmbeddedServer
from tests.conftest import open_directory
from tests.doors.test_api_support import listening
from tests.web.test_web_support import ARGUMENTS, MISSING, installed_chromium

SIZE = 100_000
ROUNDS = 7
TYPED = " the quick brown fox jumps over the lazy dog"
READY = "() => document.querySelector('.figures b')?.textContent === {!r} && document.querySelector('.facts') !== null"


def run(size: int | None, _rest: list[str]) -> list[Figure]:
    count = size or SIZE
    chromium = installed_chromium()
    if chromium is None:
        raise NotInstalled(MISSING)
    directory = open_directory()
    try:
        with EmbeddedServer(directory / "home") as server:
            settings = Settings.load(database_url=server.url, embedder="hashing:64")
            asyncio.run(fill(settings, count))
            with listening(settings) as address:
                return [*in_browser(chromium, address, count), bundle()]
    finally:
        shutil.rmtree(directory, ignore_errors=True)


async def fill(settings: Settings, count: int) -> None:
    async with Engine(settings) as engine:
        await engine.add_many([NewMemory(text=text) for text in texts(count, seed=7)], wait=False)
        while await engine.work():
            pass


def in_browser(chromium: str, address: str, count: int) -> list[Figure]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        views = [first_view(browser.new_page, address, count) for _ in range(ROUNDS)]
        own, most = typing(browser.new_page(), address)
        browser.close()
    how = f"{count:,} memories, localhost, a new window each time; median of {ROUNDS}, the first one counted"
    return [
        Figure(name="first view, seconds", value=statistics.median(views), bar=1.0, better="lower", how=how),
        Figure(name="first view, slowest, seconds", value=max(views), how="of the same"),
        Figure(
            name="own time of a keystroke, ms",
            value=own,
            bar=50,
            better="lower",
            how=f"processor time of the main thread, {len(TYPED)} keys, hits shown at each",
        ),
        Figure(name="searches under way at once", value=most, bar=1, better="lower", how="while those keys are typed"),
    ]


def first_view(new_page: Callable[[], Any], address: str, count: int) -> float:
    page = new_page()
    page.goto(f"{address}/#/", wait_until="commit")
    page.wait_for_function(READY.format(f"{count:,}"), polling="raf")
    seconds = float(page.evaluate("performance.now()")) / 1000
    page.close()
    return seconds


def typing(page: Any, address: str) -> tuple[float, float]:
    """What each key cost the main thread, in ms, and how many searches were ever under way at once."""
    under_way, most = [0], [0.0]

    def changed(by: int) -> Callable[[Any], None]:
        def count(request: Any) -> None:
            under_way[0] += by * request.url.endswith("/search")
            most[0] = max(most[0], under_way[0])

        return count

    page.on("request", changed(1))
    page.on("requestfinished", changed(-1))
    page.goto(f"{address}/#/recall?q={quote(next(iter(texts(1, seed=7))).split()[1])}")
    page.locator("ol.hits > li").first.wait_for()  # as many as are related
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})  # its own work, not its waiting for a core
    before = busy(session)
    page.keyboard.type(TYPED, delay=60)
    page.wait_for_load_state("networkidle")
    return 1000 * (busy(session) - before) / len(TYPED), most[0]


def busy(session: Any) -> float:
    metrics = session.send("Performance.getMetrics")["metrics"]
    return float(next(one["value"] for one in metrics if one["name"] == "TaskDuration"))


def bundle() -> Figure:
    files: list[Path] = [file for file in STATIC.rglob("*") if file.is_file()]
    kilobytes = sum(len(gzip.compress(file.read_bytes())) for file in files) / 1000
    return Figure(name="bundle, kB gzipped", value=kilobytes, bar=400, better="lower", how="all files of the page")
