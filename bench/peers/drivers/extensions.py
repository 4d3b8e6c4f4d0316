"""A sqlite3 that can load extensions, for peers that need one, where this Python was built without."""

import sqlite3
import sys


def allow_extensions() -> None:
    """Before the peer is imported: whoever asks for sqlite3 then gets the one that can."""
    if not hasattr(sqlite3.Connection, "enable_load_extension"):
        import pysqlite3

        sys.modules["sqlite3"] = pysqlite3
        sys.modules["sqlite3.dbapi2"] = pysqlite3.dbapi2
