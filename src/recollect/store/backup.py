"""Backup and restore of a local store: one zip file with the database and a manifest of what is in it.

The database is copied as of one instant while others write. Chroma is derived and left out: the vectors' bytes are in
the database, and the index is built from them after a restore. A damaged store is not backed up, and nothing of a store
is changed before a backup has proven whole; when anything fails then, the old store is put back.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from pydantic import TypeAdapter
from sqlalchemy.exc import DatabaseError

from recollect.errors import InvalidInput, StoreUnusable
from recollect.store.files import flush_to_disk, folder_of, usable
from recollect.store.integrity import backup_faults
from recollect.store.journal_file import TIPS, begin_tips
from recollect.store.kept_files import LOGS, put_in_place, scratch
from recollect.store.sql import store_metadata, tables
from recollect.store.sql.database import Database, open_file
from recollect.store.sql.migrations import HEAD, OLDER, migrate, revision
from recollect.store.sql.statements import count
from recollect.store.store_lock import own
from recollect.store_folder import DATABASE

CHROMA = "chroma"
MANIFEST = "manifest.json"
FORMAT = 1
"""Changes when an older Recollect could no longer read a backup."""

_NAMED = 3
_BLOCK = 1 << 20  # bytes
_LARGEST_MANIFEST = 1 << 16
_SMALL = 64 << 20  # bytes: so much is unpacked from any backup
_RATIO = 100  # times its packed size, beyond that; a store does not even reach a quarter of it
_ADVICE = (
    "`recollect doctor --deep` names the damage, `recollect reindex` builds the text index again, and "
    "`recollect export FILE` saves what can be read."
)
_COUNTED = {"memories": tables.memory, "vectors": tables.vector, "journal": tables.journal}
_UNREADABLE = (zipfile.BadZipFile, zlib.error, KeyError, EOFError, ValueError, RuntimeError)


@dataclass(frozen=True, slots=True)
class Manifest:
    """The contents of a backup: the schema, the embedding model's stamps, counts, and the database's SHA-256."""

    format: int
    schema: str
    model: dict[str, str]
    counts: dict[str, int]
    sha256: str
    size: int
    made_at: str


@dataclass(frozen=True, slots=True)
class Restored:
    """The backup that was restored, and where the database before it lies; `kept` is None where there was none."""

    manifest: Manifest
    kept: Path | None


_MANIFEST = TypeAdapter(Manifest)


def backup(database: Path, file: Path, *, force: bool = False) -> Manifest:
    """Copy the store of `database` into `file`, readable by nobody else, and return what the copy holds.

    Others may write meanwhile; the copy is of one instant. Raises `InvalidInput` when the file exists and `force` is
    not given, is the store's own, or has no folder; `StoreUnusable` when there is no store, it is damaged, or the file
    cannot be written. A file that is there stays as it is until the new one has been read back.
    """
    if file.resolve() in {Path(f"{database.resolve()}{end}") for end in ("", *LOGS)}:
        raise InvalidInput("file", f"{file} is the store itself; name another file.")
    _check_target(file, force=force)
    if not database.is_file():
        raise StoreUnusable(f"There is no store at {database}.")
    with usable(f"The backup {file} cannot be written"), scratch(file.parent) as place:
        copy = place / DATABASE
        copy_database(database, copy)
        if found := faults_in(copy):
            raise StoreUnusable(f"The store {database} is damaged ({found}); no backup was written. {_ADVICE}")
        _drop_free_pages(copy)
        with open_copy(copy) as whole:
            contents = _read_contents(whole)
        made_at = datetime.now(UTC).isoformat(timespec="seconds")
        manifest = Manifest(FORMAT, *contents, _file_hash(copy), copy.stat().st_size, made_at)
        packed = place / "packed"
        _pack_backup(packed, copy, manifest)
        if _packed_hash(packed) != manifest.sha256:
            raise StoreUnusable(f"The backup {file} reads back otherwise than it was written; check the disk.")
        _check_target(file, force=force)
        packed.replace(file)
        flush_to_disk(file.parent)
    return manifest


def restore(database: Path, file: Path, *, force: bool = False, free: Callable[[], object] = lambda: None) -> Restored:
    """Put the backup `file` in the place of the store of `database`, once it has proven whole.

    With `force` a store that holds something is kept aside under another name. `free` is called once all is checked, to
    end whoever has the store open. Raises `InvalidInput` when the backup is damaged, of a newer Recollect, or the store
    is not empty; `StoreOwned` when another process has the store open. The old store is put back when anything fails.
    """
    if not file.is_file():
        raise InvalidInput("file", f"There is no backup {file}.")
    folder = folder_of(database)
    with usable(f"The store {database} cannot be restored"):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with scratch(folder) as place:
            fresh = place / DATABASE
            manifest = _unpack_database(file, fresh)
            _verify_copy(file, fresh, manifest)
            _check_free(database, force=force)
            free()
            holder = own(folder)
            try:
                used = _check_free(database, force=force)
                derived = (folder / CHROMA, folder / TIPS)
                kept = put_in_place(database, fresh, place, "before-restore" if used else "", derived)
                begin_tips(folder / TIPS)  # the backup's journal was checked whole
            finally:
                holder.release()
    return Restored(manifest, kept)


@contextmanager
def unpacked(file: Path) -> Iterator[Path]:
    """Give the database of a backup as a file, which is gone afterwards; raise `InvalidInput` for a damaged backup."""
    with scratch(Path(tempfile.gettempdir())) as place:
        fresh = place / DATABASE
        _unpack_database(file, fresh)
        yield fresh


def verify(file: Path) -> Manifest:
    """Read a backup as `restore` does and return its manifest; raise `InvalidInput` where `restore` would refuse it."""
    if not file.is_file():
        raise InvalidInput("file", f"There is no backup {file}.")
    with usable(f"The backup {file} cannot be read"), scratch(Path(tempfile.gettempdir())) as place:
        fresh = place / DATABASE
        manifest = _unpack_database(file, fresh)
        _verify_copy(file, fresh, manifest)
    return manifest


def faults_in(copy: Path) -> str:
    """Return what is wrong with a copy of a database that no other process has, an empty string where nothing is."""
    try:
        with open_copy(copy) as database:
            return "; ".join(backup_faults(database)[:_NAMED])
    except (DatabaseError, StoreUnusable, ValueError, TypeError, AttributeError) as error:  # a row may hold anything
        return str(getattr(error, "orig", error)).partition("\n")[0].rstrip(".")


def _check_target(file: Path, *, force: bool) -> None:
    """Raise `InvalidInput` where the file has no folder, or exists and `force` is not given."""
    if not file.parent.is_dir():
        raise InvalidInput("file", f"There is no folder {file.parent}; make it first, or name another file.")
    if file.exists() and not force:
        raise InvalidInput("file", f"{file} exists already; name another file, or overwrite it with --force.")


def copy_database(source: Path, target: Path) -> None:
    """Copy the database page by page in one read transaction, which in WAL mode no writer waits for."""
    target.touch(mode=0o600)
    with _connect_existing(source) as live, closing(sqlite3.connect(target)) as copy:
        live.backup(copy)


def _drop_free_pages(copy: Path) -> None:
    """Rewrite the copy without free pages, which hold deleted text or unpack to many zeros."""
    with closing(sqlite3.connect(copy, isolation_level=None)) as database:
        database.execute("VACUUM")


def _packed_hash(packed: Path) -> str:
    """Return the SHA-256 (hex) of the database inside a backup."""
    found = hashlib.sha256()
    with zipfile.ZipFile(packed) as archive, archive.open(DATABASE) as source:
        while block := source.read(_BLOCK):
            found.update(block)
    return found.hexdigest()


def _connect_existing(database: Path) -> closing[sqlite3.Connection]:
    return closing(sqlite3.connect(f"{database.absolute().as_uri()}?mode=rw", uri=True, timeout=30))


def _read_contents(database: Database) -> tuple[str, dict[str, str], dict[str, int]]:
    """Return the schema's revision, the model's stamps and the counts."""
    with database.reading() as connection:
        counts = {name: count(connection, table) for name, table in _COUNTED.items()}
        return revision(database) or "", store_metadata.model_of(store_metadata.read(connection)), counts


def _pack_backup(file: Path, copy: Path, manifest: Manifest) -> None:
    """Write the backup `file`, readable by its owner alone, from a copy of the database and its manifest."""
    file.touch(mode=0o600)
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packed:
        packed.writestr(MANIFEST, _MANIFEST.dump_json(manifest, indent=2))
        packed.write(copy, DATABASE)
    flush_to_disk(file)


def _unpack_database(file: Path, target: Path) -> Manifest:
    """Write the database of the backup to `target`, and check it against the manifest's size and SHA-256."""
    try:
        with zipfile.ZipFile(file) as packed:
            manifest = _read_manifest(file, packed)
            same = packed.getinfo(DATABASE).file_size == manifest.size  # no more than that is unpacked
            _check_size(file, manifest.size, target.parent)
            if same:
                target.touch(mode=0o600)
                with packed.open(DATABASE) as source, target.open("wb") as copy:
                    shutil.copyfileobj(source, copy)
    except InvalidInput:
        raise
    except _UNREADABLE as error:
        raise _damaged_error(file, f"it cannot be read ({type(error).__name__})") from None
    if not same or _file_hash(target) != manifest.sha256:
        raise _damaged_error(file, "the database in it is not the one that was saved")
    flush_to_disk(target)
    return manifest


def _check_size(file: Path, size: int, folder: Path) -> None:
    """Raise `InvalidInput` for a database that unpacks to far more than a store does, or does not fit on the disk."""
    if size > _SMALL + _RATIO * file.stat().st_size:
        raise _damaged_error(file, f"it would unpack to {size / 1e6:.0f} MB, more than any store of its size")
    if size > (free := shutil.disk_usage(folder).free):
        raise StoreUnusable(f"The backup {file} needs {size / 1e6:.0f} MB, and {folder} has {free / 1e6:.0f} MB left.")


def _read_manifest(file: Path, packed: zipfile.ZipFile) -> Manifest:
    """Return the manifest of a backup; raise `InvalidInput` for a damaged one, or one of a newer Recollect."""
    if packed.getinfo(MANIFEST).file_size > _LARGEST_MANIFEST:
        raise _damaged_error(file, "its manifest is not one of ours")
    try:
        found = json.loads(packed.read(MANIFEST))
        newer = isinstance(found, dict) and isinstance(found.get("format"), int) and found["format"] > FORMAT
        if not newer:
            return _MANIFEST.validate_python(found)
    except ValueError:
        raise _damaged_error(file, "its manifest is not one of ours") from None
    raise InvalidInput("file", f"The backup {file} was made by a newer Recollect: upgrade Recollect.")


def _verify_copy(file: Path, copy: Path, manifest: Manifest) -> None:
    """Check every page, every line of the journal, and whether the database matches the manifest."""
    if manifest.schema not in (HEAD, *OLDER):
        raise InvalidInput(
            "file",
            f"The backup {file} has schema {manifest.schema}, and this version of Recollect knows schema {HEAD} only: "
            "restore it with the version that made it.",
        )
    if manifest.schema != HEAD:
        _check_contents(file, copy, manifest)
        with open_copy(copy) as database:
            migrate(database)
        manifest = replace(manifest, schema=HEAD)
    if found := faults_in(copy):
        raise _damaged_error(file, found)
    _check_contents(file, copy, manifest)


def _check_contents(file: Path, copy: Path, manifest: Manifest) -> None:
    """Raise `InvalidInput` where the copy has another schema, model or counts than the manifest."""
    try:
        with open_copy(copy) as database:
            found = _read_contents(database)
    except (DatabaseError, StoreUnusable) as error:
        raise _damaged_error(file, str(getattr(error, "orig", error))) from None
    if found != (manifest.schema, manifest.model, manifest.counts):
        raise _damaged_error(file, "its database has another schema, model or counts than its manifest says")


def _check_free(database: Path, *, force: bool) -> bool:
    """Return whether the database must be kept aside; raise `InvalidInput` where it must and `force` is not given."""
    used = _is_used(database)
    if used and not force:
        raise InvalidInput("force", f"The store {database} is not empty; --force keeps it aside and replaces it.")
    return used


def _is_used(database: Path) -> bool:
    """Say whether the database holds any row; a database that cannot be read counts as used."""
    if not database.exists() or not database.stat().st_size:
        return False
    try:
        with _connect_existing(database) as live:
            found = {row[0] for row in live.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            wanted = {table.name for table in _COUNTED.values()} & found
            used = any(live.execute(f"SELECT 1 FROM {name} LIMIT 1").fetchone() for name in wanted)  # noqa: S608 - our own names
            live.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.DatabaseError:
        return True
    return used


@contextmanager
def open_copy(path: Path) -> Iterator[Database]:
    """Open a copy that no other process has; when the block ends, all of its data is in the one file."""
    database = open_file(path)
    try:
        yield database
        database.checkpoint()
    finally:
        database.close()


def _damaged_error(file: Path, why: str) -> InvalidInput:
    return InvalidInput("file", f"The backup {file} is damaged: {why}. Nothing was changed.")


def _file_hash(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
