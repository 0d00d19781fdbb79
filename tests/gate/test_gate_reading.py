"""How the gate reads: through encodings, across fields that name each other, and what it leaves alone all the same."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from random import Random
from string import ascii_letters
from threading import Barrier, Semaphore
from types import ModuleType

import pytest

from recollect.domain.enums import OnSecret
from recollect.domain.requests import Draft, StoreFact
from recollect.domain.transfer import ImportItem
from recollect.errors import SecretFound
from recollect.gate import clear, heuristics, plugins, scan, secrets_in
from secret_corpus import LETTERS, chars, forms, human

pytestmark = pytest.mark.slow

FORMS = {form.name: form for form in forms()}
SPELT: dict[str, Callable[[str], str]] = {
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64 of a line": lambda text: base64.b64encode(f"export TOKEN={text}\n".encode()).decode(),
    "base64 for URLs": lambda text: base64.urlsafe_b64encode(text.encode()).decode().rstrip("="),
    "base64 in lines": lambda text: base64.encodebytes(text.encode() * 3).decode(),
    "hexadecimal": lambda text: text.encode().hex(),
    "per cent": lambda text: "".join(f"%{ord(char):02X}" for char in text),
    "escaped": lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
    "bytes": lambda text: "".join(f"\\x{ord(char):02x}" for char in text),
    "entities": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "entities in hexadecimal": lambda text: "".join(f"&#x{ord(char):x};" for char in text),
    "a line that goes on": lambda text: f"{text[:9]}\\\n    {text[9:]}",
}
PASSWORD = human("lone") + "!"


@pytest.mark.parametrize("spelling", SPELT)
@pytest.mark.parametrize("name", ["anthropic", "github-classic", "aws-id", "slack-bot", "pem"])
def test_another_spelling_hides_nothing(name: str, spelling: str) -> None:
    """A secret that is encoded or escaped is refused, and masking takes all of its spelling away."""
    spelt = SPELT[spelling](FORMS[name].value)
    draft = Draft(content=f"keep this: {spelt} for later", tags=(spelt[:400],))
    with pytest.raises(SecretFound) as caught:
        clear(draft)
    assert set(FORMS[name].kinds) & set(caught.value.kinds)
    cleared = clear(draft, OnSecret.REDACT).value
    assert spelt[:40] not in cleared.model_dump_json()
    assert cleared.content.startswith("keep this: [redacted: ")
    assert cleared.content.endswith("for later")


def test_what_is_encoded_and_no_secret_passes() -> None:
    """Images, digests, tokens of no meaning and encoded ordinary text are none."""
    random = Random(7)
    noise = base64.b64encode(random.randbytes(3_000)).decode()
    texts = (
        f"data:image/png;base64,{noise}",
        base64.b64encode(b"An ordinary note about the harbour and its ledger.").decode(),
        json.dumps({"config": base64.b64encode(b'{"name": "mast", "wood": "oak"}').decode()}),
        random.randbytes(32).hex(),
        b"a note about oak and masts".hex(),
        "https://docs.internal/search?q=rotate%20the%20token%3F&page=2",
        "kube-system/coredns-5d78c9869d-ab12c and payments-api-7f9c6d5b8-2xkqp",
    )
    assert [text for text in texts if scan(text)] == []


@pytest.mark.parametrize(
    "field", [{"title": "Database password"}, {"key": "db_password"}, {"tags": ("wifi", "passwd")}, {"category": "pwd"}]
)
def test_a_name_in_another_field_tells(field: dict[str, object]) -> None:
    """A content that is nothing but a password is refused when title, key, category or a tag says what it is."""
    draft = Draft(content=f" {PASSWORD}\n", **field)  # type: ignore[arg-type]  # checked by the draft
    with pytest.raises(SecretFound) as caught:
        clear(draft)
    assert (caught.value.field, caught.value.kinds) == ("content", ("password",))
    cleared = clear(draft, OnSecret.REDACT).value
    assert cleared.content.strip() == "[redacted: password]"
    assert clear(Draft(content=f"{PASSWORD}")).value.content == PASSWORD


@pytest.mark.parametrize(
    ("subject", "predicate"),
    [("staging", "password"), ("root password", "is"), ("password", "of staging"), ("staging", "has_password")],
)
def test_the_parts_of_a_fact_are_read_together(subject: str, predicate: str) -> None:
    """A triple that tells a password is refused, however it is cut."""
    with pytest.raises(SecretFound) as caught:
        clear(StoreFact(subject=subject, predicate=predicate, object=PASSWORD))
    assert caught.value.field == "object"


def test_a_mapping_is_read_together() -> None:
    """A noun that carries names and values of its own is refused where a name makes a secret of its value."""
    with pytest.raises(SecretFound):
        clear(ImportItem(kind="memory", where="a line", fields={"password": PASSWORD}))


@pytest.mark.parametrize(
    "noun",
    [
        Draft(title="Password policy", content="min-12-chars"),
        Draft(title="API key rotation", content="every-90-days"),
        Draft(key="password_hash", content="argon2id"),
        Draft(tags=("password",), content="https://wiki.internal/page-2"),
        Draft(title="Database password", content="It is kept in the vault, page2 of the runbook."),
        StoreFact(subject="login page", predicate="uses", object="OAuth2.0"),
        StoreFact(subject="password", predicate="is hashed with", object="argon2id-v19"),
        StoreFact(subject="token", predicate="expires after", object="15min"),
    ],
    ids=repr,
)
def test_a_name_alone_makes_no_secret(noun: Draft | StoreFact) -> None:
    """What is said of passwords and tokens in two fields is none."""
    assert list(secrets_in(noun)) == []


@pytest.mark.parametrize(
    "around",
    [
        "| password | {} |",
        "password\t{}",
        "PASSWORD {} and go",
        "the password ({}) works",
        "password → {}",
        'password "{}"',
        "pw: {}",
        "Password\n\n{}\n",
        "user admin password {}",
    ],
)
def test_a_password_beside_its_name_is_one(around: str) -> None:
    """A value that looks like nothing else needs no sign between the word and itself; all of it is masked."""
    text = around.format(PASSWORD)
    assert [finding.kind for finding in scan(text)] == ["password"]
    assert PASSWORD not in clear(Draft(content=text), OnSecret.REDACT).value.content


def test_the_words_of_a_wallet_are_a_secret() -> None:
    """Twelve or twenty-four words behind "seed phrase" are refused, a sentence of as many is not."""
    twelve = "witch collapse practice feed shame open despair creek road again ice least"
    assert [one.kind for one in scan(f"my seed phrase: {twelve}")] == ["seed phrase"]
    assert [one.kind for one in scan(f"Recovery phrase is\n{twelve} {twelve}")] == ["seed phrase"]
    assert scan("Seed phrase: write it down on paper and never show anybody the twelve words") == []


def test_a_session_in_a_cookie_is_a_secret() -> None:
    """The value of a session's cookie opens somebody's account; a name or a short sample does not."""
    value = chars("cookie", LETTERS, 32)
    assert [one.kind for one in scan(f"Set-Cookie: theme=dark; sessionid={value}; Path=/")] == ["Session cookie"]
    assert scan("Cookie: sessionid=<token>; theme=dark") == []


@pytest.mark.parametrize(
    "text",
    [
        "set PASSWORD=<your password>",
        "| `password` | `str` | `None` |",
        "password (AES-256-GCM encrypted)",
        "password, username, and URL",
        "password [A-Za-z0-9!@#$%]{8,}",
        "password: ^[a-zA-Z0-9]{8,}$",
        "UPDATE users SET password = $1 WHERE id = $2",
        "password=:password, password = @p1",
        "password https://example.com/reset?id=1&x=2",
        "pw = pageWidth2",
        "pwd: 99.95%+12345",
        "![badge](https://codecov.io/graph/badge.svg?token=" + chars("badge", LETTERS, 10) + ")",
        'create_engine("postgresql://scott:tiger@db.internal/test")',
    ],
)
def test_what_documentation_says_of_passwords_passes(text: str) -> None:
    """Placeholders, patterns, parameters, badges and the samples of manuals are none."""
    assert scan(text) == []


def test_the_library_is_imported_by_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the first scans of a process come at once, no thread meets a half imported library."""
    together, importing = Barrier(4), Semaphore(1)

    def alone(name: str) -> ModuleType:
        assert importing.acquire(blocking=False), "two threads import at once"
        try:
            time.sleep(0.01)
            return import_module(name)
        finally:
            importing.release()

    def first(_: int) -> list[object]:
        together.wait()
        return list(scan("The mascot is a quokka."))

    monkeypatch.setattr(plugins, "import_module", alone)
    plugins._hinted_plugins.cache_clear()
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(first, range(4))) == [[]] * 4


@pytest.mark.parametrize("piece", ["pw=", "%41", "&#65;", "cookie: session=", "QUJDQUJDQUJDQUJD\n", "seed phrase: "])
def test_what_patterns_dread_is_read_to_its_end(piece: str) -> None:
    """Thirty thousand characters of beginnings and spellings do not hide the secret behind them."""
    value = FORMS["github-classic"].value
    text = (piece * (30_000 // len(piece) + 1))[:30_000] + f"\n\n{value}"
    assert any(finding.end == len(text) for finding in scan(text))


@pytest.mark.parametrize("label", ["password: {}", "The password is {}", "The wiki password is {} for now."])
def test_brackets_make_no_call_of_a_password(label: str) -> None:
    """A word with another in brackets is a password where a sentence or a colon says so; a call in code is none."""
    for value in ("otter(brook)", "tulip(77)!", "mellon(friend)7"):
        assert scan(label.format(value)), value
    for call in (
        "getpass()",
        'config("db")',
        'os.environ.get("X")',
        "string(9)",
        "bcrypt(plain)",
        "hashPassword(typed)",
    ):
        assert not scan(label.format(call)), call
    assert not scan("password = otter(brook)")
    assert not scan("{ password: otter(brook), user: bob }")


@pytest.mark.parametrize("name", ["XMLHttpRequest", "getElementsByTagName", "SQLAlchemyError", "CFBundleIdentifier"])
def test_names_in_camel_case_are_no_random_letters(name: str) -> None:
    """What programs call their parts is no password, even where it stands like one."""
    assert not heuristics.are_random_letters(name)
    assert not heuristics.looks_like_password(name)


def test_letters_drawn_at_random_are_a_password() -> None:
    """Nearly all passwords of twelve letters of both cases are told from names, without a digit or a sign in them."""
    chance = Random(21)
    letters = ["".join(chance.choices(ascii_letters, k=12)) for _ in range(400)]
    assert sum(map(heuristics.looks_like_password, letters)) >= 380
    signed = [f"{one[:5]}+{one[5:9]}#{one[9:]}" for one in letters]
    assert sum(map(heuristics.looks_like_password, signed)) >= 380
