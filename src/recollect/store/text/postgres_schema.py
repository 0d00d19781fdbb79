"""The text index of PostgreSQL: the words of each memory, kept beside its row and counted by namespace, by triggers.

Each memory has a generated `tsvector` of its words as SQLite's FTS5 would cut and stem them. `posting` holds a row for
each word of each memory that is shown, in the order in which a search asks: a GIN index of the vectors knows no
namespaces, so that its cost would follow what all tenants store. `text_size` counts the texts and their characters.
"""

from __future__ import annotations

from typing import Final

EVERYTHING: Final = "title || E'\\n' || subtitle || E'\\n' || content || E'\\n' || keywords"
"""The text in which pieces are looked for, as the index of its trigrams has it."""
WORD_PIECES: Final = "(text || '')"
"""A stored word, in which pieces are looked for, as the index of its trigrams has it.

On the plain column it would serve `=` too. PostgreSQL takes it for cheap, and reads a hundred pages for each word.
"""
_VISIBLE: Final = "{row}.deleted_at IS NULL AND {row}.merged_into IS NULL"
_POSTINGS: Final = """SELECT {row}.namespace_id, {row}.sensitivity, lexeme, {row}.id, cardinality(positions),
    {row}.text_length"""
_TOTALS: Final = "SELECT namespace_id, sensitivity, count(*) AS memories, sum(text_length) AS length FROM memory"

_STATED: Final = (
    f"{_POSTINGS.format(row='memory')} FROM memory, unnest(memory.text_vector) WHERE {_VISIBLE.format(row='memory')}"
)
FILLED: Final = (
    f"INSERT INTO posting {_STATED}",
    f"INSERT INTO text_size {_TOTALS} WHERE {_VISIBLE.format(row='memory')} GROUP BY namespace_id, sensitivity",
)
"""The statements that fill the emptied index from the memories."""

_STORED: Final = "SELECT * FROM posting"
_STORED_TOTALS: Final = "SELECT namespace_id, sensitivity, memories, length FROM text_size WHERE memories != 0"
_COUNTS: Final = f"{_TOTALS} WHERE {_VISIBLE.format(row='memory')} GROUP BY namespace_id, sensitivity"
DIFFERS: Final = "SELECT " + " OR ".join(
    f"EXISTS ({one} EXCEPT {two})"
    for one, two in (
        (_STORED, _STATED),
        (_STATED, _STORED),
        (_STORED_TOTALS, _COUNTS),
        (_COUNTS, _STORED_TOTALS),
    )
)
"""Says whether the index is not that of the memories."""

INDEXED: Final = f"""CREATE FUNCTION memory_indexed() RETURNS trigger LANGUAGE plpgsql
    SET enable_seqscan = off AS $$ DECLARE word text; BEGIN
    IF TG_OP <> 'INSERT' AND {_VISIBLE.format(row="OLD")} THEN
        FOREACH word IN ARRAY tsvector_to_array(OLD.text_vector) LOOP
            DELETE FROM posting WHERE namespace_id = OLD.namespace_id AND sensitivity = OLD.sensitivity
                AND term = word AND memory_id = OLD.id;
        END LOOP;
        UPDATE text_size SET memories = memories - 1, length = length - OLD.text_length
            WHERE namespace_id = OLD.namespace_id AND sensitivity = OLD.sensitivity;
    END IF;
    IF TG_OP <> 'DELETE' AND {_VISIBLE.format(row="NEW")} THEN
        INSERT INTO posting {_POSTINGS.format(row="NEW")} FROM unnest(NEW.text_vector);
        INSERT INTO text_size VALUES (NEW.namespace_id, NEW.sensitivity, 1, NEW.text_length)
            ON CONFLICT (namespace_id, sensitivity) DO UPDATE
            SET memories = text_size.memories + 1, length = text_size.length + excluded.length;
    END IF;
    RETURN NULL; END $$"""
"""Keeps the index. Words go one by one, each by its key: planned as one statement, each may be compared with each, or
the whole namespace be read."""

POSTGRES_SCHEMA: Final = (
    "CREATE TEXT SEARCH DICTIONARY recollect_stem (TEMPLATE = snowball, LANGUAGE = porter)",
    "CREATE TEXT SEARCH CONFIGURATION recollect (COPY = pg_catalog.simple)",
    "ALTER TEXT SEARCH CONFIGURATION recollect ALTER MAPPING FOR asciiword, word, numword WITH recollect_stem",
    # Letters and digits of any script make words; marks on letters go. All else is space, so that PostgreSQL's own
    # parser finds no addresses, paths or numbers with signs.
    """CREATE FUNCTION recollect_words(document text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
    RETURN regexp_replace(
        regexp_replace(normalize(document, NFD), U&'[\\0300-\\036f]+', '', 'g') COLLATE "und-x-icu",
        '[^[:alnum:]]+', ' ', 'g')""",
    # What has more words than a vector holds is indexed by its beginning.
    """CREATE FUNCTION recollect_vector(document text) RETURNS tsvector LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path FROM CURRENT AS
    $$ BEGIN RETURN to_tsvector('recollect', recollect_words(document));
    EXCEPTION WHEN program_limit_exceeded THEN
        RETURN to_tsvector('recollect', recollect_words(left(document, 50000))); END $$""",
    f"""ALTER TABLE memory
    ADD COLUMN text_vector tsvector NOT NULL GENERATED ALWAYS AS (recollect_vector({EVERYTHING})) STORED,
    ADD COLUMN text_length integer NOT NULL
        GENERATED ALWAYS AS (length(title) + length(subtitle) + length(content) + length(keywords)) STORED""",
    """CREATE TABLE posting (namespace_id integer NOT NULL, sensitivity text NOT NULL, term text NOT NULL,
    memory_id integer NOT NULL, times integer NOT NULL, length integer NOT NULL,
    PRIMARY KEY (namespace_id, sensitivity, term, memory_id))""",
    """CREATE TABLE text_size (namespace_id integer NOT NULL, sensitivity text NOT NULL, memories bigint NOT NULL,
    length bigint NOT NULL, PRIMARY KEY (namespace_id, sensitivity))""",
    INDEXED,
    """CREATE TRIGGER memory_indexed AFTER INSERT OR DELETE OR UPDATE OF title, subtitle, content, keywords,
    namespace_id, sensitivity, deleted_at, merged_into ON memory FOR EACH ROW EXECUTE FUNCTION memory_indexed()""",
    "CREATE INDEX ix_word_text_pattern ON word (namespace_id, sensitivity, text text_pattern_ops)",
    # Pieces are looked for in every text of a namespace where the extension may not be made.
    f"""DO $$ BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE INDEX ix_memory_everything_trigram ON memory USING gin (({EVERYTHING}) gin_trgm_ops);
    CREATE INDEX ix_word_text_trigram ON word USING gin ({WORD_PIECES} gin_trgm_ops);
    EXCEPTION WHEN insufficient_privilege OR undefined_file OR undefined_object OR feature_not_supported THEN
        RAISE NOTICE 'pg_trgm is not there: %', SQLERRM; END $$""",
)
"""The statements that make the index."""
