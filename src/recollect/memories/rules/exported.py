"""The lines of an export, both ways: a node as one line of JSON, and that line as a memory again.

A line holds every field of the node. Coming back, it is checked like any new memory, and its checksum is compared: a
line that was altered on the way is refused.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import numpy as np

from recollect.memories.rules.contract import checked_name, memory_from_mapping, parsed_time, refuse
from recollect.memories.rules.text import checksum, is_storable, normalise
from recollect.model import ExportedMemory, Kind, NewMemory, Node, Status

NODE_FIELDS = tuple(field.name for field in fields(Node))
HALF = np.dtype("<f2")
MOST_DIMENSIONS = 16_000  # what pgvector can hold
LARGEST_VERSION = 2**31 - 1


def line(node: Node, vectors: Mapping[str, bytes] | None = None) -> str:
    """A node as one line of JSON, with its vectors as base64 of little-endian float16 where they are given."""
    shown = {name: _shown(getattr(node, name)) for name in NODE_FIELDS}
    if vectors:
        shown["vectors"] = {model: base64.b64encode(numbers).decode() for model, numbers in sorted(vectors.items())}
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))


def is_exported(given: object) -> bool:
    """Whether this is a line of an export: only those name the kind and the version of a node."""
    return isinstance(given, Mapping) and "kind" in given and "version" in given


def memory(given: Mapping[str, Any]) -> ExportedMemory:
    """An exported line as the memory it was; InvalidInput saying what does not fit."""
    if given["kind"] != Kind.MEMORY:
        refuse("kind", f"only memories can be imported, and this is a {given['kind']}")
    if unknown := sorted(set(given) - {*NODE_FIELDS, "vectors"}):
        refuse(unknown[0], f"{unknown[0]!r} is not a field of an exported memory: upgrade Recollect, or remove it")
    plain = memory_from_mapping({name: given[name] for name in NewMemory.__dataclass_fields__ if name in given})
    _compare_checksum(plain.text, given.get("checksum"))
    status, merged_into = _status(given)
    return ExportedMemory(
        **{name: getattr(plain, name) for name in NewMemory.__dataclass_fields__},
        status=status,
        merged_into=merged_into,
        protected=_flag(given, "protected"),
        exclude=_flag(given, "exclude"),
        is_summary=_flag(given, "is_summary"),
        version=_version(given.get("version", 1)),
        updated_at=parsed_time("updated_at", given.get("updated_at")),
        vectors=_vectors(given.get("vectors", {})),
    )


def _shown(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return str(value) if isinstance(value, UUID) else value


def _compare_checksum(text: object, given: object) -> None:
    if given is None or not isinstance(text, str) or not is_storable(text):
        return  # the contract says what is wrong with such a text
    if checksum(normalise(text)) != given:
        refuse("checksum", "the checksum does not fit the text: the line was altered; remove the checksum to keep it")


def _status(given: Mapping[str, Any]) -> tuple[Status, UUID | None]:
    status, keeper = given.get("status", Status.ACTIVE), given.get("merged_into")
    if status not in tuple(Status):
        refuse("status", f"{status!r} is not a status; one of {', '.join(Status)} is")
    if (status == Status.MERGED) != (keeper is not None):
        refuse("merged_into", "a merged memory names in merged_into the one that it went into, and no other does")
    try:
        return Status(status), None if keeper is None else UUID(str(keeper))
    except ValueError:
        refuse("merged_into", f"{keeper!r} is not the id of a memory")


def _flag(given: Mapping[str, Any], name: str) -> bool:
    value = given.get(name, False)
    if not isinstance(value, bool):
        refuse(name, f"{name} is true or false, not {value!r}")
    return value


def _version(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST_VERSION:
        refuse("version", f"version is a whole number from 1, not {value!r}")
    return value


def _vectors(given: object) -> dict[str, bytes]:
    if not isinstance(given, Mapping):
        refuse("vectors", "vectors is an object that names a model for each vector")
    for model in given:
        checked_name("vectors", model)
    return {model: _numbers(model, numbers) for model, numbers in given.items()}


def _numbers(model: str, given: object) -> bytes:
    """A vector as little-endian float16, from base64 of the same or from a list of numbers."""
    try:
        data = base64.b64decode(given, validate=True) if isinstance(given, str) else _packed(given)
        numbers = np.frombuffer(data, HALF)
    except (binascii.Error, TypeError, ValueError, OverflowError):
        refuse("vectors", f"the vector of {model!r} is neither base64 of float16 nor a list of numbers: remove it")
    if not 1 <= len(numbers) <= MOST_DIMENSIONS or not np.isfinite(numbers).all() or not numbers.any():
        refuse("vectors", f"the vector of {model!r} is empty, zero, too long or not finite: remove it")
    return data


def _packed(given: object) -> bytes:
    if not isinstance(given, list):
        raise TypeError("not a list")
    with np.errstate(over="ignore"):  # what is too large for float16 becomes infinite, and is refused as such
        return np.array(given, dtype=np.float64).reshape(-1).astype(HALF).tobytes()
