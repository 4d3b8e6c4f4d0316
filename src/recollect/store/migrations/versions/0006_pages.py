"""Pages that come in wait in tables of their own until a plan takes them; a page whose text changes is embedded anew."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

# A memory's text is permanent; that of a case, a concept or a page may change, by a plan or by its undo. Then its words
# are forgotten and its vectors made anew. The job gets a new id: a worker that holds the old text saves nothing.
EMBED_ANEW = (
    """
    CREATE OR REPLACE FUNCTION embed_anew() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE forgotten record;
    BEGIN
        INSERT INTO embedding_jobs (space_id, node_id, model, created_at, due_at)
        SELECT NEW.space_id, NEW.id, known.model, NEW.updated_at, NEW.updated_at FROM (
            SELECT model FROM embeddings WHERE space_id = NEW.space_id AND node_id = NEW.id
             UNION SELECT model FROM embedding_jobs WHERE space_id = NEW.space_id AND node_id = NEW.id) known
        ON CONFLICT (space_id, node_id, model) DO UPDATE
           SET id = gen_random_uuid(), status = 'pending', attempts = 0, error_message = NULL,
               due_at = excluded.due_at, claimed_at = NULL, completed_at = NULL;
        DELETE FROM lexicon WHERE space_id = NEW.space_id AND node_id = NEW.id RETURNING terms, length INTO forgotten;
        IF FOUND THEN
            PERFORM FROM term_stats WHERE space_id = NEW.space_id AND term = ANY(forgotten.terms)
              ORDER BY term FOR UPDATE;
            UPDATE term_stats SET documents = documents - 1
             WHERE space_id = NEW.space_id AND term = ANY(forgotten.terms);
            UPDATE lexicon_totals SET documents = documents - 1, total_length = total_length - forgotten.length
             WHERE space_id = NEW.space_id;
        END IF;
        RETURN NULL;
    END $$
    """,
    """
    CREATE OR REPLACE TRIGGER nodes_are_embedded_anew AFTER UPDATE ON nodes FOR EACH ROW
        WHEN (NEW.kind <> 'memory' AND (OLD.text, OLD.name) IS DISTINCT FROM (NEW.text, NEW.name))
        EXECUTE FUNCTION embed_anew()
    """,
)


def upgrade() -> None:
    op.create_table(
        "page_batches",
        sa.Column("space_id", sa.Uuid, sa.ForeignKey("spaces.id", name="page_batches_space_id_fkey"), nullable=False),
        sa.Column("id", sa.Uuid, nullable=False),
        sa.Column("about", JSONB, nullable=False, server_default=sa.text("'{}'::jsonb")),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()),
        sa.PrimaryKeyConstraint("space_id", "id", name="page_batches_pkey"),
    )
    op.create_table(
        "incoming_pages",
        sa.Column("space_id", sa.Uuid, sa.ForeignKey("spaces.id", name="incoming_pages_space_id_fkey"), nullable=False),
        sa.Column("batch", sa.Uuid, nullable=False),
        sa.Column("page_id", sa.Text, nullable=False),
        sa.Column("place", sa.Integer, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("planned", JSONB, nullable=False, server_default=sa.text("'{}'::jsonb")),
        sa.PrimaryKeyConstraint("space_id", "batch", "page_id", name="incoming_pages_pkey"),
        sa.ForeignKeyConstraint(
            ["space_id", "batch"],
            ["page_batches.space_id", "page_batches.id"],
            name="incoming_pages_space_id_batch_fkey",
        ),
    )
    for table in ("page_batches", "incoming_pages"):
        op.execute(f"ALTER TABLE {table} ALTER COLUMN space_id SET STATISTICS 0")  # as in 0001
        op.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        op.execute(
            f"CREATE POLICY space ON {table} "
            "USING (space_id = (SELECT nullif(current_setting('recollect.space', true), '')::uuid))"
        )
    for statement in EMBED_ANEW:
        op.get_bind().exec_driver_sql(statement)


def downgrade() -> None:
    op.execute("DROP TRIGGER nodes_are_embedded_anew ON nodes")
    op.execute("DROP FUNCTION embed_anew()")
    op.drop_table("incoming_pages")
    op.drop_table("page_batches")
