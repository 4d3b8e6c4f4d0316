"""Frameworks and their adapters, over real memories."""

import asyncio
from collections.abc import Iterator

import pytest

from recollect import Recollect
from recollect.settings import Settings
from tests.conftest import fresh_space


@pytest.fixture
def here(settings: Settings) -> Iterator[Recollect]:
    """A memory without `await`, in a space of its own."""
    with Recollect(settings=asyncio.run(fresh_space(settings))) as memory:
        yield memory
