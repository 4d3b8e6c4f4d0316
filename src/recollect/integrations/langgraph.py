"""A LangGraph store whose items are memories: searched by words and meaning, with a history, and every delete undone.

    from recollect import Recollect
    from recollect.integrations.langgraph import RecollectStore

    graph = builder.compile(store=RecollectStore(Recollect()))

A namespace is kept in the metadata of its items; with `spaces`, namespaces whose first label is named there live in a
space of their own. `put` over an item corrects it, `delete` archives it; `restore`, or undoing, brings it back.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from json import dumps
from operator import ge, gt, le, lt
from typing import Any, TypeAlias

import anyio

from recollect.engine.engine import Engine
from recollect.errors import DuplicateText, InvalidInput, NotFound
from recollect.integrations import lacking
from recollect.integrations.calls import Calls, Memory
from recollect.integrations.values import KeptValue, Shelf, new_mark, readable
from recollect.memories.rules.contract import parsed_time
from recollect.model import Metadata, Node, NodeFilter, Status

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        get_text_at_path,
    )
except ModuleNotFoundError as missing:
    raise lacking("langgraph", missing) from missing

OF = "langgraph"
MOST_HITS = 1000
DELETED = "deleted from the LangGraph store"
KEPT = (Status.ACTIVE, Status.ARCHIVED)

ORDERED: Mapping[str, Callable[[Any, Any], bool]] = {"$gt": gt, "$gte": ge, "$lt": lt, "$lte": le}

Namespace: TypeAlias = tuple[str, ...]
Address: TypeAlias = tuple[Namespace, str]


class RecollectStore(BaseStore):
    """A store in the space of a memory. `fields` are the paths whose texts are searched, where `put` names none."""

    def __init__(
        self, memory: Memory, *, fields: Sequence[str] | None = None, spaces: Mapping[str, str] | None = None
    ) -> None:
        self._calls = Calls(memory)
        self._fields = fields
        self._spaces = dict(spaces or {})
        self._rooms: dict[str | None, _Room] = {None: _Room(self._calls.engine)}
        self._writing: anyio.Lock | None = None

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        return self._calls.call(partial(self._batch, list(ops)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        return await self._calls.acall(partial(self._batch, list(ops)))

    def restore(self, namespace: Namespace, key: str) -> Item:
        """Bring back what was deleted last at this key."""
        return self._calls.call(partial(self._restore, (namespace, key)))

    async def arestore(self, namespace: Namespace, key: str) -> Item:
        """Bring back what was deleted last at this key."""
        return await self._calls.acall(partial(self._restore, (namespace, key)))

    # -- in the loop of the memory

    async def _batch(self, ops: Sequence[Op]) -> list[Result]:
        """Reads see what was there before the batch; of several writes at one key the last counts."""
        results: list[Result] = [await self._read(op) for op in ops]
        puts = {(op.namespace, op.key): op for op in ops if isinstance(op, PutOp)}
        if puts:
            self._writing = self._writing or anyio.Lock()
            async with self._writing:
                await self._write(puts)
        return results

    async def _read(self, op: Op) -> Result:
        match op:
            case GetOp():
                return await (await self._room(op.namespace)).get((op.namespace, op.key))
            case SearchOp():
                return await self._search(op)
            case ListNamespacesOp():
                return await self._namespaces(op)
            case PutOp():
                return None
        raise InvalidInput(f"{type(op).__name__} is no operation of a store.")

    async def _search(self, op: SearchOp) -> list[SearchItem]:
        items = [item for room in await self._within(op.namespace_prefix) for item in await room.search(op)]
        best = sorted(items, key=lambda item: (item.score is None, -(item.score or 0), -item.updated_at.timestamp()))
        return best[op.offset : op.offset + op.limit]

    async def _namespaces(self, op: ListNamespacesOp) -> list[Namespace]:
        conditions = op.match_conditions or ()
        namespaces = {
            namespace[: op.max_depth]
            for room in await self._within(())
            for namespace in await room.namespaces()
            if all(is_matched(namespace, condition) for condition in conditions)
        }
        return sorted(namespaces)[op.offset : op.offset + op.limit]

    async def _write(self, puts: Mapping[Address, PutOp]) -> None:
        fresh: dict[_Room, list[KeptValue]] = {}
        for address, op in puts.items():
            room = await self._room(op.namespace)
            if op.value is None:
                await room.delete(address)
            elif (new := await room.put(address, op.value, self._text(op), self._calls.engine.core.now())) is not None:
                fresh.setdefault(room, []).append(new)
        for room, values in fresh.items():
            await room.shelf.add(values)

    async def _restore(self, address: Address) -> Item:
        return await (await self._room(address[0])).restore(address)

    def _text(self, op: PutOp) -> str:
        if op.index is False:
            return ""
        paths = self._fields if op.index is None else op.index
        return readable(op.value) if paths is None else "\n".join(_texts(op.value, paths))

    async def _room(self, namespace: Namespace) -> "_Room":
        slug = self._spaces.get(namespace[0]) if namespace else None
        if slug not in self._rooms:
            self._rooms[slug] = _Room(await self._calls.engine.in_space(str(slug)))
        return self._rooms[slug]

    async def _within(self, prefix: Namespace) -> list["_Room"]:
        """Where the namespaces below a prefix are kept: in one space, unless it is the prefix of all."""
        if prefix:
            return [await self._room(prefix)]
        return [self._rooms[None], *[await self._room((label,)) for label in self._spaces]]


class _Room:
    """The items of a store that lie in one space."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.shelf = Shelf(engine, OF)

    async def get(self, address: Address) -> Item | None:
        nodes = await self._at(address)
        return self._item(nodes[0]) if nodes else None

    async def search(self, op: SearchOp) -> list[SearchItem]:
        """The best `offset + limit`; what the question does not find fills up, newest first, without a score."""
        most = op.offset + op.limit
        hits = await self._hits(op, most) if op.query and op.query.strip() else {}
        if len(hits) < most:
            rest = [self._read(node) async for node in self.engine.stream(_below(op.namespace_prefix))]
            rest.sort(key=lambda item: item.updated_at, reverse=True)
            hits = {**{_address(item): item for item in rest if is_wanted(item.value, op.filter)}, **hits}
        return [*hits.values()]

    async def namespaces(self) -> set[Namespace]:
        return {self._read(node).namespace async for node in self.engine.stream(_below(()))}

    async def put(self, address: Address, value: Mapping[str, Any], text: str, now: datetime) -> KeptValue | None:
        """Correct what is there; or the value to add, where nothing is."""
        nodes = await self._at(address, KEPT)
        there = next((node for node in nodes if node.status is Status.ACTIVE), None)
        began = parsed_time("created_at", self.shelf.place(there)["created_at"]) if there else now
        new_value = _kept(address, value, text, began or now)
        shown = self.shelf.memory(new_value)
        if there is None:
            same = next((node for node in nodes if self.shelf.text(node) == shown.text), None)
            if same is None:
                return new_value
            there = await self.engine.restore(same.id, reason="put into the LangGraph store again")
        if self.shelf.text(there) == shown.text:
            await self._edit(there, shown.metadata)
        else:
            there = await self._correct(there, new_value)
        if there.exclude != shown.exclude:
            await (self.engine.exclude if shown.exclude else self.engine.include)(there.id)
        return None

    async def delete(self, address: Address) -> None:
        for node in await self._at(address):
            await self.engine.forget(node.id, reason=DELETED)

    async def restore(self, address: Address) -> Item:
        nodes = await self._at(address, KEPT)
        if not nodes or any(node.status is Status.ACTIVE for node in nodes):
            raise NotFound(f"Nothing is deleted at {address[1]!r} in {list(address[0])}.")
        deleted = [(history[-1].at, node) for node in nodes if (history := await self.engine.history(node.id))]
        node = max(deleted, key=lambda entry: entry[0])[1]
        return self._item(await self.engine.restore(node.id))

    async def _edit(self, node: Node, metadata: Metadata) -> None:
        """The new value beside the same words; a mark stays, and so does what the memory corrects."""
        own = {**metadata["extra"][OF]}
        if "length" in self.shelf.place(node):
            own["length"] = self.shelf.place(node)["length"]
        await self.engine.edit(node.id, metadata={**node.metadata, "extra": {**node.metadata["extra"], OF: own}})

    async def _correct(self, node: Node, new_value: KeptValue) -> Node:
        shown = self.shelf.memory(new_value)
        try:
            return await self.engine.correct(node.id, shown.text, metadata=shown.metadata, reason="put over it")
        except DuplicateText:
            marked = self.shelf.memory(new_value, mark=new_mark())
            return await self.engine.correct(node.id, marked.text, metadata=marked.metadata, reason="put over it")

    async def _hits(self, op: SearchOp, most: int) -> dict[Address, SearchItem]:
        limit = MOST_HITS if op.filter else min(most, MOST_HITS)
        recall = await self.engine.recall(
            op.query or "", wanted=_below(op.namespace_prefix), limit=limit, weak=True, noted=True
        )
        items = [self._read(hit.node, hit.score) for hit in recall]
        return {_address(item): item for item in items if is_wanted(item.value, op.filter)}

    async def _at(self, address: Address, statuses: tuple[Status, ...] = (Status.ACTIVE,)) -> list[Node]:
        """What is kept at an address, newest first: more than one where two processes wrote at the same moment."""
        namespace, key = address
        page = await self.engine.list(_below(namespace, key=key, statuses=statuses), limit=MOST_HITS)
        return [node for node in page.items if self.shelf.place(node)["namespace"] == list(namespace)]

    def _read(self, node: Node, score: float | None = None) -> SearchItem:
        where = self.shelf.place(node)
        return SearchItem(
            namespace=tuple(where["namespace"]),
            key=where["key"],
            value=self.shelf.value(node),
            created_at=parsed_time("created_at", where["created_at"]) or node.created_at,
            updated_at=node.updated_at,
            score=score,
        )

    def _item(self, node: Node) -> Item:
        item = self._read(node)
        return Item(
            namespace=item.namespace,
            key=item.key,
            value=item.value,
            created_at=item.created_at,
            updated_at=item.updated_at,
        )


def _kept(address: Address, value: Mapping[str, Any], text: str, created_at: datetime) -> KeptValue:
    namespace, key = address
    where = {"namespace": [*namespace], "below": _prefixes(namespace), "key": key, "created_at": created_at.isoformat()}
    return KeptValue(value=value, text=text, place=where)


def _below(prefix: Namespace, *, key: str | None = None, statuses: tuple[Status, ...] = (Status.ACTIVE,)) -> NodeFilter:
    """What is kept in a namespace and below it."""
    own: Metadata = {"below": [_as_name(prefix)], **({} if key is None else {"key": key})}
    return NodeFilter(metadata={"extra": {OF: own}}, statuses=statuses)


def _prefixes(namespace: Namespace) -> list[str]:
    """All that a namespace lies below, itself included, each as one text: a database finds those by an index."""
    return [_as_name(namespace[:depth]) for depth in range(len(namespace) + 1)]


def _as_name(namespace: Namespace) -> str:
    return dumps(namespace, ensure_ascii=False)


def _address(item: Item) -> Address:
    return item.namespace, item.key


def _texts(value: Any, paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        yield from get_text_at_path(value, path)


def is_matched(namespace: Namespace, condition: MatchCondition) -> bool:
    """Whether a namespace begins or ends as a condition says; * stands for any one label."""
    path = condition.path
    if len(path) > len(namespace):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(pattern in ("*", label) for pattern, label in zip(path, part, strict=True))


def is_wanted(value: Any, tests: Mapping[str, Any] | None) -> bool:
    """Whether the fields of a value are as a filter says: equal, or as operators ($gt, $ne ...) say."""
    return all(_is_as(value.get(name), test) for name, test in (tests or {}).items())


def _is_as(value: Any, test: Any) -> bool:
    if not isinstance(test, Mapping):
        return bool(value == (list(test) if isinstance(test, tuple) else test))
    if any(name.startswith("$") for name in test):
        return all(_holds(value, name, bound) for name, bound in test.items())
    return isinstance(value, Mapping) and all(_is_as(value.get(name), inner) for name, inner in test.items())


def _holds(value: Any, operator: str, bound: Any) -> bool:
    match operator:
        case "$eq":
            return bool(value == bound)
        case "$ne":
            return bool(value != bound)
    if operator not in ORDERED:
        raise InvalidInput(f"{operator!r} is no operator of a filter; $eq, $ne, {', '.join(ORDERED)} are.")
    try:
        return ORDERED[operator](value, bound)
    except TypeError:  # what cannot be compared is neither more nor less
        return False
