"""Which of several duplicates stays (C08)."""

from enum import StrEnum

from recollect.concepts.rules.detection.columns import ConceptColumns


class Keep(StrEnum):
    OLDER = "prefer_older"
    HIGHER_WEIGHT = "prefer_higher_weight"
    MORE_LINKS = "prefer_more_links"


def keeper_rank(concepts: ConceptColumns, row: int, keep: Keep = Keep.OLDER) -> tuple[object, ...]:
    """The lowest is kept. Ties are settled by age, links, weight, id: never by the order of the rows."""
    age, links, weight = concepts.created[row], -concepts.degree[row], -concepts.weight[row]
    first = {Keep.OLDER: age, Keep.HIGHER_WEIGHT: weight, Keep.MORE_LINKS: links}[keep]
    return (float(first), float(age), int(links), float(weight), concepts.ids[row])
