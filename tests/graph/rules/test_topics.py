"""Topics, against the slow and obvious way."""

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.graph.rules.topics import GatheredTopics, gathered, prefix_of
from recollect.model import Edge
from tests.graphs import columns, edge, node


def link(number: int, source: int, target: int, source_topic: str | None, target_topic: str | None) -> Edge:
    return edge(number, source, target, source_topic=source_topic, target_topic=target_topic)


def found_in(edges: list[Edge], **options: object) -> dict[str, tuple[set[int], int]]:
    graph = columns(edges)
    topics = gathered(graph, **options)  # type: ignore[arg-type]
    return {topic.key: (_members(graph, topic), topic.internal_edges) for topic in topics}


def _members(graph, topic: GatheredTopics) -> set[int]:  # type: ignore[no-untyped-def]
    return {graph.node_of(number).int >> 64 for number in topic.members.tolist()}


def test_A20_an_edge_puts_each_end_under_its_own_key_and_none_is_skipped() -> None:
    edges = [link(1, 1, 2, "tag:a", "tag:b"), link(2, 3, 4, "tag:a", None), link(3, 5, 1, "tag:a", None)]
    assert found_in(edges, overlap=None) == {"tag:a": ({1, 3, 5}, 1)}


def test_A20_prefixes_gather_what_hyphens_tell_apart() -> None:
    keys = ["tag:react-hooks", "tag:react-state", "tag:react"]
    edges = [link(n, n, n + 10, key, None) for n, key in enumerate(keys)]
    assert found_in(edges, overlap=None) == {}
    assert found_in(edges, overlap=None, key="prefix") == {"tag:react": ({0, 1, 2}, 0)}


@pytest.mark.parametrize(
    ("key", "prefix"),
    [
        ("tag:react-hooks", "tag:react"),
        ("tag:react", "tag:react"),
        ("dom:my-site.dev", "dom:my-site.dev"),
        ("kw:javascript", "kw:javascript"),
        ("plain-word", "plain-word"),
        ("tag:-odd", "tag:-odd"),
    ],
)
def test_A20_the_prefix_of_a_key(key: str, prefix: str) -> None:
    assert prefix_of(key) == prefix


def test_A21_two_members_are_no_topic_and_three_are() -> None:
    pair = [link(1, 1, 2, "tag:a", "tag:a")]
    assert found_in(pair) == {}
    assert set(found_in([*pair, link(2, 2, 3, "tag:a", "tag:a")])) == {"tag:a"}
    assert set(found_in(pair, min_size=2)) == {"tag:a"}


def test_A21_groups_whose_members_bear_the_same_keys_are_one_topic_named_by_the_largest() -> None:
    edges = [link(n, n, n + 1, "tag:small" if n < 3 else "tag:large", "tag:large") for n in range(1, 6)]
    assert set(found_in(edges)) == {"tag:large"}
    assert set(found_in(edges, overlap=None)) == {"tag:large"}
    assert found_in(edges)["tag:large"][0] == {1, 2, 3, 4, 5, 6}


def test_A21_two_of_five_keys_in_common_is_just_enough() -> None:
    # Beside a: a, b, x. Beside b: b, a, y, z. In common a and b, of a, b, x, y, z.
    edges = [
        link(1, 1, 2, "kw:a", "kw:a"),
        link(2, 1, 3, "kw:b", "kw:b"),
        link(3, 2, 4, "kw:x", "kw:a"),
        link(4, 3, 5, "kw:y", "kw:b"),
        link(5, 3, 6, "kw:z", "kw:b"),
    ]
    assert found_in(edges, overlap=0.4) == {"kw:b": ({1, 2, 3, 4, 5, 6}, 5)}
    assert found_in(edges, overlap=0.41) == {"kw:a": ({1, 2, 4}, 2), "kw:b": ({1, 3, 5, 6}, 3)}


def test_A22_parallel_edges_count_once_so_connectivity_never_exceeds_one() -> None:
    triangle = [link(n, a, b, "tag:a", "tag:a") for n, (a, b) in enumerate([(1, 2), (2, 1), (2, 3), (3, 1), (1, 3)])]
    (topic,) = gathered(columns(triangle))
    assert (topic.internal_edges, topic.connectivity) == (3, 1.0)


def test_A22_a_topic_of_one_has_no_connectivity() -> None:
    topics = gathered(columns([link(1, 1, 2, "tag:a", None)]), min_size=1)
    assert [(topic.key, topic.connectivity) for topic in topics] == [("tag:a", 0.0)]


def test_an_empty_graph_has_no_topics() -> None:
    assert gathered(columns([])) == []
    assert gathered(columns([edge(1, 1, 2)])) == []


keys = st.one_of(st.none(), st.sampled_from(["tag:a", "tag:b-c", "tag:b", "dom:x-y", "kw:z", "odd"]))
ends = st.tuples(st.integers(0, 7), st.integers(0, 7)).filter(lambda pair: pair[0] != pair[1])


@settings(max_examples=300)
@given(
    st.lists(st.tuples(ends, keys, keys), max_size=14),
    st.sampled_from([None, 0.25, 0.4, 0.7, 1.0]),
    st.integers(1, 3),
)
def test_A21_A22_topics_are_what_the_slow_way_finds(
    graph: list[tuple[tuple[int, int], str | None, str | None]], overlap: float | None, least: int
) -> None:
    edges = [link(number, *pair, one, other) for number, (pair, one, other) in enumerate(graph)]
    assert found_in(edges, overlap=overlap, min_size=least) == _slowly(edges, overlap, least)


def _slowly(edges: list[Edge], overlap: float | None, least: int) -> dict[str, tuple[set[int], int]]:
    groups: dict[str, set[int]] = {}
    for one in edges:
        for key, end in ((one.source_topic, one.source), (one.target_topic, one.target)):
            if key is not None:
                groups.setdefault(key, set()).add(end.int >> 64)
    beside = {key: {other for other, bearers in groups.items() if bearers & members} for key, members in groups.items()}
    topic = {key: key for key in groups}
    for a, b in combinations(groups, 2):
        if overlap is not None and len(beside[a] & beside[b]) / len(beside[a] | beside[b]) >= overlap:
            old, new = topic[a], topic[b]
            topic = {key: new if its == old else its for key, its in topic.items()}
    found = {}
    for its in set(topic.values()):
        joined = [key for key in groups if topic[key] == its]
        members = set().union(*(groups[key] for key in joined))
        name = min(joined, key=lambda key: (-len(groups[key]), key))
        pairs = {frozenset((one.source, one.target)) for one in edges}
        inside = sum(pair <= {node(member) for member in members} for pair in pairs)
        if len(members) >= least:
            found[name] = (members, inside)
    return found
