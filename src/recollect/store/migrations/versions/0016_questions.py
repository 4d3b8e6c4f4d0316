"""Open questions, whether two are one, are kept until they are answered or their sides change (C36)."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "questions",
        sa.Column("space_id", sa.Uuid, sa.ForeignKey("spaces.id", name="questions_space_id_fkey"), nullable=False),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("policy", sa.Text, nullable=False),
        sa.Column("keep", sa.Uuid, nullable=False),
        sa.Column("other", sa.Uuid, nullable=False),
        sa.Column("keep_version", sa.Integer, nullable=False),
        sa.Column("other_version", sa.Integer, nullable=False),
        sa.Column("probability", sa.Double, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("factors", JSONB, nullable=False, server_default=sa.text("'{}'::jsonb")),
        sa.Column("asked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("postponed_at", sa.DateTime(timezone=True)),
        sa.Column("answer", sa.Text),
        sa.Column("answered_at", sa.DateTime(timezone=True)),
        sa.Column("answered_by", sa.Text),
        sa.Column("outcome", JSONB, nullable=False, server_default=sa.text("'{}'::jsonb")),
        sa.PrimaryKeyConstraint("space_id", "number", name="questions_pkey"),
        sa.ForeignKeyConstraint(
            ["space_id", "keep"], ["nodes.space_id", "nodes.id"], name="questions_space_id_keep_fkey"
        ),
        sa.ForeignKeyConstraint(
            ["space_id", "other"], ["nodes.space_id", "nodes.id"], name="questions_space_id_other_fkey"
        ),
        sa.CheckConstraint("keep <> other", name="questions_two"),
        sa.CheckConstraint("answer IN ('merge', 'separate', 'never')", name="questions_answer"),
        sa.CheckConstraint("(answer IS NULL) = (answered_at IS NULL)", name="questions_answered"),
    )
    op.execute("CREATE UNIQUE INDEX questions_pair ON questions (space_id, least(keep, other), greatest(keep, other))")
    op.execute("CREATE INDEX questions_open ON questions (space_id) WHERE answer IS NULL")
    op.execute("ALTER TABLE questions ALTER COLUMN space_id SET STATISTICS 0")  # as in 0001
    op.execute("ALTER TABLE questions ENABLE ROW LEVEL SECURITY")
    op.execute(
        "CREATE POLICY space ON questions "
        "USING (space_id = (SELECT nullif(current_setting('recollect.space', true), '')::uuid))"
    )


def downgrade() -> None:
    op.drop_table("questions")
