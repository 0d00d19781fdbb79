"""The text index: what somebody types is never syntax, tenants never meet, and forgotten text leaves no bytes."""

from __future__ import annotations

import string
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callers import ADA
from entries import make_entry
from recollect import App, Caller, Draft, Forget, Query, Settings, forget, recall, remember
from recollect.domain.enums import Scope, Sensitivity
from recollect.operations.query.parse import parse
from recollect.policy.text.normalization import fold
from recollect.ports.search import Term

NASTY = [
    '"',
    '""',
    '"""',
    "'",
    "NOT",
    "NOT NOT",
    "a OR b",
    "OR",
    "AND",
    "NEAR(",
    "NEAR(rope mast, 2)",
    "NEAR/3",
    "*",
    "rope*",
    "col:",
    "content:rope",
    "ns : ns1",
    "ns1",
    "{title content}: rope",
    "- content : rope",
    "^",
    "^rope",
    "((((",
    "))))",
    "(rope",
    'rope"',
    '"rope mast',
    'ro"pe',
    "rope + mast",
    "!!! ??? ...",
    "-- ; /* */",
    "%",
    "_",
    "\\",
    "%%%___\\\\\\",
    "[a-z]?*",
    "a" * 300,
    "a.b " * 400,
    "\ufeff\u200b",
    "🚢🏴‍☠️",
    "İıŞß ﬁ \ufdfa",
    "数据库 密钥",
    "e\u0301" * 50,
    "\x1b[0m\x07\x1f",
]
TYPED = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=80)
PIECES = ["rope", "mast", "NOT", "OR", "AND", "NEAR", "ns1", *'"*:^(){}+-,/\\%_ ']
SYNTAX = st.lists(st.sampled_from(PIECES), max_size=20).map("".join)
OURS = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def ask(parts: Any, typed: str) -> set[int]:
    """Put the text to each way of searching, as it is and taken apart, and return all that was found."""
    view = parts.view()
    parsed = parse(typed)
    terms = [*parsed.words, *(one.text for one in parsed.compounds)]
    found = set(parts.text.search([Term(typed), Term(typed, 0.5)], view, 10))
    found |= set(parts.text.search([Term(word) for word in terms], view, 10))
    for piece in (typed, *terms):
        found |= set(parts.text.substring(piece, view, 10))
        parts.text.similar(piece, view, 3)
    parts.text.frequencies([typed, *parsed.words], view)
    return found


@pytest.mark.parametrize("typed", NASTY)
def test_nasty_text_is_only_text(parts: Any, typed: str) -> None:
    """Operators, quotes, wildcards and columns are searched for as letters, and find the memory that holds them."""
    holder = parts.add(f"rope {typed} mast")
    other = parts.add("entirely different sentence")
    assert other not in ask(parts, typed)
    if len(typed.strip()) > 2 and typed.isprintable():
        assert parts.text.substring(typed, parts.view(), 10) == [holder]
    words = [Term(word) for word in parse(typed).words if word.strip("_")]
    if words and typed.isascii():
        assert holder in parts.text.search(words, parts.view(), 10)


@OURS
@given(typed=st.one_of(TYPED, SYNTAX))
def test_any_text_can_be_searched_for(parts: Any, typed: str) -> None:
    """No text at all makes a search fail, and none finds what holds none of its letters."""
    if not parts.records.count(parts.view()):
        parts.add("rope mast NOT near")
    found = ask(parts, typed)
    assert not found or set(typed.lower()) & set("rope mast NOT near".lower())


@OURS
@given(content=TYPED.filter(str.strip))
def test_any_text_can_be_stored_and_taken_back(parts: Any, content: str) -> None:
    """Whatever is stored and deleted again, the index agrees with the memories and the vocabulary is empty after."""
    memory_id = parts.add(f"{content} end")
    try:
        for word in (one for one in parse(content).words if content.isascii() and one.strip("_")):
            assert memory_id in parts.text.search([Term(word)], parts.view(), 100)
        assert parts.checks().keys() == set()
    finally:
        parts.delete(memory_id)
    assert parts.checks().keys() == set()
    assert parts.rows("SELECT text FROM word") == []


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


def test_tenants_never_meet(parts: Any) -> None:
    """Another namespace's words are neither found nor counted nor suggested, whatever the query."""
    theirs = parts.add("xylophone getUserName", "user:eve")
    mine = parts.add("marimba", "user:ada")
    view = parts.view("user:ada")
    for typed in ("xylophone", "xylofone", "xylo", "ns2", "getuser", "username", '"ns2"', "ns : ns1"):
        assert theirs not in parts.text.search([Term(typed)], view, 99)
        assert theirs not in parts.text.substring(typed, view, 99)
        assert parts.text.similar(typed, view, 99) == []
        assert parts.text.frequencies([typed], view) == {}
    assert parts.text.size(view) == 1
    assert parts.text.search([Term("marimba")], view, 9).keys() == {mine}
    assert parts.text.search([Term("marimba")], parts.view("user:nobody"), 9) == {}
    assert parts.text.similar("marimbo", parts.view("user:nobody"), 9) == []


def test_a_crowd_elsewhere_hides_nothing(parts: Any) -> None:
    """However often others use a word, the caller's own memory with it is found, and its word suggested."""
    with parts.records.writing("user:eve", "eve") as transaction:
        for number in range(300):
            transaction.insert(make_entry(f"lantern lanterns lanternfish lantern{number}", chunks=0))
    mine = parts.add("one lantern", "user:ada")
    view = parts.view("user:ada")
    assert set(parts.text.search([Term("lantern")], view, 1)) == {mine}
    assert parts.text.substring("lanter", view, 1) == [mine]
    assert [term.text for term in parts.text.similar("lantren", view, 3)] == ["lantern"]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("kuberntes", "kubernetes"),
        ("kubernettes", "kubernetes"),
        ("kuebrnetes", "kubernetes"),
        ("kubernetas", "kubernetes"),
        ("kubrenetse", "kubernetes"),
        ("mats", "mast"),
        ("databse", "database"),
        ("getuser", "getusername"),
        ("implicit", "implicitly"),
        ("datenbank", "datenbänke"),
    ],
)
def test_typos_are_understood(parts: Any, typed: str, meant: str) -> None:
    """A missing, extra, wrong or swapped letter and a part of a name lead to the stored word."""
    parts.add("We run kubernetes at the mast; the database getUserName is implicitly datenbänke")
    fold = {"datenbänke": "datenbanke"}
    assert parts.text.similar(typed, parts.view(), 3)[0].text == fold.get(meant, meant)


def test_typos_stay_within_reason(parts: Any) -> None:
    """A word that resembles nothing gets no guess, nor does one that is too short to tell."""
    parts.add("kubernetes mast rope database")
    for typed in ("zzzzzz", "rop", "ro", "", "mastodon", "ropewalking", "x" * 64):
        assert parts.text.similar(typed, parts.view(), 3) == []


@pytest.mark.parametrize("piece", ["UserNam", "get_config", "config.yaml", "src/app", "v2.1", "100%", "a_b", "C:\\dir"])
def test_a_piece_of_an_identifier_is_found(parts: Any, piece: str) -> None:
    """Any stretch of at least three characters finds exactly the memories in which it stands, wildcards as letters."""
    holder = parts.add("getUserName get_config_value src/app/config.yaml v2.1 100% a_b C:\\dir")
    parts.add("getUserMane getXconfig 1000 aXb C:dir config-yaml")
    for written in (piece, piece.upper(), piece.lower()):
        assert parts.text.substring(written, parts.view(), 9) == [holder]
    assert parts.text.substring(piece[:2], parts.view(), 9) == []


def test_a_piece_is_found_in_every_text(parts: Any) -> None:
    """A substring is found in title, subtitle, content and labels, but not across two of them."""
    memory_id = parts.add("contentword", title="titleword", subtitle="subtitleword", tags=("labelword",))
    for piece in ("ontentwor", "itlewor", "ubtitlewor", "abelwor"):
        assert parts.text.substring(piece, parts.view(), 9) == [memory_id]
    assert parts.text.substring("wordcontent", parts.view(), 9) == []


def test_hidden_memories_are_not_found(parts: Any) -> None:
    """Expired and deleted memories are found by no search."""
    parts.add("quokka one", expires_at=parts.clock())
    late = parts.add("quokka two")
    parts.by_hand(f"UPDATE memory SET deleted_at = created_at WHERE id = {late}")
    assert parts.text.search([Term("quokka")], parts.view(), 9) == {}
    assert parts.text.substring("uokk", parts.view(), 9) == []


def traces(folder: Path, words: list[str]) -> set[tuple[str, str]]:
    """Return each file of the store that holds the bytes of a word, or of the word in capitals."""
    files = [path for path in folder.rglob("*") if path.is_file() and "cache" not in path.parts]
    forms = {form for word in words for form in (word, word.upper(), word.capitalize())}
    return {(path.name, form) for path in files for form in forms if form.encode() in path.read_bytes()}


def test_forgotten_text_leaves_no_bytes(open_store: Callable[..., App], settings: Settings) -> None:
    """After forgetting and closing, no file of the store holds a forgotten word, key or tag any more."""
    rare = ["zyxquokka", "vuwplatypus", "qrswombat", "jkxnumbat"]
    app = open_store()
    keep = [remember(app, Draft(content=f"Kept fact {number} of many"), ADA).id for number in range(30)]
    for number in range(30):
        words = " ".join(string.ascii_lowercase[number % 20 :] for _ in range(50))
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


def test_what_is_hidden_weighs_nothing(parts: Any) -> None:
    """Neither other namespaces nor levels above the view's change a score, and repeating a word raises it."""
    once = parts.add("the lantern swings over a quiet deck tonight", "user:ada")
    twice = parts.add("a lantern beside the lantern on a quiet deck", "user:ada")
    parts.add("nothing of the kind", "user:ada")
    view = parts.view("user:ada").model_copy(update={"sensitivities": (Sensitivity.PUBLIC,)})
    asked = [Term("lantern"), Term("quiet", 0.5)]
    before = parts.text.search(asked, view, 9)
    assert before[twice] > before[once]
    parts.add("lantern lantern lantern", "user:eve")
    parts.add("one quiet and secret lantern", "user:ada", sensitivity=Sensitivity.SECRET)
    assert parts.text.search(asked, view, 9) == before
    assert len(parts.text.search(asked, parts.view("user:ada"), 9)) == 3


@pytest.mark.parametrize("word", ["technology", "possibly", "js", "x" * 64, "x" * 65, "größe", "данные"])
def test_words_that_the_index_stems_in_its_own_way_are_found(parts: Any, word: str) -> None:
    """A word is found however the index's stemmer treats it."""
    holder = parts.add(f"about {word} alone")
    assert set(parts.text.search([Term(fold(word))], parts.view(), 9)) == {holder}
