"""What a warm recall asks at every query without counting or walking: how many memories, who speaks, who is beside.

And the signs of every chunk's tokens: each memory waits to be read anew, and its old vectors answer until then.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

_COUNTED = "UPDATE namespace SET memories = (SELECT count(*) FROM memory WHERE memory.namespace_id = namespace.id)"
_SPEAKERS = "SELECT DISTINCT namespace_id, speaker FROM memory WHERE speaker IS NOT NULL"
_HAPPENED = (
    "CREATE INDEX ix_memory_namespace_id_happened_at ON memory (namespace_id, coalesce(observed_at, created_at))"
)
_READ_ANEW = (
    "INSERT INTO outbox (memory_id, namespace_id, chunks, embedded) SELECT id, namespace_id, "
    "(SELECT count(*) FROM vector WHERE vector.memory_id = memory.id), false FROM memory"
)
_WORD = re.compile(r"\w+")
_LONGEST = 64
_BATCH = 1_000


def upgrade() -> None:
    op.add_column("namespace", sa.Column("memories", sa.Integer(), server_default="0", nullable=False))
    op.execute(_COUNTED)
    _speaker()
    _tokens()
    op.create_index("ix_memory_namespace_id_session_id_position", "memory", ["namespace_id", "session_id", "position"])
    op.drop_index("ix_memory_session_id", "memory")
    op.create_index("ix_memory_namespace_id_type", "memory", ["namespace_id", "type"])
    op.create_index("ix_memory_namespace_id_project", "memory", ["namespace_id", "project"])
    op.execute(_HAPPENED)
    op.create_index("ix_outbox_embedded_memory_id", "outbox", ["embedded", "memory_id"])
    queued = ["namespace_id", "embedded", "memory_id"]
    op.create_index("ix_outbox_namespace_id_embedded_memory_id", "outbox", queued)
    op.drop_index("ix_outbox_namespace_id", "outbox")
    op.drop_index("ix_label_kind_value", "label")
    covering = ", value" if op.get_bind().dialect.name == "sqlite" else ""  # PostgreSQL's index entries are short
    op.execute(f"CREATE INDEX ix_label_kind_folded ON label (kind, lower(value), memory_id{covering})")


def _tokens() -> None:
    op.add_column("vector", sa.Column("tokens", sa.LargeBinary(), nullable=True))
    op.execute(_READ_ANEW)


def _speaker() -> None:
    speaker = op.create_table(
        "speaker",
        sa.Column("namespace_id", sa.Integer(), nullable=False),
        sa.Column("word", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(["namespace_id"], ["namespace.id"], name="fk_speaker_namespace_id_namespace"),
        sa.PrimaryKeyConstraint("namespace_id", "word", "name", name="pk_speaker"),
    )
    op.create_index("ix_speaker_namespace_id_name", "speaker", ["namespace_id", "name"])
    named = [
        {"namespace_id": number, "name": name, "word": word}
        for number, name in op.get_bind().execute(sa.text(_SPEAKERS))
        for word in sorted(_words(name))
    ]
    for start in range(0, len(named), _BATCH):
        op.bulk_insert(speaker, named[start : start + _BATCH])


def _words(name: str) -> Iterable[str]:
    """Return the words of a name as `policy.names` made them when this revision was written."""
    folded = "".join(_plain(one) for one in unicodedata.normalize("NFC", name.lower()))
    return {word for word in _WORD.findall(folded) if len(word) <= _LONGEST}


def _plain(letter: str) -> str:
    if "\u0300" <= letter <= "\u036f":
        return ""
    base = unicodedata.normalize("NFD", letter)[0]
    return base.lower() if base.isascii() and base.isalpha() else letter
