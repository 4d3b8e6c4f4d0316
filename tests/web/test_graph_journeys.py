"""Journeys through the graph and the duplicates in a real browser: what a person does, and what they then see."""

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from recollect.engine.engine import Engine
from recollect.model import Scope
from tests.doors.test_api_support import key_for, listening
from tests.web import test_web_support as support
from tests.web.test_web_support import House, press_together, run_apart, serious, settings_for, until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

browser, address, house = support.browser, support.address, support.house

NARROW, WIDE = {"width": 360, "height": 740}, {"width": 1900, "height": 1000}
SCRIPT = "<script>document.title = 'taken'</script>"
# How many dots of the layer above the edges are painted: the marks of bridges and of what is protected.
MARKS = """() => {
    const layer = document.querySelector('canvas.sigma-marks');
    const { data } = layer.getContext('2d').getImageData(0, 0, layer.width, layer.height);
    return data.filter((one, at) => at % 4 === 3 && one).length;
}"""
# What is clicked on is what the last picture shows: the eye has to have got there.
PICTURES = "() => new Promise((seen) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(seen))))"
TEXT = "a house where tea is served, with a garden and low tables"


def linked(house: House) -> dict[str, str]:
    """Two topics of three memories each, a bridge between them, a protected edge, and one edge that was taken away."""
    names = ("green tea", "black tea", "kettle", "react hooks", "state", "effects", "far away")
    ids = {name: house.add(name) for name in names}

    def edge(a: str, b: str, strength: float, topic: str | None = None) -> str:
        topics = {"source_topic": topic, "target_topic": topic, "created_by": "auto"} if topic else {}
        ends = {"source": ids[a], "target": ids[b], "relation": "supports", "strength": strength, **topics}
        return str(house.said("POST", "/edges", ends)["id"])

    for topic, (a, b, c) in {"tag:tea": names[:3], "tag:react": names[3:6]}.items():
        for ends, strength in (((a, b), 0.9), ((b, c), 0.5), ((c, a), 0.2)):
            edge(*ends, strength, topic)
    house.said("POST", f"/edges/{edge('kettle', 'state', 0.4)}/protect", {})
    plan = house.said("POST", "/plans", {"policy": "topics"})
    house.said("POST", f"/plans/{plan['id']}/apply")
    house.said("DELETE", f"/edges/{edge('effects', 'far away', 0.6)}?reason=no longer near")
    return ids


def concept(house: House, name: str, **more: Any) -> str:
    given = {"name": name, "text": TEXT, "threshold": 0.999, **more}
    return str(house.said("POST", "/concepts", given)["concept"]["id"])


def twins(house: House) -> list[str]:
    """Three pairs of concepts that may be one."""
    pairs = (("tea house", "tea houses"), ("green tea ceremony", "ceremony of green tea"), ("cache", "caches"))
    ids = [
        concept(house, name, text=f"{TEXT} {place}", node_type=f"kind {place}")
        for place, pair in enumerate(pairs)
        for name in pair
    ]
    house.said("GET", "/concepts")
    return ids


def drawn(page: "Page") -> None:
    page.locator("[data-ready=true][data-settled=true]").wait_for()


def shown(page: "Page") -> str:
    """How much of the graph is shown, as the page says it."""
    return str(page.get_by_text("linked node").inner_text())


# -- the graph


def test_A24_the_graph_begins_with_topics_and_is_painted(house: House) -> None:
    linked(house)
    page = house.window("#/graph")
    drawn(page)
    assert "6 of 6 linked nodes, 7 of 7 edges" in shown(page)
    page.get_by_role("button", name="tag:tea").click()
    topic = page.get_by_role("region", name="Chosen topic")
    topic.get_by_text("It contains 3 nodes; 3 of them are shown.").wait_for()
    assert sorted(topic.get_by_role("listitem").all_inner_texts()) == ["black tea", "green tea", "kettle"]
    assert is_painted(page)


def test_A06_a_node_says_how_it_is_linked_and_what_is_marked(house: House) -> None:
    linked(house)
    page = house.window("#/graph")
    drawn(page)
    assert page.evaluate(MARKS) > 10
    page.get_by_role("button", name="kettle").click()
    lines = page.get_by_role("region", name="Chosen node").get_by_role("listitem").all_inner_texts()
    assert [line.split() for line in lines] == [
        ["black", "tea", "←", "supports", "0.50"],
        ["state", "supports", "→", "0.40", "protected", "bridge"],
        ["green", "tea", "supports", "→", "0.20"],
    ]


def test_a_neighbourhood_is_grown_by_clicking(house: House) -> None:
    ids = [house.add(f"stone {number}") for number in range(6)]
    for a, b in pairwise(ids):
        house.said("POST", "/edges", {"source": a, "target": b, "strength": 0.8})
    page = house.window(f"#/graph/{ids[0]}", reduced_motion="reduce")
    drawn(page)
    assert "3 of 6 linked nodes" in shown(page)
    page.get_by_role("region", name="Chosen node").get_by_role("button", name="stone 1").click()
    page.get_by_role("region", name="Chosen node").get_by_role("button", name="stone 2").click()
    page.get_by_role("button", name="Grow: 1 more link").click()
    page.get_by_text("5 of 6 linked nodes").wait_for()
    drawn(page)
    click_on(page, "stone 4")
    page.get_by_text("6 of 6 linked nodes").wait_for()
    page.get_by_role("link", name="Open", exact=True).click()
    page.get_by_role("heading", name="stone 4").wait_for()
    page.get_by_role("link", name="In the graph").click()
    page.get_by_role("heading", name="Graph").wait_for()


def test_a_node_is_searched_for_here_and_elsewhere(house: House) -> None:
    ids = linked(house)
    page = house.window(f"#/graph/{ids['react hooks']}")
    drawn(page)
    page.keyboard.press("/")
    page.locator("[data-search]:focus").wait_for()
    page.keyboard.type("effe")
    page.get_by_text("Shown here").wait_for()
    page.keyboard.press("Enter")
    page.get_by_role("region", name="Chosen node").get_by_role("heading", name="effects").wait_for()
    page.get_by_label("Find a node").fill("far away")
    page.get_by_text("Elsewhere; start from it").wait_for()
    page.get_by_role("search").get_by_role("button", name="far away").click()
    page.get_by_role("region", name="Chosen node").get_by_text("Nothing is linked to it here.").wait_for()
    assert ids["far away"] in page.url


def test_P09_the_slider_goes_back_over_the_journal(house: House) -> None:
    linked(house)
    page = house.window("#/graph")
    drawn(page)
    assert page.get_by_role("button", name="Step ▶").is_disabled()
    time = page.get_by_role("group", name="Time")
    time.get_by_text("no longer near").wait_for()
    page.get_by_role("button", name="◀ Step").click()
    page.get_by_text("7 of 7 linked nodes, 8 of 8 edges").wait_for()
    time.get_by_text("Gather 2 topics").wait_for()
    page.get_by_role("slider").press("Home")
    page.get_by_text("0 of 0 linked nodes").wait_for()
    time.get_by_text("before anything was changed").wait_for()
    page.get_by_role("button", name="Now", exact=True).click()
    page.get_by_text("6 of 6 linked nodes, 7 of 7 edges").wait_for()


def test_an_empty_graph_says_what_to_do_first(house: House) -> None:
    for text in ("Linh drinks green tea every morning", "Linh drinks green tea every evening"):
        house.add(text)
    page = house.window("#/graph")
    page.get_by_text("Nothing is linked yet.").wait_for()
    page.get_by_role("button", name="Propose links").click()
    page.wait_for_url("**/#/plans/*")
    assert [plan["policy"] for plan in house.said("GET", "/plans")["items"]] == ["link_similar"]


def test_D01_names_in_the_graph_are_text(house: House) -> None:
    one, other = house.add(f"{SCRIPT} one"), house.add("هذه ملاحظة 🍵 " + "long" * 300)
    house.said("POST", "/edges", {"source": one, "target": other})
    page = house.window(f"#/graph/{one}", viewport=NARROW)
    drawn(page)
    page.get_by_role("region", name="Chosen node").get_by_role("heading", name=f"{SCRIPT} one").wait_for()
    assert "taken" not in page.title()
    assert not is_too_wide(page)


def test_an_address_that_leads_nowhere_is_told(house: House) -> None:
    linked(house)
    page = house.window("#/graph?topic=tag:none")
    page.get_by_role("alert").get_by_text("There is no topic 'tag:none'").wait_for()


# -- duplicates


def test_C28_a_duplicate_is_reviewed_merged_and_taken_back(house: House) -> None:
    twins(house)
    page = house.window("#/duplicates")
    pair = page.get_by_role("region", name="The pair")
    pair.wait_for()
    first = pair.get_by_role("heading").inner_text()
    keep, other = first.split(" and ")
    assert page.get_by_text("3 pairs to look at").is_visible()
    factors = page.get_by_role("table", name="How alike they are").get_by_role("row").all_inner_texts()
    assert [row.split()[0] for row in factors] == ["factor", "cosine", "name", "metadata", "score"]
    page.keyboard.press("m")
    page.get_by_text("2 pairs to look at").wait_for()
    page.get_by_role("status").get_by_text(f"Merged “{other}” into “{keep}”.").wait_for()
    assert house.said("GET", f"/concepts/{other}")["name"] == keep
    page.keyboard.press("u")
    page.get_by_text("3 pairs to look at").wait_for()
    assert house.said("GET", f"/concepts/{other}")["name"] == other
    assert pair.get_by_role("heading").inner_text() == first


def test_C28_the_next_pair_is_there_while_the_server_still_works(house: House) -> None:
    twins(house)
    page = house.window("#/duplicates")
    heading = page.get_by_role("region", name="The pair").get_by_role("heading")
    heading.wait_for()
    held: list[Route] = []
    page.route("**/concepts/merge", lambda route: held.append(route))
    first = heading.inner_text()
    page.keyboard.press("s")
    assert heading.inner_text() == " and ".join(reversed(first.split(" and ")))
    page.keyboard.press("m")
    page.wait_for_function("(before) => document.querySelector('h2.names').innerText !== before", arg=first)
    until(page, lambda: held)
    assert (len(held), house.said("GET", "/concepts/review")["total"]) == (1, 3)
    held[0].fulfill(status=409, json={"code": "conflict", "message": "It changed.", "correlation_id": "x"})
    page.get_by_role("status").get_by_text("It changed.").wait_for()
    page.get_by_text("3 pairs to look at").wait_for()  # what was refused is asked again


def test_P11_apart_never_and_later(house: House) -> None:
    twins(house)
    page = house.window("#/duplicates")
    heading = page.get_by_role("region", name="The pair").get_by_role("heading")
    heading.wait_for()
    first = heading.inner_text()
    page.keyboard.press("l")
    second = heading.inner_text()
    assert second != first
    page.keyboard.press("a")
    page.get_by_text("are two, for now.").first.wait_for()
    page.keyboard.press("x")
    page.get_by_text("stay two, for good.").first.wait_for()
    assert heading.inner_text() == first  # what was for later comes last
    kept = house.said("GET", "/never-merge")
    assert sorted(one["until"] is None for one in kept) == [False, True]
    decided = page.locator("section", has=page.get_by_role("heading", name="Decided here"))
    buttons = decided.get_by_role("button", name="Undo")
    for left in (1, 0):
        with page.expect_response("**/never-merge?*"):
            buttons.first.click()
        page.wait_for_function("(left) => document.querySelectorAll('main .list .plain').length === left", arg=left)
    assert house.said("GET", "/never-merge") == []
    page.get_by_text("3 pairs to look at").wait_for()


def test_C28_without_duplicates_it_says_what_to_do_first(house: House) -> None:
    page = house.window("#/duplicates")
    page.get_by_text("There are no concepts yet.").wait_for()
    concept(house, "tea house")
    page.reload()
    page.get_by_text("Nothing waits to be looked at.").wait_for()


def test_D01_what_two_records_say_is_text(house: House) -> None:
    for name in ("tea house", "tea houses"):
        concept(house, name, text=f"{SCRIPT} {TEXT} **bold** " + "long" * 100, metadata={"extra": {"a": SCRIPT}})
    page = house.window("#/duplicates", viewport=NARROW)
    page.get_by_role("cell", name=SCRIPT).first.wait_for()
    assert "taken" not in page.title()
    assert not is_too_wide(page)


def test_E28_a_key_that_may_only_read_looks_and_decides_nothing(browser: "Browser", database_url: str) -> None:
    settings = settings_for(database_url)

    async def key() -> str:
        async with Engine(settings) as engine:
            for name in ("tea house", "tea houses"):
                await engine.concepts.add(name, text=TEXT, threshold=0.999)
            return await key_for(engine, Scope.READ)

    secret = run_apart(key)
    with listening(settings) as address:
        page = browser.new_page()
        page.set_default_timeout(support.PATIENCE_MS)
        page.goto(f"{address}/#/duplicates")
        page.get_by_label("API key").fill(secret)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("Your key may look, not decide.").wait_for()
        assert page.get_by_role("button", name="Merge").is_disabled()
        page.keyboard.press("m")
        page.wait_for_load_state("networkidle")
        assert page.get_by_text("1 pair to look at").is_visible()
        page.close()


# -- for everybody, on every screen


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(house: House, scheme: str) -> None:
    ids = linked(house)
    twins(house)
    page = house.window(f"#/graph/{ids['kettle']}", color_scheme=scheme)
    drawn(page)
    page.get_by_label("Find a node").fill("tea")
    page.get_by_text("Shown here").wait_for()
    assert serious(page) == []
    page = house.window("#/duplicates", color_scheme=scheme)
    page.get_by_role("heading", name="Why they may be one").wait_for()
    assert serious(page) == []
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_text("merge the two").wait_for()
    assert serious(page) == []


@pytest.mark.parametrize("viewport", [NARROW, WIDE], ids=["360", "1900"])
def test_it_fits_every_screen(house: House, viewport: dict[str, int]) -> None:
    ids = linked(house)
    twins(house)
    page = house.window(f"#/graph/{ids['kettle']}", viewport=viewport)
    drawn(page)
    assert not is_too_wide(page)
    page = house.window("#/duplicates", viewport=viewport)
    page.get_by_role("heading", name="Why they may be one").wait_for()
    assert not is_too_wide(page)


def test_the_graph_is_used_without_a_mouse(house: House) -> None:
    linked(house)
    page = house.window("#/")
    page.get_by_role("heading", name="Home").wait_for()
    press_together(page, "gg")
    drawn(page)
    page.get_by_role("application").focus()
    before = picture(page)
    page.keyboard.press("+")
    until(page, lambda: picture(page) != before)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.get_by_role("region", name="Chosen node").wait_for()


def picture(page: "Page") -> bytes:
    return page.get_by_role("application").screenshot()


def is_painted(page: "Page") -> bool:
    """Whether there is more on the stage than its ground: a picture of one colour is a few hundred bytes."""
    return len(picture(page)) > 5000


def click_on(page: "Page", name: str) -> None:
    """Click on a node in the picture: it is looked for first, so that it stands in the middle."""
    page.get_by_label("Find a node").fill(name)
    page.get_by_label("Find a node").press("Enter")
    page.get_by_role("region", name="Chosen node").get_by_role("heading", name=name).wait_for()
    page.evaluate(PICTURES)
    box = page.get_by_role("application").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)


def is_too_wide(page: "Page") -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))
