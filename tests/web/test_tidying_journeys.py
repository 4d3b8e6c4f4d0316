"""Journeys through plans, cases, pages and settings in a real browser."""

from typing import TYPE_CHECKING

import pytest

from tests.web import test_web_support as support
from tests.web.test_web_support import House, serious

if TYPE_CHECKING:
    from playwright.sync_api import Page

browser, address, house = support.browser, support.address, support.house

NARROW, WIDE = {"width": 360, "height": 740}, {"width": 1900, "height": 1000}
PRUNE = {"policy": "prune", "options": {"min_inactive_days": 0}}


def weak_graph(house: House, rim: int = 4) -> list[str]:
    """A hub with strong spokes, and links along the rim that have grown weak; the ids of the weak ones."""
    names = [f"{what} in the kitchen" for what in ("The kettle", "The green tea", "A sieve", "The tray", "A lemon")]
    names += [f"Shelf {number} of the pantry" for number in range(rim)]
    hub, *others = (house.add(name) for name in names[: rim + 2])

    def linked(source: str, target: str, strength: float) -> str:
        link = {"source": source, "target": target, "strength": strength, "created_by": "auto"}
        return str(house.said("POST", "/edges", link)["id"])

    for other in others:
        linked(hub, other, 0.9)
    return [linked(a, b, 0.01 * (at % 3 + 1)) for at, (a, b) in enumerate(zip(others, others[1:], strict=False))]


def statuses(house: House, edges: list[str]) -> list[str]:
    return [house.said("GET", f"/edges/{edge}")["status"] for edge in edges]
