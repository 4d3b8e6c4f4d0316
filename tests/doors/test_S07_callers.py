"""Every route and every tool, asked by every kind of caller (S07). All of it is made from what the server itself says
that it offers, so that a new route is covered at once: whoever may not, learns nothing and changes nothing."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import pytest

from recollect.engine.engine import Engine
from recollect.model import Scope
from recollect.settings import Settings
from tests.doors import test_api_support as support
from tests.doors.test_mcp_http import HEADERS, LISTING, call
from tests.waiting import HANG_SECONDS

anyio_backend, api_database, api_settings = support.anyio_backend, support.api_database, support.api_settings

SECRET = "the blue heron nests in Oosterwold"
# What a caller may leave behind who only looks: what was searched for and found, and that somebody signed in.
TRACES = {"recalls", "activity", "sessions"}
OF_THE_HOUSE = ("api_keys", "spaces")


@dataclass(frozen=True, kw_only=True)
class House:
    """A furnished space, what there is to name in it, and the keys of all kinds of callers."""

    dsn: str
    space: str
    named: Mapping[str, str]
    keys: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, eq=False)
class Question:
    """One request: of a route, or of a tool."""

    method: str
    path: str
    body: Any = None
    tool: str | None = None

    def __str__(self) -> str:
        return self.tool or f"{self.method} {self.path}"


async def furnished(settings: Settings) -> House:
    async with Engine(settings) as whole:
        engine = await whole.in_space((await whole.add_space(f"t-{uuid4().hex[:12]}")).slug)
        elsewhere = await whole.add_space(f"t-{uuid4().hex[:12]}")
        memory, other = [
            await engine.add(f"{SECRET}: {place}", thread="t", metadata={"tags": ["ai"]}) for place in "ab"
        ]
        edge = await engine.graph.link(memory.id, other.id)
        await engine.graph.link(memory.id, other.id, "supports")
        case = await engine.cases.add(f"{SECRET}: where?", "There.")
        await engine.concepts.add("heron", text=SECRET)
        wiki = await engine.pages.import_texts([("heron.md", f"# Heron\n\n{SECRET}.")])
        await engine.plans.apply(wiki.plan.id)
        plan = await engine.plans.propose("merge-edges")
        await engine.schedules.list()  # those that every space has are written down when somebody first looks
        recall = await engine.recall(SECRET)
        keys = {scope.value: await support.key_for(engine, scope, space=engine.space.slug) for scope in Scope}
        keys["elsewhere"] = await support.key_for(engine, Scope.ADMIN, space=elsewhere.slug)
        keys["everything"] = await support.key_for(engine)
        keys["revoked"] = await support.key_for(engine)
        await engine.revoke_key(keys["revoked"])
        keys["expired"] = await support.key_for(engine)
        expire = "UPDATE recollect.api_keys SET expires_at = now() - interval '1 second'"
        await support.sql(whole.core.database.dsn, f"{expire} WHERE prefix = '{keys['expired'][3:11]}'")
        named = {
            "memories": memory.id,
            "nodes": memory.id,
            "others": other.id,
            "neighbours": memory.id,
            "edges": edge.id,
            "plans": plan.id,
            "cases": case.id,
            "recalls": recall.id,
            "concepts": "heron",
            "pages": "heron",
            "schedules": "prune",
            "picture": "prune",
            "topics": "tag:ai",
            "spaces": engine.space.slug,
            "keys": keys["read"][3:11],
        }
        return House(
            dsn=whole.core.database.dsn,
            space=engine.space.slug,
            named={name: str(value) for name, value in named.items()},
            keys=keys,
        )


@pytest.fixture(scope="module")
def house(api_settings: Settings) -> House:
    return asyncio.run(furnished(api_settings))


@pytest.fixture(scope="module")
def door(api_settings: Settings, house: House) -> Iterator[httpx.Client]:
    with support.listening(api_settings) as address, httpx.Client(base_url=address, timeout=HANG_SECONDS) as client:
        yield client


@pytest.fixture(scope="module")
def routes(door: httpx.Client, house: House) -> list[Question]:
    """One request to each route that the server's own description names."""
    described = door.get("/openapi.json").json()
    sample = Sample(described["components"]["schemas"], house.named)
    return [
        Question(method=method.upper(), path=sample.path(path, route), body=sample.body(route))
        for path, methods in described["paths"].items()
        if path.startswith("/api/")
        for method, route in methods.items()
    ]


@pytest.fixture(scope="module")
def tools(door: httpx.Client, house: House) -> dict[Question, bool]:
    """One call of each tool that the server lists, and whether it says of itself that it only reads."""
    listed = asked(door, Question(method="POST", path="/mcp", body=LISTING), house.keys["admin"], house.space).json()
    sample = Sample({}, house.named)
    return {
        Question(
            method="POST",
            path="/mcp",
            body=call(tool["name"], sample.of(tool["inputSchema"], tool["inputSchema"].get("$defs"))),
            tool=tool["name"],
        ): tool["annotations"].get("readOnlyHint", False)
        for tool in listed["result"]["tools"]
    }


class Sample:
    """The smallest values that a schema allows, with the names of what is really there."""

    def __init__(self, schemas: Mapping[str, Any], named: Mapping[str, str]) -> None:
        self._schemas, self._named = schemas, named

    def path(self, path: str, route: Mapping[str, Any]) -> str:
        parts = path.split("/")
        filled = [
            self._named.get(before, self._named["memories"]) if part.startswith("{") else part
            for before, part in zip(["", *parts], parts, strict=False)
        ]
        needed = {
            one["name"]: self.of(one["schema"], name=one["name"])
            for one in route.get("parameters", ())
            if one["in"] == "query" and one.get("required")
        }
        return "/".join(filled) + (f"?{httpx.QueryParams(needed)}" if needed else "")

    def body(self, route: Mapping[str, Any]) -> Any:
        content = route.get("requestBody", {}).get("content", {})
        return self.of(content["application/json"]["schema"]) if content else None

    def of(self, schema: Mapping[str, Any], definitions: Mapping[str, Any] | None = None, name: str = "") -> Any:
        schemas = definitions or self._schemas
        if "$ref" in schema:
            return self.of(schemas[schema["$ref"].rpartition("/")[2]], schemas, name)
        for choice in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())):
            if choice.get("type") != "null":
                return self.of(choice, schemas, name)
        if "enum" in schema or "const" in schema:
            return schema.get("const") or schema["enum"][0]
        match schema.get("type"):
            case "object":
                inner = schema.get("properties", {})
                return {key: self.of(inner[key], schemas, key) for key in schema.get("required", ())}
            case "array":
                return [self.of(schema["items"], schemas, name)] * max(1, schema.get("minItems", 0))
            case "integer" | "number":
                return schema.get("minimum", 1)
            case "boolean":
                return True
        return self._word(name)

    def _word(self, name: str) -> str:
        """A text, or the id of something, as the name of the field suggests."""
        known = {"plan": "plans", "policy": "schedules", "edge": "edges", "slug": "spaces", "space": "spaces"}
        known |= {"b": "others", "target": "others", "other": "others"}
        if name in ("text", "query", "q", "name", "label"):
            return "a question about herons"
        return self._named[known.get(name, "memories")]


def asked(door: httpx.Client, question: Question, key: str | None, space: str, **headers: str) -> httpx.Response:
    sent = {**headers, "X-Recollect-Space": space} | ({"Authorization": f"Bearer {key}"} if key else {})
    if question.path == "/mcp":
        sent |= HEADERS
    return door.request(question.method, question.path, json=question.body, headers=sent)


def tables(house: House) -> dict[str, str]:
    """A checksum of each table, but for the traces of a look (that a key was used among them)."""

    async def look() -> dict[str, str]:
        names = [
            row["tablename"]
            for row in await support.sql(house.dsn, "SELECT tablename FROM pg_tables WHERE schemaname = 'recollect'")
            if row["tablename"] not in TRACES
        ]
        each = (
            f"SELECT '{name}' AS name, md5(string_agg(row::text, chr(10) ORDER BY row::text)) AS sum FROM "
            f"(SELECT to_jsonb(t) - 'last_used_at' AS row FROM recollect.{name} t) AS rows"
            for name in names
        )
        return {row["name"]: row["sum"] for row in await support.sql(house.dsn, " UNION ALL ".join(each))}

    return asyncio.run(look())


def told(answer: httpx.Response) -> str:
    return " ".join(answer.text.split())


def test_S07_what_is_asked_below_means_something(routes: list[Question], tools: dict[Question, bool]) -> None:
    assert len(routes) > 100
    assert len(tools) > 10


@pytest.mark.parametrize("who", ["nobody", "revoked", "expired", "wrong"])
def test_S07_strangers_are_refused_everywhere(
    door: httpx.Client, house: House, routes: list[Question], tools: dict[Question, bool], who: str
) -> None:
    key = house.keys["admin"][:-2] + "xx" if who == "wrong" else house.keys.get(who)
    before = tables(house)
    for question in (*routes, *tools):
        answer = asked(door, question, key, house.space)
        assert answer.status_code == 401, (str(question), answer.text)
        assert SECRET not in told(answer)
    assert tables(house) == before


def test_S07_a_key_of_another_space_reaches_nothing(
    door: httpx.Client, house: House, routes: list[Question], tools: dict[Question, bool]
) -> None:
    before = tables(house)
    for question in (*routes, *tools):
        answer = asked(door, question, house.keys["elsewhere"], house.space)
        assert SECRET not in told(answer), str(question)
        assert house.space not in told(answer).replace(question.path, ""), str(question)
    assert tables(house) == before


def test_S07_whoever_may_only_read_changes_nothing(
    door: httpx.Client, house: House, routes: list[Question], tools: dict[Question, bool]
) -> None:
    before, allowed = tables(house), 0
    for question in (*routes, *tools):
        answer = asked(door, question, house.keys["read"], house.space)
        assert tables(house) == before, (str(question), answer.text)
        allowed += answer.is_success
    assert allowed > 30
    for question, only_reads in tools.items():
        assert (asked(door, question, house.keys["read"], house.space).status_code != 403) is only_reads, str(question)


@pytest.mark.parametrize("who", ["write", "consolidate"])
def test_S07_whoever_may_only_change_reads_nothing_and_administers_nothing(
    door: httpx.Client, house: House, routes: list[Question], tools: dict[Question, bool], who: str
) -> None:
    before, refused = tables(house), 0
    for question in routes:
        if question.method == "GET":
            answer = asked(door, question, house.keys[who], house.space)
            assert SECRET not in told(answer), str(question)
            refused += answer.status_code == 403
    assert refused > 40
    for question, only_reads in tools.items():
        if only_reads:
            assert asked(door, question, house.keys[who], house.space).status_code == 403, str(question)
    assert tables(house) == before
    for question in (*routes, *tools):
        asked(door, question, house.keys[who], house.space)
    after = tables(house)
    assert {name: after[name] for name in OF_THE_HOUSE} == {name: before[name] for name in OF_THE_HOUSE}


def test_S07_the_same_questions_are_answered_to_whoever_may_do_everything(
    door: httpx.Client, house: House, routes: list[Question], tools: dict[Question, bool]
) -> None:
    """Else the tests above would show nothing."""
    answers = {
        str(question): asked(door, question, house.keys["everything"], house.space) for question in (*routes, *tools)
    }
    assert not [name for name, answer in answers.items() if answer.status_code in (401, 403) or answer.is_server_error]
    assert sum(answer.is_success for answer in answers.values()) > 0.7 * len(answers)
    assert sum(SECRET in told(answer) for answer in answers.values()) > 20
