"""The text index of SQLite: FTS5 tables over `memory` and `word`, kept up to date by triggers.

The view is what FTS5 reads when it rebuilds; `ns` lets a search stay inside its namespaces. What was softly deleted or
merged into another memory is not in the index.
"""

from __future__ import annotations

INDEXES = ("memory_text", "memory_trigram", "word_trigram")
"""The FTS5 tables."""
DELETED_TEXT = "deleted_text"
"""The entry of the store's metadata that says that they still hold deleted text."""

_COLUMNS = "title, subtitle, content, keywords"
_NEW = "new.id, new.title, new.subtitle, new.content, new.keywords"
_OLD = "old.id, old.title, old.subtitle, old.content, old.keywords"
_SHOWN = "{row}.deleted_at IS NULL AND {row}.merged_into IS NULL"
_PUT = f"""INSERT INTO memory_text(rowid, {_COLUMNS}, ns)
        SELECT {_NEW}, 'ns' || new.namespace_id WHERE {_SHOWN.format(row="new")};
    INSERT INTO memory_trigram(rowid, {_COLUMNS}) SELECT {_NEW} WHERE {_SHOWN.format(row="new")};"""
_TAKE = f"""INSERT INTO memory_text(memory_text, rowid, {_COLUMNS}, ns)
        SELECT 'delete', {_OLD}, 'ns' || old.namespace_id WHERE {_SHOWN.format(row="old")};
    INSERT INTO memory_trigram(memory_trigram, rowid, {_COLUMNS})
        SELECT 'delete', {_OLD} WHERE {_SHOWN.format(row="old")};"""

SCHEMA = (
    f"""CREATE VIEW memory_document AS SELECT id, {_COLUMNS}, 'ns' || namespace_id AS ns FROM memory
    WHERE {_SHOWN.format(row="memory")}""",
    f"""CREATE VIRTUAL TABLE memory_text USING fts5({_COLUMNS}, ns,
    content='memory_document', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2')""",
    f"""CREATE VIRTUAL TABLE memory_trigram USING fts5({_COLUMNS},
    content='memory_document', content_rowid='id', tokenize='trigram', detail='none')""",
    """CREATE VIRTUAL TABLE word_trigram USING fts5(text,
    content='word', content_rowid='id', tokenize='trigram')""",
    f"CREATE TRIGGER memory_text_insert AFTER INSERT ON memory BEGIN {_PUT} END",
    f"CREATE TRIGGER memory_text_delete AFTER DELETE ON memory BEGIN {_TAKE} END",
    # One trigger takes and puts, because SQLite leaves open in which order two of them would run.
    f"""CREATE TRIGGER memory_text_update
    AFTER UPDATE OF {_COLUMNS}, namespace_id, deleted_at, merged_into ON memory BEGIN {_TAKE} {_PUT} END""",
    """CREATE TRIGGER word_trigram_insert AFTER INSERT ON word
    BEGIN INSERT INTO word_trigram(rowid, text) VALUES (new.id, new.text); END""",
    """CREATE TRIGGER word_trigram_delete AFTER DELETE ON word
    BEGIN INSERT INTO word_trigram(word_trigram, rowid, text) VALUES ('delete', old.id, old.text); END""",
    "INSERT INTO memory_text(memory_text, rank) VALUES ('rank', 'bm25(1.0, 1.0, 1.0, 1.0, 0.0)')",
)
"""The statements that make the index."""
