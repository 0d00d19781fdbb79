"""The gate: what it refuses, what it lets pass, what it redacts, and that nothing but `clear` makes a `Cleared`."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies
from pydantic import BaseModel, ConfigDict

from recollect import gate
from recollect.domain.enums import OnSecret
from recollect.domain.requests import Draft
from recollect.errors import InvalidInput, SecretFound
from recollect.gate import Cleared, Finding, clear, redaction, scan
from recollect.gate.walk import strings_of
from secret_corpus import LETTERS, Form, chars, forms, human, ordinary

pytestmark = pytest.mark.slow

FORMS = forms()
TOKEN = next(form for form in FORMS if form.name == "github-classic")
PEM = next(form for form in FORMS if form.name == "pem")
ANY_FORM = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
NAMES = ["key", "category", "title", "subtitle", "abstract", "overview", "session_id", "project", "speaker"]
LISTS = ["tags", "files_read", "files_modified"]
WORDS = strategies.text(min_size=0, max_size=40)
SECRETS = strategies.sampled_from([form.text for form in FORMS])


class Inner(BaseModel):
    """A noun inside a noun."""

    note: str


class Nested(BaseModel):
    """A noun with everything that may hold a string."""

    model_config = ConfigDict(frozen=True, extra="allow")

    inner: Inner | None = None
    pairs: dict[str, list[str]] = {}
    many: tuple[Inner, ...] = ()
    names: frozenset[str] = frozenset()
    blob: Any = None


def all_text(noun: BaseModel) -> str:
    """Return every string of a noun, joined."""
    return "\n".join(text for _, text in strings_of(noun))


@pytest.mark.parametrize(
    "sample",
    [
        *("AKIA" + "IOSFODNN7EXAMPLE", "ghp" + "_16C7e42F292c6912E7710c838347Ae178B4a"),
        *(
            "sk_te" + "st_4eC39HqLyjWDarjtT1zdp7dc",
            "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG" + "/bPxRfiCYEXAMPLEKEY",
        ),
    ],
)
def test_what_documentation_shows_is_refused(sample: str) -> None:
    """A credential that a manual prints has the format of a real one; a placeholder has not."""
    assert scan(f"use {sample}")
    assert scan("use ghp_<your-token> or AKIA" + "X" * 16 + " with password: <your-password>") == []


def test_what_takes_too_long_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text that the gate has not read to its end is not stored, nor shown to a model; the error says which one."""
    monkeypatch.setattr(gate, "_SECONDS", 0.0)
    monkeypatch.setattr(redaction, "_SECONDS", 0.0)
    long = "the password of the harbour is told by nobody\n" * 2_000
    for choice in OnSecret:
        with pytest.raises(InvalidInput, match=r"Invalid content: looking for secrets in it takes too long.*split it"):
            clear(Draft(content=long, title="ordinary"), choice)
    assert redaction.masked(long) == "[redacted: text that takes too long to read]"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_quoted_printable_hides_no_second_line(end: str) -> None:
    """A password that mail has broken at `=` is one, and no half of it stays."""
    first, second = "Vq7#kP2xmZ9!", "rT4wLb8sQ2"
    for mail in (f"password: {first}={end}{second}{end}bye", f"password =3D {first}={end}{second}=20{end}bye"):
        kept = redaction.masked(mail)
        assert first not in kept
        assert second not in kept
        assert kept.endswith("bye")


def test_there_are_many_forms_and_each_is_another() -> None:
    """At least sixty forms are tried, under different names."""
    assert len({form.name for form in FORMS}) == len(FORMS) >= 60


@ANY_FORM
def test_a_form_is_refused_as_a_whole_content(form: Form) -> None:
    """A draft that is nothing but the secret is refused, naming field and kind, never the value."""
    with pytest.raises(SecretFound) as caught:
        clear(Draft(content=form.text))
    assert caught.value.field == "content"
    assert set(form.kinds) <= set(caught.value.kinds)
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(caught.value.args)
    assert form.value not in shown
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


@ANY_FORM
def test_a_form_is_refused_inside_other_text(form: Form) -> None:
    """A secret among sentences is refused as well."""
    with pytest.raises(SecretFound) as caught:
        clear(Draft(content=f"Notes of the deployment.\nWe wrote down: {form.text}\nand moved on to the next ticket."))
    assert form.value not in str(caught.value)


@ANY_FORM
def test_a_form_is_redacted_and_passes_afterwards(form: Form) -> None:
    """Redaction leaves nothing of the value in any field, and the result passes the gate."""
    draft = Draft(content=f"Before.\n{form.text}\nAfter.", tags=("kept",), title="A title")
    noun = clear(draft, OnSecret.REDACT).value
    assert form.value not in all_text(noun)
    assert all(line not in all_text(noun) for line in form.value.splitlines())
    assert "[redacted: " in noun.content
    assert noun.content.startswith("Before.")
    assert noun.content.endswith("After.")
    assert (noun.tags, noun.title) == (("kept",), "A title")
    assert clear(noun).value is noun


@cache
def ordinary_alarms() -> dict[str, list[Finding]]:
    """Return the ordinary lines that raise an alarm, each with what was found."""
    return {line: found for line in ordinary() if (found := scan(line))}


def test_ordinary_text_passes() -> None:
    """Fewer than 0.2 % of thousands of ordinary lines raise an alarm."""
    lines = ordinary()
    offenders = [(line, ordinary_alarms()[line]) for line in lines if line in ordinary_alarms()]
    assert len(lines) >= 2_000
    assert len(offenders) < 0.002 * len(lines), offenders


def test_ordinary_lines_pass_together() -> None:
    """Lines that pass alone also pass as one long text."""
    lines = [line for line in ordinary() if line not in ordinary_alarms()]
    for start in range(0, len(lines), 1_000):
        text = "\n".join(lines[start : start + 1_000])
        alarms = [text[max(0, found.start - 80) : found.end + 20] for found in scan(text)]
        assert len(alarms) <= 2, alarms


@pytest.mark.parametrize(
    "text",
    [
        "password = changeme",
        "api_key = xxxxxxxxxxxxxxxx",
        "API_KEY=your_api_key_here",
        "password: ${DB_PASSWORD}",
        "Authorization: Bearer <your-token>",
        "password: [redacted: password]",
        "gh" + "p_" + "x" * 36,
        "postgres://postgres:postgres@localhost:5432/app",
        "https://user:${TOKEN}@github.com/org/repo.git",
        "the API key is a 32-character hex string",
        "password for staging is in 1Password under team/db2",
    ],
)
def test_a_placeholder_passes(text: str) -> None:
    """A placeholder, a reference or a description of a secret is none."""
    assert scan(text) == []


@pytest.mark.parametrize("field", NAMES)
def test_every_text_field_is_scanned(field: str) -> None:
    """A secret in any text field of a draft is refused under the name of that field."""
    with pytest.raises(SecretFound) as caught:
        clear(Draft(content="fine", **{field: TOKEN.text}))
    assert caught.value.field == field


@pytest.mark.parametrize("field", LISTS)
def test_every_list_of_texts_is_scanned(field: str) -> None:
    """A secret in the last of several tags or files is refused under the name of that field."""
    with pytest.raises(SecretFound) as caught:
        clear(Draft(content="fine", **{field: ("first", TOKEN.text)}))
    assert caught.value.field == field


def test_no_text_field_of_a_draft_is_forgotten_here() -> None:
    """The fields tried above are all fields of a draft that take free text."""
    draft = Draft(content="c", **dict.fromkeys(NAMES, "n"), **dict.fromkeys(LISTS, ("l",)))
    assert {field for field, _ in strings_of(draft)} == {"content", *NAMES, *LISTS}


@pytest.mark.parametrize(
    ("noun", "field"),
    [
        (Nested(inner=Inner(note=TOKEN.text)), "inner.note"),
        (Nested(pairs={"a": ["b", TOKEN.text]}), "pairs"),
        (Nested(pairs={TOKEN.text: []}), "pairs"),
        (Nested(many=(Inner(note="x"), Inner(note=TOKEN.text))), "many.note"),
        (Nested(names=frozenset({TOKEN.text})), "names"),
        (Nested(**{"more": TOKEN.text}), "extra"),
        (Nested(**{TOKEN.text: "more"}), "extra"),
    ],
)
def test_nested_texts_are_scanned_and_redacted(noun: Nested, field: str) -> None:
    """Nested nouns, sequences, mappings, their keys and extra fields are read and rewritten."""
    with pytest.raises(SecretFound) as caught:
        clear(noun)
    assert caught.value.field == field
    assert TOKEN.value not in all_text(clear(noun, OnSecret.REDACT).value)


def test_what_cannot_be_read_is_refused() -> None:
    """Bytes and other opaque values do not slip through unread."""
    with pytest.raises(TypeError, match="cannot read `blob`"):
        clear(Nested(blob=TOKEN.text.encode()))


@pytest.mark.parametrize(
    "pragma", ["# pragma: allowlist secret", "# pragma: whitelist secret", "// nosec gitleaks:allow"]
)
def test_a_comment_lets_nothing_pass(pragma: str) -> None:
    """The comments by which scanners are told to look away are ignored, beside a secret and above it."""
    value = human("pragma")
    for text in (f'password = "{value}"  {pragma}', f"{pragma}\n{TOKEN.text}", f"{TOKEN.text} {pragma}"):
        with pytest.raises(SecretFound):
            clear(Draft(content=text))


@pytest.mark.parametrize(
    "char", ["\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad", "\u034f", "\ufe0f", "\u3164", "\u202e"]
)
def test_invisible_characters_hide_nothing(char: str) -> None:
    """A token with invisible characters between its letters is refused, and redacted whole."""
    hidden = char.join(TOKEN.value)
    draft = Draft(content=f"see {hidden} there")
    with pytest.raises(SecretFound):
        clear(draft)
    assert clear(draft, OnSecret.REDACT).value.content == "see [redacted: GitHub token] there"


@pytest.mark.parametrize("shift", [0xFEE0, 0x1D670 - ord("A")])
def test_compatible_letters_hide_nothing(shift: int) -> None:
    """A token in full-width or mathematical letters is refused, and redacted whole."""

    def shifted(char: str) -> str:
        if shift == 0xFEE0:
            return chr(ord(char) + shift)
        if char.isdigit():
            return chr(0x1D7F6 + int(char))
        offset = ord(char) - ord("a") + 26 if char.islower() else ord(char) - ord("A")
        return chr(0x1D670 + offset) if char.isalpha() else char

    hidden = "".join(map(shifted, TOKEN.value))
    draft = Draft(content=f"see {hidden} there")
    with pytest.raises(SecretFound):
        clear(draft)
    assert clear(draft, OnSecret.REDACT).value.content == "see [redacted: GitHub token] there"


def test_an_invisible_character_after_a_token_does_not_lengthen_it() -> None:
    """Text glued to a secret by an invisible character does not hide it."""
    key = next(form for form in FORMS if form.name == "aws-id").value
    assert [found.kind for found in scan(f"{key}\u200bABCDEF")] == ["AWS access key"]


def test_a_value_is_redacted_wherever_it_stands() -> None:
    """A password known from one field is taken out of the others too, where it has no name beside it."""
    value = human("elsewhere")
    draft = Draft(content=f"password = {value}", key=value, tags=(value, "kept"), title=f"about {value}!")
    noun = clear(draft, OnSecret.REDACT).value
    assert value not in all_text(noun)
    assert noun.tags == ("[redacted: password]", "kept")
    assert noun.title == "about [redacted: password]!"


def test_overlapping_findings_are_one() -> None:
    """A token behind a name is marked once, by the surer kind."""
    noun = clear(Draft(content=f"api_key = {TOKEN.value}; rest"), OnSecret.REDACT).value
    assert noun.content.count("[redacted") == 1
    assert "[redacted: GitHub token]" in noun.content


def test_a_private_key_goes_with_its_body() -> None:
    """The whole block is one finding, from its first dash to its last."""
    text = f"before\n{PEM.value}\nafter"
    assert scan(text) == [Finding(7, 7 + len(PEM.value), "private key")]


def test_redaction_keeps_the_noun_valid() -> None:
    """A name that the mark made too long is cut; tags that became equal are one; what was given stays given."""
    value = human("long")
    long_tag = "password=" + value + " " + "word " * 96
    draft = Draft(content="fine", key=long_tag[:499], tags=(TOKEN.value, TOKEN.value + "A"))
    noun = clear(draft, OnSecret.REDACT).value
    assert noun.key is not None
    assert len(noun.key) <= 500
    assert noun.tags == ("[redacted: GitHub token]",)
    assert noun.model_fields_set == draft.model_fields_set


def test_a_clean_noun_is_not_rebuilt() -> None:
    """Without a secret the noun itself is cleared, whatever the mode."""
    draft = Draft(content="We use ruff.")
    assert clear(draft).value is draft
    assert clear(draft, OnSecret.REDACT).value is draft


def test_cleared_cannot_be_forged() -> None:
    """Neither construction, subclassing, pickling, replacing nor setting makes or changes a `Cleared`."""
    cleared = clear(Draft(content="fine"))
    made: Any = Cleared
    attempts: list[Callable[[], object]] = [
        lambda: made(Draft(content=TOKEN.text)),
        lambda: made[Draft](Draft(content=TOKEN.text)),
        lambda: made.__new__(made),
        lambda: type("Mine", (made,), {}),
        lambda: pickle.dumps(cleared),
        lambda: cleared.__reduce__(),
        lambda: dataclasses.replace(cleared, value=1),  # type: ignore[type-var]
        lambda: setattr(cleared, "_value", 1),
        lambda: setattr(cleared, "value", 1),
        lambda: delattr(cleared, "_value"),
    ]
    for attempt in attempts:
        with pytest.raises((TypeError, AttributeError)):
            attempt()
    assert copy.copy(cleared) is cleared
    assert copy.deepcopy(cleared) is cleared


def test_cleared_is_a_value() -> None:
    """Two clearings of equal nouns are equal, and the text of a `Cleared` shows nothing of the noun."""
    one, two = clear(Draft(content="fine")), clear(Draft(content="fine"))
    assert one == two
    assert hash(one) == hash(two)
    assert one != clear(Draft(content="other"))
    assert repr(one) == "Cleared(Draft)"


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    pieces=strategies.lists(strategies.one_of(WORDS, SECRETS), min_size=1, max_size=6),
    glue=strategies.sampled_from(["", " ", "\n", "\u200b", "="]),
)
def test_what_was_redacted_passes(pieces: list[str], glue: str) -> None:
    """Whatever text surrounds whatever secrets, a redacted noun passes the gate."""
    text = glue.join(pieces).replace("\x00", "")
    noun = clear(Draft(content=f"note {text}", title=text[:300]), OnSecret.REDACT).value
    assert clear(noun).value is noun


def test_every_kind_can_stand_in_a_mark() -> None:
    """No mark that redaction leaves is itself taken for a secret."""
    kinds = {found.kind for form in FORMS for found in scan(form.text)}
    for kind in kinds:
        mark = f"[redacted: {kind}]"
        for text in (mark, f"password = {mark}", f"the api key is {mark}", f"postgres://app:{mark}@db.internal/x"):
            assert scan(text) == []


def test_many_threads_find_the_same() -> None:
    """Scanning at once from several threads gives what one thread finds."""
    sample = [*(form.text for form in FORMS), *ordinary()[:200]]
    alone = [scan(text) for text in sample]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(scan, sample * 3)) == alone * 3


@pytest.mark.full
@pytest.mark.parametrize(
    "piece",
    [
        *("a", "A1", "password ", "password", "password=", "password='", "http://", "http://a:", "-----BEGIN"),
        *(
            "-----BEGIN RSA " + "PRIVATE KEY-----\n",
            "sk-",
            "eyJ",
            "curl -u ",
            "PuTTY-User-" + "Key-File-2",
            "x" + " " * 400,
        ),
        *("password" + " " * 1_000, "token is ", "-", "\u200b", "\uff50\uff57\uff44\uff1d", "\ufdfa"),
    ],
)
def test_hostile_text_is_scanned_to_its_end(piece: str) -> None:
    """Two hundred thousand characters of what patterns dread do not hide the secret behind them."""
    text = (piece * (200_000 // len(piece)))[:199_000] + f"\n\n{TOKEN.value}"
    assert any(found.end == len(text) for found in scan(text))


def test_importing_the_gate_leaves_the_library_alone() -> None:
    """Importing the gate does not import detect-secrets; the first scan does."""
    loaded = "print('detect_secrets' in sys.modules)"
    code = f"import sys, recollect.gate as gate; {loaded}; gate.scan('x'); {loaded}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_the_corpus_is_the_same_on_every_run() -> None:
    """Secrets are made from seeds, so that a failure can be repeated."""
    assert forms() == FORMS
    assert chars("x", LETTERS, 20) == chars("x", LETTERS, 20)


@pytest.mark.parametrize("word", ["sunshine", "swordfish"])
@pytest.mark.parametrize("sentence", ["my password is {}", "By the way, my wifi password is {}.", "my passphrase: {}"])
def test_a_word_said_to_be_my_password_is_one(sentence: str, word: str) -> None:
    """Where somebody says that it is their own, a plain word counts as a password."""
    assert [found.kind for found in scan(sentence.format(word))] == ["password"]


@pytest.mark.parametrize("word", ["expired", "wrong", "missing", "stored in the vault", "unbreakable", "not working"])
def test_what_is_said_of_my_password_is_none(word: str) -> None:
    """A sentence about one's password is no password."""
    assert scan(f"my password is {word}") == []


def test_a_bracket_within_a_value_belongs_to_it() -> None:
    """The end of a value that opens a bracket itself is masked with it; a bracket around the value stays."""
    value = "Tr0ub4" + "x9kQ"
    for opening, closing in ("[]", "{}"):
        whole = clear(Draft(content=f"password: {value}{opening}dor{closing}"), OnSecret.REDACT).value
        around = clear(Draft(content=f"{opening}password: {value}{closing}"), OnSecret.REDACT).value
        assert whole.content == "password: [redacted: password]"
        assert around.content == f"{opening}password: [redacted: password]{closing}"


def test_what_cannot_be_covered_is_replaced_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the last attempt to mask parts, a text that still holds a secret goes as a whole, and no other does."""
    monkeypatch.setattr(redaction, "_MAX_ROUNDS", 0)
    form = forms()[0]
    draft = Draft(content=f"before {form.text} after", title="A harmless title")
    cleared = clear(draft, OnSecret.REDACT).value
    assert (cleared.title, cleared.content.startswith("[redacted: ")) == ("A harmless title", True)
    assert "before" not in cleared.content
