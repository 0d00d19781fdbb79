"""Moments: which actions they fit, how bad ones are refused, and that none takes long to compare."""

from __future__ import annotations

import time

import pytest

from recollect.domain.moments import ANY, LONGEST, MOST, MOST_WORDS, Action, Kind, parse_moment
from recollect.domain.requests import Draft, Update
from recollect.errors import InvalidInput

FITS = [
    ("run git push --force", "git push origin main --force", True),
    ("run git push --force", "git push --force-with-lease", False),
    ("run git push --force", "git push origin main", False),
    ("run --force push git", "GIT Push --FORCE", True),
    ("run git push -f", "git push -f", True),
    ("run git push -f", "git push --f", False),
    ("run git push -f", "git push x-f", False),
    ("run git push -f", "git push -fu", False),
    ("run -n", "run -n", None),
    ("run rm /data", "cd farm /data", False),
    ("run rm data", "sudo rm -r /srv/data/", True),
    ("run rm data", "rm data_old", False),
    ("run rm data", "rm mydata", False),
    ("run npm install !--save-dev", "npm install left-pad", True),
    ("run npm install !--save-dev", "npm install --save-dev left-pad", False),
    ("run npm install !-g !--global", "npm install --global x", False),
    ("edit db/migrations", "/x/db/migrations/0031_a.sql", True),
    ("edit db/migrations", "/x/mydb/migrations/0031.sql", False),
    ("edit db/migrations", "/x/db/migrations_old/0031.sql", False),
    ("edit db/migrations *.sql", "/x/db/migrations/0031_a.sql\nalter table", True),
    ("edit *.sql", "/x/a.sqlite", False),
    ("edit .env", "/x/.env", True),
    ("edit .env", "/x/prod.env", True),
    ("edit .env", "/x/.envrc", False),
    ("run deploy*prod", "make deploy-to-prod now", True),
    ("run deploy*prod", "make deploy to prod", False),
    ("run deploy*prod", "make deploy-to-production", False),
    ("run deploy*", "make deployment", True),
    ("run *deploy", "make redeploy", True),
    ("run *deploy", "make redeployed", False),
    ("run *ploy*", "make deployed", True),
    ("run a*b*cc", "axb bycc", False),
    ("run a*b*cc", "axbycc", True),
    ("run a*b*cc", "acc b", False),
    ("run --only*", "x --only-once", True),
    ("run --*only", "x --read-only", True),
    ("run --*only", "x --read-only-replica", False),
    ("run ab*ab", "ab", False),
    ("run ab*ab", "abab", True),
    ("run make !*test*", "make unittests", False),
    ("run ab*cd", "xab-abcd", True),
    ("fail ECONNREFUSED 5432", "connect econnrefused 127.0.0.1:5432", True),
    ("fail ECONNREFUSED 5432", "connect ECONNREFUSED 127.0.0.1:54321", False),
    ("fail straße", "die STRASSE ist zu", True),
    ("edit größe", "Größen", False),
    ("run c++", "g c++ x", None),
    ("run c++ build", "c++17 build", True),
    ("run 迁移 db", "运行 迁移 db", True),
]
REFUSED: list[tuple[object, str]] = [
    (["run"], "has no words; a moment is `run`, `edit`, `fail` or `done` and then words"),
    (["run !git !push"], "has only words that must not be there"),
    (["run git !"], "has a `!` without a word"),
    (["run - * . a"], "has no word with at least 2 letters or digits"),
    (["run " + "x" * LONGEST], f"has {LONGEST + 4} characters; a moment has at most {LONGEST}"),
    ([f"run git{number}" for number in range(MOST + 1)], f"Must have at most {MOST} moments, not {MOST + 1}"),
    ([7], "Must be a list of moments, such as `run git push --force`"),
    ({"run": "git"}, "Must be a list of moments"),
    (["run git\0push"], "Contains a NUL character"),
    (["run git\ud800"], "Contains a lone surrogate"),
]


@pytest.mark.parametrize(("moment", "action", "fits"), FITS, ids=[f"{a} | {b}" for a, b, _ in FITS])
def test_a_moment_fits_what_holds_its_words_whole(moment: str, action: str, fits: bool | None) -> None:
    """All words stand whole in the action in any order and letter case, and those after `!` do not."""
    if fits is None:
        with pytest.raises(ValueError, match="at least 2 letters or digits"):
            parse_moment(moment)
        return
    assert parse_moment(moment).fits(Action(action)) is fits


@pytest.mark.parametrize(("moment", "action", "fits"), FITS, ids=[f"{a} | {b}" for a, b, _ in FITS])
def test_whatever_fits_is_looked_up(moment: str, action: str, fits: bool | None) -> None:
    """Both words by which a moment is looked up are among those of every action that it fits."""
    if fits:
        assert set(parse_moment(moment).leads) <= set(Action(action).leads())


def test_the_longest_words_lead_to_a_moment() -> None:
    """A moment is looked up by the two longest parts that no star can lengthen, or by none."""
    assert parse_moment("edit db/migrations *.sql a_long_name*").leads == ("migrations", "sql")
    assert parse_moment("run deploy*").leads == (ANY, ANY)
    assert parse_moment("run git push !--dry-run-everywhere").leads == ("push", "git")
    assert parse_moment("RUN Git").kind is Kind.RUN


def test_the_words_of_a_large_action_are_bounded() -> None:
    """Of an action with very many words some are looked up, and those that are named first count first."""
    found = Action(" ".join(f"w{number}" for number in range(10_000))).leads("Last words")
    assert len(found) == MOST_WORDS + 1
    assert {"last", "words", ANY} <= set(found)


@pytest.mark.parametrize(("when", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_a_bad_moment_is_refused_by_name(when: object, why: str) -> None:
    """The error names the field, shows the moment, and says what is wrong and what is allowed, also in an update."""
    for make in (lambda: Draft(content="x", when=when), lambda: Update(id="1", when=when)):
        with pytest.raises(InvalidInput) as refused:
            make()
        assert refused.value.field == "when"
        assert str(refused.value).startswith("Invalid when: ")
        assert why in str(refused.value)
        assert len(str(refused.value)) < 300


def test_moments_are_stored_tidy() -> None:
    """Spaces are evened out, what is blank or there twice goes, and a text is one moment or a list in JSON."""
    given = ["Run  git\tpush", "run git push", " ", "edit A.sql\n"]
    assert Draft(content="x", when=given).when == ("run git push", "edit A.sql")
    assert Draft(content="x", when="RUN git, push").when == ("run git, push",)
    assert Draft(content="x", when='["run git"]').when == ("run git",)
    assert Update(id="1", when="").model_dump()["when"] == ()


@pytest.mark.parametrize(
    "moment",
    [
        "run " + "a" * 150 + "b",
        "run " + "a*" * 98,
        "run " + "*a" * 98,
        "run *" + "a" * 90 + "*" + "a" * 90 + "b",
        "run " + "ab*" * 60 + "zz",
        "run " + "-a" * 90,
        "run (a+)+$ aa",
    ],
)
@pytest.mark.parametrize(
    "action", ["a" * 200_000, "ab" * 100_000, "-a" * 100_000, "a " * 100_000, "*" * 200_000, ("a" * 500 + " ") * 400]
)
def test_no_moment_takes_long(moment: str, action: str) -> None:
    """Words and stars that nearly fit everywhere are compared with the longest action in less than a second."""
    began = time.process_time()
    parse_moment(moment).fits(Action(action))
    assert time.process_time() - began < 1
