"""Entities: what the rules find in a text, and what they leave alone, by tables written by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from recollect.domain.enums import EntityType
from recollect.domain.results import Entity
from recollect.text.entities import entities
from recollect.text.normalization import fold

quick = hypothesis_settings(deadline=None, database=None)
KINDS = {one.value: one for one in EntityType}

# Text, type, the names of that type in order (all else in the text is of another type or nothing).
FOUND = [
    ("See https://example.com/a?b=1#c.", "url", ["https://example.com/a?b=1#c"]),
    ("(see https://example.com/a_(b)), please", "url", ["https://example.com/a_(b)"]),
    ("[one](https://a.io/x)[two](https://b.io/y)", "url", ["https://a.io/x", "https://b.io/y"]),
    ("**https://example.com/a**!", "url", ["https://example.com/a"]),
    ("请看https://example.com/a。谢谢", "url", ["https://example.com/a"]),
    ("www.example.com and github.com/owner/repo", "url", ["www.example.com", "github.com/owner/repo"]),
    ("clone git@github.com:owner/repo.git now", "url", ["git@github.com:owner/repo.git"]),
    ("postgres://db.local:5432/main?x=1 is up", "url", ["postgres://db.local:5432/main?x=1"]),
    ("<https://example.com>", "url", ["https://example.com"]),
    ("Write to bob.smith+x@mail.example.co.uk.", "email", ["bob.smith+x@mail.example.co.uk"]),
    ("mailto:jörg@example.de", "email", ["jörg@example.de"]),
    ("联系bob@example.com谢谢", "email", ["bob@example.com"]),
    ("Edit src/a/b.py:42, ./run and ../x/y.", "file", ["src/a/b.py", "./run", "../x/y"]),
    ("It is in ~/.ssh/config or /etc/hosts", "file", ["~/.ssh/config", "/etc/hosts"]),
    (r"Open C:\x\y.txt, please", "file", [r"C:\x\y.txt"]),
    ("Dockerfile, .env, .gitignore and README.md", "file", ["Dockerfile", ".env", ".gitignore", "README.md"]),
    ("`pyproject.toml` and main.py.", "file", ["pyproject.toml", "main.py"]),
    ("tests/x/test_y.py::test_z failed", "file", ["tests/x/test_y.py"]),
    ("see .github/workflows and src/recollect/", "file", [".github/workflows", "src/recollect/"]),
    ("打开src/a.py文件", "file", ["src/a.py"]),
    ("the größe.txt file", "file", ["größe.txt"]),
    ("ABC-123 blocks GH-12, see #345", "ticket", ["ABC-123", "GH-12", "#345"]),
    ("fixes #7 and owner/repo#12", "ticket", ["#7", "owner/repo#12"]),
    ("v1.2.3, v2, 1.2.34 and 2.0.0-rc.1", "version", ["v1.2.3", "v2", "1.2.34", "2.0.0-rc.1"]),
    ("Python 3.11, later Postgres 17.2", "version", ["3.11", "17.2"]),
    ("version 2.10 of it, PyCharm 2024.1", "version", ["2.10", "2024.1"]),
    ("numpy>=1.26 and foo==1.2.3", "version", ["1.26", "1.2.3"]),
    ("#launch, #facade, #数据库 and #naïve_bayes.", "hashtag", ["#launch", "#facade", "#数据库", "#naïve_bayes"]),
    ("用#数据库 #नमस्ते", "hashtag", ["#数据库", "#नमस्ते"]),
    ("Call `render` and `x-y`, not `two words`", "identifier", ["render", "x-y"]),
    ("getUserName, `HTTPServer` and 0xB9", "identifier", ["getUserName", "HTTPServer", "0xB9"]),
    ("snake_case MAX_SIZE __init__ _own_name", "identifier", ["snake_case", "MAX_SIZE", "__init__", "_own_name"]),
    ("np.linalg.norm, asyncio.run and Foo.bar()", "identifier", ["np.linalg.norm", "asyncio.run", "Foo.bar"]),
    ("foo() with --dry-run", "identifier", ["foo", "--dry-run"]),
    ("commit 3f2a9bc, RFC 9110, PEP 8", "identifier", ["3f2a9bc", "RFC 9110", "PEP 8"]),
    ("CVE-2024-3094 in @scope/package", "identifier", ["CVE-2024-3094", "@scope/package"]),
    ("```\nfoo_bar = 1  # Ada Lovelace\n```", "identifier", ["foo_bar"]),
    ("We buy from Acme Inc. and Foo Bar GmbH", "organisation", ["Acme Inc", "Foo Bar GmbH"]),
    ("The Mozilla Foundation paid.", "organisation", ["Mozilla Foundation"]),
    ("at the University of Oslo, Stanford University", "organisation", ["University of Oslo", "Stanford University"]),
    ("We pay Johnson & Miller Ltd and Halden Pharma", "organisation", ["Johnson & Miller Ltd", "Halden Pharma"]),
    ("Ada Lovelace met Charles Babbage.", "person", ["Ada Lovelace", "Charles Babbage"]),
    ("Yesterday Maria's dog met Jonas.", "person", ["Maria", "Jonas"]),
    ("Ask Dr. Okonkwo or Prof. Zhang", "person", ["Okonkwo", "Zhang"]),
    ("We met Ngozi Adichie, then asked Ludwig van Beethoven.", "person", ["Ngozi Adichie", "Ludwig van Beethoven"]),
    ("Ngozi Adichie joined the team.", "person", ["Ngozi Adichie"]),
    ("It was J. R. Tolkien's or John F. Kennedy's", "person", ["John F. Kennedy"]),
    ("Thanks to @alice and @bob-smith!", "person", ["alice", "bob-smith"]),
    ("Then Ngozi said no.", "person", ["Ngozi"]),
    ("Ngozi: hi\nTemi: hello\nNgozi: how are you\nTemi: fine", "person", ["Ngozi", "Temi"]),
    ("Вчера Анна Иванова звонила.", "person", ["Анна Иванова"]),
    ("Jean-Luc Picard met Zoë Müller.", "person", ["Jean-Luc Picard", "Zoë Müller"]),
    ("I met Frank Ocean, then Jill and Josh.", "person", ["Frank Ocean", "Jill", "Josh"]),
    ("Then David Villa and Jamie Forest met.", "person", ["David Villa", "Jamie Forest"]),
    ("We visited Villa Gennari and Casa Anna with Ada.", "person", ["Ada"]),
    ("Ask Pawel about it. It is the Ngozi case, since Ngozi said no.", "person", ["Pawel", "Ngozi"]),
    ("From Berlin to New York and São Paulo, then to the UK.", "place", ["Berlin", "New York", "São Paulo", "UK"]),
    (
        "Past Villa Gennari, the Eiffel Tower and Chew Valley Lake",
        "place",
        ["Villa Gennari", "Eiffel Tower", "Chew Valley Lake"],
    ),
    ("The depots are in Göteborg, Leeds and San Diego.", "place", ["Göteborg", "Leeds", "San Diego"]),
    ("We pay with Stripe and keep it in PostgreSQL 17.", "thing", ["Stripe", "PostgreSQL"]),
    ("moved from LaunchDarkly to a self-hosted Unleash", "thing", ["LaunchDarkly", "Unleash"]),
    ("TanStack Query is in, no Redux; kafka and Node.js stay.", "thing", ["TanStack Query", "Redux", "Node.js"]),
    ("Kubernetes said no. She loves her Ford Mustang.", "thing", ["Kubernetes", "Ford Mustang"]),
    ("The SHT45 draws more than an MX25R6435F", "thing", ["SHT45", "MX25R6435F"]),
    ("OTA over I2C, and the CI checks the CRC", "concept", ["OTA", "I2C", "CI", "CRC"]),
    ("TCP/IP, CI/CD and JWT", "concept", ["TCP", "IP", "CI", "CD", "JWT"]),
]

NOTHING = [
    "",
    "Plain words about nothing in particular.",
    "# Heading\n\n## Another One\n- item\n1. First",
    "On 03.05.2024 at 12:30 it was 12.30, 2024-05-03, 2024.05.03 or 1/2.",
    "It costs 3.50, or 1.234.567 in all, 5.2 GB, section 3.11, 10.5 %.",
    "The address is 192.168.0.1 and 10.0.0.255.",
    "and/or, he/she, 24/7, km/h, n/a, w/o",
    "UTF-8, SHA-256, GPT-4, ISO-8601, COVID-19, MAY-12",
    "the #1 reason, color: #123456, #ff8800, C# and F#",
    "e.g. this, i.e. that, U.S. law, 5 p.m., etc.",
    "It ended.Then it began.The end.",
    "Dutch, Danish and Maltese on Tuesdays and in May",
    "NEVER DO THIS, ALWAYS DO THAT, DELETE NOTHING",
    "How To Build Great Things Without Trying",
    "Users said yes. She said maybe. Everyone asked. Contract says no.",
    "In May we will mark the will of Will, and grace may art.",
    "It is an _emphasis_ and __bold__ and *stars* — --",
    "The @property decorator and @media rules; 5 @ 3",
    "会议在三月五日，我们使用缓存。",
    "Deploy it. Use that. Run them. I've met I’m.",
    "Working Group and Search Engine",
    "```python\n@dataclass\n#include\n# Ada Lovelace\n```",
]


@pytest.mark.parametrize(("text", "kind", "names"), FOUND)
def test_what_is_named_is_found(text: str, kind: str, names: list[str]) -> None:
    """Things are found in order, exactly as written, with nothing of their surroundings."""
    assert [one.name for one in entities(text) if one.type is KINDS[kind]] == names


@pytest.mark.parametrize("text", NOTHING)
def test_what_is_no_name_is_left_alone(text: str) -> None:
    """Dates, amounts, headings, days, languages, shouting and the openings of sentences name nothing."""
    assert entities(text) == ()


@pytest.mark.parametrize(
    "url",
    ["https://example.com/src/a.py?v=1.2.3#ABC-123", "https://a.io/@alice/Ada_Lovelace", "http://x.io/getUser/v1.2.3"],
)
def test_nothing_is_found_inside_a_url(url: str) -> None:
    """Whatever a URL looks like inside, it is one thing."""
    assert entities(f"Look at {url}, then.") == (Entity(url, EntityType.URL),)


def test_each_thing_is_named_once() -> None:
    """A name that comes again in another case is the same thing, and the first spelling stays."""
    found = entities("Maria met MARIA, #Launch and #launch; `maria`.")
    assert [one.name for one in found] == ["Maria", "#Launch", "maria"]


def test_the_limit_keeps_the_first() -> None:
    """Of many things the first ones are returned, none for a limit of nothing."""
    text = " ".join(f"#tag{number}x" for number in range(100))
    assert [one.name for one in entities(text, 2)] == ["#tag0x", "#tag1x"]
    assert len(entities(text)) == 64
    assert entities(text, 0) == ()


@quick
@given(st.text("aA1.@#/:-_`\\ \n()Ünd不'Maria", max_size=200))
def test_names_stand_in_the_text(text: str) -> None:
    """Whatever the text, names are stretches of it, unique by type and folded name, and never blank."""
    found = entities(text)
    assert all(one.name in text and one.name.strip() for one in found)
    assert len({(one.type, fold(one.name)) for one in found}) == len(found)


@pytest.mark.full
@pytest.mark.parametrize(
    "piece",
    [
        *("a", "A", "1", ".", "-", "_", "/", "@", "#", "`", "(", "\n", "\0", "不"),
        *("a.", "a-", "a@", "a/", "1.", "a_", "Aa", "A-1", "://", "x://a)", "x://(", "`a", "```\n", "#a", "@a", "v1."),
        *("Aa ", "Aa & ", "de ", "Dr. ", "A. ", "a'", "Maria ", "University of ", "Aa: b\n", "--a", "C:\\"),
    ],
)
def test_long_texts_come_to_an_end(piece: str) -> None:
    """200,000 characters of anything are read; a pattern that reads them in two ways would not return."""
    text = (piece * 200_000)[:200_000]
    assert all(one.name in text for one in entities(text))
