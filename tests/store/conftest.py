"""The parts of a local store without a model: SQL, text index and Chroma, with vectors out of a hash."""

from __future__ import annotations

import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from callers import EVERY_LEVEL
from entries import make_entry
from recollect.domain.results import Check
from recollect.domain.search import View
from recollect.engines.late_interaction import similarity
from recollect.store.integrity import examine
from recollect.store.sql.database import Database, open_file
from recollect.store.sql.records import Records
from recollect.store.text.fts5 import SqliteText
from recollect.store.vectors.chroma import ChromaIndex
from recollect.store.vectors.exact import vectors_of
from recollect.store.vectors.index import chunk_id
from recollect.store.vectors.vector_search import VectorSearch
from stores import lay

NAMESPACE = "project:crew/engine"


@dataclass
class Parts:
    """An open store in its parts; `close` leaves the folder as a process that ended well would."""

    folder: Path
    clock: Any
    database: Database
    records: Records
    text: SqliteText
    index: ChromaIndex
    vectors: VectorSearch

    def add(self, content: str, namespace: str = NAMESPACE, **fields: Any) -> int:
        """Insert one memory."""
        with self.records.writing(namespace, "ada") as transaction:
            return transaction.memories.insert(make_entry(content, at=self.clock(), **fields))

    def change(self, key: str, content: str, namespace: str = NAMESPACE, **fields: Any) -> None:
        """Update the memory with this key."""
        with self.records.writing(namespace, "ada") as transaction:
            old = transaction.lookup.by_key(key)
            assert old is not None
            transaction.memories.update(old, make_entry(content, at=self.clock(), **fields), "update")

    def delete(self, memory_id: int, namespace: str = NAMESPACE) -> None:
        """Delete one memory."""
        with self.records.writing(namespace, "ada") as transaction:
            assert transaction.memories.delete(memory_id)

    def view(self, *namespaces: str, **changes: Any) -> View:
        """Return a view of everything in `namespaces`."""
        return View(namespaces=namespaces or (NAMESPACE,), now=self.clock(), sensitivities=EVERY_LEVEL, **changes)

    def rows(self, query: str) -> list[Any]:
        """Read by hand."""
        with self.database.reading() as connection:
            return list(connection.execute(text(query)))

    def by_hand(self, statement: str) -> None:
        """Change the database behind the records' back."""
        with self.database.writing() as connection:
            connection.execute(text(statement))

    def in_sql(self, namespace: str = NAMESPACE) -> dict[str, list[float]]:
        """Return the vectors that SQL holds of a namespace, under the ids that the index gives them."""
        query = f"""SELECT memory.id FROM memory JOIN namespace ON namespace.id = namespace_id
            WHERE name = '{namespace}'"""
        ids = [row[0] for row in self.rows(query)]
        with self.database.reading() as connection:
            held = vectors_of(connection, ids)
        return {chunk_id(one, at): vector.tolist() for one, some in held.items() for at, vector in enumerate(some)}

    def in_chroma(self, namespace: str = NAMESPACE) -> dict[str, list[float]]:
        """Return the vectors that Chroma holds of a namespace."""
        found = self.index._get_collection(namespace).get(include=["embeddings"])
        return {one: vector.tolist() for one, vector in zip(found["ids"], found["embeddings"], strict=True)}

    def checks(self) -> dict[str, Check]:
        """Return the doctor's lines that are not well."""
        return {check.name: check for check in examine(self.database, self.vectors, self.index) if not check.well}

    def close(self) -> None:
        """Let go of everything."""
        self.vectors.close()
        self.database.close()


@pytest.fixture
def open_parts(tmp_path: Path, migrated: Path, clock: Any) -> Iterator[Callable[[], Parts]]:
    """Return a function that opens the same store again, without a model and without an owner."""
    opened: list[Parts] = []

    def opening() -> Parts:
        folder = tmp_path / "home"
        lay(migrated, folder)
        database = open_file(folder / "memory.db")
        index = ChromaIndex(folder / "chroma", "test")
        vectors = VectorSearch(database, index, threading.Event(), similarity)
        records = Records(database, clock, lambda: None)
        parts = Parts(folder, clock, database, records, SqliteText(database), index, vectors)
        opened.append(parts)
        return parts

    yield opening
    for parts in opened:
        parts.close()


@pytest.fixture
def public_folder() -> Iterator[Path]:
    """Return a folder that other users may enter, as the folders of tests are not."""
    folder = Path(tempfile.mkdtemp(prefix="recollect-test-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def parts(open_parts: Callable[[], Parts]) -> Parts:
    """Return an open store in its parts."""
    return open_parts()
