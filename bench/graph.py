"""The graph: tidying a small one end to end, computing on a million edges, applying and undoing, spreading, searching.

./run bench graph [--size 1000000]      a made-up graph of that many edges
./run bench graph --data DIR            a real one: DIR holds nodes.jsonl and edges.jsonl
"""

import argparse
import asyncio
import json
import multiprocessing
import resource
import statistics
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import numpy as np

from bench.figures import Figure, alternate, ratio, seconds
from bench.recall import temporary_engine
from recollect.engine.engine import Engine
from recollect.graph.policies import gather_topics, merge_parallel_edges, prune_weak_edges
from recollect.graph.rules.adjacency import adjacency_of
from recollect.graph.rules.arrays import EdgeColumns, parallel_edges, prunable
from recollect.graph.rules.spread import spread_over
from recollect.graph.rules.topics import gathered
from recollect.model import NewMemory
from recollect.plans.sql.reader import StoreReader
from recollect.settings import Settings
from recollect.store.database import driver

SIZE = 1_000_000
SMALL = 1_000
CHANGES = 100_000
MEMORIES = 20_000
NOW = datetime(2026, 11, 15, tzinfo=UTC)
POLICIES = ("prune", "merge-edges", "topics")

NODES = """
INSERT INTO nodes (space_id, id, kind, subtype, name)
SELECT $1, gen_random_uuid(), 'concept', 'made-up', 'node ' || i FROM generate_series(1, $2::int) i RETURNING id
"""
# Edges of many ages and strengths, a few by people, some protected; targets crowd around hubs, as in real graphs.
EDGES = """
INSERT INTO edges (space_id, id, source, target, relation, strength, created_by, protected, source_topic, target_topic,
                   created_at)
SELECT $1, gen_random_uuid(), a, b, relation, strength, made_by, chance < 0.01, 'tag:' || topic, 'tag:' || topic,
       $3::timestamptz - make_interval(days => age)
  FROM (SELECT ($2::uuid[])[1 + floor(random() * cardinality($2))::int] AS a,
               ($2::uuid[])[1 + floor(power(random(), 1.5) * cardinality($2))::int] AS b,
               (ARRAY['similar', 'extends', 'supports', 'applies'])[1 + floor(random() * 4)::int] AS relation,
               random() AS strength, CASE WHEN random() < 0.1 THEN 'user' ELSE 'auto' END AS made_by,
               random() AS chance, floor(random() * 200)::int AS topic, floor(power(random(), 3) * 120)::int AS age
          FROM generate_series(1, $4::int)) made
 WHERE a <> b
ON CONFLICT (space_id, source, target, relation) WHERE status = 'active' DO NOTHING
"""


def run(size: int | None, rest: list[str]) -> list[Figure]:
    parser = argparse.ArgumentParser(prog="./run bench graph")
    parser.add_argument("--data", type=Path, help="a folder with nodes.jsonl and edges.jsonl")
    given = parser.parse_args(rest)
    return asyncio.run(everything(size or SIZE, given.data))


async def everything(size: int, data: Path | None) -> list[Figure]:
    async with temporary_engine(embedder="hashing:384", brake_share=1.0) as engine:
        engine.core.now = lambda: NOW
        figures = await small(engine)
        space = await new_space(engine)
        await (from_files(space, data) if data else made_up(space, max(size // 10, 50), size))
        columns, reading = await read(space)
        figures += [reading, *computing(columns), spreading(columns), peak_memory(space)]
        if not data:  # a plan of 100,000 changes needs no graph of a million edges
            space = await new_space(engine)
            await made_up(space, min(CHANGES, size) // 20, min(CHANGES, size) * 7 // 5)
        figures += await changing(space, min(CHANGES, size // 8))
        return figures


async def new_space(engine: Engine) -> Engine:
    slug = f"b-{uuid4().hex[:12]}"
    await engine.add_space(slug)
    return await engine.in_space(slug)


async def made_up(space: Engine, nodes: int, edges: int) -> None:
    async with space.core.transaction(space.space.id) as db:
        raw = await driver(db)
        ids = [row["id"] for row in await raw.fetch(NODES, space.space.id, nodes)]
        await raw.execute(EDGES, space.space.id, ids, NOW, edges)


async def from_files(space: Engine, data: Path) -> None:
    """A real graph: its nodes as concepts, its edges with their strengths, counts and times."""
    nodes = [json.loads(line) for line in (data / "nodes.jsonl").read_text().splitlines()]
    edges = [json.loads(line) for line in (data / "edges.jsonl").read_text().splitlines()]
    numbered = {node["id"]: uuid4() for node in nodes}
    async with space.core.transaction(space.space.id) as db:
        raw = await driver(db)
        await raw.execute(
            """INSERT INTO nodes (space_id, id, kind, subtype, name) SELECT $1, n.id, 'concept', 'synset', n.name
                 FROM unnest($2::uuid[], $3::text[]) AS n(id, name)""",
            space.space.id,
            list(numbered.values()),
            [node["name"] for node in nodes],
        )
        for start in range(0, len(edges), 50_000):
            await raw.execute(FROM_FILE, space.space.id, *_columns(edges[start : start + 50_000], numbered))


FROM_FILE = """
INSERT INTO edges (space_id, id, source, target, relation, strength, activation_count, protected, created_by,
                   created_at, last_activated_at, source_topic, target_topic)
SELECT $1, gen_random_uuid(), e.source, e.target, e.relation, e.strength, e.uses, e.protected, e.made_by,
       e.created_at, e.activated_at, e.source_topic, e.target_topic
  FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::float8[], $6::int8[], $7::bool[], $8::text[], $9::timestamptz[],
              $10::timestamptz[], $11::text[], $12::text[])
    AS e(source, target, relation, strength, uses, protected, made_by, created_at, activated_at, source_topic,
         target_topic)
 WHERE e.source <> e.target
ON CONFLICT (space_id, source, target, relation) WHERE status = 'active' DO NOTHING
"""


def _columns(edges: Sequence[dict[str, Any]], numbered: dict[str, UUID]) -> list[list[Any]]:
    def moment(edge: dict[str, Any], name: str) -> datetime | None:
        said = edge.get(name)
        return datetime.fromisoformat(said) if said else None

    return [
        [numbered[edge["source"]] for edge in edges],
        [numbered[edge["target"]] for edge in edges],
        [edge["relation"] for edge in edges],
        [edge.get("strength") for edge in edges],
        [edge.get("activation_count", 0) for edge in edges],
        [bool(edge.get("protected")) for edge in edges],
        [edge.get("created_by", "import") for edge in edges],
        [moment(edge, "created_at") or NOW for edge in edges],
        [moment(edge, "last_activated_at") for edge in edges],
        [edge.get("source_topic") for edge in edges],
        [edge.get("target_topic") for edge in edges],
    ]


# -- a small graph, end to end (A30)


async def small(engine: Engine) -> list[Figure]:
    taken = []
    for _ in range(5):
        space = await new_space(engine)
        await made_up(space, SMALL // 5, SMALL)
        started = time.perf_counter()
        for policy in POLICIES:
            await space.plans.run(policy)
        taken.append(time.perf_counter() - started)
    how = f"{SMALL:,} edges: prune, merge and topics proposed and applied; median of 5 graphs"
    return [
        Figure(
            name="A30: tidying 1,000 edges, ms", value=1000 * statistics.median(taken), bar=200, better="lower", how=how
        )
    ]


# -- computing on a large graph


async def read(space: Engine) -> tuple[EdgeColumns, Figure]:
    started = time.perf_counter()
    async with space.core.database.snapshot(space.space.id) as db:
        columns = await StoreReader(db).edges()
    taken = time.perf_counter() - started
    how = f"{len(columns):,} edges out of the database into columns"
    return columns, Figure(name="reading edges, a second", value=len(columns) / taken, how=how)


def computing(columns: EdgeColumns) -> list[Figure]:
    figures = []
    for name, ours, bare in (
        ("prune", our_pruning, bare_pruning),
        ("merge", our_merging, bare_merging),
        ("topics", our_topics, bare_topics),
    ):
        assert ours(columns) == bare(columns), f"{name}: the two ways do not find the same"
        mine, theirs = alternate(3, partial(timed, ours, columns), partial(timed, bare, columns))
        how = f"{len(columns):,} edges, the same answer; {statistics.median(mine):.2f} s; 3 rounds"
        figures.append(
            Figure(name=f"{name} / bare computing", value=ratio(mine, theirs), bar=2.0, better="lower", how=how)
        )
    return figures


def timed(work: Callable[[EdgeColumns], int], columns: EdgeColumns) -> float:
    return seconds(lambda: work(columns))


def candidates(columns: EdgeColumns) -> tuple[Any, Any]:
    strength = columns.strength_at(NOW)
    weak = (strength < 0.05) & (columns.idle_days_at(NOW) >= 7) & ~columns.protected & ~columns.by_user
    places = np.flatnonzero(weak)
    return places[np.argsort(strength[places], kind="stable")], weak


def our_pruning(columns: EdgeColumns) -> int:
    weakest_first, _ = candidates(columns)
    return len(prunable(columns, weakest_first).removed)


def bare_pruning(columns: EdgeColumns) -> int:
    """With rustworkx: what the others leave apart, joined by the strongest candidates (a minimum spanning forest)."""
    import rustworkx

    weakest_first, weak = candidates(columns)
    firm = rustworkx.PyGraph()
    firm.add_nodes_from(range(len(columns.nodes)))
    firm.add_edges_from_no_data(list(zip(columns.source[~weak].tolist(), columns.target[~weak].tolist(), strict=True)))
    label = np.zeros(len(columns.nodes), dtype=np.int64)
    for number, component in enumerate(rustworkx.connected_components(firm)):
        label[list(component)] = number
    a, b = label[columns.source[weakest_first]], label[columns.target[weakest_first]]
    across = np.flatnonzero(a != b)
    loose = rustworkx.PyGraph()
    loose.add_nodes_from(range(int(label.max()) + 1))
    rank = (len(weakest_first) - across).tolist()
    loose.add_edges_from(list(zip(a[across].tolist(), b[across].tolist(), rank, strict=True)))
    return len(weakest_first) - len(rustworkx.minimum_spanning_edges(loose, weight_fn=float))


def our_merging(columns: EdgeColumns) -> int:
    groups = parallel_edges(columns)
    return len(groups.values) - len(groups)


def bare_merging(columns: EdgeColumns) -> int:
    """With numpy: which edges share their ends with another, in the order of their ends."""
    low, high = np.minimum(columns.source, columns.target), np.maximum(columns.source, columns.target)
    _, pair, counts = np.unique(low * len(columns.nodes) + high, return_inverse=True, return_counts=True)
    places = np.flatnonzero(counts[pair] > 1)
    grouped = places[np.argsort(pair[places], kind="stable")]
    return len(grouped) - int((counts > 1).sum())


def our_topics(columns: EdgeColumns) -> int:
    return sum(topic.internal_edges for topic in gathered(columns, overlap=None))


def bare_topics(columns: EdgeColumns) -> int:
    """Members of every key as distinct (key, node) codes, then for every distinct pair the keys of both ends."""
    size = len(columns.nodes)
    keys = np.concatenate([columns.source_topic, columns.target_topic])
    nodes = np.concatenate([columns.source, columns.target])
    borne = np.unique((keys * size + nodes)[keys >= 0])
    key, node = borne // size, borne % size
    large = np.flatnonzero(np.bincount(key) >= 3)
    borne = borne[np.isin(key, large)]
    by_node = np.argsort(borne % size, kind="stable")
    key, node = (borne // size)[by_node], (borne % size)[by_node]
    starts = np.searchsorted(node, np.arange(size + 1))
    low, high = np.minimum(columns.source, columns.target), np.maximum(columns.source, columns.target)
    pairs = np.unique(low * size + high)
    low, high = pairs // size, pairs % size
    counts = starts[low + 1] - starts[low]
    repeated = np.repeat(np.arange(len(pairs)), counts)
    offsets = np.arange(len(repeated)) - np.repeat(np.cumsum(counts) - counts, counts)
    wanted = key[starts[low[repeated]] + offsets] * size + high[repeated]
    at = np.searchsorted(borne, wanted).clip(max=len(borne) - 1) if len(borne) else np.zeros(0, dtype=np.int64)
    return int((borne[at] == wanted).sum()) if len(borne) else 0


def spreading(columns: EdgeColumns) -> Figure:
    adjacency = adjacency_of(columns)
    chance = np.random.default_rng(1)
    taken = []
    for _ in range(200):
        seeds = {columns.node_of(int(place)): 0.9 for place in chance.integers(0, len(columns.nodes), 5)}
        started = time.perf_counter()
        spread_over(adjacency, seeds, NOW).reached(at_most=100)
        taken.append(time.perf_counter() - started)
    how = f"{len(columns):,} edges in memory, 5 seeds, 3 hops, the 100 best with their paths; 200 questions"
    return Figure(name="spreading p50, ms", value=1000 * statistics.median(taken), bar=5, better="lower", how=how)


# -- peak memory, in a process of its own


def peak_memory(space: Engine) -> Figure:
    context = multiprocessing.get_context("spawn")
    answer = context.Queue()
    url = space.settings.database_url
    assert url is not None
    process = context.Process(target=_read_and_compute, args=(url.get_secret_value(), space.space.slug, answer))
    process.start()
    megabytes = answer.get(timeout=1200)
    process.join()
    how = "reading the edges and computing prune, merge and topics plans, in a process of its own"
    return Figure(name="peak memory, MB", value=megabytes, bar=1500, better="lower", how=how)


def _read_and_compute(url: str, slug: str, answer: Any) -> None:
    async def compute() -> None:
        async with Engine(Settings.load(database_url=url, space=slug)) as space:
            for policy in (prune_weak_edges, merge_parallel_edges, gather_topics):
                async with space.core.database.snapshot(space.space.id) as db:
                    await policy.propose(StoreReader(db), policy.Options(), NOW)

    asyncio.run(compute())
    answer.put(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


# -- applying, undoing, and searching meanwhile


async def changing(space: Engine, changes: int) -> list[Figure]:
    plan = await large_plan(space, changes)
    started = time.perf_counter()
    outcome = await space.plans.apply(plan)
    applying = outcome.applied / (time.perf_counter() - started)
    started = time.perf_counter()
    await space.plans.undo(plan)
    undoing = outcome.applied / (time.perf_counter() - started)
    how = f"a saved plan of {outcome.applied:,} changes of edges, groups of 2,000"
    figures = [
        Figure(name="apply, changes a second", value=applying, bar=10_000, how=how),
        Figure(name="undo, changes a second", value=undoing, bar=10_000, how="the same plan, in one transaction"),
    ]
    return figures + await searching(space, await large_plan(space, changes))


async def large_plan(space: Engine, changes: int) -> UUID:
    """A plan to prune so many edges; whether they are weak is not the question here."""
    options = {"threshold": 1.0, "min_inactive_days": 0.0}
    plan = await space.plans.propose("prune", options)
    spared = [one.number for one in plan.decisions[changes:]]
    if spared:
        await space.plans.decline(plan.id, spared)
    return plan.id


async def searching(space: Engine, plan: UUID) -> list[Figure]:
    await space.add_many([NewMemory(text=f"{n} the note about number {n % 997}") for n in range(MEMORIES)], wait=True)
    questions = [f"what about number {n}" for n in range(400)]
    await asked(space, questions[:50])
    quiet = await asked(space, questions)
    url = space.settings.database_url
    assert url is not None
    context = multiprocessing.get_context("spawn")
    process = context.Process(target=_apply, args=(url.get_secret_value(), space.space.slug, str(plan)))
    process.start()
    busy: list[float] = []
    while process.is_alive():
        busy += await asked(space, questions[:50])
    p95 = [float(np.quantile(times, 0.95)) for times in (busy, quiet)]
    how = f"{MEMORIES:,} memories; another process applies a plan of {CHANGES:,} changes in the same space"
    return [
        Figure(name="search p95 while applying / quiet", value=p95[0] / p95[1], bar=1.5, better="lower", how=how),
        Figure(name="search p95 quiet, ms", value=1000 * p95[1], better="lower", how=how),
    ]


async def asked(space: Engine, questions: Sequence[str]) -> list[float]:
    taken = []
    for question in questions:
        started = time.perf_counter()
        await space.recall(f"{question} {uuid4().hex[:6]}")
        taken.append(time.perf_counter() - started)
    return taken


def _apply(url: str, slug: str, plan: str) -> None:
    async def apply() -> None:
        async with Engine(Settings.load(database_url=url, space=slug, embedder="hashing:384")) as space:
            space.core.now = lambda: NOW + timedelta(hours=1)
            await space.plans.apply(plan)

    asyncio.run(apply())
