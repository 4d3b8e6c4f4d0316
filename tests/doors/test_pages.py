"""Pages at the doors: on the command line and over HTTP."""

import re
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest

from recollect.engine.engine import Engine
from recollect.model import Kind, NodeFilter
from recollect.plan import Plan
from tests.doors import test_api_support as api
from tests.doors import test_cli_support as support
from tests.doors.test_api_support import problem
from tests.doors.test_cli_support import Cli
from tests.doors.test_mcp_support import agent, told

own_database, in_default, cli = support.own_database, support.in_default, support.cli
anyio_backend, api_database, api_settings = api.anyio_backend, api.api_database, api.api_settings
house, routes = api.house, api.routes
engine, app, client = api.engine, api.app, api.client

LOADING = (
    "# Principle: Loading\n\n== Overview ==\nHow models are loaded.\n\n* [[implemented_by::Implementation:Loader]]\n"
)
LOADER = "# Implementation: Loader\n\n== Overview ==\nThe class that loads a model.\n"


@pytest.fixture
def wiki(tmp_path: Path) -> Path:
    folder = tmp_path / "wiki"
    for path, text in (("principles/Loading.md", LOADING), ("implementations/Loader.md", LOADER)):
        (folder / path).parent.mkdir(parents=True)
        (folder / path).write_text(text)
    return folder


def test_B26_a_folder_is_proposed_read_applied_and_undone(cli: Cli, wiki: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.md"
    found = cli.json("pages", "import", str(wiki), "--plan-md", str(file))
    assert found["pages"] == 2
    assert "| Principle:Loading | CREATE_NEW | - | - | (root) | - | PENDING |" in file.read_text()
    assert cli("pages").out == ""
    applied = cli("apply", found["plan_id"], "--plan-md", str(file))
    assert (applied.code, applied.out) == (0, "SUCCESS: 2 pages created, 0 pages merged.\n")
    assert "| Principle:Loading | CREATE_NEW | - | - | (root) | - | COMPLETED |" in file.read_text()
    assert {line.split("\t")[-1] for line in cli("pages", "list").out.splitlines()} == {
        "Principle:Loading",
        "Implementation:Loader",
    }
    assert cli("undo", found["plan_id"]).code == 0
    assert cli("pages").out == ""


def test_B27_the_edited_file_is_honoured(cli: Cli, wiki: Path, tmp_path: Path) -> None:
    file = tmp_path / "plan.md"
    plan = cli.json("pages", "import", str(wiki), "--plan-md", str(file))["plan_id"]
    file.write_text(re.sub(r"(\| Implementation:Loader \|) CREATE_NEW", r"\1 DECLINE", file.read_text()))
    assert cli("apply", plan, "--plan-md", str(file)).code == 0
    assert [one["source_id"] for one in cli.json("pages")["items"]] == ["Principle:Loading"]
    assert "DECLINE" in cli("pages", "plan", plan).out or "DECLINE" in file.read_text()


def test_B25_import_and_apply_at_once_then_show_diff_and_export(cli: Cli, wiki: Path, tmp_path: Path) -> None:
    file = str(tmp_path / "plan.md")
    done = cli("pages", "import", str(wiki), "--plan-md", file, "--apply")
    assert done.code == 0
    assert "SUCCESS: 2 pages created, 0 pages merged." in done.out
    again = cli("pages", "import", str(wiki), "--plan-md", file, "--apply")
    assert (again.code, "There is nothing to do." in again.out) == (0, True)
    shown = cli("pages", "show", "Loading")
    assert "implemented_by\tImplementation:Loader" in shown.out
    assert "Principle:Loading" in cli("pages", "show", "Implementation:Loader").out
    assert cli("pages", "versions", "Loading").out.startswith("1\t")
    assert cli("pages", "diff", "Loading").out.strip() == ""
    assert cli("pages", "export", str(tmp_path / "out")).out.startswith("2 pages written")
    assert (tmp_path / "out/principles/Loading.md").read_text() == LOADING


def test_bad_commands_are_one_sentence(cli: Cli, wiki: Path, tmp_path: Path) -> None:
    assert "no page Nobody" in cli.refused("pages", "show", "Nobody", code=3)
    assert "There is no folder" in cli.refused("pages", "import", str(tmp_path / "nowhere"), code=2)
    mine = tmp_path / "mine.md"
    mine.write_text("my own notes")
    assert "is no merge plan" in cli.refused("pages", "import", str(wiki), "--plan-md", str(mine), code=2)
    assert mine.read_text() == "my own notes"
    empty = tmp_path / "empty"
    empty.mkdir()
    answer = cli("pages", "import", str(empty), "--plan-md", str(tmp_path / "plan.md"))
    assert (answer.code, "holds no pages" in answer.err) == (1, True)
    plan = cli.json("pages", "import", str(wiki), "--plan-md", str(tmp_path / "plan.md"))["plan_id"]
    assert "cannot be read" in cli.refused("apply", plan, "--plan-md", str(tmp_path / "gone.md"), code=2)


@pytest.mark.anyio
async def test_B26_pages_over_http(client: httpx.AsyncClient) -> None:
    given = [
        {"path": "principles/Loading.md", "text": LOADING},
        {"path": "implementations/Loader.md", "text": LOADER},
        {"path": "../up.md", "text": "# Up"},
    ]
    answer = await client.post("/api/v1/pages/import", json={"pages": given})
    assert answer.status_code == 201, answer.text
    body = answer.json()
    assert len(body["plan"]["decisions"]) == 2
    assert body["plan_md"].startswith("# Merge Plan")
    assert any("leads outside" in line for line in body["lines"])
    plan = body["plan"]["id"]
    merged = await client.post(f"/api/v1/pages/plans/{plan}/apply", json={"plan_md": body["plan_md"]})
    assert merged.json()["result"]["overall"] == "SUCCESS"
    listed = (await client.get("/api/v1/pages", params={"type": "Principle"})).json()["items"]
    assert [one["source_id"] for one in listed] == ["Principle:Loading"]
    view = (await client.get("/api/v1/pages/Principle:Loading")).json()
    assert view["links"][0]["page_id"] == "Implementation:Loader"
    versions = (await client.get("/api/v1/pages/Loading/versions")).json()
    assert [one["text"] for one in versions] == [LOADING]
    assert (await client.get("/api/v1/pages/Loading/diff")).json()["diff"] == ""
    assert "PASSED" in (await client.get(f"/api/v1/pages/plans/{plan}")).json()["plan_md"]
    assert (await client.post(f"/api/v1/plans/{plan}/undo")).status_code == 200
    problem(await client.get("/api/v1/pages/Loading"), 404, "not_found")


@pytest.mark.anyio
async def test_B30_a_note_of_a_vault_is_found_over_http_by_its_path(client: httpx.AsyncClient) -> None:
    given = [{"path": "notes/deep/One.md", "text": "# One\n\nSee [[Two]].\n"}, {"path": "Two.md", "text": "# Two\n"}]
    plan = (await client.post("/api/v1/pages/import", json={"pages": given})).json()["plan"]["id"]
    await client.post(f"/api/v1/pages/plans/{plan}/apply")
    for name in ("notes/deep/One", "notes%2Fdeep%2FOne", "notes/deep/One.md"):
        view = (await client.get(f"/api/v1/pages/{name}")).json()
        assert [one["page_id"] for one in view["links"]] == ["Two"]
        assert len((await client.get(f"/api/v1/pages/{name}/versions")).json()) == 1
        assert (await client.get(f"/api/v1/pages/{name}/diff")).json()["page"] == name.replace("%2F", "/")


@pytest.mark.anyio
async def test_B27_an_edited_plan_is_handed_back_over_http(client: httpx.AsyncClient) -> None:
    given = [{"path": "principles/Loading.md", "text": LOADING}]
    body = (await client.post("/api/v1/pages/import", json={"pages": given})).json()
    plan = body["plan"]["id"]
    same = await client.post(f"/api/v1/pages/plans/{plan}/revise", json={"plan_md": body["plan_md"]})
    assert same.json()["id"] == plan
    other = (await client.post(f"/api/v1/pages/plans/{plan}/revise", json={"decline": [1]})).json()
    assert other["id"] != plan
    assert other["status"] == "applied"  # nothing is left to do
    problem(await client.post(f"/api/v1/pages/plans/{plan}/revise", json={"plan_md": "nothing"}), 422, "invalid_input")


# -- P21: a plan means the same at every door

EXPORTING = """# Principle: Exporting

== Overview ==
How models leave.

* [[implemented_by::Implementation:Writer]]
* [[implemented_by::Implementation:Printer]]
"""
THREE = [
    ("principles/Exporting.md", EXPORTING),
    ("implementations/Writer.md", "# Implementation: Writer\n\n== Overview ==\nWrites files to a disk.\n"),
    ("implementations/Printer.md", "# Implementation: Printer\n\n== Overview ==\nPrints weights on paper.\n"),
]
WITHOUT_WRITER = ["Implementation:Printer", "Principle:Exporting"]


Way = Callable[[Engine, httpx.AsyncClient, Plan], Awaitable[None]]


def writer_of(plan: Plan) -> int:
    return next(one.number for one in plan.decisions if one.factors["page_id"] == "Implementation:Writer")


async def by_one_call(memory: Engine, _client: httpx.AsyncClient, plan: Plan) -> None:
    await memory.plans.apply(plan.id, decline=[writer_of(plan)])


async def declined_first(memory: Engine, _client: httpx.AsyncClient, plan: Plan) -> None:
    await memory.plans.decline(plan.id, [writer_of(plan)])
    await memory.plans.apply(plan.id)


async def as_pages(memory: Engine, _client: httpx.AsyncClient, plan: Plan) -> None:
    merged = await memory.pages.apply(plan.id, decline=[writer_of(plan)])
    assert sorted(merged.result.created_pages) == WITHOUT_WRITER


async def declined_then_as_pages(memory: Engine, _client: httpx.AsyncClient, plan: Plan) -> None:
    await memory.plans.decline(plan.id, [writer_of(plan)])
    merged = await memory.pages.apply(plan.id)
    assert sorted(merged.result.created_pages) == WITHOUT_WRITER


async def over_rest(_memory: Engine, client: httpx.AsyncClient, plan: Plan) -> None:
    answer = await client.post(f"/api/v1/plans/{plan.id}/apply", json={"decline": [writer_of(plan)]})
    assert answer.json()["applied"] == 2


async def over_rest_as_pages(_memory: Engine, client: httpx.AsyncClient, plan: Plan) -> None:
    answer = await client.post(f"/api/v1/pages/plans/{plan.id}/apply", json={"decline": [writer_of(plan)]})
    assert sorted(answer.json()["result"]["created_pages"]) == WITHOUT_WRITER


async def over_rest_declined_first(_memory: Engine, client: httpx.AsyncClient, plan: Plan) -> None:
    await client.post(f"/api/v1/plans/{plan.id}/decline", json={"decisions": [writer_of(plan)]})
    assert (await client.post(f"/api/v1/plans/{plan.id}/apply")).json()["applied"] == 2


async def by_an_agent(memory: Engine, _client: httpx.AsyncClient, plan: Plan) -> None:
    async with agent(memory) as client:
        assert (await told(client, "apply_plan", id=str(plan.id), decline=[writer_of(plan)]))["applied"] == 2


@pytest.mark.anyio
@pytest.mark.parametrize(
    "way",
    [
        by_one_call,
        declined_first,
        as_pages,
        declined_then_as_pages,
        over_rest,
        over_rest_as_pages,
        over_rest_declined_first,
        by_an_agent,
    ],
)
async def test_P21_a_declined_page_stays_out_and_the_others_come_in_whatever_the_door(
    engine: Engine, client: httpx.AsyncClient, way: Way
) -> None:
    plan = (await engine.pages.import_texts(THREE)).plan
    await way(engine, client, plan)
    there = await engine.list(NodeFilter(kinds=(Kind.PAGE,)))
    assert sorted(node.source_id or "" for node in there.items) == WITHOUT_WRITER
    assert (await engine.plans.apply(plan.id)).repeated, "the plan that took its place was applied already"
    await engine.undo(plan.id)
    assert await engine.count(NodeFilter(kinds=(Kind.PAGE,))) == 0


@pytest.mark.parametrize("first", [True, False])
def test_P21_the_command_line_too(cli: Cli, tmp_path: Path, first: bool) -> None:
    for path, text in THREE:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    plan = cli.json("pages", "import", str(tmp_path), "--plan-md", str(tmp_path / "plan.md"))["plan_id"]
    number = next(
        str(one["number"])
        for one in cli.json("plan", "show", plan)["decisions"]
        if one["factors"]["page_id"] == "Implementation:Writer"
    )
    if first:
        cli.json("plan", "decline", plan, "--decision", number)
    applied = cli("apply", plan, *([] if first else ["--decline", number]))
    assert applied.out == "SUCCESS: 2 pages created, 0 pages merged.\n"
    assert sorted(one["source_id"] for one in cli.json("pages")["items"]) == WITHOUT_WRITER
