"""Alembic's entry: the connection is handed in by `run_migrations`, the URL comes from the settings."""

from alembic import context

from recollect.store.migrations import is_ours
from recollect.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    compare_type=True,
    compare_server_default=True,
    include_object=lambda _object, name, type_, _reflected, _compare_to: is_ours(name, type_),
)
with context.begin_transaction():
    context.run_migrations()
