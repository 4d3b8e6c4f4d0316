"""The PostgreSQL inside: a real server, started on first use and stopped by the last one out.

    with EmbeddedServer(home) as server:
        connect(server.url)

Three locks in the home directory carry the whole protocol. They are flocks, so the kernel drops each of them with the
process that held it, however it ended:

    turn.lock     exclusive, for a moment: one process at a time starts, joins or stops
    users.lock    shared: held by everyone who uses the server; whoever can take it alone is the last one out
    server.lock   exclusive: inherited by the server's own processes, so it says without process ids (which are re-used,
                  become zombies, and mean nothing in another container) whether anything of the server still lives

Whether the server is of use is asked by `SELECT 1` and by nothing else. The layout of a home:

    <home>/*.lock   <home>/postgres/data (the cluster)   <home>/postgres/server.log

The parts: account (who runs the server), binaries (what is run), home (where), sockets (how it is reached), tuning (its
settings), making (a new cluster), processes (who lives), log, locks, cluster (up and down), server (what others use).
"""

from recollect.store.embedded.account import clean_environment
from recollect.store.embedded.binaries import VERSIONS, Binaries, tool
from recollect.store.embedded.home import default_home
from recollect.store.embedded.server import EmbeddedServer

__all__ = ["VERSIONS", "Binaries", "EmbeddedServer", "clean_environment", "default_home", "tool"]
