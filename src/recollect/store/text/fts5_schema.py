"""The text index of SQLite: FTS5 tables over `memory` and `word`, kept up to date by triggers.

The view is what FTS5 reads when it rebuilds. What was softly deleted or merged into another memory is not in the index.
How long each text is stands beside its namespace and level, so that bm25 counts only what a caller may see.
"""

from __future__ import annotations

import re

INDEXES = ("memory_text", "memory_trigram", "word_trigram")
"""The FTS5 tables."""
DELETED_TEXT = "deleted_text"
"""The entry of the store's metadata that says that they still hold deleted text."""

_PART = re.compile(r"CREATE (?:VIRTUAL )?(VIEW|TABLE|TRIGGER) (\w+)")
_SHADOWS = ("data", "idx", "docsize", "config")  # the tables in which FTS5 keeps an index
_COLUMNS = "title, subtitle, content, keywords"
_NEW = "new.id, new.title, new.subtitle, new.content, new.keywords"
_OLD = "old.id, old.title, old.subtitle, old.content, old.keywords"
_SHOWN = "{row}.deleted_at IS NULL AND {row}.merged_into IS NULL"
_LENGTH = """{row}.id, {row}.namespace_id, {row}.sensitivity,
        length({row}.title) + length({row}.subtitle) + length({row}.content) + length({row}.keywords)"""
_PUT = f"""INSERT INTO memory_text(rowid, {_COLUMNS}) SELECT {_NEW} WHERE {_SHOWN.format(row="new")};
    INSERT INTO memory_trigram(rowid, {_COLUMNS}) SELECT {_NEW} WHERE {_SHOWN.format(row="new")};
    INSERT INTO text_length SELECT {_LENGTH.format(row="new")} WHERE {_SHOWN.format(row="new")};"""
_TAKE = f"""INSERT INTO memory_text(memory_text, rowid, {_COLUMNS})
        SELECT 'delete', {_OLD} WHERE {_SHOWN.format(row="old")};
    INSERT INTO memory_trigram(memory_trigram, rowid, {_COLUMNS})
        SELECT 'delete', {_OLD} WHERE {_SHOWN.format(row="old")};
    DELETE FROM text_length WHERE memory_id = old.id;"""

LENGTHS = f"SELECT {_LENGTH.format(row='memory')} FROM memory WHERE {_SHOWN.format(row='memory')}"
"""Selects the rows that `text_length` holds."""
_HELD = "SELECT * FROM text_length"
_COUNTED = "SELECT * FROM text_size WHERE memories != 0"
_SIZES = "SELECT namespace_id, sensitivity, count(*), sum(length) FROM text_length GROUP BY namespace_id, sensitivity"
LENGTHS_DIFFER = "SELECT " + " OR ".join(
    f"EXISTS ({one} EXCEPT {two})"
    for one, two in ((_HELD, LENGTHS), (LENGTHS, _HELD), (_COUNTED, _SIZES), (_SIZES, _COUNTED))
)
"""Says whether the lengths, or their sums, are not those of the memories."""

SQLITE_SCHEMA = (
    f"CREATE VIEW memory_document AS SELECT id, {_COLUMNS} FROM memory WHERE {_SHOWN.format(row='memory')}",
    f"""CREATE VIRTUAL TABLE memory_text USING fts5({_COLUMNS},
    content='memory_document', content_rowid='id', tokenize='porter unicode61 remove_diacritics 2')""",
    "CREATE VIRTUAL TABLE memory_text_place USING fts5vocab(memory_text, instance)",
    f"""CREATE VIRTUAL TABLE memory_trigram USING fts5({_COLUMNS},
    content='memory_document', content_rowid='id', tokenize='trigram', detail='none')""",
    """CREATE VIRTUAL TABLE word_trigram USING fts5(text,
    content='word', content_rowid='id', tokenize='trigram')""",
    """CREATE TABLE text_length (memory_id INTEGER PRIMARY KEY, namespace_id INTEGER NOT NULL,
    sensitivity TEXT NOT NULL, length INTEGER NOT NULL)""",
    """CREATE TABLE text_size (namespace_id INTEGER NOT NULL, sensitivity TEXT NOT NULL, memories INTEGER NOT NULL,
    length INTEGER NOT NULL, PRIMARY KEY (namespace_id, sensitivity))""",
    """CREATE TRIGGER text_length_insert AFTER INSERT ON text_length BEGIN
    INSERT INTO text_size VALUES (new.namespace_id, new.sensitivity, 1, new.length) ON CONFLICT DO UPDATE
        SET memories = memories + 1, length = length + excluded.length; END""",
    """CREATE TRIGGER text_length_delete AFTER DELETE ON text_length BEGIN
    UPDATE text_size SET memories = memories - 1, length = length - old.length
        WHERE namespace_id = old.namespace_id AND sensitivity = old.sensitivity; END""",
    f"CREATE TRIGGER memory_text_insert AFTER INSERT ON memory BEGIN {_PUT} END",
    f"CREATE TRIGGER memory_text_delete AFTER DELETE ON memory BEGIN {_TAKE} END",
    # One trigger takes and puts, because SQLite leaves open in which order two of them would run.
    f"""CREATE TRIGGER memory_text_update AFTER UPDATE OF {_COLUMNS}, namespace_id, sensitivity, deleted_at, merged_into
    ON memory BEGIN {_TAKE} {_PUT} END""",
    """CREATE TRIGGER word_trigram_insert AFTER INSERT ON word
    BEGIN INSERT INTO word_trigram(rowid, text) VALUES (new.id, new.text); END""",
    """CREATE TRIGGER word_trigram_delete AFTER DELETE ON word
    BEGIN INSERT INTO word_trigram(word_trigram, rowid, text) VALUES ('delete', old.id, old.text); END""",
)
"""The statements that make the index."""
_MADE = [found.groups() for statement in SQLITE_SCHEMA if (found := _PART.match(statement))]
_SHADOW_TABLES = [f"{name}_{shadow}" for name in INDEXES for shadow in _SHADOWS]
PARTS = frozenset([*(name for _, name in _MADE), *_SHADOW_TABLES])
"""The names of all that the statements make."""
UNLISTED = (
    "PRAGMA writable_schema = ON",
    "DELETE FROM sqlite_master WHERE type = 'table' AND sql LIKE 'CREATE VIRTUAL TABLE%' AND name IN "
    f"({', '.join(f'{name!r}' for _, name in _MADE)})",
    "PRAGMA writable_schema = RESET",
)
"""The statements that forget the virtual tables: SQLite opens a table to drop it, and cannot open a damaged table."""
DROPPED = (
    *(f"DROP {kind} IF EXISTS {name}" for kind, name in reversed(_MADE)),
    *(f"DROP TABLE IF EXISTS {name}" for name in _SHADOW_TABLES),
)
"""The statements that take the index away, also a part of it."""
FILLED = (
    *(f"INSERT INTO {name}({name}) VALUES ('rebuild')" for name in INDEXES),
    f"INSERT INTO text_length {LENGTHS}",
)
"""The statements that fill a new index from the memories and the words."""
