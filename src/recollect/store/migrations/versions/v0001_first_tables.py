"""The first tables: memories with their children, vectors and vocabulary, the outbox, the journal, the text index."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None

Moment = sa.DateTime(timezone=True)
Json = sa.JSON().with_variant(postgresql.JSONB(astext_type=sa.Text()), "postgresql")


def upgrade() -> None:
    _namespace()
    _memory()
    _children()
    _derived()
    _journal()
    sqlite = op.get_bind().dialect.name == "sqlite"
    for statement in (*_SQLITE_JOURNAL, *_SQLITE_TEXT) if sqlite else _POSTGRES_JOURNAL:
        op.execute(statement)


def _namespace() -> None:
    op.create_table(
        "namespace",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_namespace"),
        sa.UniqueConstraint("name", name="uq_namespace_name"),
    )


def _memory() -> None:
    op.create_table(
        "memory",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("namespace_id", sa.Integer(), nullable=False),
        sa.Column("key", sa.Text(), nullable=True),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("subtitle", sa.Text(), nullable=False),
        sa.Column("abstract", sa.Text(), nullable=False),
        sa.Column("overview", sa.Text(), nullable=False),
        sa.Column("keywords", sa.Text(), nullable=False),
        sa.Column("fact_type", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=True),
        sa.Column("category", sa.Text(), nullable=True),
        sa.Column("importance", sa.Float(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("trust", sa.Float(), nullable=False),
        sa.Column("sensitivity", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.Column("project", sa.Text(), nullable=True),
        sa.Column("discovery_tokens", sa.Integer(), nullable=True),
        sa.Column("speaker", sa.Text(), nullable=True),
        sa.Column("position", sa.Integer(), nullable=True),
        sa.Column("author", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.String(64), nullable=False),
        sa.Column("created_at", Moment, nullable=False),
        sa.Column("updated_at", Moment, nullable=False),
        sa.Column("observed_at", Moment, nullable=True),
        sa.Column("expires_at", Moment, nullable=True),
        sa.Column("deleted_at", Moment, nullable=True),
        sa.ForeignKeyConstraint(["namespace_id"], ["namespace.id"], name="fk_memory_namespace_id_namespace"),
        sa.PrimaryKeyConstraint("id", name="pk_memory"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_memory_expires_at", "memory", ["expires_at"])
    op.create_index("ix_memory_namespace_id_category", "memory", ["namespace_id", "category"])
    op.create_index("ix_memory_namespace_id_content_hash", "memory", ["namespace_id", "content_hash"])
    op.create_index("ix_memory_namespace_id_speaker", "memory", ["namespace_id", "speaker"])
    op.create_index("ix_memory_namespace_id_created_at", "memory", ["namespace_id", "created_at"])
    op.create_index("ix_memory_namespace_id_fact_type", "memory", ["namespace_id", "fact_type"])
    op.create_index("ix_memory_session_id", "memory", ["session_id"])
    op.create_index("uq_memory_namespace_id_key", "memory", ["namespace_id", "key"], unique=True)


def _children() -> None:
    op.create_table(
        "label",
        sa.Column("memory_id", sa.Integer(), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["memory_id"], ["memory.id"], name="fk_label_memory_id_memory", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("memory_id", "kind", "position", name="pk_label"),
    )
    op.create_index("ix_label_kind_value", "label", ["kind", "value"])
    op.create_table(
        "usage",
        sa.Column("memory_id", sa.Integer(), nullable=False),
        sa.Column("accessed_count", sa.Integer(), nullable=False),
        sa.Column("recalled_count", sa.Integer(), nullable=False),
        sa.Column("last_accessed_at", Moment, nullable=True),
        sa.ForeignKeyConstraint(["memory_id"], ["memory.id"], name="fk_usage_memory_id_memory", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("memory_id", name="pk_usage"),
    )
    op.create_table(
        "memory_words",
        sa.Column("memory_id", sa.Integer(), nullable=False),
        sa.Column("words", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["memory_id"], ["memory.id"], name="fk_memory_words_memory_id_memory", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("memory_id", name="pk_memory_words"),
    )


def _derived() -> None:
    op.create_table(
        "vector",
        sa.Column("memory_id", sa.Integer(), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("start", sa.Integer(), nullable=False),
        sa.Column("stop", sa.Integer(), nullable=False),
        sa.Column("embedding", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["memory_id"], ["memory.id"], name="fk_vector_memory_id_memory", ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("memory_id", "ordinal", name="pk_vector"),
    )
    op.create_table(
        "outbox",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("memory_id", sa.Integer(), nullable=False),
        sa.Column("namespace_id", sa.Integer(), nullable=False),
        sa.Column("chunks", sa.Integer(), nullable=False),
        sa.Column("embedded", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_outbox"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_outbox_memory_id", "outbox", ["memory_id"])
    op.create_index("ix_outbox_namespace_id", "outbox", ["namespace_id"])
    op.create_table(
        "word",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("namespace_id", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("uses", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(["namespace_id"], ["namespace.id"], name="fk_word_namespace_id_namespace"),
        sa.PrimaryKeyConstraint("id", name="pk_word"),
        sqlite_autoincrement=True,
    )
    op.create_index("uq_word_namespace_id_text", "word", ["namespace_id", "text"], unique=True)


def _journal() -> None:
    op.create_table(
        "answered",
        sa.Column("request_id", sa.String(64), nullable=False),
        sa.Column("done", sa.String(20), nullable=False),
        sa.Column("memory_id", sa.Text(), nullable=False),
        sa.Column("at", Moment, nullable=False),
        sa.PrimaryKeyConstraint("request_id", name="pk_answered"),
    )
    op.create_index("ix_answered_at", "answered", ["at"])
    op.create_table(
        "stamp",
        sa.Column("name", sa.String(50), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_stamp"),
    )
    op.create_table(
        "journal",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", Moment, nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("namespace", sa.Text(), nullable=False),
        sa.Column("action", sa.String(20), nullable=False),
        sa.Column("memory_id", sa.Integer(), nullable=True),
        sa.Column("changes", Json, nullable=False),
        sa.Column("previous", sa.String(64), nullable=False),
        sa.Column("hash", sa.String(64), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_journal"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_journal_memory_id", "journal", ["memory_id"])


_SQLITE_JOURNAL = (
    """CREATE TRIGGER journal_no_update BEFORE UPDATE ON journal
    BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END""",
    """CREATE TRIGGER journal_no_delete BEFORE DELETE ON journal
    BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END""",
    """CREATE TRIGGER journal_no_replace BEFORE INSERT ON journal WHEN new.id IN (SELECT id FROM journal)
    BEGIN SELECT RAISE(ABORT, 'the journal is append-only'); END""",
)

_POSTGRES_JOURNAL = (
    """CREATE FUNCTION journal_append_only() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION 'the journal is append-only'; END $$""",
    """CREATE TRIGGER journal_no_change BEFORE UPDATE OR DELETE ON journal
    FOR EACH ROW EXECUTE FUNCTION journal_append_only()""",
    """CREATE TRIGGER journal_no_truncate BEFORE TRUNCATE ON journal
    FOR EACH STATEMENT EXECUTE FUNCTION journal_append_only()""",
)

# The view is what FTS5 reads when it rebuilds; `ns` lets a search stay inside its namespaces.
_COLUMNS = "title, subtitle, content, keywords"
_NEW = "new.id, new.title, new.subtitle, new.content, new.keywords"
_OLD = "old.id, old.title, old.subtitle, old.content, old.keywords"
_PUT = f"""INSERT INTO memory_text(rowid, {_COLUMNS}, ns) VALUES ({_NEW}, 'ns' || new.namespace_id);
    INSERT INTO memory_trigram(rowid, {_COLUMNS}) VALUES ({_NEW});"""
_TAKE = f"""INSERT INTO memory_text(memory_text, rowid, {_COLUMNS}, ns)
        VALUES ('delete', {_OLD}, 'ns' || old.namespace_id);
    INSERT INTO memory_trigram(memory_trigram, rowid, {_COLUMNS}) VALUES ('delete', {_OLD});"""

_SQLITE_TEXT = (
    f"CREATE VIEW memory_document AS SELECT id, {_COLUMNS}, 'ns' || namespace_id AS ns FROM memory",
    f"""CREATE VIRTUAL TABLE memory_text USING fts5({_COLUMNS}, ns,
    content='memory_document', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2')""",
    f"""CREATE VIRTUAL TABLE memory_trigram USING fts5({_COLUMNS},
    content='memory_document', content_rowid='id', tokenize='trigram', detail='none')""",
    """CREATE VIRTUAL TABLE word_trigram USING fts5(text,
    content='word', content_rowid='id', tokenize='trigram')""",
    f"CREATE TRIGGER memory_text_insert AFTER INSERT ON memory BEGIN {_PUT} END",
    f"CREATE TRIGGER memory_text_delete AFTER DELETE ON memory BEGIN {_TAKE} END",
    f"""CREATE TRIGGER memory_text_update AFTER UPDATE OF {_COLUMNS}, namespace_id ON memory
    BEGIN {_TAKE} {_PUT} END""",
    """CREATE TRIGGER word_trigram_insert AFTER INSERT ON word
    BEGIN INSERT INTO word_trigram(rowid, text) VALUES (new.id, new.text); END""",
    """CREATE TRIGGER word_trigram_delete AFTER DELETE ON word
    BEGIN INSERT INTO word_trigram(word_trigram, rowid, text) VALUES ('delete', old.id, old.text); END""",
    "INSERT INTO memory_text(memory_text, rank) VALUES ('rank', 'bm25(1.0, 1.0, 1.0, 1.0, 0.0)')",
)
