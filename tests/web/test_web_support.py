"""The ground the browser's tests stand on: a real Chromium, a real server on loopback, a space of each test's own.

No tests here; each module takes the fixtures it needs. Where there is no Chromium the tests are skipped with a sentence
that says so, but never in CI.
"""

import os
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import uuid4

import anyio
import httpx
import pytest
from playwright.sync_api import expect

from recollect.settings import Settings
from tests.conftest import MADE
from tests.doors.test_api_support import listening, sql
from tests.waiting import HANG_SECONDS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

T = TypeVar("T")
# The same engine; the first of them opens no windows, with all that belongs to one, and takes less than half the time.
PROGRAMS = ("chromium-headless-shell", "chromium")
MISSING = "There is no Chromium here, so the page was not tried in a browser: `apt install chromium`, then again."
ARGUMENTS = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--disable-gpu-compositing",  # there is none: pretending one takes a sixth of the browser's time or more
    "--disable-background-networking",
    "--disable-sync",
    "--no-first-run",
    "--disable-component-update",
]
# What the page tells in passing stays: no test has to be quicker than it goes.
LASTING = """
const later = window.setTimeout;
window.setTimeout = (does, after, ...given) => later(does, after >= 8000 ? 2 ** 31 - 1 : after, ...given);
"""
AXE = Path(__file__).with_name("axe.min.js").read_text()
PATIENCE_MS = 1000 * HANG_SECONDS
# What is expected of the page is waited for, however slow the machine is.
expect.set_options(timeout=PATIENCE_MS)


def installed_chromium() -> str | None:
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


@pytest.fixture(scope="module")
def browser() -> "Iterator[Browser]":
    """One browser a module, and not longer: while it runs, no other event loop can in this thread."""
    chromium = installed_chromium()
    if chromium is None:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(MISSING)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield browser
        browser.close()


def run_apart(function: Callable[..., Awaitable[T]], *given: Any) -> T:
    """Run something asynchronous in a thread of its own: in this one, the browser's event loop is running."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(partial(anyio.run, function, *given)).result()


def new_database(database_url: str) -> str:
    """A database of a server's own, since whether a key was ever made concerns all of it."""
    name = f"recollect_web_{uuid4().hex[:8]}"
    run_apart(sql, database_url, f"CREATE DATABASE {name} TEMPLATE {MADE}")
    return database_url.replace("/recollect?", f"/{name}?")


def settings_for(database_url: str) -> Settings:
    return Settings.load(database_url=new_database(database_url), embedder="hashing:64", pool_size=4)


@pytest.fixture(scope="module")
def address(database_url: str) -> Iterator[str]:
    """A server where no key was ever made."""
    with listening(settings_for(database_url)) as address:
        yield address


def is_fault(said: "ConsoleMessage") -> bool:
    """Whether the browser complains; that the server refused something it says too, and the page shows why."""
    return said.type == "error" and "the server responded with a status of 4" not in said.text


class House:
    """A space of one test's own: what is in it, and windows on it."""

    def __init__(self, browser: "Browser", address: str) -> None:
        self.browser, self.address = browser, address
        self.space = f"t-{uuid4().hex[:12]}"
        self.api = httpx.Client(
            base_url=f"{address}/api/v1",
            headers={"X-Recollect-Space": self.space},
            timeout=HANG_SECONDS,
            verify=False,  # certificates take longer to read than most of the tests' requests, and none is shown here
        )
        self.said("POST", "/spaces", {"slug": self.space})
        self.faults: list[str] = []

    def said(self, method: str, path: str, body: Any = None) -> Any:
        answer = self.api.request(method, path, json=body)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def add(self, text: str, **fields: Any) -> str:
        return str(self.said("POST", "/memories?wait=true", {"text": text, **fields})["id"])

    def window(self, hash_: str = "#/", **options: Any) -> "Page":
        """The page, in this space, at some view; whatever it complains about is a fault."""
        context = self.browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
        context.add_init_script(LASTING)
        context.add_init_script(f"localStorage.setItem('recollect.space', {self.space!r})")
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda said: self.faults.append(said.text) if is_fault(said) else None)
        page.goto(f"{self.address}/{hash_}")
        page.locator("main h1").wait_for()
        return page

    def close_windows(self) -> None:
        for context in self.browser.contexts:
            context.close()

    def close(self) -> None:
        self.close_windows()
        self.api.close()


@pytest.fixture
def house(browser: "Browser", address: str) -> Iterator[House]:
    """An empty space; at the end, the page must have complained about nothing."""
    house = House(browser, address)
    yield house
    house.close()
    assert house.faults == []


def until(page: "Page", holds: Callable[[], object]) -> None:
    """Until it holds; meanwhile the page goes on, and what it tells is heard."""
    give_up = time.monotonic() + HANG_SECONDS
    while not holds():
        assert time.monotonic() < give_up, "waited in vain"
        page.wait_for_timeout(10)


def press_together(page: "Page", keys: str) -> None:
    """Keys that count only soon after each other: the page's clock stands still, so that they are on any machine."""
    page.evaluate("() => { const now = Date.now(); window.clock = Date.now; Date.now = () => now }")
    page.keyboard.type(keys)
    page.evaluate("() => { Date.now = window.clock }")


def findings(page: "Page", *rules: str) -> list[tuple[str, str]]:
    """What axe finds wrong with what is shown, by all its rules or by these: how much that matters, and a sentence."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE)  # by the debugger's hand: the page itself may run nothing but its own scripts
    asked = {"resultTypes": ["violations"], **({"runOnly": rules} if rules else {})}
    found = page.evaluate("asked => axe.run(document, asked)", asked)
    return [
        (one["impact"], f"{one['id']}: {one['help']} ({', '.join(str(node['target']) for node in one['nodes'][:3])})")
        for one in found["violations"]
    ]


def serious(page: "Page") -> list[str]:
    """What of it is serious."""
    return [said for impact, said in findings(page) if impact in ("serious", "critical")]
