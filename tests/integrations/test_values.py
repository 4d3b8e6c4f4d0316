"""Whatever JSON a framework keeps comes back as it was, however its text is normalised, marked or too long."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast
from uuid import uuid4

from hypothesis import given
from hypothesis import strategies as st

from recollect.engine.engine import Engine
from recollect.integrations.values import KeptValue, Shelf, new_mark, readable
from recollect.memories.rules.text import normalise
from recollect.model import ExportedMemory, Kind, Node

WORDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30) | st.sampled_from(
    ["", " ", "tea", "tea\r\nnever", "cafe\u0301", "long " * 300, "Trà sen", "null", '"', "(once more, x)"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
SHELF = Shelf(cast("Engine", SimpleNamespace(settings=SimpleNamespace(max_metadata_bytes=600))), "any")
NOW = datetime(2026, 11, 15, tzinfo=UTC)


def stored(memory: ExportedMemory) -> Node:
    """A memory as it comes out of the database: its text in one normal form, its metadata through JSON."""
    return Node(
        id=uuid4(),
        kind=Kind.MEMORY,
        subtype=memory.subtype,
        name=None,
        text=normalise(memory.text),
        checksum=None,
        metadata=json.loads(json.dumps(memory.metadata)),
        importance=None,
        status=memory.status,
        merged_into=None,
        protected=False,
        exclude=memory.exclude,
        is_summary=False,
        source=None,
        source_id=None,
        thread=None,
        position=None,
        version=1,
        created_at=NOW,
        updated_at=NOW,
    )


@given(value=VALUES, chosen=WORDS, marked=st.booleans(), whole=st.booleans())
def test_a_value_comes_back_as_it_was(value: Any, chosen: str, marked: bool, whole: bool) -> None:
    kept = KeptValue(value=value, text=readable(value) if whole else chosen, place={"key": "k"})
    memory = SHELF.memory(kept, mark=new_mark() if marked else "")
    node = stored(memory)
    assert node.text
    assert SHELF.value(node) == value
    assert SHELF.place(node)["key"] == "k"
    assert node.exclude == (not normalise(kept.text))
