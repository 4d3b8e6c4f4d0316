"""A graph as a file for other programs: GraphML (yEd, NetworkX, igraph), GEXF 1.3 (Gephi), node-link JSON (D3).

A node is a mapping with an `id`, an edge one with `source` and `target`, and an `id` if it has one; everything else in
them is an attribute. The text comes out piece by piece, so a graph of any size is written in little memory.

GraphML and GEXF declare every attribute and its type before the first node. What can be read twice (a list) is read
once for that. A stream is judged by its first rows; what a later row has that was not foreseen is kept all the same, as
JSON in the attribute `more`. Numbers that are not finite have no form that every reader knows, and count as absent.
"""

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, islice
from typing import Any

from recollect.graph.rules.labels import shortened
from recollect.graph.rules.xml import attribute, content
from recollect.memories.rules.contract import as_utc

Row = Mapping[str, Any]

SAMPLE = 1_000
LONGEST_LABEL = 80
MORE = "more"
NODE_ITSELF = frozenset({"id"})
EDGE_ITSELF = frozenset({"id", "source", "target"})
LARGEST_LONG = 2**63 - 1
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

GRAPHML_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""
GEXF_HEAD = """<?xml version="1.0" encoding="UTF-8"?>
<gexf xmlns="http://gexf.net/1.3" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://gexf.net/1.3 http://gexf.net/1.3/gexf.xsd" version="1.3">
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Column:
    """An attribute as it is declared: its key in the file, its name, its type."""

    key: str
    name: str
    type: str

    def holds(self, type_: str) -> bool:
        return _wider(self.type, type_) == self.type


@dataclass(frozen=True, kw_only=True, slots=True)
class Columns:
    """All that is declared for nodes, or for edges. `more` takes what was not foreseen, `itself` needs no column."""

    named: Mapping[str, Column]
    more: Column | None
    itself: frozenset[str]

    def __iter__(self) -> Iterator[Column]:
        return chain(self.named.values(), (self.more,) if self.more else ())


def graphml(nodes: Iterable[Row], edges: Iterable[Row]) -> Iterator[str]:
    """The graph as GraphML."""
    node_columns, nodes = _learn(nodes, NODE_ITSELF, "n")
    edge_columns, edges = _learn(edges, EDGE_ITSELF, "e")
    yield GRAPHML_HEAD
    yield from (_graphml_key(column, "node") for column in node_columns)
    yield from (_graphml_key(column, "edge") for column in edge_columns)
    yield '<graph id="G" edgedefault="directed">\n'
    for node in nodes:
        yield f'<node id="{_id(node["id"])}">{_graphml_data(node, node_columns)}</node>\n'
    for number, edge in enumerate(edges):
        yield f"<edge {_ends(edge, number)}>{_graphml_data(edge, edge_columns)}</edge>\n"
    yield "</graph>\n</graphml>\n"


def gexf(nodes: Iterable[Row], edges: Iterable[Row]) -> Iterator[str]:
    """The graph as GEXF 1.3: strength becomes the weight of an edge, relation its label and kind."""
    node_columns, nodes = _learn(nodes, NODE_ITSELF, "n")
    edge_columns, edges = _learn(edges, EDGE_ITSELF, "e")
    yield GEXF_HEAD + '<graph defaultedgetype="directed" mode="static" idtype="string">\n'
    yield from _gexf_attributes("node", node_columns)
    yield from _gexf_attributes("edge", edge_columns)
    yield "<nodes>\n"
    for node in nodes:
        label = attribute(_label(node))
        yield f'<node id="{_id(node["id"])}" label="{label}">{_gexf_values(node, node_columns)}</node>\n'
    yield "</nodes>\n<edges>\n"
    for number, edge in enumerate(edges):
        values = _gexf_values(edge, edge_columns)
        yield f"<edge {_ends(edge, number)}{_gexf_relation(edge)}>{values}</edge>\n"
    yield "</edges>\n</graph>\n</gexf>\n"


def node_link_json(nodes: Iterable[Row], edges: Iterable[Row]) -> Iterator[str]:
    """The graph as JSON: an object with `nodes` and `edges`, one line each."""
    yield '{"directed": true, "multigraph": true, "graph": {}, "nodes": ['
    yield from _json_lines(nodes)
    yield '], "edges": ['
    yield from _json_lines(edges)
    yield "]}\n"


# Columns: what is declared, and what a row has to say under it.


def _learn(rows: Iterable[Row], itself: frozenset[str], prefix: str) -> tuple[Columns, Iterable[Row]]:
    """The columns to declare, and the rows again from the first."""
    if iter(rows) is not rows:
        return _columns(_types(rows, itself), itself, prefix, all_seen=True), rows
    head = list(islice(rows, SAMPLE))
    all_seen = len(head) < SAMPLE
    return _columns(_types(head, itself), itself, prefix, all_seen=all_seen), chain(head, rows)


def _columns(types: Mapping[str, str], itself: frozenset[str], prefix: str, *, all_seen: bool) -> Columns:
    named = {
        name: Column(key=f"{prefix}{number}", name=name, type=type_)
        for number, (name, type_) in enumerate(types.items())
    }
    more = None if all_seen else Column(key=f"{prefix}_more", name=_unused(MORE, named), type="string")
    return Columns(named=named, more=more, itself=itself)


def _types(rows: Iterable[Row], itself: frozenset[str]) -> dict[str, str]:
    """The narrowest type that holds all values of each attribute; a text, where none has a value."""
    types: dict[str, str | None] = {}
    for row in rows:
        for name, value in row.items():
            if name not in itself:
                types[name] = _wider(types.get(name), _type(value))
    return {name: type_ or "string" for name, type_ in types.items()}


def _type(value: object) -> str | None:
    """The type of a value in both formats; None if it is absent and so says nothing."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "long" if abs(value) <= LARGEST_LONG else "string"
    if isinstance(value, float):
        return "double" if math.isfinite(value) else None
    return None if value is None else "string"


def _wider(type_: str | None, other: str | None) -> str | None:
    """The type that holds both."""
    if type_ is None or other is None or type_ == other:
        return type_ or other
    return "double" if {type_, other} == {"long", "double"} else "string"


def _unused(name: str, names: Collection[str]) -> str:
    return _unused(name + "_", names) if name in names else name


def _values(row: Row, columns: Columns) -> Iterator[tuple[str, str]]:
    """The attributes of a row by the keys of their columns, and last what no column foresaw."""
    unforeseen: dict[str, Any] = {}
    for name, value in row.items():
        type_ = _type(value)
        if name in columns.itself or type_ is None:
            continue
        column = columns.named.get(name)
        if column and column.holds(type_):
            yield column.key, _written(value)
        else:
            unforeseen[name] = value
    if unforeseen and columns.more:
        yield columns.more.key, _json(unforeseen)


def _written(value: object) -> str:
    """A value as the text of an attribute; lists and objects as JSON."""
    plain = _plain(value)
    return plain if isinstance(plain, str) else _json(plain)


# The pieces of each format.


def _id(value: object) -> str:
    return attribute(_written(value))


def _ends(edge: Row, number: int) -> str:
    id_ = edge.get("id")
    named = f"e{number}" if id_ is None else id_
    return f'id="{_id(named)}" source="{_id(edge["source"])}" target="{_id(edge["target"])}"'


def _graphml_key(column: Column, of: str) -> str:
    return f'<key id="{column.key}" for="{of}" attr.name="{attribute(column.name)}" attr.type="{column.type}"/>\n'


def _graphml_data(row: Row, columns: Columns) -> str:
    return "".join(f'<data key="{key}">{content(value)}</data>' for key, value in _values(row, columns))


def _gexf_attributes(of: str, columns: Columns) -> Iterator[str]:
    yield f'<attributes class="{of}">\n'
    for column in columns:
        yield f'<attribute id="{column.key}" title="{attribute(column.name)}" type="{column.type}"/>\n'
    yield "</attributes>\n"


def _gexf_values(row: Row, columns: Columns) -> str:
    values = "".join(f'<attvalue for="{key}" value="{attribute(value)}"/>' for key, value in _values(row, columns))
    return f"<attvalues>{values}</attvalues>" if values else ""


def _gexf_relation(edge: Row) -> str:
    """Gephi keeps parallel edges apart by their kind, and draws them as thick as their weight."""
    relation, strength = edge.get("relation"), edge.get("strength")
    named = "" if relation is None else f' label="{_id(relation)}" kind="{_id(relation)}"'
    return named + (f' weight="{_written(strength)}"' if _type(strength) in ("long", "double") else "")


def _label(node: Row) -> str:
    """What a person calls the node: its label, its name, the start of its text, at least its id."""
    named = next((node[name] for name in ("label", "name", "text") if node.get(name)), node["id"])
    return shortened(_written(named), LONGEST_LABEL)


def _json_lines(rows: Iterable[Row]) -> Iterator[str]:
    separator = "\n"
    for row in rows:
        yield separator + _json(row)
        separator = ",\n"


def _json(value: object) -> str:
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


def _plain(value: object) -> Any:
    """A value as JSON knows it: times in RFC 3339, ids as texts, what is not finite as null."""
    if isinstance(value, Mapping):
        return {str(_plain(key)): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime):
        return as_utc(value).isoformat().replace("+00:00", "Z")
    return value if value is None or isinstance(value, bool | int) else _LONE_SURROGATE.sub("\ufffd", str(value))
