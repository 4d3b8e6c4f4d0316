"""The LangGraph store, asked what LangGraph's own in-memory and SQLite stores are asked, and what only a memory can."""

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from recollect import AsyncRecollect, Recollect
from recollect.errors import InvalidInput, NotFound
from recollect.integrations.langgraph import RecollectStore
from recollect.model import NodeFilter, Status
from recollect.settings import Settings
from tests.conftest import fresh_space

USERS = ("users", "linh")


@pytest.fixture
def store(here: Recollect) -> RecollectStore:
    return RecollectStore(here)


def keys(items: Sequence[Item]) -> list[str]:
    return [item.key for item in items]


VALUES: list[dict[str, Any]] = [
    {},
    {"text": "Linh prefers tea"},
    {"text": "  around\r\n and cafe\u0301  "},
    {"n": 1, "share": 0.25, "is": True, "no": None, "list": [1, "two", {"three": []}]},
    {"lời": "Trà sen, không cà phê", "日本": ["緑茶", "ほうじ茶"]},
    {"text": "long " * 2000, "kept": {"beside": "it"}},
    {f"field {number}": "x" * 100 for number in range(80)},
    {"text_at": [["text"]], "value": {"value": None}},
]


def test_whatever_is_put_is_got_back_as_it_was(store: RecollectStore) -> None:
    store.batch([PutOp(USERS, str(number), value) for number, value in enumerate(VALUES)])
    assert [store.get(USERS, str(number)).value for number in range(len(VALUES))] == VALUES  # type: ignore[union-attr]
    assert store.get(USERS, "missing") is None
    assert store.get(("users",), "0") is None


def test_the_same_value_in_many_places_is_many_items(store: RecollectStore, here: Recollect) -> None:
    here.add("likes pizza")
    places = [(("memories", user), key) for user in ("a", "b") for key in ("1", "2")]
    store.batch([PutOp(namespace, key, {"data": "likes pizza"}) for namespace, key in places])
    store.put(("memories", "a"), "1", {"data": "likes pizza"})
    for namespace, key in places:
        item = store.get(namespace, key)
        assert item is not None
        assert (item.namespace, item.key, item.value) == (namespace, key, {"data": "likes pizza"})
    assert here.count() == 5


def test_putting_over_corrects_and_keeps_when_it_began(store: RecollectStore, here: Recollect) -> None:
    store.put(USERS, "drink", {"text": "coffee"})
    first = store.get(USERS, "drink")
    for value in (
        {"text": "tea"},
        {"text": "coffee"},
        {"text": "tea", "sure": True},
        {"text": "water"},
        {"text": "tea"},
    ):
        store.put(USERS, "drink", value)
        now = store.get(USERS, "drink")
        assert first is not None
        assert now is not None
        assert (now.value, now.created_at) == (value, first.created_at)
        assert now.updated_at > first.updated_at
        assert len(store.search(USERS)) == 1
    store.put(USERS, "drink", {"text": "tea", "sure": True}, index=["text"])
    assert store.search(USERS, filter={"sure": True})[0].value == {"text": "tea", "sure": True}
    verbs = {entry.verb for node in here.stream(NodeFilter(statuses=tuple(Status))) for entry in here.history(node.id)}
    assert verbs == {"add", "correct", "edit"}


def test_deleting_archives_and_can_be_undone(store: RecollectStore, here: Recollect) -> None:
    store.put(USERS, "drink", {"text": "tea, never coffee"})
    store.delete(USERS, "drink")
    store.delete(USERS, "drink")
    store.delete(USERS, "never there")
    assert store.get(USERS, "drink") is None
    assert store.search(USERS, query="tea") == []
    [archived] = here.list(NodeFilter(statuses=(Status.ARCHIVED,))).items
    plan = here.history(archived.id)[-1].plan_id
    assert plan is not None
    here.undo(plan)
    assert store.search(USERS, query="tea")[0].value == {"text": "tea, never coffee"}
    with pytest.raises(NotFound):
        store.restore(USERS, "drink")
    store.delete(USERS, "drink")
    assert store.restore(USERS, "drink").value == {"text": "tea, never coffee"}
    store.delete(USERS, "drink")
    store.put(USERS, "drink", {"text": "tea, never coffee"})
    assert here.count(NodeFilter(statuses=tuple(Status))) == 1


def test_a_batch_reads_what_was_there_before_it_and_its_last_write_counts(store: RecollectStore) -> None:
    store.put(("a",), "1", {"n": 1})
    got, _, _, _, found, namespaces = store.batch(
        [
            GetOp(("a",), "1"),
            PutOp(("a",), "1", {"n": 2}),
            PutOp(("a",), "1", {"n": 3}),
            PutOp(("b",), "2", None),
            SearchOp(("a",), limit=10),
            ListNamespacesOp(limit=10),
        ]
    )
    assert isinstance(got, Item)
    assert got.value == {"n": 1}
    assert isinstance(found, list)
    assert [item.value for item in found if isinstance(item, Item)] == [{"n": 1}]
    assert namespaces == [("a",)]
    assert store.get(("a",), "1").value == {"n": 3}  # type: ignore[union-attr]


FILTERED: list[tuple[dict[str, Any], set[str]]] = [
    ({"kind": "note"}, {"a", "b"}),
    ({"kind": {"$ne": "note"}}, {"c", "d"}),
    ({"n": {"$gt": 1}}, {"b", "c"}),
    ({"n": {"$gte": 1, "$lt": 3}}, {"a", "b"}),
    ({"n": {"$lte": 1}}, {"a"}),
    ({"kind": "note", "n": 2}, {"b"}),
    ({"deep": {"er": "yes"}}, {"c"}),
    ({"deep": {"n": {"$eq": 5}}}, {"c"}),
    ({"tags": ["x", "y"]}, {"d"}),
    ({"missing": "x"}, set()),
]


@pytest.fixture
def filled(store: RecollectStore) -> RecollectStore:
    values: dict[str, dict[str, Any]] = {
        "a": {"kind": "note", "n": 1, "text": "green tea in the morning"},
        "b": {"kind": "note", "n": 2, "text": "the car needs new tyres"},
        "c": {"kind": "task", "n": 3, "deep": {"er": "yes", "n": 5}, "text": "buy black tea"},
        "d": {"kind": "task", "n": "many", "tags": ["x", "y"], "text": "water the roses"},
    }
    store.batch([PutOp(("docs", "one"), key, value) for key, value in values.items()])
    store.put(("docsother",), "e", {"kind": "note", "n": 2, "text": "tea elsewhere"})
    return store


def test_search_filters_by_fields_and_operators(filled: RecollectStore) -> None:
    for wanted, expected in FILTERED:
        assert set(keys(filled.search(("docs",), filter=wanted))) == expected, wanted
        assert set(keys(filled.search(("docs",), filter=wanted, query="tea"))) == expected, wanted
    with pytest.raises(InvalidInput, match=r"\$near"):
        filled.search(("docs",), filter={"n": {"$near": 1}})


def test_search_ranks_pages_and_stays_below_its_prefix(filled: RecollectStore) -> None:
    best = filled.search(("docs",), query="black tea", limit=2)
    assert keys(best)[0] == "c"
    assert best[0].score is not None
    whole = filled.search(("docs", "one"), query="black tea")
    assert set(keys(whole)) == {"a", "b", "c", "d"}
    assert [
        one for page in range(4) for one in keys(filled.search(("docs",), query="black tea", limit=1, offset=page))
    ] == (keys(whole))
    listed = filled.search((), limit=10)
    assert all(one.updated_at >= two.updated_at for one, two in pairwise(listed))
    assert len(listed) == 5
    assert keys(filled.search((), limit=2, offset=4)) == keys(listed)[4:]
    assert filled.search(("docs", "one", "deeper")) == []


def test_what_is_indexed_can_be_said(here: Recollect) -> None:
    store = RecollectStore(here, fields=["title"])
    store.put(("n",), "a", {"title": "harvest", "body": "zeppelin"})
    store.put(("n",), "b", {"title": "winter", "body": "zeppelin"}, index=["body"])
    store.put(("n",), "c", {"title": "zeppelin"}, index=False)
    found = store.search(("n",), query="zeppelin")
    assert keys(found)[0] == "b"
    assert {one.key: one.score for one in found}["c"] is None
    assert [hit.node.text for hit in here.recall("zeppelin")] == ["zeppelin"]
    store.put(("n",), "c", {"title": "zeppelin"})
    assert {one.key: one.score is None for one in store.search(("n",), query="zeppelin", limit=2)} == {
        "b": False,
        "c": False,
    }


def test_namespaces_are_listed_by_prefix_suffix_and_depth(store: RecollectStore) -> None:
    made = [("a", "b", "c"), ("a", "b", "d", "e"), ("a", "x", "c"), ("x", "y")]
    store.batch([PutOp(namespace, "k", {"at": "/".join(namespace)}) for namespace in made])
    assert store.list_namespaces() == sorted(made)
    assert store.list_namespaces(prefix=("a",)) == sorted(made)[:3]
    assert store.list_namespaces(prefix=("a", "*", "c")) == [("a", "b", "c"), ("a", "x", "c")]
    assert store.list_namespaces(suffix=("c",)) == [("a", "b", "c"), ("a", "x", "c")]
    assert store.list_namespaces(max_depth=2) == [("a", "b"), ("a", "x"), ("x", "y")]
    assert store.list_namespaces(limit=1, offset=1) == [("a", "b", "d", "e")]
    both = ListNamespacesOp((MatchCondition("prefix", ("a",)), MatchCondition("suffix", ("e",))))
    assert store.batch([both]) == [[("a", "b", "d", "e")]]
    store.delete(("x", "y"), "k")
    assert ("x", "y") not in store.list_namespaces()


def test_what_cannot_be_kept_is_said_in_a_sentence(store: RecollectStore) -> None:
    for namespace in ((), ("dot.ted",), ("langgraph",), ("",)):
        with pytest.raises(InvalidNamespaceError):
            store.put(namespace, "k", {"n": 1})
    with pytest.raises(InvalidInput, match="JSON"):
        store.put(("a",), "k", {"when": object()})
    with pytest.raises(InvalidInput, match="NUL"):
        store.put(("a",), "k", {"text": "a\0b"})
    with pytest.raises(NotImplementedError):
        store.put(("a",), "k", {"n": 1}, ttl=5)
    assert store.search(("a",)) == []


def test_namespaces_can_have_spaces_of_their_own(here: Recollect) -> None:
    slug = f"{here.space.slug}-work"
    here.add_space(slug)
    store = RecollectStore(here, spaces={"work": slug})
    store.put(("work", "linh"), "k", {"text": "the budget is 5"})
    store.put(("home",), "k", {"text": "the budget is 7"})
    assert here.count() == here.in_space(slug).count() == 1
    assert [item.value for item in store.search(("work",))] == [{"text": "the budget is 5"}]
    assert len(store.search((), query="budget")) == 2
    assert store.list_namespaces() == [("home",), ("work", "linh")]


@pytest.mark.anyio
async def test_the_store_works_with_await_over_either_memory(settings: Settings) -> None:
    own = await fresh_space(settings)
    async with AsyncRecollect(settings=own) as memory:
        store = RecollectStore(memory)
        await asyncio.gather(*(store.aput(("t",), str(number % 5), {"n": number}) for number in range(10)))
        assert sorted(keys(await store.asearch(("t",)))) == ["0", "1", "2", "3", "4"]
        await store.adelete(("t",), "3")
        assert (await store.arestore(("t",), "3")).value["n"] in (3, 8)
        assert await store.alist_namespaces() == [("t",)]
        with pytest.raises(InvalidInput, match="await"):
            store.get(("t",), "0")
    with Recollect(settings=own) as here:
        assert (await RecollectStore(here).aget(("t",), "1")) is not None


def test_any_walk_comes_to_what_the_store_in_memory_comes_to(store: RecollectStore) -> None:
    """The same operations on LangGraph's own store and on ours, with few keys and values, so that they meet often."""
    walk, known = Random(7), InMemoryStore()
    namespaces = [("a",), ("a", "b"), ("a", "b", "c"), ("b",), ("ab",)]
    values: list[dict[str, Any]] = [
        {"n": 1},
        {"n": 2, "text": "tea"},
        {"text": "tea"},
        {"text": "Tea "},
        {"n": [1, {"m": 2}]},
        {},
    ]
    filters: list[dict[str, Any] | None] = [
        None,
        {"n": 1},
        {"text": "tea"},
        {"n": {"$ne": 1}},
        {"text": {"$eq": "Tea "}},
    ]
    for _ in range(12):
        ops: list[Op] = [
            PutOp(walk.choice(namespaces), walk.choice("xyz"), walk.choice([*values, None])) for _ in range(3)
        ]
        for one in (known, store):
            one.batch(ops)
        space = walk.choice([(), *namespaces])
        wanted = walk.choice(filters)
        assert store.list_namespaces() == sorted({one.namespace for one in known.search((), limit=100)})
        ours, theirs = (one.search(space, filter=wanted, limit=100) for one in (store, known))
        assert sorted((one.namespace, one.key, str(one.value)) for one in ours) == (
            sorted((one.namespace, one.key, str(one.value)) for one in theirs)
        )
        asked = store.search(space, filter=wanted, query="tea", limit=100)
        assert len(asked) == len(theirs)
