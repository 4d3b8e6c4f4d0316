"""Duplicates in the database: the check at formation time, and merging and undoing groups.

./run bench dedupe --store [--size 100000]      these figures alone

Vectors come from the hashing embedder: what is measured here is the way through the database, not the model.
"""

import statistics
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import numpy as np

from bench.figures import Figure
from bench.recall import temporary_engine
from recollect.concepts.form import Forming
from recollect.concepts.rules.concepts import words_of
from recollect.concepts.sql import concepts
from recollect.engine.engine import Engine
from recollect.engine.sql import spaces
from recollect.memories import embed
from recollect.model import NewConcept, NewEdge
from recollect.store.database import driver

EMBEDDER = "hashing:384"
BATCH = 5_000
ASKED = 200
LONG = 8
GROUPS = 2_000


async def figures(names: Sequence[str]) -> list[Figure]:
    async with temporary_engine(embedder=EMBEDDER, brake_share=1.0) as engine:
        await plant(engine, [NewConcept(name=name, text=f"all about {name.lower()}") for name in names])
        await embed.ensure_index(engine.core, engine.core.embedder())
        await settle(engine)
        return [*await formation(engine, names), *await merging(engine)]


async def plant(engine: Engine, some: Sequence[NewConcept]) -> list[UUID]:
    """Concepts in bulk, unchecked."""
    embedder, now, ids = engine.core.embedder(), engine.core.now(), [uuid4() for _ in some]
    told: dict[str, Any] = {"model": embedder.model, "models": [embedder.model], "max_attempts": 1, "now": now}
    for first in range(0, len(some), BATCH):
        part = some[first : first + BATCH]
        vectors = await embedder.embed([words_of(one.name, one.text) for one in part])
        rows = list(zip(ids[first : first + BATCH], part, vectors, strict=True))
        async with engine.core.transaction(engine.space.id) as db:
            await concepts.insert(db, rows, **told)
            await spaces.use_model(db, embedder.model)
    return ids


async def settle(engine: Engine) -> None:
    """As the database does by itself within a minute or so."""
    async with engine.core.database.alone() as connection:
        await connection.execute("VACUUM ANALYZE")


# -- formation


async def formation(engine: Engine, names: Sequence[str]) -> list[Figure]:
    """Names that are there (in another spelling) and names that nearly are; embedding aside."""
    chance = np.random.default_rng(1)
    long_enough = [at for at, name in enumerate(names) if len(name) >= LONG]  # for one more letter to matter little
    places = chance.choice(long_enough, ASKED, replace=False).tolist()
    same = [NewConcept(name=names[at].replace(" ", "_"), text=f"all about {names[at].lower()}") for at in places]
    near = [NewConcept(name=f"{names[at]}s", text=f"all about {names[at].lower()}") for at in places]
    new = [NewConcept(name=f"unheard {at}", text=f"nobody has said this of {at} before") for at in places]
    found = []
    for what, some in (("its name", same), ("nearness", near), ("nothing", new)):
        looked = [await checked(engine, one) for one in some]
        spent = [milliseconds for milliseconds, _, _ in looked]
        how = f"{ASKED} that are found by {what}, against {len(names):,}, in the database, embedding aside"
        found += [
            Figure(name=f"formation by {what} p50, ms", value=statistics.median(spent), bar=5, better="lower", how=how),
            Figure(name=f"formation by {what} p95, ms", value=float(np.quantile(spent, 0.95)), better="lower", how=how),
        ]
        there = [is_found for _, is_found, is_there in looked if is_there]
        assert bool(there) == (what != "nothing"), f"{len(there)} were to be found by {what}"
        if there:
            how = f"{len(there)} of {ASKED} that an exact look finds"
            found.append(Figure(name=f"formation by {what}, found", value=statistics.mean(there), how=how))
    return found


async def checked(engine: Engine, new: NewConcept) -> tuple[float, bool, bool]:
    """Milliseconds of one check (the lock, the look, the comparison), whether anything was found, and whether an exact
    look finds anything."""
    (vector,) = await engine.core.embedder().embed([words_of(new.name, new.text)])
    forming = Forming(engine.core, await _space(engine), new, 0.95, vector)
    async with engine.core.transaction(engine.space.id) as db:
        started = time.perf_counter()
        exactly = await forming.is_small(db)
        await concepts.hold(db, new.node_type, exactly=exactly)
        found = await forming.best(db, exactly=exactly)
        spent = 1000 * (time.perf_counter() - started)
        await concepts.hold(db, new.node_type, exactly=True)
        return spent, found is not None, await forming.best(db, exactly=True) is not None


async def _space(engine: Engine) -> Any:
    async with engine.core.transaction(engine.space.id) as db:
        return await spaces.by_id(db)


# -- merging


async def merging(engine: Engine) -> list[Figure]:
    """Pairs of twins in a space of their own, each with links of which some become the same."""
    await engine.add_space("merging")
    there = await engine.in_space("merging")
    now = engine.core.now()
    words = [f"{a} {b}" for a in _words(50) for b in _words(GROUPS // 50)]
    made = [
        NewConcept(name=spelling, text=f"all about {name}", created_at=now - timedelta(days=age))
        for name in words
        for age, spelling in ((2, name), (1, name.title()))
    ]
    ids = await plant(there, made)
    hub = (await plant(there, [NewConcept(name="hub", text="where much hangs")]))[0]
    ends = [(id_, hub, "extends") for id_ in ids] + [(ids[at], ids[at - 1], "similar") for at in range(1, len(ids), 2)]
    told: dict[str, Any] = {"strength": 0.5, "created_by": "auto"}
    for first in range(0, len(ends), BATCH):
        wanted = [NewEdge(source=a, target=b, relation=c, **told) for a, b, c in ends[first : first + BATCH]]
        await there.graph.link_many(wanted)
    await settle(there)
    started = time.perf_counter()
    plan = await there.plans.propose("duplicates", {"most_merges": GROUPS})
    proposed = time.perf_counter()
    outcome = await there.plans.apply(plan.id)
    applied = time.perf_counter()
    await there.plans.undo(plan.id)
    undone = time.perf_counter()
    assert outcome.applied == len(plan.decisions) == GROUPS, (outcome, len(plan.decisions))
    async with there.core.transaction(there.space.id) as db:
        left = await (await driver(db)).fetchval("SELECT count(*) FROM nodes WHERE status = 'merged'")
    assert left == 0, "an undo left something merged"
    how = f"{GROUPS:,} groups of two, 3 links a group of which 2 become one and 1 goes"
    return [
        Figure(name="duplicates proposed, groups a second", value=GROUPS / (proposed - started), how=how),
        Figure(name="merge apply, groups a second", value=GROUPS / (applied - proposed), bar=1000, how=how),
        Figure(name="merge undo, groups a second", value=GROUPS / (undone - applied), bar=1000, how=how),
    ]


def _words(number: int) -> list[str]:
    """Made-up words that are not like each other."""
    chance = np.random.default_rng(number)
    letters = "abcdefghijklmnopqrstuvwxyz"
    return ["".join(letters[at] for at in chance.integers(0, 26, 9)) for _ in range(number)]
