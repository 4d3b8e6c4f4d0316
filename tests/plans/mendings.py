"""What keeps the promises of plans where kinds meet, each to be taken out, so that P25 can be seen to find what happens
without it: `python -m tests.plans.finding P15`. docs/how-it-is-tested.md says how soon.
"""

import asyncio
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import asyncpg
import pytest

from recollect.plan import Look, Premise
from recollect.plans import apply
from recollect.plans.registry import POLICIES
from recollect.plans.sql import blockers, locks, plans, usage, work
from recollect.schedules import run as scheduled
from recollect.store.prepare import open_database

TakeOut = Callable[["Without"], None]


class Without:
    """What is taken out is put back in the end."""

    def __init__(self, url: str, until: ExitStack) -> None:
        self.url, self.until = url, until
        self.patch = until.enter_context(pytest.MonkeyPatch.context())


@contextmanager
def taken_out(name: str, url: str) -> Iterator[None]:
    """A mending is not there for a while; `none` takes nothing out."""
    with ExitStack() as until:
        if name != "none":
            MENDINGS[name](Without(url, until))
        yield


def living_ends(without: Without) -> None:
    """P15: neither the constraint of the database nor the look at where an edge would come back."""

    async def nowhere(*_: Any) -> dict[int, Any]:
        return {}

    without.patch.setattr(work.Work, "_without_a_place", nowhere)
    asyncio.run(_triggers(without.url, "DISABLE"))
    without.until.callback(lambda: asyncio.run(_triggers(without.url, "ENABLE")))
    without.until.callback(
        lambda: asyncio.run(_told(without.url, RETIRE_WHAT_HANGS))
    )  # others look at this database too


RETIRE_WHAT_HANGS = """
UPDATE recollect.edges e SET status = 'pruned' FROM recollect.nodes n
 WHERE n.space_id = e.space_id AND n.id IN (e.source, e.target) AND n.status = 'merged' AND e.status = 'active'
"""


async def _triggers(url: str, what: str) -> None:
    for table, name in (
        ("edges", "inserted_edges_are_doubted"),
        ("edges", "updated_edges_are_doubted"),
        ("nodes", "merged_nodes_have_no_edges"),
    ):
        await _told(url, f"ALTER TABLE recollect.{table} {what} TRIGGER {name}")


async def _told(url: str, statement: str) -> None:
    database = await open_database(url, pool_size=1)
    connection = await asyncpg.connect(database.dsn)
    await connection.execute(statement)
    await connection.close()
    await database.close()


def premises(*names: str) -> TakeOut:
    """P16: what was read of some columns, or found by some tests, is not asked for again."""

    def take_out(without: Without) -> None:
        noted = Look.premises  # less what another mending took out before
        without.patch.setattr(Look, "premises", lambda look, changes: _less(noted(look, changes), names))

    return take_out


def _less(some: Iterable[Premise], names: Collection[str]) -> tuple[Premise, ...]:
    left = ((one, {name: value for name, value in one.must.items() if name not in names}) for one in some)
    return tuple(Premise(table=one.table, id=one.id, must=must) for one, must in left if must)


def never_said_elsewhere(without: Without) -> None:
    """P16: a pair that was declined for good since is merged all the same."""
    premises("not_apart")(without)
    name = "merge_duplicate_concepts"
    without.patch.setitem(POLICIES, name, replace(POLICIES[name], recheck=None))


def bridges_at_the_moment(without: Without) -> None:
    """P17: the graph is looked at when an applying begins, and never again."""

    async def as_it_was(applying: Any, _db: Any) -> int:
        return int(applying.losses)

    async def nobody(_db: Any) -> int:
        return 0

    without.patch.setattr(apply._Applying, "_graph_as_known", as_it_was)
    without.patch.setattr(locks, "hold_graph_alone", nobody)


def who_stands_in_the_way(without: Without) -> None:
    """P18: whoever wrote the row last is named, whether that still stands or not."""

    def last(writes: Any, target: Any, *_: Any) -> Any:
        others = [write.place for write in writes if write.place != target]
        return others[-1] if others else None

    without.patch.setattr(blockers, "last_standing", last)


def use_for_the_redo(without: Without) -> None:
    """P19: the use of what a plan made goes with it."""
    without.patch.setattr(usage, "is_used", lambda _table, _column: "false")


def faded_strength(without: Without) -> None:
    """P19: the difference that a plan made to a strength is taken back whole, however long ago that was."""
    old, new = (f"coalesce((c.{side}->>'strength')::float8, 1)" for side in ("before", "after"))
    without.patch.setattr(
        usage, "strength_taken_back", lambda: f"least(1, greatest(0, coalesce(t.strength, 1) + {new} - {old}))"
    )


def counted_as_it_stands(without: Without) -> None:
    """P22: what is shown of a plan is what was saved with it last."""

    async def as_saved(_db: Any, found: Any) -> list[Any]:
        return list(found)

    without.patch.setattr(plans, "_as_they_stand", as_saved)


def told_of_the_finished(without: Without) -> None:
    """P22: a scheduled run that finishes an older plan says nothing of it."""
    tidied = scheduled._Running._tidied

    async def alone(running: Any) -> Any:
        found = await tidied(running)
        running.finished.clear()
        return found

    without.patch.setattr(scheduled._Running, "_tidied", alone)


def variants(without: Without) -> None:
    """C31: whatever is joined was said before."""

    async def said(*_: Any) -> bool:
        return True

    without.patch.setattr("recollect.concepts.sql.concepts.was_said", said)


USE = ("strength", "activation_count", "reinforce_count", "last_activated_at", "last_reinforced_at")
MENDINGS: dict[str, TakeOut] = {
    "P15": living_ends,
    "P16-parallel": premises("source", "target", "edges_with"),
    "P16-use": premises(*USE),
    "P16-contradicts": premises("edges_with"),
    "P16-links": premises("edges"),
    "P16-never": never_said_elsewhere,
    "P17-race": bridges_at_the_moment,
    "P17-archived": premises("ends"),
    "P18": who_stands_in_the_way,
    "P19-redo": use_for_the_redo,
    "P19-strength": faded_strength,
    "P22-shown": counted_as_it_stands,
    "P22-schedule": told_of_the_finished,
    "C31": variants,
}
