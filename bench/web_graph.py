"""The graph of the web page in a real browser: how long it takes until it stands, and how smoothly it moves.

./run bench web_graph [--size 5000]      so many nodes and three times as many edges, all of them shown
./run bench web_graph --size 50000       as many as the page shows at once

It needs Chromium. Here that draws in software; a graphics card is many times faster.
"""

import asyncio
import statistics
import time
from typing import Any

import httpx

from bench.figures import Figure
from bench.graph import made_up, new_space
from bench.recall import temporary_engine
from recollect.errors import NotInstalled
from recollect.settings import Settings
from tests.doors.test_api_support import listening
from tests.web.test_web_support import ARGUMENTS, MISSING, installed_chromium

SIZE = 5_000
EDGES_A_NODE = 3
ROUNDS = 3
OPEN = """() => new Promise((stands) => {
    const began = performance.now();
    location.hash = '#/graph?all=1';
    const look = () =>
        document.querySelector('[data-ready=true]') ? stands(performance.now() - began) : setTimeout(look, 5);
    look();
})"""
# How long one picture takes while the camera moves, in milliseconds.
MOVE = """() => new Promise((moved) => {
    const stage = document.querySelector('[role=application]'), times = [];
    const step = (now) => {
        times.push(now);
        if (times.length > 40) return moved((times.at(-1) - times[0]) / (times.length - 1));
        stage.dispatchEvent(new KeyboardEvent('keydown', { key: times.length % 8 < 4 ? 'ArrowLeft' : 'ArrowRight' }));
        requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
})"""


def run(size: int | None, _rest: list[str]) -> list[Figure]:
    if installed_chromium() is None:
        raise NotInstalled(MISSING)
    return asyncio.run(everything(size or SIZE))


async def everything(size: int) -> list[Figure]:
    async with temporary_engine(embedder="hashing:64") as engine:
        space = await new_space(engine)
        await made_up(space, size, EDGES_A_NODE * size)
        return await asyncio.to_thread(measured, engine.core.settings, space.space.slug, size)


def measured(settings: Settings, space: str, size: int) -> list[Figure]:
    with listening(settings) as address:
        answered = [answer(address, space, size) for _ in range(ROUNDS)]
        opened, moved = zip(*browsed(address, space), strict=True)
    edges = f"{size:,} nodes, about {EDGES_A_NODE * size:,} edges"
    return [
        Figure(name="graph: answer of the API, s", value=statistics.median(answered), how=edges),
        Figure(
            name="graph: until it stands, s",
            value=statistics.median(opened) / 1000,
            bar=2.0 if size <= SIZE else None,
            better="lower",
            how=f"{edges}; from the click to the first picture after the forces worked; drawn in software",
        ),
        Figure(name="graph: a picture while it moves, ms", value=statistics.median(moved), how=f"{edges}; in software"),
    ]


def answer(address: str, space: str, size: int) -> float:
    started = time.perf_counter()
    asked: dict[str, Any] = {"params": {"limit": size}, "headers": {"X-Recollect-Space": space}, "timeout": 120}
    httpx.get(f"{address}/api/v1/graph/view", **asked).raise_for_status()
    return time.perf_counter() - started


def browsed(address: str, space: str) -> list[tuple[float, float]]:
    """Milliseconds until the graph stands, and those of a picture while it moves; each in a window of its own."""
    from playwright.sync_api import sync_playwright

    found = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=installed_chromium(), args=ARGUMENTS)
        for _ in range(ROUNDS):
            context = browser.new_context(viewport={"width": 1280, "height": 860})
            context.add_init_script(f"localStorage.setItem('recollect.space', {space!r})")
            page = context.new_page()
            page.set_default_timeout(180_000)
            page.goto(f"{address}/#/")
            page.wait_for_load_state("networkidle")
            stands = page.evaluate(OPEN)
            page.locator("[data-settled=true]").wait_for()
            found.append((stands, page.evaluate(MOVE)))
            context.close()
        browser.close()
    return found
