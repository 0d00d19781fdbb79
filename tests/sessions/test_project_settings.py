"""The settings of a project: which file counts, and that a repository cannot change what is not its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.domain.lifecycle import LifecycleSettings
from recollect.sessions.project_settings import settings_in

DEFAULTS = LifecycleSettings()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a folder within a checkout."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").touch()
    inner = tmp_path / "src" / "part"
    inner.mkdir(parents=True)
    return inner


def write(file: Path, text: str) -> None:
    """Write a file of the project."""
    file.write_text(text, encoding="utf-8")


def test_pyproject_and_our_own_file_are_read(project: Path) -> None:
    """Both forms work, from any folder within the checkout, and the nearest file that has any counts."""
    root = project.parents[1]
    write(root / "pyproject.toml", "[tool.recollect]\nmemorability_threshold = 0.5\ntoken_budget = 500\n")
    assert settings_in(str(project), DEFAULTS).token_budget == 500
    write(project / "recollect.toml", 'inject = false\nmodules_off = ["temporal", "compression"]\n')
    nearest = settings_in(str(project), DEFAULTS)
    assert (nearest.inject, nearest.token_budget) == (False, DEFAULTS.token_budget)
    assert nearest.off == {"temporal", "compression"}


@pytest.mark.parametrize("name", ["capture", "inject"])
def test_any_file_of_the_project_turns_a_switch_off(project: Path, name: str) -> None:
    """Capture and injection are off if one file says so, whatever a nearer one says of them or of other settings."""
    write(project.parents[1] / "pyproject.toml", f"[tool.recollect]\n{name} = false\ntoken_budget = 500\n")
    write(project / "recollect.toml", f"{name} = true\nmax_inject_count = 3\n")
    found = settings_in(str(project), DEFAULTS)
    assert getattr(found, name) is False
    assert (found.token_budget, found.max_inject_count) == (DEFAULTS.token_budget, 3)


@pytest.mark.parametrize("name", ["max_memories", "max_captured"])
def test_a_project_says_how_many_drafts_it_keeps_and_how_long(project: Path, name: str) -> None:
    """Both names of the number count, the specification's and ours, in either file."""
    write(project / "recollect.toml", f"default_ttl_days = 30\n{name} = 200\n")
    found = settings_in(str(project), DEFAULTS)
    assert (found.default_ttl_days, found.max_captured) == (30.0, 200)
    (project / "recollect.toml").unlink()
    write(project.parents[1] / "pyproject.toml", f"[tool.recollect]\n{name} = 7\n")
    found = settings_in(str(project), DEFAULTS)
    assert (found.default_ttl_days, found.max_captured) == (90.0, 7)


@pytest.mark.parametrize("text", ["default_ttl_days = -1\n", "max_memories = -1\n", 'max_captured = "many"\n'])
def test_a_number_that_is_none_changes_nothing(project: Path, text: str) -> None:
    """A term or a number below nothing, and a word, leave both as they are."""
    write(project / "recollect.toml", text)
    assert settings_in(str(project), DEFAULTS) == DEFAULTS


def test_nothing_above_the_checkout_is_read(project: Path) -> None:
    """A file beside the checkout is not the project's."""
    write(project.parents[2] / "recollect.toml", "inject = false\n")
    assert settings_in(str(project), DEFAULTS) == DEFAULTS


@pytest.mark.parametrize(
    "text",
    [
        'home = "/elsewhere"\non_secret = "redact"\n',
        "token_budget = -5\n",
        "inject = 'perhaps'\n",
        "not toml",
        "\0",
        "a = " + "[" * 3_000,
    ],
)
def test_what_is_not_allowed_changes_nothing(project: Path, text: str) -> None:
    """Other settings, values out of range and broken files leave the settings as they are."""
    write(project / "recollect.toml", text)
    assert settings_in(str(project), DEFAULTS) == DEFAULTS


@pytest.mark.parametrize(("text", "told"), [("[project]\nname = {{ name }}\n", 0), ("[tool.recollect]\na = no\n", 1)])
def test_a_template_that_is_not_ours_is_not_reported(
    project: Path, caplog: pytest.LogCaptureFixture, text: str, told: int
) -> None:
    """A `pyproject.toml` that cannot be read is logged only if it may have settings of ours."""
    write(project / "pyproject.toml", text)
    assert settings_in(str(project), DEFAULTS) == DEFAULTS
    assert len(caplog.records) == told


def test_one_bad_value_does_not_cost_the_others(project: Path) -> None:
    """What is allowed counts beside what is not."""
    write(project / "recollect.toml", "token_budget = -5\nmax_inject_count = 3\n")
    assert settings_in(str(project), DEFAULTS).max_inject_count == 3


@pytest.mark.parametrize("folder", ["", "relative", "/no/such/folder"])
def test_no_folder_is_no_error(folder: str) -> None:
    """A session without a folder has the settings of the deployment."""
    assert settings_in(folder, DEFAULTS) == DEFAULTS


def test_a_repository_weakens_no_filter(project: Path) -> None:
    """Its file lets nothing in that is not worth a memory, and has nothing summed up sooner; it may ask for more."""
    weak = "memorability_threshold = 0.0\ncheckpoint_every = 1\ncompression_min_age_days = 0.1\n"
    write(project / "recollect.toml", weak + 'modules_off = "memorability,temporal"\n')
    found = settings_in(str(project), DEFAULTS)
    assert found == DEFAULTS.model_copy(update={"modules_off": "temporal"})
    write(project / "recollect.toml", "memorability_threshold = 0.9\n")
    assert settings_in(str(project), DEFAULTS).memorability_threshold == 0.9


def test_a_repository_undoes_no_opt_out(project: Path) -> None:
    """Its file turns nothing on that is off, and spends and fades no more than without it; it may do less."""
    write(
        project / "recollect.toml",
        'capture = true\ninject = true\nmodules_off = ""\ntoken_budget = 100000\nmax_inject_count = 2\n'
        "consolidation_decay_rate = 1.0\n",
    )
    off = LifecycleSettings(capture=False, inject=False, modules_off="capture,inject")
    found = settings_in(str(project), off)
    assert (found.capture, found.inject, found.off) == (False, False, {"capture", "inject"})
    assert (found.token_budget, found.max_inject_count) == (off.token_budget, 2)
    assert found.consolidation_decay_rate == off.consolidation_decay_rate
