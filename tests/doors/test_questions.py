"""Open questions over HTTP and for agents: listed with both sides, answered in batches, taken back (C36)."""

import httpx
import pytest

from recollect.engine.engine import Engine
from tests.doors import test_api_support as support
from tests.doors.test_api_support import problem
from tests.doors.test_mcp_support import agent, refused, told

anyio_backend, api_database, api_settings = support.anyio_backend, support.api_database, support.api_settings
house, routes = support.house, support.routes
engine, app, client = support.engine, support.app, support.client

pytestmark = pytest.mark.anyio
QUESTIONS = "/api/v1/questions"
TEXT = "an account of a thing that several of these names are given to"


async def three(engine: Engine) -> None:
    for ending in "csk":
        await engine.concepts.add(
            f"The Society of Natural Philosophy Ar{ending}", text=TEXT, metadata={ending: "known"}
        )


async def test_C36_questions_over_http(engine: Engine, client: httpx.AsyncClient) -> None:
    await three(engine)
    looked = (await client.post(f"{QUESTIONS}/look")).json()
    assert (looked["total"], looked["groups"], looked["kinds"]) == (2, 1, {"concept": 2})
    listed = (await client.get(QUESTIONS, params={"limit": 1})).json()
    (first,) = listed["items"]
    assert first["keep"]["text"] == first["other"]["text"] == TEXT
    assert {"score", "steps", "doubts"} <= first["factors"].keys()
    (second,) = (await client.get(QUESTIONS, params={"cursor": listed["next_cursor"]})).json()["items"]
    assert first["group"] == second["group"]
    assert (await client.get(QUESTIONS, params={"kind": "case"})).json()["items"] == []

    answers = [{"number": first["number"], "answer": "never"}, {"number": 77, "answer": "merge"}]
    done = (await client.post(f"{QUESTIONS}/answers", json={"answers": answers})).json()
    assert (done["answered"], done["left"], done["plans"]) == ([first["number"]], 1, [])
    assert done["refused"][0]["message"].startswith("There is no question 77")
    done = (
        await client.post(f"{QUESTIONS}/answers", json={"answers": [{"group": second["group"], "answer": "merge"}]})
    ).json()
    assert (done["answered"], done["left"], len(done["plans"])) == ([second["number"]], 0, 1)
    back = (await client.post(f"{QUESTIONS}/take-back", json={"numbers": [first["number"], second["number"]]})).json()
    assert back["left"] == 2


async def test_C36_bad_answers_are_refused(client: httpx.AsyncClient) -> None:
    bad = await client.post(f"{QUESTIONS}/answers", json={"answers": [{"number": 1, "answer": "perhaps"}]})
    problem(bad, 422, "invalid_input", field="answers[0].answer")
    both = await client.post(f"{QUESTIONS}/answers", json={"answers": [{"answer": "merge"}]})
    problem(both, 422, "invalid_input", field="number")
    assert "names a question by its number, or a group" in both.json()["message"]
    problem(await client.get(QUESTIONS, params={"cursor": "x"}), 422, "invalid_input", field="cursor")


async def test_C36_an_agent_asks_and_answers(engine: Engine) -> None:
    await three(engine)
    await engine.questions.look()
    async with agent(engine) as caller:
        listed = await told(caller, "review", answers={})
        assert len(listed["questions"]) == 2
        number = listed["questions"][0].split()[0]
        done = await told(caller, "review", answers={number: "separate", "x": "merge"})
        assert (done["answered"], len(done["questions"])) == ([int(number)], 1)
        assert done["problems"] == ["0: There is no question 0: review shows the open ones."]
        assert "is one of merge, separate, never, later" in await refused(caller, "review", answers={"1": "yes"})
