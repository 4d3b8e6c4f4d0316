"""A server of a benchmark's own, in a place that is gone afterwards."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from recollect.store.embedded import EmbeddedServer


@contextmanager
def temporary_server() -> Iterator[EmbeddedServer]:
    directory = Path(tempfile.mkdtemp(prefix="recollect-bench-"))
    directory.chmod(0o755)  # the database's own user must be able to enter it
    try:
        with EmbeddedServer(directory / "home") as server:
            yield server
    finally:
        shutil.rmtree(directory, ignore_errors=True)
