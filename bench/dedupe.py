"""Duplicates: how often a merge is right (--data), and how fast exact detection is beside approximate neighbours.

./run bench dedupe --data DIR [--out run.jsonl] [--clusters-out clusters.jsonl]     evaluation data
./run bench dedupe [--size 100000] [--names FILE] [--million]                       speed, in process
./run bench dedupe --on ray [--size 100000 | --million]                             overhead of Ray on one node (X01)
./run bench dedupe --store [--size 100000]                                          speed, in the database

--data is bench/dedupe_data. Without it, concepts with real names (--names: a graph's `N id type name` lines, gzip or
not; else names made
from the model's own vocabulary) are searched exactly, and with Annoy (10 trees, top 10) in a venv of its own.
"""

import argparse
import asyncio
import gzip
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench import dedupe_data, dedupe_store
from bench.figures import Figure, ratio
from bench.processes import spent_in_tree
from bench.ray_cluster import ray_cluster
from bench.recall import vocabulary
from recollect.concepts.rules.detection import Blocks, ConceptColumns, Pairs, block, detect
from recollect.concepts.rules.detection.compare import Bounds
from recollect.concepts.rules.detection.pairs import scored
from recollect.concepts.rules.similarity import (
    WEIGHTS,
)
from recollect.providers.executors import LocalExecutor
from recollect.providers.minilm import MiniLMEmbedder, default_threads
from recollect.providers.ray import RayExecutor

SIZE = 100_000
MILLION = 1_000_000
BASE = 20_000
LISTED_FROM = 0.70
THRESHOLDS = (0.99, 0.97, 0.95, 0.93, 0.90, 0.87, 0.85)
ROUNDS = 3
ASKED = 300
WRONG_MERGES_BAR = 1 / 200
# What counts as a memory limit: everything, the vectors and names included.
GIGABYTE = 1e9
PEER = "annoy==1.17.3"

Vectors = NDArray[np.float32]


def run(size: int | None, rest: list[str]) -> list[Figure]:
    parser = argparse.ArgumentParser(prog="./run bench dedupe")
    parser.add_argument("--data", type=Path, help="a folder with records.jsonl and pairs.jsonl, or with several such")
    parser.add_argument("--out", type=Path, help="write the scorer's run file here")
    parser.add_argument("--clusters-out", type=Path, help="write what became one, a list of ids a line")
    parser.add_argument("--names", type=Path, help="a graph whose nodes' names are used")
    parser.add_argument("--cache", type=Path, help="keep vectors here between runs")
    parser.add_argument("--million", action="store_true", help="the run with a million too (minutes, 3 GB)")
    parser.add_argument("--on", choices=["ray"], help="the same detection on a Ray node of this machine, beside it")
    parser.add_argument("--store", action="store_true", help="what is done in the database (bench/dedupe_store)")
    given = parser.parse_args(rest)
    if given.store:
        return asyncio.run(dedupe_store.figures(made_names(size or SIZE)))
    if given.data:
        return dedupe_data.quality(given.data, given.out, given.clusters_out, given.cache)
    if given.on:
        return beside_ray(MILLION if given.million else size or SIZE, given.names, given.cache)
    return speed(size or SIZE, given.names, given.cache, given.million)


# -- speed


def speed(count: int, names_file: Path | None, cache: Path | None, million: bool) -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="recollect-bench-") as directory:
        python = peer_venv(Path(directory))
        names = real_names(names_file, count) if names_file else made_names(count)
        concepts = ConceptColumns.of(names=names, vectors=embedded(names, cache))
        found = beside_annoy(concepts, python, Path(directory), ROUNDS)
        if million:
            found += of_a_million(concepts, python, Path(directory), found)
        return found


def real_names(file: Path, count: int) -> list[str]:
    """Distinct names of a graph's nodes, in order."""
    given = file.read_bytes()
    lines = (gzip.decompress(given) if file.suffix == ".gz" else given).decode().splitlines()
    nodes = (line.split("\t") for line in lines if line.startswith("N\t"))
    return list(dict.fromkeys(name for node in nodes for name in node[3].split("; ")))[:count]


def made_names(count: int) -> list[str]:
    """Names of one to three common words; now and then the same one with an underscore or another ending."""
    chance, words = np.random.default_rng(0), vocabulary(6000)
    names: dict[str, None] = {}
    while len(names) < count:
        name = " ".join(chance.choice(words, chance.integers(1, 4)))
        names[name] = None
        if chance.random() < 0.01:
            names[name.replace(" ", "_") if " " in name else f"{name}s"] = None
    return list(names)[:count]


def embedded(names: Sequence[str], cache: Path | None) -> Vectors:
    if cache and cache.exists() and len(kept := np.load(cache, mmap_mode="r")) >= len(names):
        return np.array(kept[: len(names)])
    vectors = asyncio.run(MiniLMEmbedder().embed([name.replace("_", " ").lower() for name in names]))
    if cache:
        np.save(cache, vectors)
    return vectors


def peer_venv(directory: Path) -> Path:
    """Annoy in a venv of its own, with numpy to read the vectors."""
    venv.create(directory / "peers", with_pip=True)
    python = directory / "peers" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", PEER, "numpy"], check=True)
    return python


# As quick as Annoy can be used from Python: rows as lists (numpy rows take five times as long), pairs made in bulk.
ANNOY = """
import sys, time, resource, numpy as np
from annoy import AnnoyIndex
vectors = np.load(sys.argv[1], mmap_mode="r")
started, cpu = time.perf_counter(), time.process_time()
count = len(vectors)
index = AnnoyIndex(vectors.shape[1], "angular")
index.set_seed(1)
for first in range(0, count, 1000):
    for number, row in enumerate(vectors[first : first + 1000].tolist(), first):
        index.add_item(number, row)
index.build(10)
near = [np.array(index.get_nns_by_item(number, 11), np.int64) for number in range(count)]
ours, theirs = np.repeat(np.arange(count), [len(one) for one in near]), np.concatenate(near)
codes = np.unique(np.minimum(ours, theirs) * count + np.maximum(ours, theirs))
pairs = np.stack(np.divmod(codes, count), axis=1)
pairs = pairs[pairs[:, 0] != pairs[:, 1]]
print(time.perf_counter() - started, time.process_time() - cpu, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
np.save(sys.argv[2], pairs)
"""


def annoy(python: Path, vectors: Path, pairs: Path) -> tuple[float, float, float]:
    """Seconds, CPU seconds and gigabytes; the pairs are in the file."""
    told = subprocess.run([python, "-c", ANNOY, vectors, pairs], check=True, capture_output=True, text=True).stdout
    wall, cpu, kilobytes = (float(number) for number in told.split())
    return wall, cpu, kilobytes * 1024 / GIGABYTE


def beside_annoy(concepts: ConceptColumns, python: Path, directory: Path, rounds: int) -> list[Figure]:
    """The two in turn. Annoy's candidates are scored in bulk by our own rules, names made ready beforehand."""
    vectors, pairs = directory / "vectors.npy", directory / "pairs.npy"
    np.save(vectors, concepts.vectors)
    ready = block(concepts)
    ours, theirs, our_cpu, their_cpu, missed = [], [], [], [], 0.0
    for _ in range(rounds):
        started, cpu = time.perf_counter(), time.process_time()
        found = detect(concepts, here=LocalExecutor(default_threads()))
        ours.append(time.perf_counter() - started)
        our_cpu.append(time.process_time() - cpu)
        wall, cpu, _ = annoy(python, vectors, pairs)
        started, begun = time.perf_counter(), time.process_time()
        reached = score_all(ready, np.load(pairs))
        theirs.append(wall + time.perf_counter() - started)
        their_cpu.append(cpu + time.process_time() - begun)
        truth = {(one, other) for one, other, _ in found.pairs}
        missed = len(truth - reached) / max(1, len(truth))
        assert reached <= truth, "Annoy found a pair that the exact search did not"
    how = f"{len(concepts):,} concepts, {len(truth):,} pairs, median of {rounds} rounds in turn"
    return [
        Figure(name="exact detection / Annoy + scoring", value=ratio(ours, theirs), bar=0.75, better="lower", how=how),
        Figure(name="the same in CPU seconds", value=ratio(our_cpu, their_cpu), better="lower", how=how),
        Figure(name="exact detection, s", value=statistics.median(ours), better="lower", how="blocks included"),
        Figure(name="Annoy + scoring, s", value=statistics.median(theirs), better="lower", how="10 trees, top 10"),
        Figure(name="recall of Annoy", value=1 - missed, how="of the pairs that exact detection finds"),
    ]


def score_all(blocks: Blocks, pairs: NDArray[np.int64]) -> set[tuple[int, int]]:
    """The candidates that reach the threshold."""
    place = np.empty(len(blocks.concepts), np.int64)
    place[blocks.rows] = np.arange(len(blocks))
    bounds = Bounds(threshold=0.95, weights=WEIGHTS)
    kept = scored(blocks, bounds, place[pairs[:, 0]], place[pairs[:, 1]], default_threads())
    return {(min(one, other), max(one, other)) for one, other, _ in kept}


# -- a million


def of_a_million(concepts: ConceptColumns, python: Path, directory: Path, before: Sequence[Figure]) -> list[Figure]:
    """In a process of its own, so that the memory it takes can be told."""
    np.save(directory / "base.npy", concepts.vectors[:BASE])
    (directory / "base.json").write_text(json.dumps(list(concepts.names[:BASE])))
    told = subprocess.run(
        [sys.executable, "-m", "bench.dedupe", directory], check=True, capture_output=True, text=True
    ).stdout.split()
    seconds, cpu, gigabytes, pairs = (float(number) for number in told[-4:])
    wall, annoy_cpu, annoy_gigabytes = annoy(python, directory / "million.npy", directory / "pairs.npy")
    hundred = next(one.value for one in before if one.name == "exact detection, s")
    how = f"{MILLION:,} concepts, {pairs:,.0f} pairs; names and vectors made of real ones"
    return [
        Figure(name="1M: exact detection / Annoy", value=seconds / wall, bar=2.0, better="lower", how=how),
        Figure(name="1M: the same in CPU seconds", value=cpu / annoy_cpu, better="lower", how=how),
        Figure(name="1M: exact detection, s", value=seconds, better="lower", how=how),
        Figure(name="1M: resident, GB", value=gigabytes, bar=3.0, better="lower", how="vectors (1.5 GB) included"),
        Figure(name="1M: Annoy, s", value=wall, better="lower", how=f"not scored; {annoy_gigabytes:.1f} GB"),
        Figure(name="1M: growth from the smaller size", value=seconds / hundred, better="lower", how="times as long"),
    ]


def search_a_million(directory: Path) -> None:
    """Names of two real ones, vectors between theirs; one in a hundred stands there twice, slightly changed."""
    base, names = np.load(directory / "base.npy"), json.loads((directory / "base.json").read_text())
    made, vectors = mixed_names(names, base, MILLION)
    np.save(directory / "million.npy", vectors)
    concepts = ConceptColumns.of(names=made, vectors=vectors)
    started, cpu = time.perf_counter(), time.process_time()
    found = detect(concepts, here=LocalExecutor(default_threads()))
    seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / GIGABYTE
    print(seconds, cpu, peak, len(found.pairs))


def mixed_names(names: Sequence[str], base: Vectors, count: int) -> tuple[list[str], Vectors]:
    chance = np.random.default_rng(2)
    one, other = chance.integers(0, len(names), (2, count))
    made = [f"{names[a]} {names[b]}" for a, b in zip(one.tolist(), other.tolist(), strict=True)]
    vectors = np.empty((count, base.shape[1]), np.float32)
    for first in range(0, count, 50_000):
        part = slice(first, min(first + 50_000, count))
        noise = chance.normal(0, 0.01, (part.stop - first, base.shape[1]))
        mixed = 0.6 * base[one[part]] + 0.4 * base[other[part]] + noise
        vectors[part] = mixed / np.linalg.norm(mixed, axis=1, keepdims=True)
    for place in range(0, count - 1, 100):
        made[place + 1] = made[place].replace(" ", "_")
        vectors[place + 1] = vectors[place]
    return made, vectors


# -- on Ray


def beside_ray(count: int, names_file: Path | None, cache: Path | None) -> list[Figure]:
    """Detection in this process and on a Ray node of this machine with as many processors, in turn: the same pairs."""
    base = real_names(names_file, BASE) if names_file else made_names(BASE)
    names, vectors = mixed_names(base, embedded(base, cache), count)
    concepts = ConceptColumns.of(names=names, vectors=vectors)
    cores = default_threads()
    here, there = Turns(), Turns()
    with ray_cluster([cores], store_bytes=max(500_000_000, 1000 * count)) as (address, _):
        executor = RayExecutor(address, strict=True)
        list(executor.map(nothing, None, range(4 * cores)))  # its processes are there, and have loaded what they need
        for _ in range(ROUNDS if count < MILLION else 1):
            with here.measured():
                ours = detect(concepts, here=LocalExecutor(cores))
            with there.measured():
                theirs = detect(concepts, here=LocalExecutor(cores), executor=executor)
            assert same_pairs(ours.pairs, theirs.pairs), "Ray found other pairs"
        executor.close()
    how = f"{count:,} concepts, {len(ours.pairs):,} pairs, the same ones; {cores} processors each, in turn"
    of_all = "of the same: this process and all of Ray's; what others take of the machine does not count"
    return [
        Figure(
            name="detection on one Ray node / here",
            value=ratio(there.clock, here.clock),
            bar=1.3,
            better="lower",
            how=how,
        ),
        Figure(
            name="detection on one Ray node / here, processor time",
            value=ratio(there.processor, here.processor),
            bar=1.3,
            better="lower",
            how=of_all,
        ),
        Figure(name="detection on one Ray node, s", value=statistics.median(there.clock), better="lower", how=how),
        Figure(name="detection here, s", value=statistics.median(here.clock), better="lower", how=how),
    ]


@dataclass(frozen=True, slots=True)
class Turns:
    """What each turn took by the clock, and of the processor: of this process and of all that it started."""

    clock: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)

    @contextmanager
    def measured(self) -> Iterator[None]:
        started, before = time.perf_counter(), spent_in_tree(os.getpid())
        yield
        self.clock.append(time.perf_counter() - started)
        self.processor.append(spent_in_tree(os.getpid()) - before)


def nothing(_shared: None, number: int) -> int:
    return number


def same_pairs(ours: Pairs, theirs: Pairs) -> bool:
    return all(np.array_equal(getattr(ours, one.name), getattr(theirs, one.name)) for one in fields(Pairs))


if __name__ == "__main__":
    search_a_million(Path(sys.argv[1]))
