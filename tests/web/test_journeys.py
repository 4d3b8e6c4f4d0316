"""Journeys through the page in a real browser: what a person does, and what they then see."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx
import pytest
from playwright.sync_api import expect

from recollect.engine.engine import Engine
from recollect.model import Scope
from recollect.settings import Settings
from tests.doors.test_api_support import key_for, listening
from tests.waiting import HANG_SECONDS
from tests.web import test_web_support as support
from tests.web.test_web_support import House, press_together, run_apart, serious, settings_for, until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

browser, address, house = support.browser, support.address, support.house

NARROW = {"width": 360, "height": 740}


def furnish(house: House) -> str:
    """Memories, a link, an edit and a waiting plan; the id of the memory in the midst of it."""
    house.add("Linh prefers tea, never coffee", metadata={"tags": ["life"]}, thread="office")
    middle = house.add("Ana keeps the green tea on the upper shelf of the kitchen", importance=0.8, thread="office")
    other = house.add("The kettle needs descaling every six weeks")
    house.said("POST", "/edges", {"source": middle, "target": other, "relation": "supports", "strength": 0.7})
    house.said("PATCH", f"/memories/{middle}", {"importance": 0.9})
    house.said("POST", "/plans", {"policy": "prune"})
    return middle


# -- remembering and finding


def test_D09_a_text_is_remembered_found_and_explained(house: House) -> None:
    page = house.window()
    page.keyboard.press("n")
    expect(page.get_by_label("The text")).to_be_focused()
    page.keyboard.type("The spare key is with the neighbours")
    page.get_by_role("button", name="Remember", exact=True).last.click()
    page.get_by_text("Remembered. It can be found now.").wait_for()
    page.keyboard.press("/")
    page.locator("[data-search]:focus").wait_for()
    page.keyboard.type("spare key")
    page.keyboard.press("Enter")
    hit = page.locator("ol.hits > li").first
    hit.get_by_text("The spare key is with the neighbours").wait_for()
    expect(hit.get_by_role("img")).to_have_attribute("aria-label", re.compile(r"Score 0\."))
    hit.locator("summary").click()
    rows = hit.locator("tbody tr")
    expect(rows.first).to_contain_text(re.compile("^relevance"))
    expect(rows.last).to_contain_text(re.compile("^score"))
    page.keyboard.press("Escape")
    hit.get_by_role("link").click()
    page.get_by_role("heading", name="The spare key is with the neighbours").wait_for()


def test_W03_a_case_and_a_concept_are_added_on_the_page(house: House) -> None:
    page = house.window()
    page.get_by_role("button", name="New", exact=True).click()
    page.get_by_role("button", name="Case", exact=True).click()
    page.get_by_label("Question").fill("How is the kettle reset?")
    page.get_by_label("Answer").fill("Hold the button for five seconds.")
    page.get_by_label("Category (optional)").fill("kitchen/kettle")
    page.get_by_role("button", name="Add case").click()
    page.get_by_role("status").get_by_role("link", name="Show").click()
    page.get_by_text("Hold the button for five seconds.").first.wait_for()
    page.keyboard.press("Control+k")
    page.keyboard.type("new concept")
    page.keyboard.press("Enter")
    for said in ("added.", "exists already."):
        page.get_by_label("Name", exact=True).fill("抹茶")
        page.keyboard.press("Control+Enter")
        page.get_by_role("status").get_by_text(f"“抹茶” {said}").wait_for()
        if said == "added.":
            page.keyboard.press("Control+k")
            page.keyboard.type("new concept")
            page.keyboard.press("Enter")
    assert [case["category_path"] for case in house.said("GET", "/cases")["items"]] == ["kitchen/kettle"]
    assert [concept["name"] for concept in house.said("GET", "/concepts")["items"]] == ["抹茶"]


def test_D09_a_text_that_is_known_is_refused_with_the_way_to_it(house: House) -> None:
    known = house.add("known already")
    page = house.window()
    page.get_by_role("button", name="New", exact=True).click()
    page.get_by_label("The text").fill("known already")
    page.keyboard.press("Control+Enter")
    page.get_by_role("link", name="Show it").click()
    page.wait_for_url(f"**/#/node/{known}")


@pytest.mark.parametrize("heading", ["", "# Diary\n\n"])
def test_D47_a_hit_of_a_long_note_shows_its_passage_and_opens_at_it(house: House, heading: str) -> None:
    days = [f"On day {day} it rained, the market was closed and nothing else happened.\n\n" for day in range(200)]
    days[150] = "The spare key of the boathouse hangs behind the blue barometer.\n\n"
    house.add(heading + "".join(days))
    page = house.window("#/recall?q=spare key of the boathouse")
    hit = page.locator("ol.hits > li").first
    hit.locator("mark", has_text="boathouse").wait_for()
    hit.locator("a.text").click()
    found = page.locator(".found", has_text="behind the blue barometer")
    found.wait_for()
    assert "On day 3 it rained" not in found.inner_text()
    expect(found).to_be_in_viewport()  # scrolled to, in a text of many screens


def test_D24_what_is_not_found_says_why(house: House) -> None:
    house.add("tea, green and black")
    house.add("a bicycle with a flat tyre")
    page = house.window("#/recall?q=tea, green and black&mode=RECALL")
    left = page.locator("section.panel", has=page.get_by_role("heading", name="Not shown, and why"))
    left.get_by_text("a bicycle with a flat tyre").wait_for()
    expect(left).to_contain_text("too weak")


def test_filters_narrow_and_stay_in_the_address(house: House) -> None:
    house.add("tea at home", metadata={"tags": ["life"]})
    house.add("tea at work", metadata={"tags": ["code"]})
    page = house.window("#/recall?q=tea")
    page.get_by_text("tea at work").wait_for()
    page.get_by_text("Filters").click()
    page.get_by_label("Tags", exact=True).fill("life")
    page.get_by_text("tea at work").wait_for(state="detached")
    expect(page.get_by_text("tea at home")).to_be_visible()
    expect(page).to_have_url(re.compile("tag=life"))
    page.reload()
    page.get_by_text("tea at home").wait_for()
    expect(page.get_by_label("Tags", exact=True)).to_have_value("life")


def test_D11_typing_asks_one_at_a_time_and_leaves_no_trace(house: House) -> None:
    house.add("a kettle for the tea")
    page = house.window("#/recall")
    asked: list[Route] = []
    page.route("**/search", lambda route: asked.append(route))
    page.locator("[data-search]:focus").wait_for()
    page.keyboard.type("a kettle for the tea")
    until(page, lambda: asked)
    expect(page.get_by_label("What to look for")).to_have_value("a kettle for the tea")
    assert len(asked) == 1, "the first is not answered yet"
    asked[0].continue_()
    until(page, lambda: len(asked) == 2)
    assert (asked[1].request.post_data_json or {})["query"] == "a kettle for the tea"
    asked[1].continue_()
    page.locator("section[aria-busy=false] ol.hits").wait_for()
    assert len(asked) == 2
    assert house.said("GET", "/recalls")["items"] == []
    page.unroute("**/search")
    page.keyboard.press("Enter")
    until(page, lambda: house.said("GET", "/recalls")["items"])
    assert len(house.said("GET", "/recalls")["items"]) == 1


def test_a_keystroke_costs_the_page_little(house: House) -> None:
    """Counted in what is drawn anew, not in milliseconds, which are the machine's: nothing, before an answer comes."""
    for number in range(20):
        house.add(f"a kettle number {number} for the tea")
    page = house.window("#/recall?q=tea")
    page.locator("ol.hits > li").nth(19).wait_for()
    asked: list[Route] = []
    page.route("**/search", lambda route: asked.append(route))
    page.evaluate(
        """() => { window.drawn = 0; new MutationObserver((changes) => { window.drawn += changes.length }).observe(
            document.querySelector("ol.hits"), { subtree: true, childList: true, characterData: true }) }"""
    )
    page.get_by_label("What to look for").focus()
    page.keyboard.type(" for the kettle")
    until(page, lambda: asked)
    expect(page.get_by_label("What to look for")).to_have_value(re.compile(" for the kettle$"))
    assert page.evaluate("window.drawn") == 0


def test_an_answer_cites_memories_that_link(house: House) -> None:
    known = house.add("Linh prefers tea, never coffee")
    page = house.window("#/recall?q=Linh prefers tea, never coffee")
    page.get_by_role("button", name="Ask").click()
    answer = page.get_by_role("region", name="Answer")
    answer.get_by_role("link", name="[Memory 1]").first.click()
    page.wait_for_url(f"**/#/node/{known}")


def test_W07_what_is_near_is_shown_when_nothing_answers(house: House) -> None:
    house.add("Linh prefers tea, never coffee")
    page = house.window("#/recall?q=zebra crossing")
    page.get_by_text("No matches.").wait_for()
    page.get_by_role("button", name="Show weaker matches").click()
    page.locator("ol.hits > li").get_by_text("weak match").wait_for()
    page.get_by_label("What to look for").fill("zebra crossings")
    page.get_by_text("No matches.").wait_for()
    page.get_by_role("button", name="Ask").click()
    answer = page.get_by_role("region", name="Answer")
    answer.get_by_text("The nearest matches are below.").wait_for()
    page.locator("ol.hits > li").get_by_text("Linh prefers tea").wait_for()
    page.get_by_label("What to look for").fill("Linh tea")
    page.locator("ol.hits > li").get_by_text("match").wait_for()
    answer.wait_for(state="detached")


# -- a node


def test_P09_each_step_of_a_node_can_be_undone(house: House) -> None:
    node = furnish(house)
    page = house.window(f"#/node/{node}")
    page.get_by_text("The kettle needs descaling").wait_for()
    page.get_by_role("button", name="Archive").click()
    page.get_by_text("Archived: out of recall, and kept.").wait_for()
    page.get_by_role("button", name="Restore").wait_for()
    page.get_by_text("Archived", exact=True).wait_for()
    page.get_by_role("button", name="Undo: Edited").click()
    page.get_by_role("dialog").get_by_role("button", name="Undo").click()
    page.get_by_text("Undone: 1 decision.").wait_for()
    page.get_by_text("undone", exact=True).wait_for()
    seen = house.said("GET", f"/memories/{node}")
    assert (seen["importance"], seen["status"]) == (0.8, "archived")


def test_P06_undo_is_at_hand_on_the_first_page(house: House) -> None:
    node = furnish(house)
    page = house.window()
    page.get_by_role("button", name="Undo").click()
    page.get_by_role("dialog").get_by_role("button", name="Undo").click()
    page.get_by_text("Undone: 1 decision.").wait_for()
    assert house.said("GET", f"/memories/{node}")["importance"] == 0.8


# -- what others wrote is text


@pytest.mark.parametrize(
    "text",
    [
        "<script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\"> end",
        "&amp; {{value}} ${value} &lt;b&gt; \\n %s",
        "هذه ملاحظة عن الشاي الأخضر",
        "🍵🫖 tea 👩‍👩‍👧‍👧 🇩🇪",
        "line one\n  line two\n\tline three",
    ],
    ids=["script", "escapes", "right-to-left", "emoji", "lines"],
)
def test_D01_what_was_written_is_shown_as_it_was_written(house: House, text: str) -> None:
    node = house.add(text)
    page = house.window(f"#/node/{node}")
    shown = page.get_by_role("region", name="Text").locator(".told")
    expect(shown).to_have_js_property("textContent", text)
    expect(shown.locator("*")).to_have_count(0)
    page.goto(f"{house.address}/#/recall?q={quote(text)}")
    expect(page.locator("ol.hits .told").first).to_have_js_property("textContent", text)
    assert page.title() != "taken"


def test_D01_a_long_text_is_folded_and_whole(house: House) -> None:
    text = "a long text about tea, " * 4500 + "and its end"
    node = house.add(text)
    page = house.window(f"#/node/{node}", viewport=NARROW)
    shown = page.get_by_role("region", name="Text").locator(".told")
    shown.wait_for()
    assert len(shown.text_content() or "") < 10_000
    page.get_by_role("button", name="Show all").click()
    expect(shown).to_have_js_property("textContent", text)
    assert not is_too_wide(page)


# -- empty, away, elsewhere


def test_an_empty_space_says_what_to_do_first(house: House) -> None:
    page = house.window()
    page.get_by_text("No memories yet.").wait_for()
    expect(page.get_by_text("recollect add")).to_be_visible()
    page.get_by_role("main").get_by_role("button", name="New memory").click()
    page.get_by_label("The text").fill("The first of many")
    page.keyboard.press("Control+Enter")
    page.get_by_role("link", name="The first of many").wait_for()
    page.get_by_text("Nothing needs your review.").wait_for()
    page.goto(f"{house.address}/#/recall?q=anything")
    page.get_by_text("No matches.").wait_for()
    page.goto(f"{house.address}/#/node/3f2a91bc")
    page.get_by_text("There is no such memory in this space.").wait_for()


def test_a_server_that_stops_is_told_of_and_comes_back(browser: "Browser", database_url: str) -> None:
    settings = settings_for(database_url)
    with ExitStack() as first:
        address = first.enter_context(listening(settings))
        house = House(browser, address)
        house.add("still here afterwards")
        page = house.window()
        page.get_by_role("heading", name="Needs your review").wait_for()
        first.close()
        page.goto(f"{address}/#/memories")
        page.get_by_text("This appears when the server is back.").wait_for()
        page.get_by_role("button", name="New", exact=True).click()
        page.get_by_label("The text").fill("written while it was away")
        page.get_by_role("button", name="Remember", exact=True).click()
        page.get_by_text("What you wrote stays here until it is back.").wait_for()
        page.get_by_role("button", name="Cancel").click()
        page.goto(f"{address}/#/recall?q=still")
        page.get_by_text("The server does not answer.").first.wait_for()
        with listening(settings, port=int(address.rpartition(":")[2])):
            page.get_by_text("still here afterwards").wait_for()
            page.get_by_text("The server does not answer.").wait_for(state="detached")
            house.close()


def test_what_was_typed_is_still_there_when_the_server_comes_back(browser: "Browser", database_url: str) -> None:
    settings = settings_for(database_url)
    with ExitStack() as first:
        address = first.enter_context(listening(settings))
        house = House(browser, address)
        memory = house.add("Linh drinks coffee")
        correcting, tagging = house.window(f"#/node/{memory}"), house.window("#/memories")
        correcting.get_by_role("button", name="Correct").click()
        correcting.get_by_label("The corrected text").fill("Linh drinks tea")
        tagging.get_by_label("Select Linh drinks coffee").check()
        tagging.get_by_role("button", name="Tag…").click()
        tagging.get_by_label("Tags to add").fill("kitchen")
        first.close()
        tagging.get_by_role("button", name="Tag", exact=True).click()
        tagging.get_by_text("The server does not answer: try again when it is back.").wait_for()
        correcting.get_by_role("button", name="Save correction").click()
        correcting.get_by_text("What you wrote stays here until it is back.").wait_for()
        with listening(settings, port=int(address.rpartition(":")[2])):
            expect(tagging.locator(".away")).to_have_count(0)
            expect(tagging.get_by_label("Tags to add")).to_have_value("kitchen")
            tagging.get_by_role("button", name="Tag", exact=True).click()
            tagging.get_by_text("1 memory tagged.").wait_for()
            correcting.get_by_text("The server is back: try again.").wait_for()
            correcting.get_by_role("button", name="Save correction").click()
            correcting.get_by_role("heading", name="Linh drinks tea").wait_for(state="attached")
            house.close()


def test_W04_looking_for_duplicates_is_no_news(house: House) -> None:
    house.add("something to show")
    at = {"started_at": "2026-01-01T00:00:00Z", "status": "done", "plan_id": None}
    runs = [{"id": action, "action": action, **at} for action in ("detection", "look", "backup")]
    page = house.window("#/recall")
    page.route("**/api/v1/runs?*", lambda route: route.fulfill(json=runs))
    page.goto(f"{house.address}/#/")
    page.get_by_text("Backup", exact=True).wait_for()
    assert page.get_by_text("Detection").or_(page.get_by_text("Look", exact=True)).count() == 0


# -- signing in


@pytest.fixture(scope="module")
def guarded(database_url: str) -> Iterator[tuple[str, dict[str, str]]]:
    """A server with keys: its address, and a key for the one space, the other, and both."""
    settings = settings_for(database_url)

    async def keys(settings: Settings) -> dict[str, str]:
        async with Engine(settings) as engine:
            found = {"all": await key_for(engine)}
            for slug in ("mine", "theirs"):
                await (await engine.in_space((await engine.add_space(slug)).slug)).add(f"a secret of {slug}")
                found[slug] = await key_for(engine, Scope.READ, space=slug)
            return found

    made = run_apart(keys, settings)
    with listening(settings) as address:
        yield address, made


def sign_in(page: "Page", key: str) -> None:
    page.get_by_label("API key").fill(key)
    page.get_by_role("button", name="Sign in").click()


def test_E28_sign_in_wrong_key_other_space_sign_out(browser: "Browser", guarded: tuple[str, dict[str, str]]) -> None:
    address, keys = guarded
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(support.PATIENCE_MS)
    page.goto(f"{address}/#/recall?q=secret")
    sign_in(page, "rk_abcdefgh_" + "x" * 43)
    page.get_by_role("alert").get_by_text("This API key is not known.").wait_for()
    sign_in(page, keys["mine"])
    page.get_by_text("a secret of mine").wait_for()
    expect(page.get_by_text("a secret of theirs")).to_have_count(0)
    expect(page.get_by_role("button", name="New", exact=True)).to_be_disabled()
    (cookie,) = context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert page.evaluate("[document.cookie, JSON.stringify(localStorage)].join()").find(keys["mine"]) == -1
    page.get_by_role("button", name="Sign out").click()
    page.get_by_label("API key").wait_for()
    assert context.cookies() == []
    kept = {"Cookie": f"{cookie['name']}={cookie['value']}"}
    assert httpx.get(f"{address}/api/v1/memories", headers=kept, timeout=HANG_SECONDS).status_code == 401
    assert serious(page) == []
    context.close()


def test_E28_who_may_see_every_space_chooses_one(browser: "Browser", guarded: tuple[str, dict[str, str]]) -> None:
    address, keys = guarded
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(support.PATIENCE_MS)
    page.goto(f"{address}/#/recall?q=secret")
    sign_in(page, keys["all"])
    for slug in ("theirs", "mine"):
        page.get_by_label("Space").select_option(slug)
        page.locator("ol.hits").get_by_text(f"a secret of {slug}").wait_for()
        expect(page.locator("ol.hits > li")).to_have_count(1)
    context.close()


# -- for everybody, on every screen


def test_W06_a_high_text_is_folded_and_a_low_one_is_not(house: House) -> None:
    low, high = (house.add("# Tea\n\n" + "- of green leaves\n" * lines) for lines in (3, 60))
    page = house.window(f"#/node/{low}")
    text = page.get_by_role("region", name="What it says")
    text.wait_for()
    expect(page.get_by_role("button", name="Show all")).to_have_count(0)
    page.goto(f"{house.address}/#/node/{high}")
    page.get_by_role("button", name="Show all").wait_for()
    assert serious(page) == []
    height = "(it) => [it.clientHeight, it.scrollHeight]"
    seen, whole = text.evaluate(height)
    assert seen < whole
    page.get_by_role("button", name="Show all").click()
    until(page, lambda: text.evaluate(height) == [whole, whole])


def test_the_menu_leads_on_where_there_is_no_room_for_it(house: House) -> None:
    page = house.window(viewport=NARROW)
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("navigation").get_by_role("link", name="Recall").click()
    page.get_by_role("heading", name="Recall").wait_for()


def test_it_is_used_without_a_mouse(house: House) -> None:
    furnish(house)
    page = house.window()
    page.locator("[data-row]").first.wait_for()
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_text("next, previous in a list").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")
    press_together(page, "gr")
    page.get_by_role("heading", name="Recall").wait_for()
    page.get_by_label("What to look for").fill("tea")
    page.locator("ol.hits > li").nth(1).wait_for()
    page.get_by_label("What to look for").blur()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    first = page.locator("ol.hits [data-row]").first
    expect(first).to_be_focused()
    chosen = first.text_content() or ""
    page.keyboard.press("Enter")
    page.get_by_role("heading", name=chosen).wait_for()


def test_the_theme_is_kept(house: House) -> None:
    page = house.window(color_scheme="light")
    page.get_by_role("heading", name="Home").wait_for()
    light = ground(page)
    page.keyboard.press("t")
    page.keyboard.press("t")
    until(page, lambda: ground(page) != light)
    page.reload()
    page.get_by_role("heading", name="Home").wait_for()
    until(page, lambda: ground(page) != light)


def test_the_first_view_asks_for_little(house: House) -> None:
    """What a machine cannot hurry or delay: how often the server is asked until the first view is there."""
    furnish(house)
    page = house.window()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.reload()
    page.locator("[data-row]").first.wait_for()
    page.wait_for_load_state("networkidle")
    assert len(asked) <= 20, asked
    assert sum("/api/" in url for url in asked) <= 8, asked


def is_too_wide(page: "Page") -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth > innerWidth"))


def ground(page: "Page") -> str:
    return str(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
