"""Never-merge pairs (C21): what a person said is two things stays two things, under whatever name it goes."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from recollect.concepts.rules.detection.columns import ConceptColumns, Id
from recollect.concepts.rules.names import plain

# As the source document ships it: an example of what a user may add.
NEVER_MERGE_EXAMPLE = (("consciousness", "consciousness_engine"), ("entity", "sub_entity"))


class Apart:
    """Pairs by name (whoever bears it, now or before it was absorbed), and pairs by id (declined ones, P11)."""

    def __init__(self, names: Iterable[tuple[str, str]] = (), ids: Iterable[tuple[Id, Id]] = ()) -> None:
        self._names: defaultdict[str, set[str]] = defaultdict(set)
        self._ids: defaultdict[Id, set[Id]] = defaultdict(set)
        for name, other_name in names:
            self._names[plain(name)].add(plain(other_name))
            self._names[plain(other_name)].add(plain(name))
        for id_, other in ids:
            self._ids[id_].add(other)
            self._ids[other].add(id_)

    @property
    def is_empty(self) -> bool:
        return not self._names and not self._ids

    def forbids(self, concepts: ConceptColumns, rows: Sequence[int]) -> bool:
        """Whether two of these rows must never become one."""
        if self.is_empty:
            return False
        return self.parts_names([all_names(concepts, row) for row in rows]) or self._parts_ids(
            {concepts.ids[row] for row in rows}
        )

    def parts_names(self, named: Sequence[Sequence[str]]) -> bool:
        """Whether names of two different things are kept apart."""
        bearers: defaultdict[str, set[int]] = defaultdict(set)
        for number, names in enumerate(named):
            for name in names:
                bearers[plain(name)].add(number)
        return any(
            len(bearers[name] | bearers[other]) > 1
            for name in bearers.keys() & self._names.keys()
            for other in self._names[name] & bearers.keys()
        )

    def _parts_ids(self, ids: set[Id]) -> bool:
        return any(self._ids[id_] & ids for id_ in ids & self._ids.keys())


def all_names(concepts: ConceptColumns, row: int) -> list[str]:
    """The name of a row and those it has absorbed."""
    return [concepts.names[row], *concepts.aliases.get(row, ())]
