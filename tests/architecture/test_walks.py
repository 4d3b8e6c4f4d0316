"""How far one walks to follow a verb (bench/walks.py): a walk may become shorter, not longer by the way."""

import pytest

from bench.walks import by_file, measured
from recollect.engine.engine import Engine

pytestmark = pytest.mark.anyio

# Files at most. Whoever adds one to a walk says here why it is worth opening; 15 and 25 are wanted (docs/adr/0016).
# Two are how a transaction is begun and ended, and at which server (store/connections.py, store/standby.py).
# One says how carefully the index is searched (recall/rules/pace.py).
LONGEST = {"recall": 22, "wiki import": 34}


async def test_walks_have_not_become_longer(memory: Engine) -> None:
    found = await measured(memory)
    assert {name: [*by_file(found[name])] for name, most in LONGEST.items() if found[name].files > most} == {}
