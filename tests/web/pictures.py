"""Pictures of every view in both themes, for docs/pictures and for the eyes of whoever changes the page.

python -m tests.web.pictures [VIEW ...]       (needs Chromium; a small memory is made for it, and taken away again)
"""

import random
import shutil
import sys
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import pairwise
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

Said = Callable[..., Any]
PICTURES = Path(__file__).parent.parent.parent / "docs" / "pictures"
# What is shown: a view, what is there once it has come, and what to click before its picture is taken. `{node}` and its
# kin are what was made for that view.
VIEWS = {
    "home": ("#/", "[data-row]", None),
    "recall": ("#/recall?q=what does Linh drink&mode=RECALL", "[data-row]", "ol.hits summary"),
    "memories": ("#/memories", "[data-row]", None),
    "node": ("#/node/{node}", "[data-row]", None),
    "graph": ("#/graph", "[data-ready=true][data-settled=true]", None),
    "review": ("#/review", "table", None),
    "plan": ("#/plans/{plan}", "li[data-decision]", None),
    "plans": ("#/plans", "[data-row]", None),
    "cases": ("#/cases", "[data-row]", None),
    "case": ("#/cases/{case}", ".outcomes", None),
    "page": ("#/pages/{page}", ".wiki", "button[aria-label^='What changed']"),
    "schedules": ("#/settings/schedules", "[data-row]", None),
    "calibration": ("#/settings/calibration", "main button", "main button.main"),
}
# What a click brings, where that takes a while.
BROUGHT = {"calibration": "main figure", "page": ".lines"}
SCREEN, PHONE = {"width": 1280, "height": 860}, {"width": 360, "height": 740}
# A picture that packs badly is taken in a smaller window: none is above 150 kB.
SMALLER = {name: {"width": 1080, "height": 740} for name in ("graph", "plans")}

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
KITCHEN = ("The kettle", "The green tea", "A sieve", "The tray", "A lemon", "The sugar tin", "A clean cup", "The clock")
CASES = (
    ("How do I reset my password?", "Open Settings, then Security, and choose Reset.", "account/password", 141, 92.0),
    ("Where is my invoice?", "Under Billing; it is sent by mail too, on the first of the month.", "billing", 57, 64.0),
    ("Can I pay by cheque?", "Write to us with the number of the invoice.", "billing/payment", 23, 18.0),
    ("Why was I charged twice?", "One is a hold, and goes within five days.", "billing/payment", 88, 81.0),
    ("How long is data kept?", "As long as the account exists, and 30 days beyond.", "privacy", 9, None),
)
PAGES = {
    "principles/Loading.md": """# Principle: Loading

== Overview ==
Models are loaded '''lazily''': the header first, the weights when they are asked for.
What is loaded is kept, as [[uses_heuristic::Heuristic:Keep it warm]] says.

=== Steps ===
* read the header, and check its version
* map the weights into memory
** on a machine with little of it, in parts

== Related ==
* [[implemented_by::Implementation:Loader]]
""",
    "implementations/Loader.md": "# Implementation: Loader\n\n== Overview ==\nIt loads a model from disk.\n",
    "heuristics/Keep_it_warm.md": "# Heuristic: Keep it warm\n\n== Overview ==\nLoad once, and keep it.\n",
}
PITFALLS = """
== Pitfalls ==
A file that grows while it is read is read twice: lock it, or copy it first.
"""
CONCEPTS = ("retry with jitter", "exponential backoff", "cache stampede", "cache_stampede", "thundering herd")


# Concepts that may be one, and what is said of them.
TWINS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("tea house", "a house where tea is served, with a garden", {"country": "Japan", "city": "Kyoto"}),
    ("tea houses", "a house where tea is served, with a garden", {"country": "Japan", "city": "Uji"}),
    ("green tea ceremony", "the way of preparing powdered green tea", {}),
    ("ceremony of green tea", "how powdered green tea is prepared", {}),
)


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
        for name, text, extra in TWINS:
            said("POST", "/concepts", {"name": name, "text": text, "metadata": {"extra": extra}, "threshold": 0.999})
        weave(said, ids, chance)
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


def weave(said: Callable[..., Any], ids: list[str], chance: random.Random) -> None:
    """What is said of one person hangs together, and makes a topic; a few links lead from one to another."""
    groups = [ids[start : start + len(FACTS)] for start in range(0, len(PEOPLE) * len(FACTS), len(FACTS))]

    def link(source: str, target: str, relation: str, **more: Any) -> str:
        strength = round(chance.uniform(0.1, 1), 2)
        edge = {"source": source, "target": target, "relation": relation, "strength": strength, **more}
        return str(said("POST", "/edges", edge)["id"])

    for who, group in zip(PEOPLE, groups, strict=True):
        topic = {"source_topic": f"tag:{who}", "target_topic": f"tag:{who}", "created_by": "auto"}
        for place, one in enumerate(group[1:], 1):
            link(group[chance.randrange(place)], one, chance.choice(["supports", "extends"]), **topic)
        for _ in range(4):
            source, target = chance.sample(group, 2)
            link(source, target, "similar", **topic)
    for ours, theirs in pairwise(groups):
        said("POST", f"/edges/{link(chance.choice(ours), chance.choice(theirs), 'applies')}/protect", {})
    said("POST", f"/plans/{said('POST', '/plans', {'policy': 'topics'})['id']}/apply")


def furnish_tidying(address: str) -> dict[str, str]:
    """A plan that waits, cases and a wiki; where each is."""
    with httpx.Client(base_url=f"{address}/api/v1", timeout=120) as api:

        def said(method: str, path: str, body: Any = None) -> Any:
            return api.request(method, path, json=body).raise_for_status().json()

        return {"case": _cases(said), "page": _wiki(said), "plan": _weak_links(said)}


def _weak_links(said: Said) -> str:
    """A part of the graph that holds together without its weak links, and the plan to prune them."""
    texts = [
        {"text": f"{what} is in the kitchen, {side} of the window"} for what in KITCHEN for side in ("left", "right")
    ]
    hub, *others = said("POST", "/memories/batch?wait=true", texts)["ids"]
    links = [(hub, other, 0.9) for other in others[:7]] + [(a, b, 0.02) for a, b in pairwise(others[:7])]
    for source, target, strength in links:
        said("POST", "/edges", {"source": source, "target": target, "strength": strength, "created_by": "auto"})
    plan = said("POST", "/plans", {"policy": "prune", "options": {"min_inactive_days": 0}})["id"]
    said("POST", f"/plans/{plan}/decline", {"decisions": [2]})
    return str(plan)


def _cases(said: Said) -> str:
    names = ("query", "response_text", "category_path", "usage_count", "success_rate")
    bodies = [{name: value for name, value in zip(names, one, strict=True) if value is not None} for one in CASES]
    first, *_ = (str(said("POST", "/cases?wait=true", body)["case_id"]) for body in bodies)
    for number in range(40):
        failed = {"success": False, "error_type": "outdated"}
        said("POST", f"/cases/{first}/outcomes", failed if number % 9 == 0 else {"success": True})
    return first


def _wiki(said: Said) -> str:
    """A wiki that another one was merged into; the page that has two versions."""
    for texts in (PAGES, {name: text + PITFALLS * ("Loader" in name) for name, text in PAGES.items()}):
        pages = [{"path": path, "text": text} for path, text in texts.items()]
        plan = said("POST", "/pages/import", {"pages": pages})["plan"]["id"]
        said("POST", f"/pages/plans/{plan}/apply")
    return str(said("GET", "/pages/Implementation:Loader")["node"]["id"])


@contextmanager
def furnished() -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a server with something to look at, and where that is."""
    directory = open_directory()
    try:
        with EmbeddedServer(directory / "home") as server, listening(Settings.load(database_url=server.url)) as address:
            yield address, {"node": furnish(address), **furnish_tidying(address)}
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def take(browser: "Browser", address: str, places: dict[str, str], wanted: Collection[str]) -> None:
    PICTURES.mkdir(parents=True, exist_ok=True)
    for scheme, ending, screen in (("light", "light", SCREEN), ("dark", "dark", SCREEN), ("light", "phone", PHONE)):
        context = browser.new_context(viewport=screen, color_scheme=scheme, has_touch=screen is PHONE)  # type: ignore[arg-type]
        for name, (view, there, click) in VIEWS.items():
            if name not in wanted:
                continue
            page = context.new_page()
            if screen is SCREEN:
                page.set_viewport_size(SMALLER.get(name, SCREEN))  # type: ignore[arg-type]
            page.goto(f"{address}/{view.format(**places)}")
            page.locator(there).first.wait_for()
            page.wait_for_load_state("networkidle")
            if click:
                page.locator(click).first.click()
            if name in BROUGHT:
                page.locator(BROUGHT[name]).first.wait_for()
            (PICTURES / f"{name}-{ending}.png").write_bytes(packed(page.screenshot()))
            page.close()
        context.close()


def packed(png: bytes) -> bytes:
    """The same picture, packed as tightly as can be: a browser packs in haste."""
    parts, at = [], 8
    while at < len(png):
        length = int.from_bytes(png[at : at + 4])
        parts.append((png[at + 4 : at + 8], png[at + 8 : at + 8 + length]))
        at += 12 + length
    rows = zlib.decompress(b"".join(body for kind, body in parts if kind == b"IDAT"))
    kept = [(kind, body) for kind, body in parts if kind not in (b"IDAT", b"IEND")]
    return png[:8] + b"".join(_part(*one) for one in (*kept, (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")))


def _part(kind: bytes, body: bytes) -> bytes:
    return len(body).to_bytes(4) + kind + body + zlib.crc32(kind + body).to_bytes(4)


def main() -> int:
    chromium = shutil.which("chromium")
    if chromium is None:
        print(MISSING)
        return 1
    from playwright.sync_api import sync_playwright

    with furnished() as (address, places), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        take(browser, address, places, sys.argv[1:] or VIEWS)
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
