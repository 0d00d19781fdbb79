"""`scripts/train fusion` as its users run it, over two tiny sets, and what it refuses."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from recollect.domain.search import QuerySignals, Signals
from recollect.engines.fusion import Network
from recollect.engines.signal_columns import SignalColumns
from recollect.errors import InvalidInput
from training import __main__ as command
from training import evidence, fusion

ROOT: Final = Path(__file__).resolve().parents[3]
QUERY = QuerySignals(words=3, rarest=3.0, unknown=0.0, semantic=True, weight=9.0, size=30)
TALKS = {
    "ann": [
        "Bea: Which instrument did you pick up?",
        "Ann: The cello, five lessons so far.",
        "Bea: And how is the garden?",
        "Ann: The tomatoes ripened in August.",
        "Bea: Did the rocket engine test work?",
        "Ann: It failed because of a cracked valve.",
    ],
    "bob": [
        "Cid: When is the dentist appointment?",
        "Bob: They moved it to Thursday afternoon.",
        "Cid: What does the choir rehearse?",
        "Bob: Mozart, on Monday evenings.",
        "Cid: Is the roof done?",
        "Bob: The copper turned green after twenty years.",
    ],
    "dee": [
        "Eva: Where did you spend the holidays?",
        "Dee: In a tent above the lake.",
        "Eva: What did you read there?",
        "Dee: A novel about a lighthouse keeper.",
        "Eva: How do you get the bread so light?",
        "Dee: A long cold fermentation of the dough.",
    ],
}
QUESTIONS = [
    ("ann", "Which instrument does Ann play?", [1]),
    ("ann", "Why did the rocket engine test fail?", [5]),
    ("ann", "When did the tomatoes ripen?", [3]),
    ("bob", "When is Bob at the dentist?", [0, 1]),
    ("bob", "Which composer does the choir rehearse?", [3]),
    ("bob", "What happened to the copper roof?", [5]),
    ("dee", "Where was Dee on holiday?", [1]),
    ("dee", "Which book did Dee read?", [3]),
    ("dee", "How is the dough fermented?", [5]),
    ("dee", "How is the cello fermented?", [5]),
]
NOTES = [
    "Set noImplicitAny in tsconfig.json.",
    "parse_config_file swallows malformed YAML.",
    "The public API allows 600 requests per minute.",
    "Backups are copied to a second data centre every night.",
    "Production deploys go out on Tuesday mornings.",
    "Integration tests run against PostgreSQL.",
]
QUERY_OF_NOTES = [
    ("How many requests may a client send?", [2]),
    ("parse_config_file", [1]),
    ("When do we deploy to production?", [4]),
    ("Which database do the tests use?", [5]),
    ("strict TypeScript settings", [0]),
]


def write(folder: Path, corpus: list[dict[str, Any]], queries: list[dict[str, Any]], answers: list[str]) -> Path:
    """Write a set as `evaluation.sets` reads it, and return its folder."""
    folder.mkdir()
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    (folder / "qrels.tsv").write_text("\n".join(answers) + "\n", encoding="utf-8")
    return folder


def talks(folder: Path) -> Path:
    """Write three conversations of six turns each; the last question asks for what nobody did."""
    corpus = []
    for group, turns in TALKS.items():
        for place, turn in enumerate(turns):
            speaker, _, text = turn.partition(": ")
            one = {"id": f"{group}/{place}", "text": text, "group": group, "speaker": speaker, "session": "s1"}
            corpus.append(one | {"pos": place, "timestamp": "2024-05-01T12:00:00"})
    queries = [
        {"id": f"t{number}", "text": text, "group": group, "category": "adversarial" if "cello f" in text else "single"}
        for number, (group, text, _) in enumerate(QUESTIONS)
    ]
    answers = [f"t{number}\t{group}/{place}\t1" for number, (group, _, all_) in enumerate(QUESTIONS) for place in all_]
    return write(folder, corpus, queries, answers)


def notes(folder: Path) -> Path:
    """Write six notes of one group."""
    corpus = [{"id": f"n{place}", "text": text} for place, text in enumerate(NOTES)]
    queries = [{"id": f"q{number}", "text": text} for number, (text, _) in enumerate(QUERY_OF_NOTES)]
    answers = [f"q{number}\tn{place}" for number, (_, all_) in enumerate(QUERY_OF_NOTES) for place in all_]
    return write(folder, corpus, queries, answers)


@dataclass(frozen=True)
class Fitted:
    """What a run printed and left, and how it is done again on the evidence that it gathered."""

    run: subprocess.CompletedProcess[str]
    target: Path
    evidence: Path
    again: Callable[[Path], subprocess.CompletedProcess[str]]


def fitting(*arguments: object) -> subprocess.CompletedProcess[str]:
    """Run `scripts/train fusion` in a process of its own."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    line = [sys.executable, "-m", "training", "fusion", *map(str, arguments)]
    environment = ours | {"PYTHONPATH": str(ROOT / "scripts")}
    return subprocess.run(line, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def train(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Return a function that runs a command of `scripts/train` here and returns its exit code."""

    def run(*arguments: object) -> int:
        monkeypatch.setattr(sys, "argv", ["train", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            command.main()
        return int(ended.value.code or 0)

    return run


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    """Fit with few rounds, and judge by one of the sets."""
    home = tmp_path_factory.mktemp("fit")
    folders = talks(home / "talks"), notes(home / "notes")
    found = home / "evidence"
    options = ("--evidence", found, "--rounds", 15, "--seeds", 2, "--plots", home)

    def fit(target: Path) -> subprocess.CompletedProcess[str]:
        shutil.rmtree(home / "judge", ignore_errors=True)
        return fitting(*folders, "--judge", talks(home / "judge"), *options, "--target", target)

    return Fitted(fit(home / "first.json"), home / "first.json", found, fit)


def test_fit_writes_what_the_fusion_reads(fitted: Fitted) -> None:
    """All coefficients are written, and both networks give finite scores to what may be found."""
    assert fitted.run.returncode == 0, fitted.run.stderr
    given = json.loads(fitted.target.read_text(encoding="utf-8"))
    assert set(given) == {"fused", "words", "asking"}
    fused, words = (Network.read(given[name]) for name in ("fused", "words"))
    for part in ("own", "talk", "query"):
        less, more = set(getattr(words, part).names), set(getattr(fused, part).names)
        assert less < more
        assert not any("cosine" in name or "late" in name for name in less)
    found = [Signals(cosine=0.5, bm25=9.0, coverage=1.0, late=0.5, rare=0.5, length=80), Signals(cosine=0.1)]
    for network, query in ((fused, QUERY), (words, replace(QUERY, semantic=False))):
        scores = network.scores(SignalColumns.of(found), query)
        assert scores.shape == (2,)
        assert np.isfinite(scores).all()


def test_coefficients_of_another_model_lie_beside_its_card() -> None:
    """The default model's coefficients are the package's, another's are its own."""
    assert fusion.target_of("notes-MiniLM-L6-v2") == ROOT / "src" / "recollect" / "engines" / "fusion.json"
    for other in ("all-MiniLM-L6-v2", "all-mpnet-base-v2"):
        assert fusion.target_of(other) == ROOT / "models" / other / "fusion.json"
        assert fusion.target_of(other).is_file()


def test_fit_is_deterministic(fitted: Fitted, tmp_path: Path) -> None:
    """The same evidence gives the same file and the same tables, byte for byte, and is not gathered again."""
    second = fitted.again(tmp_path / "first.json")
    assert fitted.target.read_bytes() == (tmp_path / "first.json").read_bytes()
    assert second.stdout.replace(str(tmp_path), "") == fitted.run.stdout.replace(str(fitted.target.parent), "")
    assert ["storing" in one.stderr for one in (fitted.run, second)] == [True, False]


def test_fit_keeps_its_evidence(fitted: Fitted) -> None:
    """What was gathered of each set lies in a file of its own."""
    assert sorted(path.name for path in fitted.evidence.iterdir()) == ["judge.pickle", "notes.pickle", "talks.pickle"]


def test_fit_prints_what_each_set_left_out_gave(fitted: Fitted) -> None:
    """Tables for words and meaning, for words alone and for the set that judges; the adversarial question is aside."""
    for title in ("words and meaning, each set left out", "words alone, each set left out", "only for judging"):
        for table in ("nDCG@10 / recall@10", "silent, in percent", "relevant, in percent"):
            assert f"{title}: {table}" in fitted.run.stdout
    rows = [line.replace("│", " ").split() for line in fitted.run.stdout.splitlines() if " / " in line and "│" in line]
    assert [(row[0], row[1]) for row in rows] == [("talks", "9"), ("notes", "10")] * 2 + [("judge", "9")]


def test_fit_draws_reliability_and_silence(fitted: Fitted) -> None:
    """Two charts lie in the folder that was asked for."""
    for name in ("reliability.png", "silence.png"):
        assert (fitted.evidence.parent / name).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


def test_foreign_questions_are_examples_without_answers(fitted: Fitted) -> None:
    """Each group was also asked what only other groups and other sets answer."""
    examples = [
        one for name in ("talks", "notes") for one in pickle.loads((fitted.evidence / f"{name}.pickle").read_bytes())
    ]
    assert all(isinstance(one, evidence.Example) for one in examples)
    foreign = [one for one in examples if one.category == "foreign"]
    assert {one.group for one in foreign if one.set == "talks"} == set(TALKS)
    assert len([one for one in foreign if one.set == "notes"]) == 2 * len(QUESTIONS)  # alone, and among others
    assert not any(any(one.relevant) or one.answers for one in foreign)
    strange = ("foreign", evidence.REQUEST)
    own = {one.text: one for one in examples if one.category not in strange and not one.crowded}
    assert {text: one.answers for text, one in own.items()} == {
        text: len(answers) for *_, text, answers in (*QUESTIONS, *QUERY_OF_NOTES)
    }
    assert all(sum(one.relevant) == one.answers and len(one.found) == 6 for one in own.values())
    assert {one.query.semantic for one in examples} == {True}


def test_evidence_of_several_parts_is_one_set(tmp_path: Path) -> None:
    """What each part's adapter found of a set is put together in the order of the parts, and nothing is asked again."""
    for part in (1, 0):
        (tmp_path / f"talks.part{part}.pickle").write_bytes(pickle.dumps([f"of part {part}"]))
    assert evidence.kept_in(tmp_path, "talks", pytest.fail) == ["of part 0", "of part 1"]
    assert evidence.kept_in(tmp_path, "notes", lambda: ["asked"]) == ["asked"]
    assert evidence.kept_in(tmp_path, "notes", pytest.fail) == ["asked"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"target": "absent/fusion.json"}, "its folder does not exist"),
        ({"evidence": "absent/evidence"}, "its folder does not exist"),
        ({}, "queries.jsonl cannot be read"),
    ],
)
def test_fit_looks_before_it_works(
    train: Callable[..., int],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: dict[str, str],
    sentence: str,
) -> None:
    """A folder that is not there is said in one sentence before anything is stored, and ends with exit code 2."""
    given = {"target": "fusion.json"} | options
    shown = [word for name, path in given.items() for word in (f"--{name}", tmp_path / path)]
    code = train("fusion", tmp_path / "nowhere", *shown)
    printed, said = capsys.readouterr()
    assert (code, printed, sentence in said, "storing" in said) == (2, "", True, False)


def test_fitting_further_writes_nothing_where_a_set_is_wrong(
    train: Callable[..., int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder that is missing is named, and the coefficients stay as they are."""
    target = tmp_path / "fusion.json"
    target.write_text(fusion.DEFAULT.read_text(encoding="utf-8"), encoding="utf-8")
    before = target.read_bytes()
    code = train("further", tmp_path / "nowhere", "--target", target)
    said = capsys.readouterr().err
    assert (code, "nowhere" in said, target.read_bytes() == before) == (2, True, True)


def test_a_set_for_the_order_alone_is_one_of_the_folders(tmp_path: Path) -> None:
    """A name that no folder has is refused before anything is gathered."""
    given = fusion.Given(1, 10, True, evidence.Limits(), None, frozenset({"nobody"}))
    with pytest.raises(InvalidInput, match="No set is named nobody"):
        fusion.run([talks(tmp_path / "talks")], [], None, tmp_path / "fusion.json", given)
