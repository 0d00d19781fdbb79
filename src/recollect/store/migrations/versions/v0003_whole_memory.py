"""Facts, memories that gave way to others, and vectors of another model beside those in use.

What was softly deleted or merged into another memory leaves the text index, which so shows what can be recalled.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

Moment = sa.DateTime(timezone=True)


def upgrade() -> None:
    op.add_column("memory", sa.Column("ttl_days", sa.Float(), nullable=True))
    op.add_column("memory", sa.Column("superseded_by", sa.Integer(), nullable=True))
    op.add_column("memory", sa.Column("merged_into", sa.Integer(), nullable=True))
    for column in ("superseded_by", "merged_into"):
        known = sa.text(f"{column} IS NOT NULL")
        op.create_index(f"ix_memory_{column}", "memory", [column], sqlite_where=known, postgresql_where=known)
    _fact()
    _beside()
    if op.get_bind().dialect.name == "sqlite":
        for statement in _SHOWN_TEXT:
            op.execute(statement)


def _fact() -> None:
    op.create_table(
        "fact",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("namespace_id", sa.Integer(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("predicate", sa.Text(), nullable=False),
        sa.Column("object", sa.Text(), nullable=False),
        sa.Column("subject_folded", sa.Text(), nullable=False),
        sa.Column("predicate_folded", sa.Text(), nullable=False),
        sa.Column("object_hash", sa.String(64), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("memory_id", sa.Integer(), nullable=True),
        sa.Column("valid_from", Moment, nullable=False),
        sa.Column("valid_to", Moment, nullable=True),
        sa.Column("sensitivity", sa.Text(), nullable=False),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("updated_at", Moment, nullable=False),
        sa.ForeignKeyConstraint(["namespace_id"], ["namespace.id"], name="fk_fact_namespace_id_namespace"),
        sa.ForeignKeyConstraint(["memory_id"], ["memory.id"], name="fk_fact_memory_id_memory", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("id", name="pk_fact"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "ix_fact_namespace_id_subject_folded", "fact", ["namespace_id", "subject_folded", "predicate_folded"]
    )
    op.create_index("ix_fact_namespace_id_predicate_folded", "fact", ["namespace_id", "predicate_folded"])
    op.create_index("ix_fact_namespace_id_object_hash", "fact", ["namespace_id", "object_hash"])
    op.create_index("ix_fact_memory_id", "fact", ["memory_id"])


def _beside() -> None:
    op.create_table(
        "vector_beside",
        sa.Column("memory_id", sa.Integer(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("stop", sa.Integer(), nullable=False),
        sa.Column("embedding", sa.LargeBinary(), nullable=False),
        sa.Column("tokens", sa.LargeBinary(), nullable=True),
        sa.Column("content_hash", sa.String(64), nullable=False),
        sa.ForeignKeyConstraint(
            ["memory_id"], ["memory.id"], name="fk_vector_beside_memory_id_memory", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("memory_id", "ordinal", name="pk_vector_beside"),
    )


# One trigger takes and puts, because SQLite leaves open in which order two of them would run.
_COLUMNS = "title, subtitle, content, keywords"
_SHOWN = "{row}.deleted_at IS NULL AND {row}.merged_into IS NULL"
_NEW = "new.id, new.title, new.subtitle, new.content, new.keywords"
_OLD = "old.id, old.title, old.subtitle, old.content, old.keywords"
_PUT = f"""INSERT INTO memory_text(rowid, {_COLUMNS}, ns)
        SELECT {_NEW}, 'ns' || new.namespace_id WHERE {_SHOWN.format(row="new")};
    INSERT INTO memory_trigram(rowid, {_COLUMNS}) SELECT {_NEW} WHERE {_SHOWN.format(row="new")};"""
_TAKE = f"""INSERT INTO memory_text(memory_text, rowid, {_COLUMNS}, ns)
        SELECT 'delete', {_OLD}, 'ns' || old.namespace_id WHERE {_SHOWN.format(row="old")};
    INSERT INTO memory_trigram(memory_trigram, rowid, {_COLUMNS})
        SELECT 'delete', {_OLD} WHERE {_SHOWN.format(row="old")};"""

_SHOWN_TEXT = (
    "DROP TRIGGER memory_text_insert",
    "DROP TRIGGER memory_text_delete",
    "DROP TRIGGER memory_text_update",
    "DROP VIEW memory_document",
    f"""CREATE VIEW memory_document AS SELECT id, {_COLUMNS}, 'ns' || namespace_id AS ns FROM memory
    WHERE {_SHOWN.format(row="memory")}""",
    f"CREATE TRIGGER memory_text_insert AFTER INSERT ON memory BEGIN {_PUT} END",
    f"CREATE TRIGGER memory_text_delete AFTER DELETE ON memory BEGIN {_TAKE} END",
    f"""CREATE TRIGGER memory_text_update
    AFTER UPDATE OF {_COLUMNS}, namespace_id, deleted_at, merged_into ON memory
    BEGIN {_TAKE} {_PUT} END""",
)
