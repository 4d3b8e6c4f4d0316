"""Living with one's memories on the page: find, choose many, correct, link, drop files, go anywhere."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.web import test_web_support as support
from tests.web.test_web_support import House, serious, until

if TYPE_CHECKING:
    from playwright.sync_api import Page, Route

browser, address, house = support.browser, support.address, support.house


def statuses(house: House) -> list[str]:
    items = house.said("GET", "/memories?status=active&status=archived")["items"]
    return sorted(f"{node['text']} {node['status']}" for node in items)


def test_W06_a_text_that_runs_from_the_right_keeps_its_bullets_and_lists_keep_their_edge(house: House) -> None:
    memory = house.add("# ملاحظات\n\nحضر خمسة أشخاص.\n\n- الميزانية\n\n> اقتباس")
    page = house.window(f"#/node/{memory}")
    margins = "(one) => [getComputedStyle(one).direction, parseFloat(getComputedStyle(one).marginRight) > 0]"
    assert page.locator(".wiki li").evaluate(margins) == ["rtl", True]
    border = "(one) => parseFloat(getComputedStyle(one).borderRightWidth)"
    assert page.locator(".wiki blockquote").evaluate(border) == 3
    page.goto(f"{house.address}/#/memories")
    row = page.locator("li [data-row]")
    assert row.evaluate("(one) => [getComputedStyle(one).direction, getComputedStyle(one).textAlign]") == [
        "rtl",
        "left",
    ]


def test_W04_home_begins_with_search_that_answers_as_one_types(house: House) -> None:
    known = house.add("The spare key is with Mrs Okafor in flat 3")
    house.add("The bins go out on Tuesday")
    page = house.window()
    page.get_by_role("link", name="The bins go out on Tuesday").wait_for()
    page.keyboard.press("/")
    page.locator("[data-search]:focus").wait_for()
    page.keyboard.type("spare keys")
    found = page.locator(".found [data-row]").first
    found.get_by_text("Mrs Okafor").wait_for()
    expect(found.locator("mark")).to_have_text(["spare", "key"])
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/#/node/{known}")
    assert house.said("GET", "/recalls")["items"] == []


def test_W04_home_does_not_say_that_there_is_nothing_before_it_knows(house: House) -> None:
    house.add("The bins go out on Tuesday")
    page = house.window("#/memories")
    held: list[Route] = []
    page.route("**/overview*", lambda route: held.append(route))
    page.get_by_role("link", name="Home").click()
    page.get_by_role("link", name="The bins go out on Tuesday").wait_for()
    page.get_by_text("No changes yet.").wait_for()
    for told in ("Nothing needs your review.", "Added in the last 30 days"):
        expect(page.get_by_text(told)).to_have_count(0)
    for route in held:
        route.continue_()
    page.get_by_text("Nothing needs your review.").wait_for()


def test_W01_chosen_memories_are_archived_together_and_undone(house: House) -> None:
    for name in ("one", "two", "three"):
        house.add(name, metadata={"tags": ["list"]})
    page = house.window("#/memories", viewport={"width": 390, "height": 420})
    page.get_by_label("Select one").check()
    page.get_by_label("Select two").check()
    page.get_by_text("2 selected").wait_for()
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    expect(page.get_by_role("button", name="Archive", exact=True)).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="Archive", exact=True).click()
    page.get_by_text("2 memories archived.").wait_for()
    page.get_by_label("Select one").wait_for(state="detached")
    assert statuses(house) == ["one archived", "three active", "two archived"]
    page.get_by_role("status").get_by_role("button", name="Undo").click()
    page.get_by_label("Select one").wait_for()
    assert statuses(house) == ["one active", "three active", "two active"]


def test_W01_filters_tags_and_the_archive_are_in_the_address(house: House) -> None:
    house.add("tea at home", metadata={"tags": ["life"]})
    house.add("tea at work", metadata={"tags": ["code"]})
    house.said("POST", f"/memories/{house.add('gone')}/archive")
    page = house.window("#/memories?tag=life")
    page.get_by_role("link", name="tea at home").wait_for()
    expect(page.get_by_role("link", name="tea at work")).to_have_count(0)
    page.get_by_label("State").select_option("archived")
    page.get_by_text("Nothing matches these filters.").wait_for()
    page.get_by_role("link", name="Clear the filters").click()
    page.get_by_role("link", name="tea at work").wait_for()
    page.get_by_label("Select tea at work").check()
    page.get_by_role("button", name="Tag…").click()
    page.get_by_label("Tags to add").fill("garden -code")
    page.get_by_role("button", name="Tag", exact=True).click()
    page.get_by_text("1 memory tagged.").wait_for()
    page.get_by_role("button", name="Only tagged garden").click()
    page.get_by_role("link", name="tea at home").wait_for(state="detached")
    expect(page).to_have_url(re.compile("tag=garden"))
    assert serious(page) == []


def test_W02_a_memory_is_corrected_tagged_and_linked(house: House) -> None:
    old, other = house.add("Linh drinks coffee"), house.add("The office has a kettle")
    page = house.window(f"#/node/{old}")
    page.get_by_role("button", name="Correct").click()
    expect(page.get_by_label("The corrected text")).to_be_focused()
    page.get_by_label("The corrected text").fill("Linh drinks tea")
    page.get_by_label("Why").fill("she said so")
    page.get_by_role("button", name="Save correction").click()
    page.get_by_role("heading", name="Linh drinks tea").wait_for()
    assert statuses(house) == [
        "Linh drinks coffee archived",
        "Linh drinks tea active",
        "The office has a kettle active",
    ]
    page.get_by_role("link", name="an earlier text").click()
    page.get_by_text("Corrected: she said so").wait_for()
    page.go_back()
    page.get_by_role("heading", name="Linh drinks tea").wait_for()
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_role("textbox", name="Tags").fill("life office")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved.").wait_for()
    page.get_by_role("button", name="Link to…").click()
    page.get_by_label("Link to", exact=True).fill("submarine")
    page.get_by_role("region", name="Link to another").get_by_text("No matches.").wait_for()
    page.get_by_label("Link to", exact=True).fill("kettle")
    page.get_by_role("button", name="Link to The office has a kettle").click()
    page.locator(".edge").get_by_role("link", name="The office has a kettle").wait_for()
    assert serious(page) == []
    assert house.said("GET", f"/nodes/{other}/edges")
    page.get_by_role("button", name="Remove the link to The office has a kettle").click()
    page.get_by_text("No links yet.").wait_for()
    page.get_by_role("status").locator("div", has_text="Link removed.").get_by_role("button", name="Undo").click()
    page.locator(".edge").get_by_role("link", name="The office has a kettle").wait_for()


def test_W11_on_a_phone_a_text_is_read_before_what_can_be_done_with_it(house: House) -> None:
    known = house.add("The kettle needs descaling")
    page = house.window(f"#/node/{known}", viewport={"width": 390, "height": 844})
    tops = [
        page.get_by_role("main").get_by_role(role, name=name, exact=True).bounding_box()  # type: ignore[arg-type]
        for role, name in (
            ("region", "What it says"),
            ("button", "Correct"),
            ("heading", "Links"),
            ("heading", "Details"),
        )
    ]
    assert [top["y"] for top in tops if top] == sorted(top["y"] for top in tops if top)
    assert None not in tops


def test_W04_a_word_finds_what_it_begins_before_it_is_typed_to_its_end(house: House) -> None:
    house.add("The boiler was serviced in March")
    page = house.window()
    page.get_by_role("searchbox", name="Search your memories").type("boil")
    expect(page.locator(".found mark")).to_have_text("boiler")


def test_W06_quotes_emphasis_and_pictures_read_as_in_a_note(house: House) -> None:
    text = (
        "Tea\n===\n\n> *The Book of Tea*, by Okakura\n\n---\n\n[![Build](a.svg)](https://ci.example/) ![a cup](cup.png)"
    )
    page = house.window(f"#/node/{house.add(text)}")
    region = page.get_by_role("region", name="What it says")
    expect(region.get_by_role("heading", name="Tea")).to_be_visible()
    expect(region.locator("blockquote em")).to_have_text("The Book of Tea")
    expect(region.locator("hr")).to_have_count(1)
    expect(region.get_by_role("link", name="Build")).to_have_attribute("href", "https://ci.example/")
    expect(region).to_contain_text("[picture: a cup]")
    expect(region.locator("img")).to_have_count(0)
    assert serious(page) == []


def test_W06_markdown_is_shown_formatted_and_as_written(house: House) -> None:
    text = "# Tea\n\nGreen, **never** black. <script>document.title = 'taken'</script> [x](javascript:alert(1))"
    page = house.window(f"#/node/{house.add(text)}")
    page.get_by_role("heading", name="Tea", exact=True).first.wait_for()
    region = page.get_by_role("region", name="What it says")
    expect(region.locator("strong")).to_have_text("never")
    expect(region.locator("script, a[href^='javascript']")).to_have_count(0)
    assert page.title() != "taken"
    page.get_by_role("button", name="Show as written").click()
    expect(page.get_by_role("region", name="What it says")).to_have_js_property("textContent", text)


def test_W05_anything_is_found_from_anywhere(house: House) -> None:
    known = house.add("The kettle needs descaling")
    page = house.window("#/settings")
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Go to or find anything")
    field.wait_for()
    assert serious(page) == []
    field.fill("kettle")
    page.get_by_role("option", name="The kettle needs descaling").wait_for()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/#/node/{known}")
    page.keyboard.press("Control+k")
    field.fill("go to graph")
    page.keyboard.press("Enter")
    page.wait_for_url("**/#/graph")
    for written in ("", "kettle"):  # a field for searching would take the first Escape for itself
        page.keyboard.press("Control+k")
        field.fill(written)
        page.keyboard.press("Escape")
        field.wait_for(state="hidden")


COMPOSING = (
    "field => field.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', isComposing: true, bubbles: true}))"
)


def test_W05_the_keyboard_alone_goes_anywhere_and_comes_back_to_where_it_was(house: House) -> None:
    page = house.window()
    search = page.get_by_role("searchbox", name="Search your memories")
    search.focus()
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Go to or find anything")
    chosen = page.get_by_role("listbox", name="Choices").get_by_role("option", selected=True)
    expect(field).to_be_focused()
    expect(chosen).to_contain_text("New memory")
    page.keyboard.press("ArrowUp")
    expect(chosen).to_contain_text("Go to Settings")
    expect(field).to_have_attribute("aria-activedescendant", str(chosen.get_attribute("id")))
    page.keyboard.press("ArrowDown")
    expect(chosen).to_contain_text("New memory")
    page.keyboard.press("Escape")
    expect(search).to_be_focused()
    page.keyboard.press("Control+k")
    page.keyboard.type("graph")
    expect(chosen).to_contain_text("Go to Graph")
    field.evaluate(COMPOSING)  # who writes Japanese or Vietnamese ends a word with it
    expect(field).to_be_visible()
    page.keyboard.press("Enter")
    page.wait_for_url("**/#/graph")


def test_W05_a_search_from_anywhere_replaces_the_one_that_is_shown(house: House) -> None:
    house.add("The kettle needs descaling")
    house.add("The bins go out on Tuesday")
    page = house.window("#/recall?q=kettle")
    page.locator("ol.hits").get_by_text("The kettle needs descaling").wait_for()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Go to or find anything").fill("bins on Tuesday")
    page.get_by_role("option", name="Search for “bins on Tuesday”").click()
    page.locator("ol.hits").get_by_text("The bins go out on Tuesday").wait_for()
    expect(page.get_by_label("What to look for")).to_have_value("bins on Tuesday")
    page.go_back()
    expect(page.get_by_label("What to look for")).to_have_value("kettle")


# Opened, closed and opened again before the browser has told of the closing, which it does as a task of its own.
AT_ONCE = """async () => {
    const dialog = document.querySelector("dialog.palette");
    const told = new Promise((tell) => dialog.addEventListener("close", tell));
    for (const open of [true, false, true]) {
        dispatchEvent(new KeyboardEvent("keydown", { key: "k", ctrlKey: true, cancelable: true }));
        while (dialog.open !== open) await null;
    }
    await told;
}"""


def test_W05_what_is_opened_again_at_once_stays_open(house: House) -> None:
    page = house.window()
    page.evaluate(AT_ONCE)
    page.evaluate("() => new Promise((seen) => setTimeout(seen))")  # whatever the page makes of it is done
    expect(page.get_by_role("combobox", name="Go to or find anything")).to_be_visible()


def drop(page: "Page", files: dict[str, str]) -> None:
    page.evaluate(
        """(files) => { const data = new DataTransfer();
            for (const [name, text] of Object.entries(files)) data.items.add(new File([text], name));
            for (const kind of ["dragover", "drop"])
                window.dispatchEvent(new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true })) }""",
        files,
    )


def test_W03_files_dropped_on_the_page_are_imported_after_a_preview(house: House) -> None:
    page = house.window("#/graph")
    drop(page, {"tea.md": "# Tea\n\nGreen, never black.", "rain.txt": "It rained all day."})
    page.get_by_text("2 memories to add.").wait_for()
    expect(page.get_by_role("dialog").get_by_role("listitem")).to_have_text(["tea.md", "rain.txt"])
    assert statuses(house) == []
    page.get_by_role("button", name="Import", exact=True).click()
    page.get_by_text("Imported: 2 memories added, 0 already there.").wait_for()
    until(page, lambda: len(statuses(house)) == 2)


def test_W03_a_folder_is_chosen_and_imported_as_memories(house: House, tmp_path: Path) -> None:
    for name, text in {"tea.md": "# Tea\n\nGreen.", "of/rain.txt": "It rained.", ".hidden/own.md": "no note"}.items():
        (tmp_path / "notes" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "notes" / name).write_text(text)
    page = house.window()
    page.get_by_label("Import folder").set_input_files(tmp_path / "notes")
    page.get_by_text("2 memories to add.").wait_for()
    page.get_by_role("button", name="Import", exact=True).click()
    page.get_by_text("Imported: 2 memories added, 0 already there.").wait_for()
    page.get_by_role("status").get_by_role("link", name="Show").click()
    page.get_by_label("Select Tea").wait_for()
    assert statuses(house) == ["# Tea\n\nGreen. active", "It rained. active"]


def test_W03_what_is_no_text_is_left_out_of_an_import_and_named(house: House, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "tea.md").write_text("# Tea\n\nGreen.")
    (tmp_path / "notes" / "cup.png").write_bytes(b"\x89PNG\r\n\xff\xfe cup of tea")
    page = house.window()
    page.get_by_label("Import folder").set_input_files(tmp_path / "notes")
    page.get_by_text("1 memory to add.").wait_for()
    expect(page.get_by_role("dialog")).to_contain_text("skipped notes/cup.png: It is not UTF-8 text")
    page.get_by_role("button", name="Import", exact=True).click()
    page.get_by_text("Imported: 1 memory added").wait_for()
    until(page, lambda: statuses(house) == ["# Tea\n\nGreen. active"])


LONG_LINE = (
    "A **very** long first line that says this and that and more of it, far beyond what a title holds, of a samovar"
)


def test_W06_a_first_line_too_long_for_a_title_is_read_whole_in_lists_and_hits(house: House) -> None:
    node = house.add(LONG_LINE)
    said = LONG_LINE.replace("**", "")
    page = house.window("#/memories")
    expect(page.locator("main li [data-row]")).to_have_text(said)
    page.goto(f"{house.address}/#/recall?q=samovar")
    hit = page.locator("ol.hits > li").first
    expect(hit.locator("mark")).to_have_text("samovar")  # what was asked for stands beyond where a title is cut
    expect(hit.locator(".title")).to_have_count(0)
    page.goto(f"{house.address}/#/node/{node}")
    expect(page.get_by_role("heading", level=1)).to_have_class(re.compile("unseen"))  # its beginning stands below


def test_W06_a_title_is_read_without_its_markup(house: House) -> None:
    house.add("# [Webpack](https://webpack.js.org/) and **Babel**\n\n- bundles [[modules|what]] is written")
    house.add("- a list that `begins` at once", metadata={"extra": {"section": "[Lists](https://l.org) / Links"}})
    page = house.window("#/memories")
    house.add("|Logo|\n\ntqdm\n====\n\n<p align='center'>A bar that shows *how far* it is</p>\n\n## Later")
    rows = page.locator("main li [data-row]")
    expect(rows).to_have_text(["Lists › a list that begins at once", "Webpack and Babelbundles what is written"])
    page.reload()
    expect(rows.first).to_have_text("tqdmA bar that shows how far it is · Later")


def test_W02_W07_a_person_remembers_finds_corrects_and_sees_why(house: House) -> None:
    house.add("The bins go out on Tuesday")
    page = house.window()
    page.keyboard.press("n")
    page.get_by_label("The text").fill("The boiler is serviced in March")
    page.keyboard.press("Control+Enter")
    page.get_by_text("Remembered. It can be found now.").wait_for()
    page.get_by_label("Search your memories").fill("boiler service")
    page.locator(".found").get_by_role("link", name="The boiler is serviced in March").click()
    page.get_by_role("button", name="Correct").click()
    page.get_by_label("The corrected text").fill("The boiler is serviced in May")
    page.get_by_label("Why").fill("the plumber moved it")
    page.get_by_role("button", name="Save correction").click()
    page.get_by_role("heading", name="The boiler is serviced in May").wait_for()
    page.goto(f"{house.address}/#/recall?q=when is the boiler serviced")
    hit = page.locator("ol.hits > li").first
    expect(hit).to_contain_text("in May")
    expect(page.locator("ol.hits")).not_to_contain_text("in March")
    hit.locator("summary").click()
    hit.get_by_role("row", name="relevance").wait_for()
    hit.locator("a.text").click()
    page.get_by_role("link", name="an earlier text").click()
    page.get_by_text("Corrected: the plumber moved it").wait_for()


def test_W11_fingers_find_large_targets_and_no_keys(house: House) -> None:
    house.add("tea at home")
    page = house.window("#/memories", viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    title = page.get_by_role("link", name="tea at home")
    title.wait_for()
    assert title.evaluate("it => it.getBoundingClientRect().width > 280"), "a name has its line to itself"
    small = page.evaluate(
        """() => [...document.querySelectorAll("main button, main select, main input, main label.target")]
            .filter((one) => one.type !== "checkbox")
            .filter((one) => one.offsetParent && one.getBoundingClientRect().height < 40)
            .map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert small == []
    expect(page.locator("kbd:visible")).to_have_count(0)
    when = page.locator("li time").bounding_box()
    assert when is not None
    page.touchscreen.tap(when["x"] + 5, when["y"] + 5)  # the whole row leads there, not its name alone
    page.get_by_role("heading", name="History").wait_for()
    house.add("A long line about the weather of the week, and whatever else went on meanwhile. " * 8)
    page.goto(f"{house.address}/#/recall?q=weather of the week")
    hit = page.locator("ol.hits a.text")
    hit.wait_for()
    assert hit.evaluate("it => it.getBoundingClientRect().height < 6 * parseFloat(getComputedStyle(it).lineHeight)")


def test_W05_anything_is_found_from_every_view(house: House) -> None:
    node = house.add("The kettle needs descaling")
    page = house.window()
    field = page.get_by_role("combobox", name="Go to or find anything")
    for view in ("", "recall", "memories", "graph", "plans", "review", "cases", "pages", "settings/keys"):
        page.goto(f"{house.address}/#/{view}")
        page.keyboard.press("Control+k")
        field.fill("kettle")
        page.get_by_role("option", name="The kettle needs descaling").click()
        page.wait_for_url(f"**/#/node/{node}")
        field.wait_for(state="hidden")


def test_W11_on_a_phone_the_menu_makes_way_for_what_was_chosen(house: House) -> None:
    page = house.window(viewport={"width": 390, "height": 800}, has_touch=True, is_mobile=True)
    page.get_by_role("button", name="Menu").tap()
    page.get_by_role("navigation", name="Views").wait_for()
    page.get_by_role("button", name="New", exact=True).tap()  # in reach with the menu and without it
    page.get_by_label("The text").fill("Written with a thumb")
    page.get_by_role("button", name="Remember", exact=True).tap()
    page.get_by_text("Remembered. It can be found now.").wait_for()
    page.get_by_role("navigation", name="Views").wait_for(state="hidden")
    page.goto(f"{house.address}/#/memories")
    page.locator("li label.target").tap()
    page.get_by_role("button", name="Protect", exact=True).tap()
    page.get_by_text("1 memory protected.").wait_for()
    page.get_by_text("Remembered. It can be found now.").wait_for(state="hidden")  # two would cover what one does
    page.get_by_role("button", name="Find").tap()
    heights = page.get_by_role("option").evaluate_all("some => some.map((one) => one.getBoundingClientRect().height)")
    assert min(heights) >= 40
    expect(page.get_by_role("option", name="Keyboard shortcuts")).to_have_count(0)


SCRIPTS = {
    "thai": ("ชาเขียวชงด้วยน้ำร้อน 80 องศา", "ชาเขียว", "ชา"),
    "arabic": ("نحتاج إلى غلاية جديدة في المكتب", "غلاية جديدة", "شاي"),
    "chinese": ("会议定于周五下午三点,在二楼会议室举行。", "会议室", "会议"),
    "emoji": ("🍵 at 80°, 👩‍👩‍👧‍👧 like it", "🍵 80°", "家"),
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_W02_W05_every_script_is_written_tagged_found_and_shown(house: House, script: str) -> None:
    text, asked, tag = SCRIPTS[script]
    house.add("The bins go out on Tuesday")
    page = house.window()
    page.keyboard.press("n")
    page.get_by_label("The text").fill(text)
    page.get_by_label("Tags (optional)").fill(tag)
    page.keyboard.press("Control+Enter")
    page.get_by_text("Remembered. It can be found now.").wait_for()
    page.get_by_role("status").get_by_role("link", name="Show").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(text)
    expect(page).to_have_title(f"{text} · Recollect")
    direction = "getComputedStyle(document.querySelector('[aria-label=\"What it says\"]')).direction"
    assert page.evaluate(direction) == ("rtl" if script == "arabic" else "ltr")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Go to or find anything").fill(asked)
    page.get_by_role("option", name=text).wait_for()
    page.keyboard.press("Escape")
    page.goto(f"{house.address}/#/memories")
    page.get_by_role("button", name=f"Only tagged {tag}").click()
    page.get_by_role("link", name=text).wait_for()
    expect(page.locator("main li [data-row]")).to_have_count(1)


def test_P18_what_came_later_is_shown_and_undone_with_it(house: House) -> None:
    node = house.add("twice changed", metadata={"tags": ["first"]})
    for tag in ("second", "third"):
        house.said("PATCH", f"/memories/{node}", {"metadata": {"tags": [tag]}})
    earlier = house.said("GET", f"/nodes/{node}/history")[1]["plan_id"]
    page = house.window(f"#/node/{node}")
    page.get_by_role("button", name="Undo: Edited").last.click()
    page.get_by_role("dialog").get_by_text("Edited, tags first → second.").wait_for()
    page.get_by_role("dialog").get_by_role("button", name="Undo", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Undo 2 plans").wait_for()
    page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
    page.goto(f"{house.address}/#/plans/{earlier}")
    page.get_by_role("main").get_by_role("button", name="Undo", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Undo", exact=True).click()
    page.get_by_role("dialog").get_by_text("1. Edit the tags of “twice changed” (1 decision)").wait_for()
    page.get_by_role("dialog").get_by_role("button", name="Undo 2 plans").click()
    page.get_by_text("Undone: 2 decisions.").wait_for()
    page.get_by_role("link", name="Show the plan").click()
    page.get_by_text("tags: third → second").wait_for()  # each step is told without opening it
    assert house.said("GET", f"/memories/{node}")["metadata"]["tags"] == ["first"]
