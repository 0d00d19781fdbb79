"""The doctor: one line for each part, and for each problem what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callers import ADA
from clock import Clock
from command_line import call
from recollect import Draft, Settings, remember
from recollect.domain.origin import SaidBy
from recollect.store.store_lock import own
from run_operations import add
from stores import altered_model, open_app

Typed = Callable[..., Any]


def ill(typed: Typed, **changes: str) -> dict[str, dict[str, Any]]:
    """Ask the doctor of a sick installation; return what is not well, after checking that advice is given."""
    ended = typed("doctor", "--json", **changes)
    found = {one["name"]: one for one in ended.json if not one["well"]}
    assert found, ended.out
    assert ended.code == 1
    for one in found.values():
        assert one["seen"]
        assert one["advice"], f"no advice for {one}"
    return found


def test_a_sound_store_is_well(typed: Typed, settings: Settings) -> None:
    """All parts of a sound store are well, versions, settings, model and indexes among them, and the end is good."""
    with open_app(settings) as app:
        remember(app, Draft(content="The mascot is a quokka"), ADA)
    ended = typed("doctor", "--json")
    assert ended.code == 0, ended.out
    seen = {one["name"]: one["seen"] for one in ended.json}
    assert all(set(one) == {"name", "well", "seen"} for one in ended.json)
    assert "recollect " in seen["versions"]
    assert "chromadb " in seen["versions"]
    assert "user ada, team crew, project engine" in seen["settings"]
    assert str(settings.folder) in seen["store"]
    assert "notes-MiniLM-L6-v2" in seen["model"]
    assert "384 dimensions" in seen["model"]
    assert {"database", "journal", "text index", "vector index"} <= set(seen)


def test_an_empty_store_is_well(typed: Typed) -> None:
    """A store that nobody has used has no problem."""
    assert typed("doctor").code == 0


def test_the_report_fits_one_screen(typed: Typed) -> None:
    """People see one line for each part, with a mark for well."""
    shown = typed("doctor").out
    assert shown.count("✓") >= 6
    assert "✗" not in shown
    assert len(shown.splitlines()) <= 24


def test_a_foreign_owner_is_named(typed: Typed, settings: Settings) -> None:
    """When another process owns the store, the doctor says which, and what to do."""
    owner = own(settings.folder)
    try:
        found = ill(typed)
    finally:
        owner.release()
    assert "is in use by process " in found["store"]["seen"]


def test_a_misspelt_variable_is_named(typed: Typed) -> None:
    """A RECOLLECT_ variable that is no setting is named."""
    assert "RECOLLECT_HOEM" in ill(typed, RECOLLECT_HOEM="/tmp")["settings"]["seen"]


@pytest.mark.parametrize(
    ("file", "text", "seen"),
    [
        (".recollect.toml", 'project = "engine"\ncapture = false\n', "sets capture, which has no effect there"),
        ("recollect.toml", "injekt = false\n", "sets injekt, which has no effect there"),
        ("pyproject.toml", '[tool.recollect]\nproject = "engine"\n', "sets project, which has no effect there"),
        ("recollect.toml", "capture = no\n", "cannot be read"),
        ("pyproject.toml", "[tool.recollect]\ncapture = no\n", "cannot be read"),
        ("recollect.toml", f"#{' ' * 1_000_000}\n", "cannot be read: it is larger than 262,144 bytes"),
        (
            "recollect.toml",
            "memorability_threshold = 7\n",
            "sets memorability_threshold to a value that is not used: Input should be less than or equal to 1",
        ),
        (
            "recollect.toml",
            "token_budget = 9000\n",
            "sets token_budget to a value that is not used: a project can only lower it, from 2000",
        ),
        (
            "recollect.toml",
            "default_ttl_days = 0\n",
            "sets default_ttl_days to a value that is not used: a project can only lower it, from 90.0",
        ),
        (
            "recollect.toml",
            "checkpoint_every = 1\n",
            "sets checkpoint_every to a value that is not used: a project can only raise it, from 10",
        ),
        (
            "recollect.toml",
            'modules_off = ["memorability"]\n',
            "sets modules_off to a value that is not used: a project cannot turn memorability off",
        ),
    ],
)
def test_settings_of_a_project_in_vain_are_named(typed: Typed, tmp_path: Path, file: str, text: str, seen: str) -> None:
    """A switch in the wrong file, a misspelt one and a damaged file are named, since capture stays on with them."""
    (tmp_path / file).write_text(text, encoding="utf-8")
    assert typed("doctor").err == ""
    found = ill(typed)["project settings"]
    assert f"{tmp_path / file} {seen}" in found["seen"]
    assert "capture, inject" in found["advice"]


def test_a_project_that_turns_on_what_is_off_is_named(typed: Typed, tmp_path: Path) -> None:
    """A file cannot turn capture on where the user has turned it off."""
    (tmp_path / "recollect.toml").write_text("capture = true\n", encoding="utf-8")
    found = ill(typed, RECOLLECT_CAPTURE="0")["project settings"]
    assert "sets capture to a value that is not used: a project can only turn it off" in found["seen"]


def test_what_a_nearer_file_overrides_is_named(alone: dict[str, str], tmp_path: Path) -> None:
    """From the working folder to the root, each file is named that another one leaves without effect."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").touch()
    (tmp_path / "recollect.toml").write_text("token_budget = 1000\ncapture = false\n", encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("[tool.recollect]\nmax_inject_count = 2\n", encoding="utf-8")
    inner = tmp_path / "a"
    inner.mkdir()
    (inner / "recollect.toml").write_text("capture = true\ninject = false\n", encoding="utf-8")
    (inner / ".recollect.toml").write_text("capture = false\n", encoding="utf-8")
    found = {one["name"]: one for one in call(("doctor", "--json"), alone, inner).json}
    assert found["project settings"]["seen"].split("; ") == [
        f"{inner / 'recollect.toml'} sets capture without effect: another file of the project turns it off",
        f"{inner / '.recollect.toml'} sets capture, which has no effect there",
        f"{tmp_path / 'recollect.toml'} sets token_budget without effect: {inner / 'recollect.toml'} overrides it",
        f"{tmp_path / 'pyproject.toml'} sets max_inject_count without effect: {inner / 'recollect.toml'} overrides it",
    ]


def test_settings_of_a_project_in_place_are_well(typed: Typed, tmp_path: Path) -> None:
    """Files that say what they can say are no problem, nor is a template of a `pyproject.toml` that is not ours."""
    (tmp_path / "recollect.toml").write_text("capture = false\n", encoding="utf-8")
    (tmp_path / ".recollect.toml").write_text('project = "engine"\n', encoding="utf-8")
    for text in ('tool = "none"\n', "[project]\nname = {{ cookiecutter.name }}\n"):
        (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
        assert typed("doctor").code == 0


def test_an_altered_model_is_noticed(typed: Typed, tmp_path: Path) -> None:
    """A model that is not the one of its card is noticed, with both hashes."""
    seen = ill(typed, RECOLLECT_MODELS_DIR=str(altered_model(tmp_path)))["model"]["seen"]
    assert "is not the one of its model card: expected sha256 047648b848ff" in seen


@pytest.mark.usefixtures("settings")
def test_a_language_model_that_nobody_serves_is_noticed(typed: Typed) -> None:
    """A configured server that takes no connection is a finding, with what to do."""
    found = ill(typed, RECOLLECT_CHAT_MODEL="tiny", RECOLLECT_CHAT_URL="http://127.0.0.1:9/v1")["language model"]
    assert "does not answer at 127.0.0.1" in found["seen"]
    assert "RECOLLECT_CHAT_URL" in found["advice"]


def test_what_waits_too_long_is_a_problem(typed: Typed, settings: Settings) -> None:
    """A memory that waits for a decision for more than the days set is a finding, with what to do."""
    with open_app(settings, clock=Clock()) as app:
        one = add(app, "The page lists the ports.", ADA.saying(SaidBy.WEB, "https://docs.example.com/a"))
    assert typed("doctor", RECOLLECT_INBOX_DAYS="36500").code == 0
    found = ill(typed, RECOLLECT_INBOX_DAYS="2")["inbox"]
    assert "1 memory waits for a decision since 2026-03-01, 1 of them for more than 2 days" in found["seen"]
    assert "recollect inbox" in found["advice"]
    assert typed("inbox", "--decide", str(one), "--as", "never").code == 0
    source = "web:docs.example.com"
    listed = typed("inbox", "--rules")
    assert f"never {source}, made by ada on " in listed.out
    assert [each["source"] for each in typed("inbox", "--rules", "--json").json["rules"]] == [source]
    assert f"{source} has no rule any more: " in typed("inbox", "--drop-rule", source).out
    assert typed("inbox", "--rules").out == "No source has a rule.\n"
    assert typed("inbox", "--drop-rule", source).out.startswith(f"{source} has no rule: ")


@pytest.mark.parametrize("home", ["a file", "read-only"])
def test_a_bad_home_is_no_traceback(typed: Typed, tmp_path: Path, home: str) -> None:
    """A data folder that cannot be used is one line of the report, with advice."""
    folder = tmp_path / "file" if home == "a file" else Path("/proc/recollect")
    if home == "a file":
        folder.write_text("a file", encoding="utf-8")
    assert str(folder) in ill(typed, RECOLLECT_HOME=str(folder))["store"]["seen"]


def test_a_store_of_another_model_is_noticed(typed: Typed, settings: Settings) -> None:
    """A store that another model built is named with both models and the command that mends it."""
    with open_app(settings) as app:
        remember(app, Draft(content="The mascot is a quokka"), ADA)
        app.records.stamps.set({"model": "somebody/else", "revision": "1", "dimensions": "768"})
    [found] = ill(typed).values()
    assert "somebody/else (768 dimensions, version 1)" in found["seen"]
    assert "recollect reindex" in found["seen"] + found["advice"]
