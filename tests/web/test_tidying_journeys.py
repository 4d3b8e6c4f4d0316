"""Journeys through plans, cases, pages and settings in a real browser."""

import re
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from playwright.sync_api import expect

from tests.doors.test_api_support import listening
from tests.web import test_web_support as support
from tests.web.test_web_support import House, settings_for, until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ViewportSize

browser, address, house = support.browser, support.address, support.house

NARROW: "ViewportSize" = {"width": 360, "height": 740}
PRUNE: dict[str, Any] = {"policy": "prune", "options": {"min_inactive_days": 0}}


def weak_graph(house: House, rim: int = 4) -> list[str]:
    """A hub with strong spokes, and links along the rim that have grown weak; the ids of the weak ones."""
    names = [f"{what} in the kitchen" for what in ("The kettle", "The green tea", "A sieve", "The tray", "A lemon")]
    names += [f"Shelf {number} of the pantry" for number in range(rim)]
    hub, *others = house.said("POST", "/memories/batch", [{"text": name} for name in names[: rim + 2]])["ids"]

    def linked(source: str, target: str, strength: float) -> str:
        link = {"source": source, "target": target, "strength": strength, "created_by": "auto"}
        return str(house.said("POST", "/edges", link)["id"])

    for other in others:
        linked(hub, other, 0.9)
    return [linked(a, b, 0.01 * (at % 3 + 1)) for at, (a, b) in enumerate(pairwise(others))]


def statuses(house: House, edges: list[str]) -> list[str]:
    return [house.said("GET", f"/edges/{edge}")["status"] for edge in edges]


# -- plans


def test_P03_P07_a_plan_is_proposed_declined_in_part_applied_and_undone(house: House) -> None:
    weak = weak_graph(house)
    page = house.window("#/plans")
    page.get_by_text("No plans yet.").wait_for()
    page.get_by_role("combobox", name="Propose", exact=True).select_option("prune_weak_edges")
    page.get_by_text("Options").click()
    page.get_by_label("min inactive days").fill("0")
    page.get_by_role("button", name="Propose").click()
    page.get_by_role("heading", name="Prune 4 of 9 links").wait_for()
    group = page.get_by_role("region", name="Weak links nobody used")
    expect(group.locator("li[data-decision]")).to_have_count(4)
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.get_by_role("button", name="Apply 3 decisions").wait_for()
    page.get_by_role("button", name="Accept again").click()  # P23: a no can be taken back while the plan waits
    page.get_by_role("button", name="Apply 4 decisions").wait_for()
    page.get_by_role("button", name="Decline 2:").click()
    page.get_by_role("button", name="Apply 3 decisions").wait_for()
    page.get_by_text("− 3 removed").wait_for()  # what was declined is not counted
    for view in ("#/plans", "#/"):
        beside = house.window(view)
        beside.get_by_text("3 of 4 decisions").wait_for()  # the same number in every list
        beside.close()
    page.get_by_role("button", name="Apply 3 decisions").click()
    page.get_by_text("3 decisions applied.").wait_for()
    page.get_by_role("heading", name="Result").wait_for()
    assert sorted(statuses(house, weak)) == ["active", "pruned", "pruned", "pruned"]
    page.get_by_role("main").get_by_role("button", name="Undo", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Undo").click()
    page.get_by_text("Undone: 3 decisions.").wait_for()
    page.get_by_text("undone 3", exact=True).wait_for()
    expect(page.get_by_text("− 3 removed")).to_have_count(0)  # what is undone removes nothing
    assert set(statuses(house, weak)) == {"active"}
    page.get_by_role("link", name="Show the plan").click()
    page.get_by_text("+ 3 brought back").wait_for()  # nothing of it is new
    page.get_by_role("region", name="Undo: weak links nobody used").wait_for()
    page.get_by_role("button", name="Redo", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Redo").click()
    page.get_by_text("Redone: 3 decisions.").wait_for()
    assert sorted(statuses(house, weak)) == ["active", "pruned", "pruned", "pruned"]


def test_W04_what_needs_review_is_one_key_away(house: House) -> None:
    weak_graph(house)
    house.said("POST", "/plans", PRUNE)
    page = house.window()
    page.get_by_role("link", name="Review: Prune 4 of 9 links").wait_for()
    page.keyboard.press("r")
    page.get_by_role("heading", name="Prune 4 of 9 links").wait_for()


def test_P07_one_decision_is_taken_back(house: House) -> None:
    weak = weak_graph(house)
    plan = house.said("POST", "/plans", PRUNE)["id"]
    house.said("POST", f"/plans/{plan}/apply")
    page = house.window(f"#/plans/{plan}")
    page.get_by_role("button", name="Undo 1:").click()
    page.get_by_role("dialog").wait_for()
    page.evaluate("location.hash = '#/plans'")  # what was asked of one view is not asked in another
    page.get_by_role("heading", name="All plans").wait_for()
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.go_back()
    page.get_by_role("button", name="Undo 1:").click()
    page.get_by_role("dialog").get_by_role("button", name="Undo").click()
    page.get_by_text("Undone: 1 decision.").wait_for()
    assert sorted(statuses(house, weak)) == ["active", "pruned", "pruned", "pruned"]


def test_P13_progress_of_a_run_can_be_watched(house: House) -> None:
    weak_graph(house, 12)
    plan = house.said("POST", "/plans", {**PRUNE, "options": {**PRUNE["options"], "batch": 1}})["id"]
    page = house.window(f"#/plans/{plan}")
    seen: list[str] = []
    page.on("response", lambda answer: seen.append(answer.url) if "/runs/" in answer.url else None)
    page.get_by_role("button", name="Apply 12 decisions").click()
    page.get_by_text("12 decisions applied.").wait_for()
    until(page, lambda: seen)


def test_P02_a_plan_shows_every_row_before_and_after(house: House) -> None:
    weak_graph(house)
    plan = house.said("POST", "/plans", PRUNE)
    page = house.window(f"#/plans/{plan['id']}")
    picture = page.get_by_role("img", name="The graph before and after")
    until(page, lambda: picture.evaluate("(it) => it.naturalWidth") > 200)
    expect(page.locator("li[data-decision]")).to_have_count(4)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    opened = page.locator("li[data-decision] .inside")
    expect(opened).to_contain_text("active → pruned")
    expect(opened).to_contain_text(plan["labels"][plan["decisions"][0]["subject"]])


def test_W09_a_plan_shows_what_it_would_create_and_why_in_plain_words(house: House) -> None:
    texts = ["The kettle boils water for tea", "The kettle boils water for the tea", "Bins go out on Tuesday"]
    house.said("POST", "/memories/batch?wait=true", [{"text": text} for text in texts])
    plan = house.said("POST", "/plans", {"policy": "link"})
    assert plan["decisions"]
    page = house.window(f"#/plans/{plan['id']}")
    first = page.get_by_role("region", name="Similar pairs to link").locator("li[data-decision]").first
    expect(first).to_contain_text(re.compile(r"tea → The kettle.*similarity 0\.\d+ \(at least 0\.8\)"))
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    made = page.locator("li[data-decision] .inside .rows > li").first
    expect(made.locator(".sign")).to_have_text("+")
    expect(made).to_contain_text("link")
    expect(made).to_contain_text("The kettle boils water")


def test_P03_a_whole_plan_is_declined(house: House) -> None:
    weak_graph(house)
    plan = house.said("POST", "/plans", PRUNE)["id"]
    page = house.window(f"#/plans/{plan}")
    page.get_by_role("button", name="Decline all").click()
    page.get_by_role("dialog").get_by_role("button", name="Decline").click()
    page.get_by_text("Declined.").wait_for()
    page.get_by_role("button", name="Apply").wait_for(state="detached")
    page.goto(f"{house.address}/#/plans?status=declined")
    page.get_by_role("link", name="Prune 4 of 9 links").wait_for()


# -- cases


def some_cases(house: House) -> list[str]:
    asked = [
        (
            "How do I reset my password?",
            "Open Settings, then Security, and choose Reset.",
            "account/password",
            41,
            92.0,
        ),
        ("Where is my invoice?", "Under Billing; it is sent by mail too.", "billing/invoices", 17, 64.0),
        ("Can I pay by cheque?", "Write to us with the number of the invoice.", "billing/payment", 23, 18.0),
        ("How long is data kept?", "As long as the account exists.", None, 0, None),
    ]
    known = [
        {"query": query, "response_text": answer, "category_path": path, "usage_count": uses, "success_rate": rate}
        for query, answer, path, uses, rate in asked
    ]
    given = [{name: value for name, value in one.items() if value is not None} for one in known]
    return [str(id_) for id_ in house.said("POST", "/cases/batch", given)["ids"]]


def test_E16_a_case_is_archived_and_restored(house: House) -> None:
    _, _, cheque, _ = some_cases(house)
    page = house.window("#/cases")
    row = page.get_by_role("row", name="Can I pay by cheque?")
    expect(row).to_contain_text("18%")
    row.get_by_role("button", name="Archive").click()
    page.get_by_text("Archived: out of search").wait_for()
    row.wait_for(state="detached")
    assert house.said("GET", f"/cases/{cheque}")["status"] == "archived"
    page.get_by_role("combobox", name="State", exact=True).select_option("archived")
    page.get_by_role("row", name="Can I pay by cheque?").get_by_role("button", name="Restore").click()
    page.get_by_text("Restored.").wait_for()
    assert house.said("GET", f"/cases/{cheque}")["status"] == "active"


def test_E31_a_case_shows_how_its_uses_went(house: House) -> None:
    case = some_cases(house)[0]
    for number in range(12):
        said = {"success": number % 3 > 0, "error_type": None if number % 3 else "outdated"}
        house.said("POST", f"/cases/{case}/outcomes", said)
    page = house.window(f"#/cases/{case}")
    page.get_by_role("heading", name="How do I reset my password?").wait_for()
    page.get_by_role("img", name="Of the last 12 judged uses, 8 succeeded").wait_for()
    expect(page.get_by_role("img", name="Success rate").locator("..")).to_contain_text("67%")


def test_cases_are_narrowed_by_category_and_success(house: House) -> None:
    some_cases(house)
    page = house.window("#/cases")
    page.get_by_role("link", name="Where is my invoice?").wait_for()
    page.get_by_role("combobox", name="Success rate", exact=True).select_option("30")
    page.get_by_role("link", name="Where is my invoice?").wait_for(state="detached")
    expect(page.get_by_role("link", name="Can I pay by cheque?")).to_be_visible()
    page.goto(f"{house.address}/#/cases?category=billing")
    page.get_by_role("link", name="Where is my invoice?").wait_for()
    expect(page.locator("tbody tr")).to_have_count(2)


# -- pages

LOADING = """# Principle: Loading

== Overview ==
Models are loaded '''lazily''' from `disk`; see [[uses_heuristic::Heuristic:Keep it warm]].

=== Steps ===
* read the header
** check its version
* map the weights

<syntaxhighlight lang="python">
model = load("x", lazy=True)  # <b>not bold</b>
</syntaxhighlight>

== Related ==
* [[implemented_by::Implementation:Loader]]
* [[implemented_by::Implementation:Nobody]]
* https://example.org/loading
"""
LOADER = "# Implementation: Loader\n\n== Overview ==\nThe class that loads a model from disk, lazily.\n"
WARM = "# Heuristic: Keep it warm\n\n== Overview ==\nLoad once, and keep what was loaded in memory.\n"
MORE = LOADER + "\n== Pitfalls ==\nA file that grows while it is read is read twice.\n"


def wiki(house: House) -> str:
    """Three pages, one of them merged with a second version; the node of the principle."""
    files = [
        ("principles/Loading.md", LOADING),
        ("implementations/Loader.md", LOADER),
        ("heuristics/Keep_it_warm.md", WARM),
    ]
    for some in (files, [files[0], ("implementations/Loader.md", MORE), files[2]]):
        body = {"pages": [{"path": path, "text": text} for path, text in some]}
        plan = house.said("POST", "/pages/import", body)["plan"]["id"]
        house.said("POST", f"/pages/plans/{plan}/apply")
    return str(house.said("GET", "/pages/Principle:Loading")["node"]["id"])


def test_B17_a_wiki_is_brought_in_applied_read_and_undone(house: House, tmp_path: Path) -> None:
    wiki(house)
    folder = tmp_path / "other"
    for path, text in (
        ("principles/Loading.md", LOADING),
        ("implementations/Loader.md", MORE + "\n== Cost ==\nLittle.\n"),
    ):
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_text(text)
    (folder / "picture.png").write_bytes(b"not a page")
    page = house.window("#/pages")
    page.get_by_label("Import folder").set_input_files(folder)
    page.get_by_text("2 pages", exact=True).wait_for()
    page.get_by_role("button", name="Preview import").click()
    page.get_by_role("button", name="Apply").click()
    page.get_by_text("applied.").wait_for()
    page.goto(f"{house.address}/#/pages")
    page.get_by_role("link", name="Loader").click()
    page.get_by_role("heading", name="Cost").wait_for()
    page.get_by_role("button", name="What changed with version 3").click()
    page.get_by_role("region", name="What changed from version 2 to 3").get_by_text("Little.").wait_for()
    page.get_by_role("link", name="Show the plan", exact=True).first.click()
    page.get_by_role("main").get_by_role("button", name="Undo", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Undo").click()
    page.get_by_text("Undone:").wait_for()
    assert "Cost" not in house.said("GET", "/pages/Implementation:Loader")["node"]["text"]


LAID_OUT = """# Steps to take

{| class="wikitable"
|-
! Knowledge Sources
|
* [[source::Paper|One|https://one.example/]]
|}

1. Read the header
2. Map the weights

| Part | Size |
|------|-----:|
| header | 8 kB |
| a \\| b | 2 GB |
Then go on.
"""


def test_B30_numbers_and_tables_of_a_page_are_shown_as_such(house: House) -> None:
    path = f"notes/{'A_name_without_a_break' * 4}.md"
    plan = house.said("POST", "/pages/import", {"pages": [{"path": path, "text": LAID_OUT}]})["plan"]["id"]
    house.said("POST", f"/pages/plans/{plan}/apply")
    node = house.said("GET", "/pages")["items"][0]["id"]
    page = house.window(f"#/pages/{node}", viewport=NARROW)
    text = page.locator(".wiki")
    expect(text.locator("td")).to_have_text(["• One", "header", "8 kB", "a | b", "2 GB"], use_inner_text=True)
    expect(text.locator("th")).to_have_text(["Knowledge Sources", "Part", "Size"])
    assert text.locator("li").evaluate_all("some => some.map((one) => getComputedStyle(one).listStyleType)") == [
        '"1. "',
        '"2. "',
    ]
    expect(text.get_by_text("Then go on.", exact=True)).to_be_visible()
    shown = page.get_by_text(path, exact=True).bounding_box()
    assert shown is not None
    assert shown["x"] + shown["width"] <= NARROW["width"] - shown["x"]


def test_a_page_is_found_by_its_name_among_more_than_are_shown(house: House) -> None:
    names = ["The_very_first", *(f"Page_{number}" for number in range(250))]
    for some in (names[:1], names[1:]):
        pages = [{"path": f"a/folder/that/is/deep/{name}.md", "text": f"# {name}\n\nOf {name}."} for name in some]
        plan = house.said("POST", "/pages/import", {"pages": pages, "judge": "thresholds"})["plan"]["id"]
        house.said("POST", f"/pages/plans/{plan}/apply", {})
    page = house.window("#/pages")
    page.get_by_text("200 pages and more").wait_for()
    page.get_by_role("button", name="Show more").evaluate("it => { it.click(); it.click(); }")
    (there,) = (one["number"] for one in house.said("GET", "/overview")["held"])
    page.get_by_text(f"{there} pages", exact=True).wait_for()
    page.reload()
    page.get_by_label("Filter by name").fill("the_very_first")
    page.get_by_role("link", name="The_very_first").wait_for()


def test_what_changed_comes_into_view_on_a_phone(house: House) -> None:
    wiki(house)
    node = house.said("GET", "/pages/Implementation:Loader")["node"]["id"]
    page = house.window(f"#/pages/{node}", viewport=NARROW)
    page.get_by_role("button", name="What changed with version 2").click()
    heading = page.get_by_role("heading", name="From version 1 to 2")
    heading.wait_for()

    def is_in_view() -> bool:
        return bool(0 <= heading.evaluate("it => it.getBoundingClientRect().top") < NARROW["height"])

    until(page, is_in_view)


def test_the_titles_of_plans_can_be_read_on_a_screen_of_middle_size(house: House) -> None:
    wiki(house)
    page = house.window("#/plans", viewport={"width": 800, "height": 700})
    title = page.locator("main li [data-row]").first
    assert title.evaluate("it => it.scrollWidth <= it.clientWidth"), title.inner_text()


def test_B16_a_page_links_on_and_knows_what_links_here(house: House) -> None:
    page = house.window(f"#/pages/{wiki(house)}")
    text = page.get_by_role("region", name="Text")
    text.get_by_role("heading", name="Steps").wait_for()
    expect(text.locator("strong")).to_have_text(["lazily"])
    expect(text.locator("pre")).to_contain_text("<b>not bold</b>")
    expect(text.get_by_text("Implementation:Nobody")).to_have_attribute("title", "There is no such page")
    text.get_by_role("link", name="Implementation:Loader").click()
    page.get_by_role("heading", name="Loader", exact=True).first.wait_for()
    back = page.locator("section", has=page.get_by_role("heading", name="Linked from"))
    back.get_by_role("link", name="Principle:Loading").click()
    page.get_by_role("button", name="As written").click()
    expect(page.get_by_role("region", name="Text").locator(".told")).to_have_js_property("textContent", LOADING)


# -- settings


def test_a_space_is_made_and_entered(house: House) -> None:
    page = house.window("#/settings")
    slug = f"{house.space}-two"
    page.get_by_label("New space").fill(slug)
    page.get_by_role("button", name="Create").click()
    page.get_by_text(f"Space {slug} created.").wait_for()
    page.get_by_role("button", name=f"Open {slug}").click()
    page.get_by_role("listitem").filter(has_text=slug).get_by_text("current").wait_for()
    page.get_by_role("listitem").filter(has_text=slug).get_by_label("refuse other tags").check()
    page.get_by_text(f"Saved: {slug}.").wait_for()
    spaces = {one["slug"]: one for one in house.said("GET", "/spaces")}
    assert spaces[slug]["settings"]["strict_tags"] is True


def test_A25_a_schedule_is_changed_paused_and_run(house: House) -> None:
    house.said("PATCH", "/schedules/prune", {"every_minutes": 1440})
    page = house.window("#/settings/schedules")
    page.get_by_role("button", name="Change how often: prune weak links").click()
    page.get_by_label("or cron").fill("0 2 * * sun")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("prune weak links: Sundays at 02:00 (UTC) from now on.").wait_for()
    page.get_by_role("button", name="Pause prune weak links").click()
    page.get_by_text("paused", exact=True).wait_for()
    page.get_by_role("button", name="Run now: prune weak links").click()
    page.get_by_text("The schedule would not have run this").wait_for()
    kept = next(one for one in house.said("GET", "/schedules") if one["name"] == "prune_weak_edges")
    assert (kept["cron"], kept["enabled"], kept["last_run_at"] is not None) == ("0 2 * * sun", False, True)


def talk(house: House) -> None:
    """Enough memories, some of which belong together, to measure what similarity means."""
    said = [
        (number, f"Topic {number}: kettle {number} boils water for tea {part}") for number in range(40) for part in "ab"
    ]
    texts = [{"text": text, "thread": f"talk-{number}"} for number, text in said]
    house.said("POST", "/memories/batch?wait=true", texts)


def test_D28a_the_scale_is_measured_shown_and_used(house: House) -> None:
    talk(house)
    page = house.window("#/settings/calibration")
    page.get_by_role("button", name="Measure").click()
    page.get_by_role("img", name="Cosine of unrelated pairs").wait_for()
    measured = page.get_by_role("row", name="measured").locator("td")
    expect(measured).to_have_count(3)
    _, low, high = measured.all_inner_texts()
    page.get_by_role("button", name="Use this scale").click()
    page.get_by_text("The measured scale is in use.").wait_for()
    assert house.said("GET", "/calibration")["current"] == {"low": float(low), "high": float(high)}


def test_D28a_too_few_memories_are_said_plainly(house: House) -> None:
    page = house.window("#/settings/calibration")
    page.get_by_role("button", name="Measure").click()
    page.get_by_text("There are too few memories to measure a calibration").wait_for()


def test_E28_the_first_key_is_shown_once_and_keeps_its_maker_signed_in(browser: "Browser", database_url: str) -> None:
    with listening(settings_for(database_url)) as address:
        house = House(browser, address)
        page = house.window("#/settings/keys")
        page.get_by_text("No API keys yet.").wait_for()
        page.get_by_label("Name", exact=True).fill("the keeper")
        page.get_by_role("button", name="Create key").click()
        page.get_by_role("dialog").get_by_role("button", name="Create").click()
        secret = page.get_by_role("region", name="The new key").locator("code").inner_text()
        assert house.api.get("/plans").status_code == 401
        assert house.api.get("/plans", headers={"X-API-Key": secret}).status_code == 200
        page.get_by_role("cell", name="the keeper", exact=True).wait_for()
        page.get_by_role("button", name="Done").click()
        until(page, lambda: secret not in page.content())
        page.get_by_label("Name", exact=True).fill("an agent")
        page.get_by_role("main").get_by_role("combobox", name="Space").select_option(house.space)
        page.get_by_role("button", name="Create key").click()
        agent = page.get_by_role("region", name="The new key").locator("code").inner_text()
        page.set_viewport_size({"width": 390, "height": 844})
        revoke = page.get_by_role("button", name="Revoke an agent")
        assert revoke.evaluate("one => one.getBoundingClientRect().right") < 390  # in sight, also on a phone
        revoke.click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        page.get_by_text("revoked", exact=True).wait_for()
        assert house.api.get("/plans", headers={"X-API-Key": agent}).status_code == 401
        expect(page.get_by_role("region", name="The new key")).to_have_count(0)  # nobody copies what opens nothing
        assert house.faults == []
        house.close()


# -- all of them


def furnished(house: House) -> dict[str, str]:
    """Everything that these views show: where each is, and what is there once it has come."""
    weak_graph(house)
    plan = house.said("POST", "/plans", PRUNE)["id"]
    house.said("POST", f"/plans/{plan}/decline", {"decisions": [2]})
    case = some_cases(house)[0]
    house.said("POST", f"/cases/{case}/outcomes", {"success": True})
    house.said("POST", "/cases", {"query": "w" * 400, "response_text": "x" * 3000, "category_path": "y" * 90})
    house.said("PATCH", "/schedules/prune", {"every_minutes": 1440})
    return {
        "#/plans": "li [data-row]",
        f"#/plans/{plan}": "li[data-decision] >> nth=3",
        "#/cases": "tbody tr >> nth=4",
        f"#/cases/{case}": ".outcomes",
        f"#/pages/{wiki(house)}": ".wiki pre",
        "#/pages": "section >> nth=2",
        "#/settings": "li.space",
        "#/settings/keys": "form",
        "#/settings/schedules": "li .acts",
        "#/settings/calibration": "button.main",
    }


def test_an_empty_space_says_what_to_do_first(house: House) -> None:
    page = house.window("#/plans")
    for hash_, said in (
        ("#/plans", "Propose one above"),
        ("#/cases", "recollect cases import"),
        ("#/pages", "recollect pages import"),
    ):
        page.goto(f"{house.address}/{hash_}")
        page.get_by_text(said).wait_for()
    for hash_, said in (
        ("#/plans/3f2a91bc", "There is no such plan in this space."),
        ("#/cases/3f2a91bc", "There is no such case in this space."),
        ("#/pages/Nobody", "There is no such page in this space."),
    ):
        page.goto(f"{house.address}/{hash_}")
        page.get_by_text(said).wait_for()


HOSTILE = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title='taken'\">"


def test_D01_what_was_written_is_text_here_too(house: House) -> None:
    case = house.said("POST", "/cases", {"query": HOSTILE, "response_text": f"{HOSTILE} [x](javascript:alert(1))"})
    body = {
        "pages": [
            {"path": "notes/<script>.md", "text": f"# <script>\n\n{HOSTILE} [x](javascript:alert(1)) [[{HOSTILE}]]\n"}
        ]
    }
    plan = house.said("POST", "/pages/import", body)["plan"]["id"]
    page = house.window(f"#/plans/{plan}")
    page.locator("[data-decision]").first.wait_for()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.locator("[data-decision] .inside").get_by_text("<script>").first.wait_for()
    house.said("POST", f"/pages/plans/{plan}/apply")
    (odd,) = house.said("GET", "/pages")["items"]
    for hash_ in ("#/cases", f"#/cases/{case['case_id']}", "#/pages", f"#/pages/{odd['id']}"):
        page.goto(f"{house.address}/{hash_}")
        page.get_by_text("<script>").first.wait_for()
        expect(page.locator("main script, main img[src=x], main a[href^=javascript]")).to_have_count(0)
    assert page.title() != "taken"
