"""Settings: each has a name, a default and a help; the environment is read once, arguments win."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recollect import Settings
from recollect.domain.enums import OnSecret
from recollect.errors import InvalidInput
from recollect.projects import find_project
from recollect.setting_texts import variable
from recollect.settings import hidden, unknown_variables


@pytest.fixture(autouse=True)
def _bare(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("RECOLLECT_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize("name", Settings.model_fields)
def test_every_setting_is_explained(name: str) -> None:
    """Every setting has a help of at least a sentence, and a default, so that none is required."""
    field = Settings.model_fields[name]
    assert field.description is not None
    assert field.description.endswith(".")
    assert not field.is_required()
    assert variable(name) == f"RECOLLECT_{name.upper()}"


def test_the_names_are_those_promised() -> None:
    """The settings that the issue names exist under these names."""
    promised = {"HOME", "USER", "TEAM", "PROJECT", "MODEL", "MODELS_DIR", "ON_SECRET"}
    assert {f"RECOLLECT_{name}" for name in promised} <= {variable(name) for name in Settings.model_fields}


def test_defaults(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Without any environment the documented defaults hold."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOGNAME", "ada")
    monkeypatch.chdir(tmp_path)
    settings = Settings()
    assert settings.folder == tmp_path / ".recollect"
    assert (settings.user, settings.team, settings.project) == ("ada", "local", find_project(tmp_path).name)
    assert (settings.model, settings.models_dir) == ("notes-MiniLM-L6-v2", None)
    assert settings.on_secret is OnSecret.BLOCK


def test_the_environment_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each setting can be given by its variable."""
    monkeypatch.setenv("RECOLLECT_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("RECOLLECT_USER", "bob")
    monkeypatch.setenv("RECOLLECT_TEAM", "crew")
    monkeypatch.setenv("RECOLLECT_PROJECT", "engine")
    monkeypatch.setenv("RECOLLECT_ON_SECRET", "redact")
    settings = Settings()
    assert settings.folder == tmp_path / "data"
    assert settings.caller.namespaces() == ("user:bob", "project:crew/engine", "team:crew")
    assert settings.on_secret is OnSecret.REDACT


def test_an_empty_variable_is_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty variable counts as one that is not set."""
    plain = Settings()
    for name in Settings.model_fields:
        monkeypatch.setenv(variable(name), "")
    assert Settings() == plain


def test_arguments_win(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the caller says counts more than the environment."""
    monkeypatch.setenv("RECOLLECT_USER", "from-environment")
    assert Settings(user="said").user == "said"


def test_a_wrong_value_names_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """A value that is not allowed is an error that names the variable and what is allowed."""
    monkeypatch.setenv("RECOLLECT_ON_SECRET", "shrug")
    with pytest.raises(InvalidInput, match=r"Invalid setting RECOLLECT_ON_SECRET: .*'block' or 'redact'"):
        Settings()


def test_an_unknown_setting_is_refused() -> None:
    """A misspelt setting in code is an error, not silence."""
    with pytest.raises(InvalidInput, match="RECOLLECT_HOEM"):
        Settings(hoem="/tmp")


def test_unknown_variables_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A misspelt variable is found, a right one and the tests' own are not."""
    monkeypatch.setenv("RECOLLECT_HOEM", "x")
    monkeypatch.setenv("RECOLLECT_HOME", "x")
    monkeypatch.setenv("RECOLLECT_TEST_POSTGRES_URL", "x")
    assert unknown_variables() == ["RECOLLECT_HOEM"]


def test_a_vanished_working_folder_is_no_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder that somebody removed the project is `default`."""
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    assert Settings(home=tmp_path).project == "default"


def test_a_home_that_cannot_be_expanded_is_named() -> None:
    """The home of a user that does not exist is an error that names the setting."""
    with pytest.raises(InvalidInput, match="RECOLLECT_HOME: ~nobody-of-that-name/x"):
        _ = Settings(home=Path("~nobody-of-that-name/x")).folder


def test_a_team_with_a_slash_is_refused() -> None:
    """A team whose name could be read as another team's project is refused."""
    with pytest.raises(InvalidInput, match=r"Invalid team: .*without `/`"):
        _ = Settings(team="crew/engine").caller


def test_no_reranker_by_default(tmp_path: Path) -> None:
    """Reranking is off until a model is named."""
    assert Settings().rerank == ""
    assert Settings(rerank="cross-encoder/some").rerank == "cross-encoder/some"


def test_a_local_reranker_is_made_absolute(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder means the same one in every process, the daemon's too."""
    monkeypatch.chdir(tmp_path)
    assert Settings(rerank="./reranker").rerank == str(tmp_path / "reranker")
    with pytest.raises(InvalidInput, match="RECOLLECT_RERANK: ~nobody-of-that-name/x"):
        Settings(rerank="~nobody-of-that-name/x")


def test_a_setting_may_lie_in_a_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The first line of the file that `NAME_FILE` names is the value of `NAME`, as secrets come into containers."""
    secret = tmp_path / "database_url"
    secret.write_text("postgresql://recollect@db/recollect\n", encoding="utf-8")
    monkeypatch.setenv("RECOLLECT_DATABASE_URL_FILE", str(secret))
    assert Settings().database_url == "postgresql://recollect@db/recollect"
    assert unknown_variables() == []


@pytest.mark.parametrize("content", [None, "", "\n"])
def test_a_file_that_tells_nothing_is_refused(
    content: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A file of a setting that is absent or empty is an error: without it another store would be opened in silence."""
    secret = tmp_path / "database_url"
    if content is not None:
        secret.write_text(content, encoding="utf-8")
    monkeypatch.setenv("RECOLLECT_DATABASE_URL_FILE", str(secret))
    with pytest.raises(InvalidInput, match=r"RECOLLECT_DATABASE_URL_FILE: .* holds nothing"):
        Settings()


def test_a_setting_is_told_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A variable and its file together are an error, for nobody knows which of them is meant."""
    secret = tmp_path / "team"
    secret.write_text("crew", encoding="utf-8")
    monkeypatch.setenv("RECOLLECT_TEAM_FILE", str(secret))
    monkeypatch.setenv("RECOLLECT_TEAM", "other")
    with pytest.raises(InvalidInput, match=r"RECOLLECT_TEAM_FILE: RECOLLECT_TEAM is set too"):
        Settings()


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("daemon", "RECOLLECT_DAEMON: Must be 0 or 1, not `foo`"),
        ("concurrent_requests", "RECOLLECT_CONCURRENT_REQUESTS: Must be a whole number, not `foo`"),
    ],
)
def test_a_wrong_setting_is_told_in_plain_words(name: str, said: str) -> None:
    """The message says what is allowed, in no words of a library."""
    with pytest.raises(InvalidInput) as caught:
        Settings(**{name: "foo"})
    assert said in str(caught.value)
    assert "unable to" not in str(caught.value)


def test_what_may_hold_a_secret_is_shown_to_nobody() -> None:
    """Addresses of servers, which may hold a password, and keys are in no process's arguments and no representation."""
    addresses = {name for name in Settings.model_fields if name.endswith("_url")}
    assert addresses | {"token", "metrics_token", "chat_key", "embedding_key", "oidc_client_secret"} == hidden()
    secret = "pass" + "word1"
    settings = Settings(embedding_url=f"http://bob:{secret}@127.0.0.1/v1", home=Path("/tmp/x"))
    assert secret not in repr(settings)


@pytest.mark.parametrize("address", ["postgresql://db:abc/x", "postgresql://db:70000/x", "postgresql://[::1/x"])
def test_a_port_is_a_number(address: str) -> None:
    """An address of a server whose host and port cannot be read is one sentence that names the setting."""
    with pytest.raises(InvalidInput, match=r"RECOLLECT_DATABASE_URL.*its port, if there is one, is a number"):
        Settings(database_url=address)


@pytest.mark.parametrize("name", sorted(hidden() - {"oidc_client_secret"}))  # which may be any text
def test_a_wrong_secret_is_not_repeated(name: str) -> None:
    """The error of a setting that may hold a secret says what is allowed, and not what was found."""
    secret = "pass" + "word1 x"
    with pytest.raises(InvalidInput) as caught:
        Settings(**{name: [secret] if name.endswith("key") or name == "metrics_token" else secret})
    assert f"RECOLLECT_{name.upper()}: " in str(caught.value)
    assert secret not in str(caught.value)
