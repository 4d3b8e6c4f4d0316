"""How far one walks to follow a verb (bench/walks.py): a walk may become shorter, not longer by the way."""

import pytest

from bench.walks import by_file, measured
from recollect.engine.engine import Engine

pytestmark = pytest.mark.anyio

# Files at most (docs/adr/0016). Whoever adds one to a walk takes another out of it.
LONGEST = {"recall": 15, "wiki import": 25}


async def test_walks_have_not_become_longer(memory: Engine) -> None:
    found = await measured(memory)
    assert {name: [*by_file(found[name])] for name, most in LONGEST.items() if found[name].files > most} == {}
