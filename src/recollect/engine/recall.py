"""Recalling: embed the question, find the nearest memories, return them in order (D27)."""

from uuid import UUID

from recollect.engine.core import Core
from recollect.errors import InvalidInput, RecollectError
from recollect.model import Hit, Kind, Recall, Space
from recollect.ports import Embedder
from recollect.rules.text import is_storable
from recollect.store import nodes, spaces, vectors

LIMIT = 20
MOST = 1000
LONGEST_QUERY = 100_000


async def recall(
    core: Core, space_id: UUID, query: str, *, limit: int = LIMIT, kinds: tuple[Kind, ...] = (Kind.MEMORY,)
) -> Recall:
    """The memories nearest to a question, best first."""
    _check(query, limit)
    async with core.transaction(space_id) as connection:
        space = await spaces.by_id(connection, space_id)
    embedder, notes = _embedder(core, space)
    asked = (await embedder.embed([query]))[0]
    async with core.search(space_id) as connection:
        near = await vectors.nearest(connection, space_id, asked, model=embedder.model, kinds=kinds, limit=limit)
        found = await nodes.get_many(connection, space_id, [one.node_id for one in near])
    hits = tuple(
        Hit(node=found[one.node_id], score=one.similarity, similarity=one.similarity)
        for one in near
        if one.node_id in found
    )
    return Recall(query=query, hits=hits, model=embedder.model, notes=notes)


def _check(query: str, limit: int) -> None:
    if not query.strip():
        raise InvalidInput("The question is empty: say what to look for.", field="query")
    if not is_storable(query):
        raise InvalidInput("The question holds a NUL byte or a lone surrogate: remove it.", field="query")
    if len(query) > LONGEST_QUERY:
        raise InvalidInput(f"The question has over {LONGEST_QUERY:,} characters: shorten it.", field="query")
    if not 1 <= limit <= MOST:
        raise InvalidInput(f"The limit is from 1 to {MOST:,}, not {limit}.", field="limit")


def _embedder(core: Core, space: Space) -> tuple[Embedder, tuple[str, ...]]:
    """The embedder whose vectors search uses; while a new model is being brought in, still the former one (D35)."""
    wanted = core.embedder()
    if space.embedding_model in (None, wanted.model):
        return wanted, ()
    try:
        former = core.embedder(space.embedding_model)
    except RecollectError:
        note = f"The vectors of {wanted.model} are not complete yet, and {space.embedding_model} cannot be used."
        return wanted, (note,)
    return former, (f"Search uses {former.model} until the vectors of {wanted.model} are complete.",)
