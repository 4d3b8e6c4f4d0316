"""Journeys through the graph and the review in a real browser: what a person does, and what they then see."""

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from playwright.sync_api import expect

from recollect.engine.engine import Engine
from recollect.model import Scope
from tests.doors.test_api_support import key_for, listening
from tests.web import test_web_support as support
from tests.web.test_web_support import House, press_together, run_apart, serious, settings_for, until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

browser, address, house = support.browser, support.address, support.house

NARROW = {"width": 360, "height": 740}
LONG_AGO = "2020-01-01T00:00:00Z"
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


def twins(house: House, number: int = 3) -> list[str]:
    """Pairs of concepts that may be one: the names differ by an ending, and each pair is of a type of its own."""
    return [
        concept(
            house, f"Society of Natural Philosophy Ar{ending}", node_type=f"kind {place}", metadata={ending: "known"}
        )
        for place in range(number)
        for ending in "cs"
    ]


def asked(page: "Page") -> str:
    """The names in the question that is asked now, in their order."""
    return str(page.locator("h2.names").inner_text())


def names_in(question: str) -> list[str]:
    return question.split(":")[0].split(" and ")


def drawn(page: "Page") -> None:
    page.locator("[data-ready=true][data-settled=true]").wait_for()


# -- the graph


def test_A24_the_graph_begins_with_topics_and_is_painted(house: House) -> None:
    linked(house)
    page = house.window("#/graph")
    drawn(page)
    page.get_by_text("6 of 6 linked nodes, 7 of 7 links").wait_for()
    page.get_by_role("button", name="tea", exact=True).click()
    topic = page.get_by_role("region", name="Chosen topic")
    topic.get_by_text("3 nodes, 3 shown.").wait_for()
    inside = topic.get_by_role("listitem")
    until(page, lambda: sorted(inside.all_inner_texts()) == ["black tea", "green tea", "kettle"])
    until(page, lambda: is_painted(page))


def test_A06_a_node_says_how_it_is_linked_and_what_is_marked(house: House) -> None:
    linked(house)
    page = house.window("#/graph")
    drawn(page)
    until(page, lambda: page.evaluate(MARKS) > 10)
    page.get_by_role("button", name="kettle").click()
    lines = page.get_by_role("region", name="Chosen node").get_by_role("listitem")
    wanted = [
        ["black", "tea", "←", "supports", "0.50"],
        ["state", "supports", "→", "0.40", "protected", "bridge"],
        ["green", "tea", "supports", "→", "0.20"],
    ]
    until(page, lambda: [line.split() for line in lines.all_inner_texts()] == wanted)


def test_a_neighbourhood_is_grown_by_clicking(house: House) -> None:
    ids = [house.add(f"stone {number}") for number in range(6)]
    for a, b in pairwise(ids):
        house.said("POST", "/edges", {"source": a, "target": b, "strength": 0.8})
    page = house.window(f"#/graph/{ids[0]}", reduced_motion="reduce")
    drawn(page)
    page.get_by_text("3 of 6 linked nodes").wait_for()
    page.get_by_role("region", name="Chosen node").get_by_role("button", name="stone 1").click()
    page.get_by_role("region", name="Chosen node").get_by_role("button", name="stone 2").click()
    page.get_by_role("button", name="Show 1 more link").click()
    page.get_by_text("5 of 6 linked nodes").wait_for()
    drawn(page)
    click_on(page, "stone 4")
    page.get_by_text("6 of 6 linked nodes").wait_for()
    page.get_by_role("link", name="Open", exact=True).click()
    page.get_by_role("heading", name="stone 4").wait_for()
    page.get_by_role("link", name="Show in graph").click()
    page.get_by_role("heading", name="Graph").wait_for()


def test_a_node_is_searched_for_here_and_elsewhere(house: House) -> None:
    ids = linked(house)
    page = house.window(f"#/graph/{ids['react hooks']}")
    drawn(page)
    page.keyboard.press("/")
    page.locator("[data-search]:focus").wait_for()
    page.keyboard.type("effe")
    page.get_by_text("Shown here").wait_for()
    assert serious(page) == []
    page.keyboard.press("Enter")
    page.get_by_role("region", name="Chosen node").get_by_role("heading", name="effects").wait_for()
    page.get_by_label("Find a node").fill("far away")
    page.get_by_text("Not in this view").wait_for()
    page.get_by_role("search").get_by_role("button", name="far away").click()
    page.get_by_role("region", name="Chosen node").get_by_text("No links shown here.").wait_for()
    expect(page).to_have_url(re.compile(ids["far away"]))


# Where names were written since the last picture was begun: left, right, height of the line, and the width of it all.
WRITTEN = """() => {
    const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
    window.written = [];
    CanvasRenderingContext2D.prototype.clearRect = function (...where) {
        if (this.canvas.classList.contains("sigma-labels")) window.written = [];
        return clearRect.apply(this, where);
    };
    CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
        const wide = this.canvas.width / devicePixelRatio;
        if (this.canvas.classList.contains("sigma-labels"))
            window.written.push([x, x + this.measureText(text).width, y, wide]);
        return fillText.call(this, text, x, y);
    };
}"""


def test_W10_names_never_overlap_nor_leave_the_edge_and_a_click_shows_the_neighbourhood(house: House) -> None:
    ids = [house.add(f"stone number {number} of the long garden wall") for number in range(24)]
    for one in ids[1:]:
        house.said("POST", "/edges", {"source": ids[0], "target": one, "strength": 0.5})
    page = house.window("#/graph", viewport={"width": 390, "height": 740}, reduced_motion="reduce")
    drawn(page)
    page.evaluate(WRITTEN)
    page.get_by_role("button", name="Fit", exact=True).click()
    page.get_by_role("button", name="Zoom in").click()
    until(page, lambda: page.evaluate("window.written.length"))
    page.evaluate(PICTURES)
    names = page.evaluate("window.written")
    assert names
    assert all(left >= 0 and right <= wide for left, right, _, wide in names)
    for at, (left, right, y, _) in enumerate(names):
        assert not any(abs(y - b) < 12 and left < r and l < right for l, r, b, _ in names[at + 1 :])  # noqa: E741
    before = picture(page)
    page.get_by_role("button", name="stone number").nth(1).click()
    page.get_by_role("region", name="Chosen node").wait_for()
    until(page, lambda: picture(page) != before)
    # On a phone, too, one sees what was chosen and what is said of it without looking for it.
    expect(page.get_by_role("application")).to_be_in_viewport()
    expect(page.get_by_role("region", name="Chosen node").get_by_role("heading")).to_be_in_viewport()


# How many points of a picture, as it is seen, are of the colour of a node where names are written.
HIDDEN = """async ([bytes, names, [left, top]]) => {
    const image = await createImageBitmap(new Blob([new Uint8Array(bytes)]));
    const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
    context.drawImage(image, 0, 0);
    const wanted = getComputedStyle(document.documentElement).getPropertyValue("--part-1").trim();
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(wanted.slice(at, at + 2), 16));
    return names.map(([from, to, y]) => {
        const { data } = context.getImageData(left + from, top + y - 9, to - from, 10);
        let found = 0;
        for (let at = 0; at < data.length; at += 4)
            found += Math.abs(data[at] - red) + Math.abs(data[at + 1] - green) + Math.abs(data[at + 2] - blue) < 24;
        return found;
    });
}"""


def test_W10_names_hide_no_nodes_where_many_stand_close_together(house: House) -> None:
    texts = [{"text": f"stone number {number} of the long garden wall"} for number in range(150)]
    ids = house.said("POST", "/memories/batch", texts)["ids"]
    for at, one in enumerate(ids[1:], 1):
        house.said("POST", "/edges", {"source": ids[at // 3], "target": one, "strength": 0.1})
    page = house.window("#/graph", reduced_motion="reduce")
    drawn(page)
    page.evaluate(WRITTEN)
    page.get_by_role("button", name="Fit", exact=True).click()
    page.get_by_role("button", name="Zoom in").click()
    until(page, lambda: page.evaluate("window.written.length"))
    drawn(page)
    names, box = page.evaluate("window.written"), page.locator(".stage").bounding_box()
    assert box is not None
    seen = list(page.screenshot())
    assert page.evaluate("window.written") == names
    assert page.evaluate(HIDDEN, [seen, names, [box["x"], box["y"]]]) == [0] * len(names)


def test_A20_that_there_are_no_topics_is_said_and_where_they_come_from(house: House) -> None:
    a, b = house.add("stone"), house.add("wall")
    house.said("POST", "/edges", {"source": a, "target": b, "strength": 0.8})
    page = house.window("#/graph")
    page.get_by_text("they come from the tags of linked memories").wait_for()
    page.get_by_role("button", name="Propose topics").click()
    page.get_by_text("No topics found. A topic needs three or more linked memories that share a tag.").wait_for()
    page.get_by_role("heading", name="Graph").wait_for()


def test_P09_the_slider_goes_back_over_the_journal(house: House) -> None:
    linked(house)
    page = house.window("#/graph")
    drawn(page)
    expect(page.get_by_role("button", name="Step ▶")).to_be_disabled()
    time = page.get_by_role("group", name="Time")
    time.get_by_text("no longer near").wait_for()
    page.get_by_role("button", name="◀ Step").click()
    page.get_by_text("7 of 7 linked nodes, 8 of 8 links").wait_for()
    time.get_by_text("Gather 2 topics").wait_for()
    page.get_by_role("slider").press("Home")
    page.get_by_text("0 of 0 linked nodes").wait_for()
    time.get_by_text("before the first change").wait_for()
    page.get_by_role("button", name="Now", exact=True).click()
    page.get_by_text("6 of 6 linked nodes, 7 of 7 links").wait_for()


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
    assert page.title() != "taken"
    assert not is_too_wide(page)


def test_an_address_that_leads_nowhere_is_told(house: House) -> None:
    linked(house)
    page = house.window("#/graph?topic=tag:none")
    page.get_by_role("alert").get_by_text("There is no topic 'tag:none'").wait_for()


# -- review


def test_C28_a_duplicate_is_reviewed_merged_and_taken_back(house: House) -> None:
    twins(house)
    page = house.window("#/review")
    page.get_by_text("3 questions left").wait_for()
    first = asked(page)
    page.get_by_text("Similar names and nearly the same text.").wait_for()
    page.get_by_text("How the score is made up").click()
    bars = page.locator(".track span").evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().width)")
    assert len([width for width in bars if width > 10]) >= 3
    factors = page.get_by_role("table", name="How alike they are").get_by_role("row")
    expect(factors).to_have_text(
        [re.compile(rf"^\s*{one}") for one in ("factor", "cosine", "name", "metadata", "score")]
    )
    page.keyboard.press("m")
    page.get_by_text("2 questions left").wait_for()
    page.get_by_role("status").get_by_text("Merged “Society").wait_for()
    assert merged(house) == 1
    page.keyboard.press("b")
    page.get_by_text("3 questions left").wait_for()
    until(page, lambda: asked(page) == first)
    assert merged(house) == 0


def merged(house: House) -> int:
    """How many concepts went into another."""
    return len(house.said("GET", "/memories?kind=concept&status=merged")["items"])


def test_C36_two_that_only_share_a_name_are_not_called_likely_the_same(house: House) -> None:
    concept(house, "dragon", text="small tropical lizards that glide by spreading their winglike membranes")
    concept(house, "dragon", text="a creature of mythology, represented as breathing fire")
    page = house.window("#/review")
    page.get_by_text("Same name, but different texts.").wait_for()
    expect(page.get_by_text("likely").locator("visible=true")).to_have_count(0)
    page.get_by_text("How the score is made up").click()
    page.get_by_text("% likely to be the same").wait_for()
    page.keyboard.press("s")
    page.get_by_role("status").get_by_text("The two “dragon”: kept separate").wait_for()


def test_C36_twenty_duplicates_are_reviewed_by_keys_and_one_is_undone(house: House) -> None:
    twins(house, 20)
    page = house.window("#/review")
    page.get_by_text("20 questions left").wait_for()
    for left, key in zip(range(19, -1, -1), "mmsm" * 5, strict=True):
        page.keyboard.press(key)
        said = re.compile(f"^{left} question" if left else "^$")
        page.locator("h1 + [role=status]", has_text=said).wait_for(state="attached")
    page.get_by_text("No questions left.").wait_for()
    answered = page.locator("section", has=page.get_by_role("heading", name="Answered just now"))
    until(page, lambda: answered.get_by_role("listitem").count() == 20)
    assert merged(house) == 15
    answered.get_by_role("listitem").nth(6).get_by_role("button", name="Undo").click()
    page.get_by_text("1 question left").wait_for()
    assert house.said("GET", "/questions")["total"] == 1


def test_C36_twenty_duplicates_are_reviewed_by_touch(house: House) -> None:
    twins(house, 20)
    page = house.window("#/review", viewport={"width": 390, "height": 740}, has_touch=True, is_mobile=True)
    page.get_by_text("20 questions left").wait_for()
    for left, says in zip(range(19, -1, -1), ("Merge", "Keep separate", "Merge", "Never ask again") * 5, strict=True):
        page.get_by_role("button", name=says, exact=True).tap()
        said = re.compile(f"^{left} question" if left else "^$")
        page.locator("h1 + [role=status]", has_text=said).wait_for(state="attached")
    page.get_by_text("No questions left.").wait_for()
    answered = page.locator("section", has=page.get_by_role("heading", name="Answered just now"))
    until(page, lambda: answered.get_by_role("listitem").count() == 20)
    assert merged(house) == 10


def test_C28_the_next_question_is_there_while_the_server_still_works(house: House) -> None:
    twins(house)
    page = house.window("#/review")
    page.get_by_text("3 questions left").wait_for()
    held: list[Route] = []
    page.route("**/questions/answers", lambda route: held.append(route))
    first = asked(page)
    page.keyboard.press("o")
    until(page, lambda: names_in(asked(page)) == names_in(first)[::-1])
    page.keyboard.press("m")
    page.get_by_text("2 questions left").wait_for()
    until(page, lambda: held)
    assert (len(held), house.said("GET", "/questions")["total"]) == (1, 3)
    held[0].fulfill(status=409, json={"code": "conflict", "message": "It changed.", "correlation_id": "x"})
    page.get_by_role("status").get_by_text("It changed.").wait_for()
    page.get_by_text("3 questions left").wait_for()  # what was refused is asked again


def test_C36_separate_never_and_later(house: House) -> None:
    twins(house)
    page = house.window("#/review")
    page.get_by_text("3 questions left").wait_for()
    page.keyboard.press("l")
    page.get_by_role("status").get_by_text("left for later").wait_for()
    for key, said in (("s", "kept separate"), ("n", "never asked about again")):
        page.keyboard.press(key)
        page.get_by_role("status").get_by_text(said).wait_for()
    (last,) = house.said("GET", "/questions")["items"]
    assert last["postponed_at"] is not None
    assert sorted(one["until"] is None for one in house.said("GET", "/never-merge")) == [False, True]
    for left in (2, 3):
        page.keyboard.press("b")
        page.get_by_text(f"{left} questions left").wait_for()
    assert house.said("GET", "/never-merge") == []


def test_C36_a_group_is_answered_at_once(house: House) -> None:
    for ending in "csk":
        concept(house, f"The Society of Natural Philosophy Ar{ending}", metadata={ending: "known"})
    page = house.window("#/review")
    group = page.get_by_role("region", name="The group")
    group.get_by_text("2 questions belong together").wait_for()
    group.get_by_role("button", name="Keep all separate").click()
    page.get_by_role("status").get_by_text("2 questions of a group kept separate.").wait_for()
    page.get_by_text("No questions left.").wait_for()
    page.keyboard.press("b")
    page.get_by_text("2 questions left").wait_for()
    page.keyboard.press("M")
    page.get_by_text("No questions left.").wait_for()
    page.get_by_role("status").get_by_text("2 questions of a group merged.").wait_for()
    assert len(house.said("GET", "/concepts")["items"]) == 1


def test_C36_questions_about_cases_are_asked_with_both_answers(house: House) -> None:
    twins(house, 1)
    for seconds in (5, 8):
        answer = f"Take it off its base, and hold the button on the left for {seconds} seconds: the light goes out."
        used = {"usage_count": 5, "created_at": LONG_AGO, "last_accessed_at": LONG_AGO}
        house.said("POST", "/cases?wait=true", {"query": "How is the kettle reset?", "response_text": answer, **used})
    assert house.said("POST", "/questions/look")["kinds"] == {"concept": 1, "case": 1}
    page = house.window("#/review")
    page.get_by_role("button", name="Cases 1").click()
    page.get_by_text("the same case?").wait_for()
    page.get_by_role("cell", name="for 8 seconds").wait_for()
    page.get_by_text("Their questions are alike").wait_for()
    page.keyboard.press("m")
    page.get_by_text("No questions left.").wait_for()
    page.get_by_role("button", name="All").click()
    page.get_by_text("the same concept?").wait_for()


def test_W08_what_was_answered_is_told_where_it_covers_nothing(house: House) -> None:
    """On a phone too: the line with its undo has a place of its own, and every target is high enough for a finger."""
    twins(house)
    page = house.window("#/review", viewport={"width": 390, "height": 740}, has_touch=True, is_mobile=True)
    page.get_by_text("3 questions left").wait_for()
    before = page.locator("h2.names").bounding_box()
    page.get_by_role("button", name="Merge", exact=True).tap()
    page.get_by_role("status").get_by_text("Merged “Society").wait_for()
    after = page.locator("h2.names").bounding_box()
    assert before is not None
    assert after is not None
    assert before["y"] == after["y"]
    heights = [box["height"] for one in page.locator("main button").all() if (box := one.bounding_box())]
    assert min(heights) >= 40
    expect(page.locator("kbd:visible")).to_have_count(0)
    page.get_by_role("button", name="Back").tap()
    page.get_by_text("3 questions left").wait_for()


def test_W08_on_a_phone_what_is_said_covers_none_of_the_answers(house: House) -> None:
    twins(house)
    page = house.window("#/review", viewport={"width": 390, "height": 740}, has_touch=True, is_mobile=True)
    page.get_by_text("3 questions left").wait_for()
    page.get_by_role("button", name="New", exact=True).tap()
    page.get_by_label("The text").fill("The kettle is new")
    page.get_by_role("button", name="Remember").tap()
    said = page.locator(".said .one")
    said.wait_for()
    page.evaluate("scrollTo(0, 0)")
    box = "(it) => it.getBoundingClientRect()"
    until(page, lambda: page.locator(".acts").evaluate(box)["bottom"] <= said.evaluate(box)["top"])


def test_C36_without_questions_it_says_so(house: House) -> None:
    page = house.window("#/review")
    page.get_by_text("Nothing needs your review.").wait_for()
    twins(house, 1)
    page.get_by_role("button", name="Look again").click()
    page.get_by_text("1 question left").wait_for()


def test_D01_what_two_records_say_is_text(house: House) -> None:
    for ending in "cs":
        said = {
            "text": f"{SCRIPT} {TEXT} **bold** " + "long" * 100,
            "metadata": {"extra": {"a": SCRIPT}, ending: "known"},
        }
        concept(house, f"The Society of Natural Philosophy Ar{ending}", **said)
    page = house.window("#/review", viewport=NARROW)
    page.get_by_role("cell", name=SCRIPT).first.wait_for()
    assert page.title() != "taken"
    assert not is_too_wide(page)


def test_E28_a_key_that_may_only_read_looks_and_decides_nothing(browser: "Browser", database_url: str) -> None:
    settings = settings_for(database_url)

    async def key() -> str:
        async with Engine(settings) as engine:
            for ending in "cs":
                name = f"The Society of Natural Philosophy Ar{ending}"
                await engine.concepts.add(name, text=TEXT, metadata={ending: "known"})
            await engine.questions.look()
            return await key_for(engine, Scope.READ)

    secret = run_apart(key)
    with listening(settings) as address:
        page = browser.new_page()
        page.set_default_timeout(support.PATIENCE_MS)
        page.goto(f"{address}/#/review")
        page.get_by_label("API key").fill(secret)
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("Your key can view these questions, not answer them.").wait_for()
        expect(page.get_by_role("button", name="Merge", exact=True)).to_be_disabled()
        page.keyboard.press("m")
        page.wait_for_load_state("networkidle")
        expect(page.get_by_text("1 question left")).to_be_visible()
        page.close()


# -- for everybody, on every screen


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
