"""The text index: what somebody types is never syntax, tenants never meet, and forgotten text leaves no bytes."""

from __future__ import annotations

import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callers import ADA
from recollect import App, Caller, Draft, Forget, Query, Settings, forget, recall, remember
from recollect.domain.enums import Scope
from recollect.store.text.index import Term

pytestmark = pytest.mark.slow

NASTY = [
    '"',
    "NOT NOT",
    "a OR b",
    "NEAR(rope mast, 2)",
    "rope*",
    "content:rope",
    "ns : ns1",
    "((((",
    'ro"pe',
    "%%%___\\\\",
    "a" * 300,
]


@pytest.mark.parametrize("typed", NASTY)
def test_recall_takes_any_query(app: App, typed: str) -> None:
    """The whole way through recall, a nasty query is answered, and an unfiltered one never shows another tenant."""
    remember(app, Draft(content="The rope is tied to the mast"), ADA)
    eve = Caller(user="eve", team="pirates", project="raid")
    remember(app, Draft(content=f"Loot near {typed} rope mast NOT OR"), eve)
    if typed.strip():
        assert all(hit.memory.namespace != "project:pirates/raid" for hit in recall(app, Query(query=typed), ADA).hits)


def test_rows_and_index_stay_in_step(parts: Any) -> None:
    """An update or a delete takes the old words out of every index and puts the new ones in."""
    memory_id = parts.add("alphaword stands", key="k", title="titleword", subtitle="subword", tags=("tagword",))
    for word in ("alphaword", "titleword", "subword", "tagword"):
        assert set(parts.text.search([Term(word)], parts.view(), 9)) == {memory_id}
        assert parts.text.substring(word[1:-1], parts.view(), 9) == [memory_id]
    parts.change("k", "betaword stands", title="newtitle", subtitle="", tags=())
    for word in ("alphaword", "titleword", "subword", "tagword"):
        assert parts.text.search([Term(word)], parts.view(), 9) == {}
        assert parts.text.substring(word[1:-1], parts.view(), 9) == []
        assert parts.text.similar(word[:-1], parts.view(), 9) == []
    assert set(parts.text.search([Term("betaword")], parts.view(), 9)) == {memory_id}
    parts.vectors.sync()
    assert parts.checks() == {}
    parts.delete(memory_id)
    assert parts.text.search([Term("betaword"), Term("newtitle")], parts.view(), 9) == {}
    assert parts.text.size(parts.view()) == 0
    parts.vectors.sync()
    assert parts.checks() == {}


@pytest.mark.parametrize(
    "sabotage",
    [
        "INSERT INTO memory_text(memory_text, rowid, title, subtitle, content, keywords)"
        " VALUES ('delete', 1, '', '', 'rope', '')",
        "INSERT INTO memory_trigram(rowid, content) VALUES (77, 'stray')",
        "DELETE FROM word_trigram_data WHERE id > 10",
        "UPDATE word SET uses = uses + 1",
        "UPDATE text_size SET length = length + 1",
        "DELETE FROM text_length",
        "DELETE FROM word WHERE text = 'mast'",
    ],
)
def test_the_doctor_sees_an_index_out_of_step(parts: Any, sabotage: str) -> None:
    """Damage done by hand to any of the text indexes or the vocabulary is noticed."""
    parts.add("rope mast")
    parts.vectors.sync()
    assert parts.checks() == {}
    parts.by_hand(sabotage)
    assert parts.checks().keys() & {"text index", "vocabulary", "database"}


def traces(folder: Path, words: list[str]) -> set[tuple[str, str]]:
    """Return each file of the store that holds the bytes of a word, or of the word in capitals."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    forms = {form for word in words for form in (word, word.upper(), word.capitalize())}
    return {(path.name, form) for path in files for form in forms if form.encode() in path.read_bytes()}


def test_forgotten_text_leaves_no_bytes(open_store: Callable[..., App], settings: Settings) -> None:
    """After forgetting and closing, no file of the store holds a forgotten word, key or tag any more."""
    rare = ["zyxquokka", "vuwplatypus", "qrswombat", "jkxnumbat"]
    app = open_store()
    keep = [remember(app, Draft(content=f"Kept fact {number} of many"), ADA).id for number in range(12)]
    for number in range(12):
        words = " ".join(string.ascii_lowercase[number:] for _ in range(50))
        draft = Draft(
            content=f"{rare[0]} {words} {number}", key=f"{rare[1]}{number}", tags=(rare[2],), scope=Scope.PERSONAL
        )
        memory_id = remember(app, draft, ADA).id
        if number % 3 == 0:
            remember(app, draft.model_copy(update={"content": f"{rare[3]} {number}"}), ADA)
        recall(app, Query(query=rare[0]), ADA)
        forget(app, Forget(id=memory_id), ADA)
    app.close()
    assert traces(settings.folder, rare) == set()
    again = open_store()
    assert len(recall(again, Query(query="kept fact", limit=30, min_score=0.0), ADA).hits) == len(keep)
    assert [check for check in again.checks() if not check.well] == []


def test_an_overwritten_text_is_not_found(app: App) -> None:
    """The old content of an updated memory is found neither by word, nor by typo, nor by piece."""
    remember(app, Draft(content="The mascot is a zyxquokka", key="mascot"), ADA)
    remember(app, Draft(content="The mascot is a heron", key="mascot"), ADA)
    for typed in ("zyxquokka", "zyxquoka", "zyxquok"):
        recalled = recall(app, Query(query=typed, min_score=0.0), ADA)
        assert all("quok" not in hit.memory.content for hit in recalled.hits)
        assert "zyxquokka" not in " ".join(recalled.notes)
