"""Languages: what was remembered in any of them is recalled by its words, and forgotten without a trace."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime

import pytest

from callers import ADA
from recollect import App, Draft, Forget, Query, Recalled, Settings, forget, recall, remember
from recollect.domain.results import NOTHING
from recollect.memory.reindex import reindex
from recollect.search.parse import parse
from recollect.store.text.index import Term
from stores import open_app

FACTS = {
    "zh": "我们的主数据库是PostgreSQL，部署在东京机房。",
    "zh cat": "他家的猫叫小黑",
    "zh other": "会议改到星期五上午举行",
    "ja": "田中さんは京都タワーの近くに住んでいます。",
    "ja backup": "バックアップは毎晩二時に実行される",
    "ja other": "会議は金曜日に開催されます",
    "ko": "우리는 매주 화요일에 데이터베이스를 백업합니다",
    "ko book": "지수는 책을 많이 읽는다",
    "th": "เราสำรองฐานข้อมูลทุกคืนวันศุกร์",
    "th other": "การประชุมเลื่อนไปเป็นวันจันทร์",
    "ru": "Ёлку поставили в серверной, ключ у Фёдора",
    "ru other": "Встреча перенесена на понедельник",
    "el": "Ο Οδυσσέας ταξίδεψε στην Αθήνα",
    "ar": "مُحَمَّد يعمل في إدارة قواعد البيانات",
    "ar other": "تم تأجيل الاجتماع إلى الجمعة",
    "hi": "हिन्दी में लिखा गया दस्तावेज़ सर्वर पर है",
    "hi other": "बैठक शुक्रवार को है",
    "fr": "Le café préféré d'Élodie est fermé à Noël",
    "fr nfd": "Le re\u0301sume\u0301 du proce\u0300s est preˆt",
    "de": "Die Straße nach Österreich ist gesperrt",
    "tr": "İstanbul'daki ışıklar sönük",
    "full width": "製品番号ＡＢＣ１２３は廃番",
    "rocket": "Deployment finished 🚀 all green",
    "cake": "Grace turns forty next week 🎂👍🏽",
    "flag": "The new office opens in 🇩🇪",
    "party": "see you🥳at nine",
}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """Return a store in many languages that all tests here only read."""
    home = tmp_path_factory.mktemp("library")
    settings = Settings(home=home, user="ada", team="crew", project="engine")
    with open_app(settings, clock=lambda: datetime(2026, 3, 1, tzinfo=UTC)) as app:
        for key, content in FACTS.items():
            remember(app, Draft(content=content, key=key), ADA)
        assert app.embedder.wait(60)
        yield app


def keys(recalled: Recalled) -> list[str | None]:
    """Return the keys of the hits, best first."""
    return [hit.memory.key for hit in recalled.hits]


@pytest.mark.parametrize(
    ("query", "key"),
    [
        pytest.param("东京", "zh", id="Chinese, a word inside a sentence"),
        pytest.param("数据库", "zh", id="Chinese, three characters"),
        pytest.param("postgresql", "zh", id="Latin inside Chinese"),
        pytest.param("主数据库部署在哪里？", "zh", id="Chinese, a question"),
        pytest.param("猫", "zh cat", id="Chinese, one character"),
        pytest.param("京都", "ja", id="Japanese, kanji"),
        pytest.param("タワー", "ja", id="Japanese, katakana"),
        pytest.param("田中さんはどこに住んでいますか", "ja", id="Japanese, a question"),
        pytest.param("백업", "ko", id="Korean, inside a word"),
        pytest.param("데이터베이스", "ko", id="Korean, without its particle"),
        pytest.param("책", "ko book", id="Korean, one syllable"),
        pytest.param("ข้อมูล", "th", id="Thai, inside a sentence"),
        pytest.param("วันศุกร์", "th", id="Thai, at the end"),
        pytest.param("Фёдора", "ru", id="Russian"),
        pytest.param("елку", "ru", id="Russian without dots"),
        pytest.param("СЕРВЕРНОЙ", "ru", id="Russian in capitals"),
        pytest.param("αθηνα", "el", id="Greek without accents"),
        pytest.param("ΟΔΥΣΣΕΑΣ", "el", id="Greek in capitals, with its final sigma"),
        pytest.param("محمد", "ar", id="Arabic without vowel points"),
        pytest.param("ادارة", "ar", id="Arabic with a bare alif"),
        pytest.param("हिन्दी", "hi", id="Hindi"),
        pytest.param("दस्तावेज", "hi", id="Hindi without the dot"),
        pytest.param("cafe prefere", "fr", id="French without accents"),
        pytest.param("Noël", "fr", id="French with accents"),
        pytest.param("résumé", "fr nfd", id="French, composed otherwise than stored"),
        pytest.param("strasse", "de", id="German with ss"),
        pytest.param("STRASSE NACH OSTERREICH", "de", id="German in capitals"),
        pytest.param("istanbul", "tr", id="Turkish, the dotted capital"),
        pytest.param("isiklar", "tr", id="Turkish without its own letters"),
        pytest.param("abc123", "full width", id="full width"),
        pytest.param("rocket", "rocket", id="emoji by name"),
        pytest.param("birthday cake", "cake", id="emoji by two words"),
        pytest.param("nine", "party", id="a word that touches an emoji"),
    ],
)
def test_found_by_word(library: App, query: str, key: str) -> None:
    """A word finds the memory that says it, before all others, however it is written."""
    assert keys(recall(library, Query(query=query), ADA))[:1] == [key]


@pytest.mark.parametrize(
    ("query", "key"),
    [("🚀", "rocket"), ("🎂", "cake"), ("👍", "cake"), ("🇩🇪", "flag"), ("🥳", "party"), ("ﾊﾞｯｸｱｯﾌﾟ", "ja backup")],
)
def test_found_where_the_model_knows_no_letter(library: App, query: str, key: str) -> None:
    """An emoji alone, in whatever skin tone, finds the memory that holds it, and so does a word of half width."""
    recalled = recall(library, Query(query=query), ADA)
    assert key in keys(recalled)
    assert {hit.signals.coverage for hit in recalled.hits if hit.memory.key == key} == {1.0}


@pytest.mark.parametrize(
    ("query", "key", "word"), [("сервернай", "ru", "серверной"), ("Österreihc", "de", "osterreich")]
)
def test_a_typo_is_understood_in_any_alphabet(library: App, query: str, key: str, word: str) -> None:
    """A misspelt word finds what was meant, and the note says how it was read."""
    recalled = recall(library, Query(query=query), ADA)
    assert keys(recalled)[:1] == [key]
    assert word in " ".join(recalled.notes)


@pytest.mark.parametrize("query", ["大阪", "犬", "버스", "รถไฟ", "собака", "🦖"])
def test_what_nobody_said_is_no_match_by_word(library: App, query: str) -> None:
    """A word of such a language that no memory holds matches none of them by its letters."""
    recalled = recall(library, Query(query=query, min_score=0.0), ADA)
    assert all(hit.signals.coverage == hit.signals.bm25 == 0.0 for hit in recalled.hits)


@pytest.mark.parametrize("query", ["!!!", "。。。", "？", "…", "—", "؟", "「」", "\u200b"])
def test_marks_alone_find_nothing(library: App, query: str) -> None:
    """A query of punctuation alone is no error and no guess: nothing relevant is found."""
    recalled = recall(library, Query(query=query), ADA)
    assert (recalled.hits, recalled.message) == ((), NOTHING)


@pytest.mark.parametrize("content", ["绝密的计划叫做琥珀", "極秘計画は琥珀という", "แผนลับชื่ออำพัน", "비밀계획은호박이다"])
def test_forgetting_leaves_no_trace(open_store: Callable[..., App], settings: Settings, content: str) -> None:
    """What was forgotten is found by none of its words, is in no vocabulary and in no file of the store."""
    app = open_store()
    kept = remember(app, Draft(content="会议改到星期五上午举行"), ADA).id
    number = remember(app, Draft(content=content, tags=(content[:2],)), ADA).id
    words = parse(content).words
    view_words = [Term(word) for word in words]
    assert recall(app, Query(query=content), ADA).hits[0].memory.id == int(number)
    forget(app, Forget(id=number), ADA)
    assert all(hit.memory.id == int(kept) for hit in recall(app, Query(query=content, min_score=0.0), ADA).hits)
    app.close()
    database = next(settings.folder.glob("*.db"))
    with closing(sqlite3.connect(database)) as connection:
        assert not {text for (text,) in connection.execute("SELECT text FROM word")} & set(words)
        for term in view_words:
            match = connection.execute("SELECT count(*) FROM memory_text(?)", (f'"{term.text}"',)).fetchone()
            assert match == (0,)
    files = [path for path in settings.folder.rglob("*") if path.is_file()]
    assert [path.name for path in files if content[:4].encode() in path.read_bytes()] == []


def test_reindex_gives_an_older_store_its_words(open_store: Callable[..., App], settings: Settings) -> None:
    """A memory that was stored before pairs were known is found by them after reindex."""
    app = open_store()
    remember(app, Draft(content="我们的主数据库部署在东京机房", key="tokyo"), ADA)
    assert app.embedder.wait(60)
    app.close()
    with closing(sqlite3.connect(next(settings.folder.glob("*.db")))) as connection:
        connection.execute("UPDATE memory SET keywords = 'tokyo'")
        connection.execute("UPDATE memory_words SET words = 'tokyo 我们的主数据库部署在东京机房'")
        connection.execute("DELETE FROM word")
        connection.commit()
    again = open_store()
    assert {hit.signals.bm25 for hit in recall(again, Query(query="东京", min_score=0.0), ADA).hits} <= {0.0}
    assert reindex(again) == 1
    [hit] = recall(again, Query(query="东京"), ADA).hits
    assert hit.memory.key == "tokyo"
    assert hit.signals.coverage == 1.0
    assert [check for check in again.checks() if not check.well] == []


@pytest.mark.parametrize(
    ("query", "said"),
    [("数据库", True), ("СЕРВЕРНОЙ", True), ("“600”", False), ("PostgreSQL数据库", False), ("Noël", False)],
)
def test_a_script_the_model_cannot_read_is_said(library: App, query: str, said: bool) -> None:
    """Where no letter of the query is Latin, the vectors are not searched, and the answer says so."""
    notes = recall(library, Query(query=query), ADA).notes
    assert any("does not support this writing system" in note for note in notes) == said
