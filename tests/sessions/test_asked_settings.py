"""What a client asks for in its session's stead: its environment and the files of its project together."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.domain.lifecycle import Ask, LifecycleSettings
from recollect.project_files import ASKING, NAMES, asked_here
from recollect.setting_texts import SettingTexts


def test_a_project_may_change_all_but_what_fades() -> None:
    """The names that are read from files are those of the settings, but for whether people's memories fade too."""
    assert set(NAMES) == LifecycleSettings.model_fields.keys() - {"consolidate"}


def test_a_file_turns_nothing_on_that_the_environment_turns_off(tmp_path: Path) -> None:
    """Of what is only ever lowered the lesser counts, modules off add up, and the file decides the rest."""
    said = 'capture = true\ntoken_budget = 900\nmodules_off = ["temporal"]\ncheckpoint_every = 3\n'
    (tmp_path / "recollect.toml").write_text(said, encoding="utf-8")
    told = {
        "RECOLLECT_CAPTURE": "0",
        "RECOLLECT_TOKEN_BUDGET": "500",
        "RECOLLECT_MODULES_OFF": "boundaries",
        "RECOLLECT_CHECKPOINT_EVERY": "7",
    }
    assert asked_here(str(tmp_path), SettingTexts({}, told)) == {
        "capture": "0",
        "token_budget": "500",
        "modules_off": "boundaries,temporal",
        "checkpoint_every": "7",
    }


@pytest.mark.parametrize(
    ("own", "theirs", "asked"),
    [
        ("off", "on", "off"),
        ("compact", "on", "compact"),
        ("on", "compact", "compact"),
        ("compact", "off", "off"),
        ("seldom", "on", "on"),
        ("off", "always", "off"),
        (None, "on", "on"),
    ],
)
def test_a_file_asks_no_more_often_than_the_environment(
    tmp_path: Path, own: str | None, theirs: str, asked: str
) -> None:
    """The lesser of both counts; a word that is none of the setting's says nothing."""
    (tmp_path / "recollect.toml").write_text(f'ask = "{theirs}"\n', encoding="utf-8")
    told = {} if own is None else {"RECOLLECT_ASK": own}
    assert asked_here(str(tmp_path), SettingTexts({}, told)) == {"ask": asked}
    assert tuple(map(str, Ask)) == ASKING


@pytest.mark.parametrize(
    ("name", "own", "theirs", "asked"),
    [
        ("default_ttl_days", "30", "60", "30"),
        ("default_ttl_days", "0", "60", 60),
        ("max_captured", "200", "0", "200"),
        ("token_budget", "500", '"many"', "500"),
        ("modules_off", "boundaries", '["memorability"]', "boundaries"),
    ],
)
def test_a_file_keeps_no_more_and_no_longer_than_the_environment(
    tmp_path: Path, name: str, own: str, theirs: str, asked: object
) -> None:
    """Of two terms the shorter counts, of two numbers the lesser, where 0 is without a limit; a filter stays on."""
    (tmp_path / "recollect.toml").write_text(f"{name} = {theirs}\n", encoding="utf-8")
    texts = SettingTexts({}, {f"RECOLLECT_{name.upper()}": own})
    assert asked_here(str(tmp_path), texts) == {name: asked}
