"""The migrations, inside the package: one file a change, an applied one is never edited (D41)."""

from pathlib import Path

from sqlalchemy import Connection

HERE = Path(__file__).parent
# Files are named by their revision ("0001_initial.py"), so the newest is known without loading Alembic.
HEAD = max(file.name[:4] for file in (HERE / "versions").glob("[0-9]*.py"))


def is_ours(name: str | None, type_: str) -> bool:
    """Leaves the indexes that are made at run time (one an embedding model) out of autogenerate."""
    return not (type_ == "index" and name is not None and name.startswith("embeddings_hnsw_"))


def run_migrations(connection: Connection, command: str, revision: str) -> None:
    """Run one Alembic command on an open connection, inside its transaction."""
    from alembic import command as commands
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(HERE).replace("%", "%%"))
    config.attributes["connection"] = connection
    getattr(commands, command)(config, revision)
