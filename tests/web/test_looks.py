"""Every view as wide as a phone, a tablet and a desk, light and dark: nothing for axe to find, nothing cut off."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.web import test_web_support as support
from tests.web.test_graph_journeys import linked, twins
from tests.web.test_tidying_journeys import furnished
from tests.web.test_web_support import House, findings

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

browser, address = support.browser, support.address

WIDTHS = (390, 800, 1440)
NARROWEST, WIDEST = 360, 1900
# What is high enough for a mouse only; links within a sentence and boxes whose label is the target are no targets.
SMALL = """() => [...document.querySelectorAll("button, .button, select, summary, nav a, input:not([type=checkbox])")]
    .filter((one) => !one.classList.contains("unseen") && one.checkVisibility({ visibilityProperty: true }))
    .filter((one) => one.getBoundingClientRect().height < 39.5)
    .map((one) => one.outerHTML.slice(0, 90))"""


def views(house: House) -> dict[str, str]:
    """Where every view is, of a space where all of them have something to show; and what is there once it has come."""
    ids = linked(house)
    house.add("# Tea\n\nGreen, **never** black.\n\n- hot\n- [[kettle]]", metadata={"tags": ["life"]})
    house.add("averylongwordthatneverends" * 40 + " tea")
    house.said("PATCH", f"/memories/{ids['kettle']}", {"importance": 0.9})
    twins(house)
    named = furnished(house)
    return named | {
        "#/": ".figures",
        "#/recall?q=tea": "ol.hits > li",
        "#/recall": ".empty",
        "#/memories": "li [data-row]",
        f"#/node/{ids['kettle']}": ".edge",
        f"#/graph/{ids['kettle']}": "[data-ready=true][data-settled=true]",
        "#/review": "table",
    }


# What each view says of an empty space, and what it offers to do first.
EMPTY = {
    "#/": ("No memories yet.", "New memory"),
    "#/recall": ("Search in your own words.", "Ask"),
    "#/memories": ("No memories yet.", "New memory"),
    "#/graph": ("No memories yet.", "New memory"),
    "#/plans": ("No plans yet.", "Propose"),
    "#/review": ("Nothing needs your review.", "Look again"),
    "#/cases": ("No cases yet.", "New case"),
    "#/pages": ("No pages yet.", "Preview import"),
    "#/settings/spaces": ("Each space has its own memories", "Create"),
    "#/settings/keys": ("No API keys yet.", "Create key"),
    "#/settings/schedules": ("prune weak links", "Run now"),
    "#/settings/calibration": ("What a similarity score means", "Measure"),
}
# Buttons that are on and as quiet as the words around them: they look as if they were off.
GREY = """() => [...document.querySelectorAll(".empty :is(button, .button):not(:disabled, .main)")]
    .filter((one) => getComputedStyle(one).color !== getComputedStyle(document.documentElement).color)
    .map((one) => one.outerHTML.slice(0, 90))"""

# Words that stand on a line of their own in the midst of a sentence.
BROKEN = """() => [...document.querySelectorAll(".empty :is(code, b)")]
    .filter((one) => getComputedStyle(one).display !== "inline").map((one) => one.outerHTML.slice(0, 90))"""


# A sentence that begins where another ends, without a space between them.
RUN_TOGETHER = """() => [...document.querySelectorAll(".empty p")].map((one) => one.textContent)
    .filter((said) => /[a-z][.!?][A-Z]/.test(said))"""


class Furnished(House):
    """A space that every view has something to show of; the tests here only look, so it is made once for all."""

    def __init__(self, browser: "Browser", address: str) -> None:
        super().__init__(browser, address)
        self.views = views(self)


@pytest.fixture(scope="module")
def furnished_house(browser: "Browser", address: str) -> Iterator[Furnished]:
    house = Furnished(browser, address)
    yield house
    house.api.close()


@pytest.fixture
def house(furnished_house: Furnished) -> Iterator[Furnished]:
    """At the end of each test, its windows are closed, and the page must have complained about nothing."""
    furnished_house.faults.clear()
    yield furnished_house
    furnished_house.close_windows()
    assert furnished_house.faults == []


def opened(page: "Page", address: str, view: str, there: str) -> None:
    page.goto(f"{address}/{view}")
    page.locator(f"main {there}").first.wait_for()


# What is there is the same in light and in dark: there only the colours are another question.
RULES = {"light": (), "dark": ("color-contrast",)}
# Where keys of the view's own are explained beside those of the page.
EXPLAINED = {"#/": "next, previous in a list", "#/review": "keep the other one"}


@pytest.mark.parametrize("scheme", RULES)
def test_W12_axe_finds_nothing_in_any_view_at_any_width(house: Furnished, scheme: str) -> None:
    page = house.window(color_scheme=scheme)
    wrong: list[tuple[object, ...]] = []
    for view, there in house.views.items():
        opened(page, house.address, view, there)
        for width in (NARROWEST, *WIDTHS, WIDEST):
            page.set_viewport_size({"width": width, "height": 900})
            if width == WIDTHS[-1]:
                page.evaluate("document.querySelectorAll('main details').forEach(one => { one.open = true })")
            wrong += [(view, width, *found) for found in findings(page, *RULES[scheme])] if width in WIDTHS else []
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                wrong.append((view, width, "something runs out of the window"))
        if view in EXPLAINED:
            page.keyboard.press("?")
            page.get_by_role("dialog").get_by_text(EXPLAINED[view]).wait_for()
            wrong += [(view, "the keys", *found) for found in findings(page, *RULES[scheme])]
            page.keyboard.press("Escape")
    assert wrong == []


@pytest.mark.parametrize("scheme", RULES)
def test_W12_an_empty_space_says_what_to_do_first_in_every_view(browser: "Browser", address: str, scheme: str) -> None:
    empty = House(browser, address)
    page = empty.window(color_scheme=scheme)
    wrong: list[tuple[object, ...]] = []
    for view, (says, offers) in EMPTY.items():
        page.goto(f"{address}/{view}")
        page.locator("main").get_by_text(says).first.wait_for()
        page.locator("main").get_by_role("button", name=offers).first.wait_for()
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 900})
            wrong += [(view, width, *found) for found in findings(page, *RULES[scheme])]
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                wrong.append((view, width, "something runs out of the window"))
        wrong += [(view, "looks as if it were off", one) for one in page.evaluate(GREY)]
        wrong += [(view, "breaks its sentence", one) for one in page.evaluate(BROKEN)]
        wrong += [(view, "has no space between sentences", one) for one in page.evaluate(RUN_TOGETHER)]
    empty.close()
    assert wrong == []
    assert empty.faults == []


def test_W11_fingers_find_large_targets_in_every_view_and_no_keys(house: Furnished) -> None:
    page = house.window(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    wrong = []
    for view, there in house.views.items():
        opened(page, house.address, view, there)
        wrong += [(view, one) for one in page.evaluate(SMALL)]
        wrong += [(view, "a key is spoken of")] * page.locator("kbd:visible").count()
    assert wrong == []
