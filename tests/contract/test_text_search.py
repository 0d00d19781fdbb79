"""Text indexes: what somebody types is never syntax, tenants never meet, and every database finds and ranks alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from callers import EVERY_LEVEL
from entries import make_entry
from recollect.domain.enums import Sensitivity
from recollect.domain.search import View
from recollect.search.parse import parse
from recollect.store.sql.database import Database, open_file
from recollect.store.sql.records import Records
from recollect.store.text.fts5 import SqliteText
from recollect.store.text.index import Term
from recollect.store.text.postgres import PostgresText
from recollect.text.normalization import fold
from stores import lay

pytestmark = pytest.mark.slow

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
DOCUMENTS = [
    "We never deploy on Fridays, because the on-call engineer is away.",
    "The deploy script runs `cache eviction` before it deploys; the cache holds 10.0.0.1 and v1.2.3.",
    "Running flies, a café déployé in Zürich: Möwe, Straße, naïve, coöperate.",
    "snake_case and camelCase names live in src/app/config.yaml of the 数据库 module.",
    "The eviction of the cache is slow; the cache is large.",
    "Привет мир, the release of möwe 2.0 is on friday the 13th.",
]


def out_of_step(store: Any) -> str:
    """Return the name of a text index that does not agree with the memories."""
    with store.database.exclusive() as connection:
        return str(store.database.dialect.text_damage(connection))


def ask(store: Any, typed: str) -> set[int]:
    """Put the text to each way of searching, as it is and taken apart, and return all that was found."""
    view = store.view()
    parsed = parse(typed)
    terms = [*parsed.words, *(one.text for one in parsed.compounds)]
    found = set(store.text.search([Term(typed), Term(typed, 0.5)], view, 10))
    found |= set(store.text.search([Term(word) for word in terms], view, 10))
    for piece in (typed, *terms):
        found |= set(store.text.substring(piece, view, 10))
        store.text.similar(piece, view, 3)
    store.text.frequencies([typed, *parsed.words], view)
    return found


@pytest.mark.full_cases("sqlite-typed37")
@pytest.mark.parametrize("typed", NASTY)
def test_nasty_text_is_only_text(store: Any, typed: str) -> None:
    """Operators, quotes, wildcards and columns are searched for as letters, and find the memory that holds them."""
    holder = store.add(f"rope {typed} mast")
    other = store.add("entirely different sentence")
    assert other not in ask(store, typed)
    if len(typed.strip()) > 2 and typed.isprintable():
        assert store.text.substring(typed, store.view(), 10) == [holder]
    words = [Term(word) for word in parse(typed).words if word.strip("_")]
    if words and typed.isascii():
        assert holder in store.text.search(words, store.view(), 10)


@OURS
@given(typed=st.one_of(TYPED, SYNTAX))
def test_any_text_can_be_searched_for(store: Any, typed: str) -> None:
    """No text at all makes a search fail, and none finds what holds none of its letters."""
    if not store.records.count(store.view()):
        store.add("rope mast NOT near")
    found = ask(store, typed)
    assert not found or set(typed.lower()) & set("rope mast NOT near".lower())


@OURS
@given(content=TYPED.filter(str.strip))
def test_any_text_can_be_stored_and_taken_back(store: Any, content: str) -> None:
    """Whatever is stored and deleted again, the index agrees with the memories and the vocabulary is empty after."""
    memory_id = store.add(f"{content} end")
    try:
        for word in (one for one in parse(content).words if content.isascii() and one.strip("_")):
            assert memory_id in store.text.search([Term(word)], store.view(), 100)
        assert out_of_step(store) == ""
    finally:
        store.delete(memory_id)
    assert out_of_step(store) == ""
    assert store.rows("SELECT text FROM word") == []


def test_tenants_never_meet(store: Any) -> None:
    """Another namespace's words are neither found nor counted nor suggested, whatever the query."""
    theirs = store.add("xylophone getUserName", "user:eve")
    mine = store.add("marimba", "user:ada")
    view = store.view("user:ada")
    for typed in ("xylophone", "xylofone", "xylo", "ns2", "getuser", "username", '"ns2"', "ns : ns1"):
        assert theirs not in store.text.search([Term(typed)], view, 99)
        assert theirs not in store.text.substring(typed, view, 99)
        assert store.text.similar(typed, view, 99) == []
        assert store.text.frequencies([typed], view) == {}
    assert store.text.size(view) == 1
    assert store.text.search([Term("marimba")], view, 9).keys() == {mine}
    assert store.text.search([Term("marimba")], store.view("user:nobody"), 9) == {}
    assert store.text.similar("marimbo", store.view("user:nobody"), 9) == []


def test_a_crowd_elsewhere_hides_nothing(store: Any) -> None:
    """However often others use a word, the caller's own memory with it is found, and its word suggested."""
    with store.records.writing("user:eve", "eve") as transaction:
        for number in range(300):
            transaction.memories.insert(make_entry(f"lantern lanterns lanternfish lantern{number}", chunks=0))
    mine = store.add("one lantern", "user:ada")
    view = store.view("user:ada")
    assert set(store.text.search([Term("lantern")], view, 1)) == {mine}
    assert store.text.substring("lanter", view, 1) == [mine]
    assert [term.text for term in store.text.similar("lantren", view, 3)] == ["lantern"]


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
def test_typos_are_understood(store: Any, typed: str, meant: str) -> None:
    """A missing, extra, wrong or swapped letter and a part of a name lead to the stored word."""
    store.add("We run kubernetes at the mast; the database getUserName is implicitly datenbänke")
    fold = {"datenbänke": "datenbanke"}
    assert store.text.similar(typed, store.view(), 3)[0].text == fold.get(meant, meant)


def test_typos_stay_within_reason(store: Any) -> None:
    """A word that resembles nothing gets no guess, nor does one that is too short to tell."""
    store.add("kubernetes mast rope database")
    for typed in ("zzzzzz", "rop", "ro", "", "mastodon", "ropewalking", "x" * 64):
        assert store.text.similar(typed, store.view(), 3) == []


@pytest.mark.parametrize("piece", ["UserNam", "get_config", "config.yaml", "src/app", "v2.1", "100%", "a_b", "C:\\dir"])
def test_a_piece_of_an_identifier_is_found(store: Any, piece: str) -> None:
    """Any stretch of at least three characters finds exactly the memories in which it stands, wildcards as letters."""
    holder = store.add("getUserName get_config_value src/app/config.yaml v2.1 100% a_b C:\\dir")
    store.add("getUserMane getXconfig 1000 aXb C:dir config-yaml")
    for written in (piece, piece.upper(), piece.lower()):
        assert store.text.substring(written, store.view(), 9) == [holder]
    assert store.text.substring(piece[:2], store.view(), 9) == []


def test_a_piece_is_found_in_every_text(store: Any) -> None:
    """A substring is found in title, subtitle, content and labels, but not across two of them."""
    memory_id = store.add("contentword", title="titleword", subtitle="subtitleword", tags=("labelword",))
    for piece in ("ontentwor", "itlewor", "ubtitlewor", "abelwor"):
        assert store.text.substring(piece, store.view(), 9) == [memory_id]
    assert store.text.substring("wordcontent", store.view(), 9) == []


def test_a_text_of_very_many_words_changes_and_goes(store: Any) -> None:
    """Each of its words is found until it is changed, then those of the new text are, and none once it is forgotten."""
    firsts, seconds = "天地玄黄宇宙洪荒日月盈昃辰宿列張", list(map(chr, range(0x5000, 0x5060)))
    before, after = (" ".join(first + second for first in firsts for second in seconds[at::2]) for at in (0, 1))
    holder = store.add(before, key="book")
    with store.records.writing("project:crew/engine", "ada") as transaction:
        old = transaction.lookup.by_key("book")
        transaction.memories.update(old, make_entry(after, at=store.clock(), key="book"), "update")
    assert out_of_step(store) == ""
    found = [set(store.text.search([Term(one)], store.view(), 9)) for one in ("天倀", "天倁")]
    assert found == [set(), {holder}]
    store.delete(holder)
    assert out_of_step(store) == ""
    assert not store.text.search([Term("天倁")], store.view(), 9)


def test_hidden_memories_are_not_found(store: Any) -> None:
    """Expired and deleted memories are found by no search."""
    store.add("quokka one", expires_at=store.clock())
    late = store.add("quokka two")
    store.by_hand(f"UPDATE memory SET deleted_at = created_at WHERE id = {late}")
    assert store.text.search([Term("quokka")], store.view(), 9) == {}
    assert store.text.substring("uokk", store.view(), 9) == []


def test_what_a_visible_memory_holds_is_said_of_all_terms_at_once(store: Any) -> None:
    """Of words and phrases those are held that a visible memory holds, in whatever form they are asked for."""
    store.add("quokka burrows under the old lantern")
    store.add("a wombat sleeps", expires_at=store.clock())
    store.add("numbat feet", "user:eve")
    asked = ["quokka", "quokkas", "old lantern", "lantern old", "wombat", "numbat", "burrow", "-", "tide"]
    assert store.text.held(asked, store.view()) == {"quokka", "quokkas", "old lantern", "burrow"}
    assert store.text.held([], store.view()) == frozenset()
    assert store.text.held(asked, store.view("user:nobody")) == frozenset()


def test_a_term_is_held_behind_many_hidden_memories(store: Any) -> None:
    """However many hidden memories hold a word, the only visible one of them is looked for to the end."""
    with store.records.writing("project:crew/engine", "ada") as transaction:
        for number in range(130):
            gone = None if number == 129 else store.clock()
            transaction.memories.insert(make_entry(f"quokka number {number}", chunks=0, expires_at=gone))
            transaction.memories.insert(make_entry(f"wombat number {number}", chunks=0, expires_at=store.clock()))
    assert store.text.held(["quokka", "wombat"], store.view()) == {"quokka"}


def test_what_is_hidden_weighs_nothing(store: Any) -> None:
    """Neither other namespaces nor levels above the view's change a score, and repeating a word raises it."""
    once = store.add("the lantern swings over a quiet deck tonight", "user:ada")
    twice = store.add("a lantern beside the lantern on a quiet deck", "user:ada")
    store.add("nothing of the kind", "user:ada")
    view = store.view("user:ada").model_copy(update={"sensitivities": (Sensitivity.PUBLIC,)})
    asked = [Term("lantern"), Term("quiet", 0.5)]
    before = store.text.search(asked, view, 9)
    assert before[twice] > before[once]
    store.add("lantern lantern lantern", "user:eve")
    store.add("one quiet and secret lantern", "user:ada", sensitivity=Sensitivity.SECRET)
    assert store.text.search(asked, view, 9) == before
    assert len(store.text.search(asked, store.view("user:ada", sensitivities=EVERY_LEVEL), 9)) == 3


@pytest.mark.parametrize("word", ["technology", "possibly", "js", "x" * 64, "x" * 65, "größe", "данные"])
def test_words_that_the_index_stems_in_its_own_way_are_found(store: Any, word: str) -> None:
    """A word is found however the index's stemmer treats it."""
    holder = store.add(f"about {word} alone")
    assert set(store.text.search([Term(fold(word))], store.view(), 9)) == {holder}


@pytest.mark.parametrize(
    "sabotage",
    [
        "UPDATE text_size SET length = length + 1",
        "DELETE FROM posting WHERE term = 'mast'",
        "INSERT INTO posting SELECT namespace_id, sensitivity, 'keel', memory_id, 1, length FROM posting LIMIT 1",
    ],
)
def test_an_index_out_of_step_is_seen_and_built_again(store: Any, sabotage: str) -> None:
    """Damage done by hand to PostgreSQL's index is noticed, and `rebuild` undoes it; SQLite's has tests of its own."""
    memory_id = store.add("rope mast")
    if not store.sqlite:
        store.by_hand(sabotage)
        assert out_of_step(store) == "posting"
    store.text.rebuild()
    assert out_of_step(store) == ""
    assert store.text.search([Term("mast")], store.view(), 9).keys() == {memory_id}


def test_changes_follow_on_every_database(store: Any) -> None:
    """What is updated, hidden, restored or moved to another level is found as it is now, and nowhere else."""
    one = store.add("alphaword stands", key="k", title="titleword")
    with store.records.writing("project:crew/engine", "ada") as transaction:
        old = transaction.lookup.by_key("k")
        transaction.memories.update(old, make_entry("betaword stands", at=store.clock(), title="othertitle"), "update")
    for word, found in (("alphaword", {}), ("titleword", {}), ("betaword", {one}), ("othertitle", {one})):
        assert set(store.text.search([Term(word)], store.view(), 9)) == set(found)
    for change in ("deleted_at = created_at", "deleted_at = NULL", "sensitivity = 'private'", "sensitivity = 'public'"):
        store.by_hand(f"UPDATE memory SET {change} WHERE id = {one}")
        assert out_of_step(store) == ""
        seen = set(store.text.search([Term("betaword")], store.view(sensitivities=(Sensitivity.PUBLIC,)), 9))
        assert seen == ({one} if change.endswith(("NULL", "'public'")) else set())


def test_both_databases_rank_alike(tmp_path: Path, migrated: Path, clock: Any, migrated_postgres_url: str) -> None:
    """For the same memories and words, bm25 is the same number on SQLite and on PostgreSQL, phrases included.

    Only a single word in another script differs: SQLite counts it once a memory, PostgreSQL as often as it stands.
    """
    lay(migrated, tmp_path)
    asked = [
        [Term("deploy"), Term("friday")],
        [Term("deploye"), Term("cache", 0.5)],
        [Term("cache eviction"), Term("running")],
        [Term("snake_case"), Term("v1.2.3"), Term("camelcase")],
        [Term("mowe"), Term("the")],
    ]
    answers = []
    for database in (open_file(tmp_path / "memory.db"), Database(migrated_postgres_url)):
        with Records(database, clock, lambda: None).writing("user:ada", "ada") as transaction:
            for said in DOCUMENTS:
                transaction.memories.insert(make_entry(said))
        text = SqliteText(database) if database.file else PostgresText(database)
        view = View(namespaces=("user:ada",), now=clock())
        answers.append([text.search(terms, view, 20) for terms in asked])
        database.close()
    assert answers[0] == [pytest.approx(one) for one in answers[1]]
    assert all(answers[0])
    assert [list(one) for one in answers[0]] == [list(one) for one in answers[1]]
