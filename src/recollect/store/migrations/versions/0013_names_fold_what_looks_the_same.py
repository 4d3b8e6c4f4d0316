"""Names are looked up in a form that folds compatibility characters and leaves out what no reader sees (C34).

Names stored before are brought into that form, those of the never-merge list too; plain ASCII is in it already.
"""

from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

INVISIBLE = r"[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff]"
FOLDED = f"btrim(regexp_replace(normalize(lower(normalize(regexp_replace({{0}}, '{INVISIBLE}', '', 'g'), NFKC)), NFKC), '\\s+', ' ', 'g'))"
BEYOND_ASCII = r"{0} ~ '[^\u0001-\u007F]'"


def upgrade() -> None:
    alias, beyond = FOLDED.format("alias"), BEYOND_ASCII.format("alias")
    op.execute(
        f"""INSERT INTO aliases (space_id, kind, subtype, alias, node_id, created_at)
            SELECT space_id, kind, subtype, {alias}, node_id, created_at FROM aliases
             WHERE kind = 'concept' AND {beyond} AND {alias} <> alias AND {alias} <> '' ON CONFLICT DO NOTHING"""
    )
    op.execute(f"DELETE FROM aliases WHERE kind = 'concept' AND {beyond} AND {alias} <> alias AND {alias} <> ''")
    a, b = FOLDED.format("a"), FOLDED.format("b")
    op.execute(
        f"""INSERT INTO never_merge (space_id, a, b, reason, until, state, created_at)
            SELECT space_id, least({a} COLLATE "C", {b} COLLATE "C"), greatest({a} COLLATE "C", {b} COLLATE "C"),
                   reason, until, state, created_at
              FROM never_merge WHERE ({BEYOND_ASCII.format("a")} OR {BEYOND_ASCII.format("b")})
               AND ({a} <> a OR {b} <> b) AND {a} <> {b} ON CONFLICT DO NOTHING"""
    )


def downgrade() -> None:
    """Names in the new form are names in the old form too."""
