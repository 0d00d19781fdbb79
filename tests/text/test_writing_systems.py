"""Languages: the words of any writing system meet, in the query, in the vocabulary and in the real text index."""

from __future__ import annotations

import re
import sqlite3
import string
import sys
import unicodedata
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from recollect import Draft
from recollect.search.parse import Phrase, parse
from recollect.text import layers, normalization, writing_systems
from recollect.text.normalization import fold, limit_marks
from recollect.text.terms import STOP_WORDS, keywords, name_parts, vocabulary

pytestmark = pytest.mark.slow

quick = hypothesis_settings(deadline=None, database=None)
thorough = hypothesis_settings(deadline=None, database=None, max_examples=300)

ALPHABETS = (
    "aábßcçœøłıİIñőẵđДдЁёЙйїѓъΑάςσΌἀᾳ",
    "数据库东京猫豈𠮷々データバー゙゚ﾃﾞｰﾀヶさくらがか\u3099っゝ",
    "데이터베이스책을한ㄱㅏ\u1112\u1161\u11ab",
    "สำรองข้อมูลที่กินเน้ำສະບາຍမြန်မာខ្មែរ",
    "مُحَمَّدأإآىةـکیגשָׁלוֹםहिन्दीज़ज\u093cक्ष\u200dবাংলাতமிழ்",
    "ＡＢｃ１２３²①Ⅳﬁ𝐇٢٠२०½™℃ﷺµſ",
    "🚀🥳👍🏽👨\u200d👩🇩🇪🇫🇷❤\ufe0f1\ufe0f\u20e3♠★→",
    "\u0301\u0308\u0306\u0323\u0338\u3099\u093f\u0e34\u1ab0",
    " \t\n.,:;/_-'\"()«»…、。！？・　\u00a0\u200b\u200c\u00ad\ufeff",
    string.ascii_letters + string.digits,
)
letter = st.one_of(*(st.sampled_from(one) for one in ALPHABETS), st.characters(exclude_categories=["Cs", "Cc"]))
writings = st.text(letter, max_size=40)
# without apostrophes: contractions have tests of their own
ascii_texts = st.text(st.sampled_from(string.printable.replace("'", "")), max_size=120)


@pytest.fixture(scope="module")
def index() -> Iterator[sqlite3.Connection]:
    """Return a text index that cuts words as the store's does."""
    connection = sqlite3.connect(":memory:")
    connection.execute(
        "CREATE VIRTUAL TABLE memory USING fts5(content, keywords, tokenize='porter unicode61 remove_diacritics 2')"
    )
    connection.execute("CREATE VIRTUAL TABLE bare USING fts5(content, tokenize='unicode61 remove_diacritics 2')")
    connection.execute("CREATE VIRTUAL TABLE seen USING fts5vocab(bare, 'instance')")
    yield connection
    connection.close()


def missing(index: sqlite3.Connection, content: str, asked: tuple[str, ...]) -> list[str]:
    """Return those of the words asked for that do not find a memory with this content."""
    index.execute("DELETE FROM memory")
    index.execute("INSERT INTO memory VALUES (?, ?)", (content, keywords(Draft(content=content))))
    match = "SELECT count(*) FROM memory WHERE memory MATCH ?"
    return [word for word in asked if not index.execute(match, ('"' + word.replace('"', '""') + '"',)).fetchone()[0]]


def searchable(asked: tuple[str, ...]) -> tuple[str, ...]:
    """Leave out single letters of alphabets, which are no words, and symbols, which the index knows by name alone."""
    return tuple(
        word for word in asked if writing_systems.is_dense(word) or (len(word) > 1 and any(map(str.isalnum, word)))
    )


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("ＡＢＣ１２３", "abc123"),
        ("ﾃﾞｰﾀﾍﾞｰｽ", "データベース"),
        ("Straße", "strasse"),
        ("İSTANBUL", "istanbul"),
        ("IŞIKLAR ışıklar", "isiklar isiklar"),
        ("Οδυσσέας", "οδυσσεασ"),
        ("ΟΔΥΣΣΕΑΣ", "οδυσσεασ"),
        ("Ёлка", "елка"),
        ("Мой и\u0306огурт", "мой йогурт"),
        ("Київ", "київ"),
        ("за́мок", "замок"),
        ("Łódź Œuvre Ærø", "lodz oeuvre aero"),
        ("Đà Nẵng", "da nang"),
        ("مُحَمَّد إدارة ٢٠٢٤", "محمد اداره 2024"),
        ("כתיב שָׁלוֹם", "כתיב שלום"),
        ("हिन्दी", "हिन्दी"),
        ("दस्तावेज़", "दस्तावेज"),
        ("e\u0301tude étude", "etude etude"),
        ("か\u3099っこう", "がっこう"),
        ("น้ำ นํ้า", "นํา นํา"),
        ("soft\u00adware", "software"),
        ("Foo™ ½ ℃", "foo™ ½ ℃"),
        ("ﬁnal Ⅳ ² 𝐇", "final iv 2 h"),
    ],
)
def test_one_form_for_every_spelling(text: str, folded: str) -> None:
    """Width, case, accents, vowel points and the way a letter is composed do not count; letters of their own do."""
    assert fold(text) == folded


@quick
@given(writings)
def test_folding_is_final(text: str) -> None:
    """What is folded stays as it is, composed or not."""
    assert fold(fold(text)) == fold(text)
    assert fold(unicodedata.normalize("NFD", text)) == fold(unicodedata.normalize("NFC", text))


@pytest.mark.full
def test_the_index_reads_every_plain_character_as_we_do(index: sqlite3.Connection) -> None:
    """For each character of Unicode of which we say so, FTS5 itself makes the very letter, or the very gap."""
    every = (chr(one) for one in range(0x80, sys.maxunicode + 1) if not 0xD800 <= one <= 0xDFFF)
    ours = [one for one in every if normalization.same_in_index(one)]
    index.execute("DELETE FROM bare")
    index.executemany("INSERT INTO bare(rowid, content) VALUES (?, ?)", enumerate(f"q{one}q" for one in ours))
    seen: dict[int, list[str]] = {}
    for number, term in index.execute("SELECT doc, term FROM seen ORDER BY doc, offset"):
        seen.setdefault(number, []).append(term)
    wrong = [
        one for number, one in enumerate(ours) if seen[number] != ([f"q{fold(one)}q"] if one.isalnum() else ["q", "q"])
    ]
    assert len(ours) > 30_000
    assert wrong == []


@thorough
@given(writings)
def test_every_word_of_a_text_finds_it(index: sqlite3.Connection, text: str) -> None:
    """Ask real FTS5 for the words of any text: each one finds the memory, and each is in its vocabulary."""
    content = f"{text} end"
    asked = parse(content).words
    assert missing(index, content, searchable(asked)) == []
    assert set(searchable(asked)) <= vocabulary([content])


@thorough
@given(writings, st.sampled_from(["NFC", "NFD"]))
def test_any_spelling_of_a_word_finds_it(index: sqlite3.Connection, text: str, form: str) -> None:
    """A text is found by its words however their letters are composed or capitalised."""
    content = f"{unicodedata.normalize(form, text)} end"
    assert missing(index, content, searchable(parse(unicodedata.normalize("NFC", text)).words)) == []
    if text.islower():
        assert missing(index, content, searchable(parse(text.upper()).words)) == []


@pytest.mark.parametrize(
    ("content", "query", "words"),
    [
        pytest.param("我们的数据库在东京", "东京", ("东京",), id="Chinese"),
        pytest.param("我们的数据库在东京", "数据库", ("数据", "据库"), id="Chinese, three characters"),
        pytest.param("他家的猫叫小黑", "猫", ("猫",), id="Chinese, one character"),
        pytest.param("使用PostgreSQL数据库", "postgresql", ("postgresql",), id="Latin inside Chinese"),
        pytest.param("PostgreSQL数据库", "PostgreSQL数据库", ("postgresql", "数据", "据库"), id="both at once"),
        pytest.param("猫が好きです", "猫は好き?", ("猫", "好"), id="Japanese, particles aside"),
        pytest.param("東京タワーへ行く", "ﾀﾜｰ", ("タワ", "ワー"), id="Japanese, half width"),
        pytest.param("さくらが咲く", "さくら", ("さく", "くら"), id="Japanese, hiragana alone"),
        pytest.param("데이터베이스를 백업합니다", "백업", ("백업",), id="Korean with a particle"),
        pytest.param("책을 읽는다", "책", ("책",), id="Korean, one syllable"),
        pytest.param("เราสำรองข้อมูลทุกคืน", "ข้อมูล", ("ขอ", "อมู", "มูล"), id="Thai, tones aside"),
        pytest.param("ພາສາລາວ", "ລາວ", ("ລາ", "າວ"), id="Lao"),
        pytest.param("မြန်မာစာ", "စာ", ("စာ",), id="Burmese"),
        pytest.param("ភាសាខ្មែរ", "ខ្មែរ", ("ខ្មែ", "មែរ"), id="Khmer"),
        pytest.param("हिन्दी में लिखा", "हिन्दी", ("हिन्दी",), id="Hindi keeps its vowel signs"),
        pytest.param("製品ＡＢＣ１２３", "abc123", ("abc123",), id="full width"),
        pytest.param("done 🚀", "🚀", ("rocket",), id="emoji"),
        pytest.param("done 🚀", "rocket", ("rocket",), id="emoji by name"),
        pytest.param("thanks👍🏽!", "👍", ("thumbs", "up"), id="emoji with a skin tone"),
        pytest.param("we 👨‍👩‍👧", "👩👧", ("woman", "girl"), id="emoji of several"),
        pytest.param("Berlin 🇩🇪", "🇩🇪", ("flag", "🇩🇪"), id="flag"),
        pytest.param("party🥳time", "party", ("party",), id="a word that touches an emoji"),
        pytest.param("costs 100₽", "100", ("100",), id="a number that touches a new currency"),
    ],
)
def test_words_without_spaces_are_found(
    index: sqlite3.Connection, content: str, query: str, words: tuple[str, ...]
) -> None:
    """A word of one, two or more characters is taken out of its sentence by pairs, and so is an emoji by its name."""
    assert parse(query).words == words
    assert missing(index, content, searchable(words)) == []
    assert set(words) <= vocabulary([content])


def test_a_part_of_a_pair_is_no_other_word(index: sqlite3.Connection) -> None:
    """Pairs are taken within a script, from neighbours alone: nothing is found that does not stand there."""
    assert missing(index, "东边的京城, PostgreSQL数据", ("东京", "城p", "库")) == ["东京", "城p", "库"]
    assert not {"东京", "l数"} & vocabulary(["东边的京城, PostgreSQL数据"])


def test_another_flag_is_another_word() -> None:
    """Two flags share that they are flags, nothing else, and a flag is no letters."""
    assert vocabulary(["🇩🇪"]) & vocabulary(["🇫🇷🇮🇹"]) == {"flag"}
    assert "de" not in vocabulary(["🇩🇪"])


@pytest.mark.parametrize(
    "query", ["!!!", "。。。", "？！", "…", "—", "؟", "「」", "\u200b\ufeff", "・", "\u0301", "   "]
)
def test_punctuation_asks_for_nothing(query: str) -> None:
    """A query of marks alone has neither words nor names, in any script."""
    assert parse(query).words == parse(query).compounds == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("🚀", "rocket"),
        ("who sent 🎂🎂?", "who sent birthday cake birthday cake ?"),
        ("fly to 🇩🇪", "fly to flag"),
        ("数据库  东京", "数据库  东京"),
        ("ﾃﾞｰﾀ Ａ１", "データ A1"),
        ("plain  text", "plain  text"),
    ],
)
def test_emoji_are_said_in_words(text: str, said: str) -> None:
    """A model that knows no emoji is given their names; any other text stays as it was typed, width aside."""
    assert writing_systems.emoji_as_words(text) == said


def test_emoji_beside_words_weigh_nothing() -> None:
    """Where words are asked for, an emoji is searched for beside them and does not count as one that is missing."""
    asked = parse("deploy done 🎉")
    assert asked.words == ("deploy",)
    assert asked.compounds == (Phrase("party", ("party",)), Phrase("popper", ("popper",)))


def test_a_long_run_is_also_asked_for_whole() -> None:
    """Three characters or more are a name too, so that a store without pairs finds them by their letters."""
    assert parse("数据库").compounds == (Phrase("数据库", ("数据", "据库")),)
    assert parse("数据").compounds == ()


def test_a_book_has_a_bounded_number_of_pairs() -> None:
    """However long a Chinese text is, its keywords and its vocabulary are some thousand words, the first ones."""
    content = "".join(chr(0x4E00 + number * 7 % 20_000) for number in range(60_000))
    assert len(keywords(Draft(content=content)).split()) == 4_000
    assert len(vocabulary([content])) == 4_000
    assert content[:2] in vocabulary([content])
    assert len(parse(content[:20_000]).words) == 400


def test_accented_names_stay_whole() -> None:
    """Accents and capitals of any alphabet cut no word; only a new capital, a digit or another script does."""
    assert name_parts("Größe Café élève Ёлка") == []
    assert name_parts("getÜbersichtListe") == ["get", "Übersicht", "Liste"]
    assert name_parts("ПолучитьИмя2") == ["Получить", "Имя", "2"]
    assert name_parts("PostgreSQL数据库") == ["Postgre", "SQL"]


def test_certainty_of_pairs() -> None:
    """Pairs that nobody stored and hiragana weigh less than words that somebody surely meant."""
    assert (
        writing_systems.word_probability("database", False)
        == writing_systems.word_probability("数据", True)
        == writing_systems.word_probability("猫", False)
        == 1
    )
    assert writing_systems.word_probability("据在", False) < 1
    assert writing_systems.word_probability("です", True) < 1


# What was before: plain ASCII


def _before(query: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Take an ASCII query apart as it was done before there were other languages."""
    folded = query.lower()
    compound = re.findall(r"[^\W_](?:[\w./:@#+\\-]*[^\W_])?", folded)
    names = [one for one in compound if not one.isalnum() and len(one) <= 256]
    every = [word for word in re.findall(r"\w+", folded) if len(word) <= 64]
    telling = [word for word in every if word not in STOP_WORDS]
    return tuple(dict.fromkeys(telling or every)), tuple(dict.fromkeys(names))


def _inner_before(text: str) -> list[str]:
    cut = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_a-zA-Z]+")
    words = [word for word in re.findall(r"\w+", text) if len(word) <= 64]
    return [part for word in words if len(cut.findall(word)) > 1 for part in cut.findall(word)]


@quick
@given(ascii_texts)
def test_english_is_what_it_was(text: str) -> None:
    """For ASCII text the terms, the parts, the vocabulary and the keywords are those of a plain reading."""
    assert (parse(text).words, tuple(one.text for one in parse(text).compounds)) == _before(text)
    assert name_parts(text) == _inner_before(text)
    every = {*re.findall(r"\w+", text.lower()), *(part.lower() for part in _inner_before(text))}
    assert vocabulary([text]) == {word for word in every if 1 < len(word) <= 64}
    if text.strip():
        inner = [part for part in _inner_before(text.strip()) if len(part) > 1]
        assert keywords(Draft(content=text)) == " ".join(dict.fromkeys(inner[:300]))


# Lines


@pytest.mark.parametrize(
    ("content", "line"),
    [
        pytest.param("数据库" * 30, "数据库" * 13 + "…", id="Chinese"),
        pytest.param("数据库，" * 30, "数据库，" * 9 + "数据库…", id="Chinese with commas"),
        pytest.param("数据库" * 13 + "，数据库", "数据库" * 13 + "…", id="Chinese that is a little too long"),
        pytest.param("ฐานขอมูล" * 40, "ฐานขอมูล" * 9 + "ฐานขอมู…", id="Thai"),
        pytest.param("PostgreSQL 数据库 " * 30, "PostgreSQL 数据库 " * 3 + "PostgreSQL 数据库…", id="mixed"),
    ],
)
def test_abstracts_without_spaces_are_short(content: str, line: str) -> None:
    """An abstract is about twenty words and a title at most eighty columns, also where words have no spaces."""
    assert layers.abstract(content) == (line if line.endswith("…") else line.strip() + "…")
    assert writing_systems.cut_to_width(layers.title(content), 80) == layers.title(content)


@quick
@given(st.text(st.sampled_from("é\u0301ก\u0e34数👍🏽👨\u200d👩🇩🇪❤\ufe0fa "), min_size=1, max_size=400))
def test_no_line_tears_a_character(text: str) -> None:
    """Whatever is cut, no accent, skin tone, joiner or half a flag is left alone at the end or the beginning."""
    for columns in (7, 20, 80):
        kept = writing_systems.cut_to_width(text, columns)
        assert len(kept) <= columns
        assert text.startswith(kept)
        rest = text[len(kept) :]
        if kept and rest:
            assert not unicodedata.category(rest[0]).startswith("M") or len(kept) == columns
            assert "\u200d" not in (kept[-1], rest[0]) or len(kept) == columns


def test_only_marks_that_no_language_has_are_dropped() -> None:
    """A letter keeps thirty marks, and what is no mark is kept however often it stands there."""
    assert limit_marks("é" + "\u0301" * 29 + "a\u0301") == "é" + "\u0301" * 29 + "a\u0301"
    assert limit_marks("a" + "\u0301" * 40) == "a" + "\u0301" * 30
    for text in ("——" * 40, "…" * 99, "🚀" * 99, "═" * 80):
        assert limit_marks(text) == text
