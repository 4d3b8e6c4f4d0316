"""Graph files: what is written is what is read back, typed, whatever the texts hold and however the rows arrive."""

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.graph.rules.graphfile import SAMPLE, Row, gexf, graphml, node_link_json

GRAPHML = "{http://graphml.graphdrawing.org/xmlns}"
GEXF = "{http://gexf.net/1.3}"
PARSED: dict[str, Callable[[str], Any]] = {
    "boolean": lambda text: text == "true",
    "long": int,
    "double": float,
    "string": str,
}
FORBIDDEN = "\x00\x01\x0b\x1f\ud800\ufffe\uffff"
NASTY = f"<b a=\"1\" c='2'>&amp; ]]> {FORBIDDEN}\r\n\t  עברית 👩‍👩‍👧"
TEA, LINH = UUID(int=1), UUID(int=2)
NODES: list[Row] = [
    {"id": TEA, "kind": "concept", "name": "tea", "uses": 3, "protected": True, "importance": 0.5},
    {"id": LINH, "kind": "memory", "text": "Linh drinks tea", "uses": 0, "protected": False, "importance": None},
]
EDGES: list[Row] = [
    {"id": "a", "source": LINH, "target": TEA, "relation": "supports", "strength": 0.75},
    {"id": "b", "source": LINH, "target": TEA, "relation": "extends", "strength": 0.5},
]

Attributes = dict[str, Any]


def read_graphml(text: str) -> tuple[dict[str, Attributes], list[Attributes]]:
    root = ElementTree.fromstring(text.encode())
    keys = {key.get("id"): (key.get("attr.name"), key.get("attr.type")) for key in root.iter(GRAPHML + "key")}
    graph = root.find(GRAPHML + "graph")
    assert graph is not None
    assert graph.get("edgedefault") == "directed"

    def attributes(element: ElementTree.Element) -> Attributes:
        found = ((*keys[data.get("key")], data.text or "") for data in element.iter(GRAPHML + "data"))
        return {str(name): PARSED[str(type_)](text) for name, type_, text in found}

    nodes = {str(node.get("id")): attributes(node) for node in graph.iter(GRAPHML + "node")}
    return nodes, [{**edge.attrib, **attributes(edge)} for edge in graph.iter(GRAPHML + "edge")]


def read_gexf(text: str) -> tuple[dict[str, Attributes], list[Attributes]]:
    root = ElementTree.fromstring(text.encode())
    assert root.get("version") == "1.3"
    keys = {key.get("id"): (key.get("title"), key.get("type")) for key in root.iter(GEXF + "attribute")}

    def attributes(element: ElementTree.Element) -> Attributes:
        found = ((*keys[value.get("for")], value.get("value") or "") for value in element.iter(GEXF + "attvalue"))
        return {**element.attrib, **{str(name): PARSED[str(type_)](text) for name, type_, text in found}}

    nodes = {str(node.get("id")): attributes(node) for node in root.iter(GEXF + "node")}
    return nodes, [attributes(edge) for edge in root.iter(GEXF + "edge")]


def read_json(text: str) -> tuple[dict[str, Attributes], list[Attributes]]:
    graph = json.loads(text)
    return {node["id"]: node for node in graph["nodes"]}, graph["edges"]


Writer = Callable[[Iterable[Row], Iterable[Row]], Iterator[str]]
Reader = Callable[[str], tuple[dict[str, Attributes], list[Attributes]]]
FORMATS = pytest.mark.parametrize(
    ("write", "read"), [(graphml, read_graphml), (gexf, read_gexf), (node_link_json, read_json)]
)
XML_FORMATS = pytest.mark.parametrize(("write", "read"), [(graphml, read_graphml), (gexf, read_gexf)])


@FORMATS
@pytest.mark.parametrize("arriving", [list, iter])
def test_ids_ends_and_typed_attributes_come_back(write: Writer, read: Reader, arriving: Any) -> None:
    nodes, edges = read("".join(write(arriving(NODES), arriving(EDGES))))
    assert set(nodes) == {str(TEA), str(LINH)}
    tea, linh = nodes[str(TEA)], nodes[str(LINH)]
    assert (tea["uses"], tea["protected"], tea["importance"], tea["kind"]) == (3, True, 0.5, "concept")
    assert (linh["uses"], linh["protected"], linh.get("importance")) == (0, False, None)
    assert [(edge["id"], edge["source"], edge["target"]) for edge in edges] == [
        ("a", str(LINH), str(TEA)),
        ("b", str(LINH), str(TEA)),
    ]
    assert [(edge["relation"], edge["strength"]) for edge in edges] == [("supports", 0.75), ("extends", 0.5)]


def test_gexf_names_what_gephi_shows() -> None:
    nodes, edges = read_gexf("".join(gexf(NODES, EDGES)))
    assert [node["label"] for node in nodes.values()] == ["tea", "Linh drinks tea"]
    assert [(edge["label"], edge["kind"], edge["weight"]) for edge in edges] == [
        ("supports", "supports", "0.75"),
        ("extends", "extends", "0.5"),
    ]


@XML_FORMATS
def test_what_xml_forbids_is_replaced_and_the_rest_is_kept(write: Writer, read: Reader) -> None:
    text = "".join(write([{"id": NASTY, NASTY: NASTY}], [{"source": NASTY, "target": NASTY, "relation": NASTY}]))
    kept = NASTY
    for character in FORBIDDEN:
        kept = kept.replace(character, "\ufffd")
    nodes, edges = read(text)
    assert nodes[kept][kept] == kept
    assert (edges[0]["source"], edges[0]["target"], edges[0]["relation"]) == (kept, kept, kept)


def test_json_keeps_control_characters_and_stays_utf8() -> None:
    text = "".join(node_link_json([{"id": "x", "text": NASTY}], []))
    nodes, _ = read_json(text.encode().decode())
    assert nodes["x"]["text"] == NASTY.replace("\ud800", "\ufffd")


@FORMATS
@settings(max_examples=100, deadline=None)
@given(texts=st.lists(st.text(st.characters()), min_size=1, max_size=5, unique=True))
def test_any_text_can_be_written_and_read(write: Writer, read: Reader, texts: list[str]) -> None:
    nodes: list[Row] = [{"id": number, "text": text, f"x{text}": 1} for number, text in enumerate(texts)]
    text = "".join(write(nodes, [{"source": 0, "target": 0, "note": text} for text in texts]))
    _, edges = read(text.encode().decode())
    assert len(edges) == len(texts)


@FORMATS
def test_values_of_many_kinds(write: Writer, read: Reader) -> None:
    moment = datetime(2026, 11, 15, 9, 30, tzinfo=UTC)
    node = {"id": 1, "at": moment, "tags": ["a", "b"], "more": {"x": TEA}, "big": 2**70, "bad": float("nan")}
    nodes, _ = read("".join(write([node], [])))
    found = next(iter(nodes.values()))
    assert found["at"] == "2026-11-15T09:30:00Z"
    assert found.get("bad") is None
    assert int(found["big"]) == 2**70
    as_json = {name: found[name] if read is read_json else json.loads(found[name]) for name in ("tags", "more")}
    assert as_json == {"tags": ["a", "b"], "more": {"x": str(TEA)}}


@XML_FORMATS
def test_a_type_holds_all_values_of_its_attribute(write: Writer, read: Reader) -> None:
    nodes: list[Row] = [{"id": 1, "weight": 1, "mixed": True}, {"id": 2, "weight": 0.5, "mixed": 7}]
    found, _ = read("".join(write(nodes, [])))
    assert [found[id_]["weight"] for id_ in ("1", "2")] == [1.0, 0.5]
    assert [found[id_]["mixed"] for id_ in ("1", "2")] == ["true", "7"]


def many(last: Row) -> Iterator[Row]:
    yield from ({"id": number, "uses": number, "more": "taken", "name": None} for number in range(SAMPLE))
    yield last


@XML_FORMATS
def test_what_a_stream_did_not_announce_is_kept_as_json(write: Writer, read: Reader) -> None:
    late = {"id": "late", "uses": 0.5, "name": "named at last", "surprise": [1, 2]}
    nodes, _ = read("".join(write(many(late), iter([]))))
    assert nodes["late"]["name"] == "named at last"
    assert json.loads(nodes["late"]["more_"]) == {"uses": 0.5, "surprise": [1, 2]}
    assert nodes["7"]["uses"] == 7
    assert nodes["7"]["more"] == "taken"
    assert "more_" not in nodes["7"]


@FORMATS
def test_an_empty_graph_is_a_graph(write: Writer, read: Reader) -> None:
    assert read("".join(write([], iter([])))) == ({}, [])


@FORMATS
def test_a_stream_is_written_as_it_is_read(write: Writer, read: Reader) -> None:
    taken = 0

    def nodes() -> Iterator[Row]:
        nonlocal taken
        for taken in range(1, 10 * SAMPLE):
            yield {"id": taken}

    writing = write(nodes(), iter([]))
    for _ in range(20):
        next(writing)
    assert taken <= SAMPLE + 20


@XML_FORMATS
def test_edges_without_an_id_get_one(write: Writer, read: Reader) -> None:
    _, edges = read("".join(write([{"id": 1}], [{"source": 1, "target": 1}, {"source": 1, "target": 1}])))
    assert [edge["id"] for edge in edges] == ["e0", "e1"]


def test_rustworkx_reads_our_graphml(tmp_path: Path) -> None:
    rustworkx = pytest.importorskip("rustworkx")
    file = tmp_path / "graph.graphml"
    file.write_text("".join(graphml(NODES, EDGES)), encoding="utf-8")
    (graph,) = rustworkx.read_graphml(str(file))
    assert [node["id"] for node in graph.nodes()] == [str(TEA), str(LINH)]
    assert [node["uses"] for node in graph.nodes()] == [3, 0]
    assert [(edge["relation"], edge["strength"]) for edge in graph.edges()] == [("supports", 0.75), ("extends", 0.5)]
