"""scripts/fit.py as its users run it, over two tiny sets, and what it fits, averages, calibrates and deals by hand."""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from recollect.domain.search import QuerySignals, Signals
from recollect.engines.fusion import Network, features

SCRIPTS = Path(__file__).parents[1] / "scripts"
QUERY = QuerySignals(words=3, rarest=3.0, unknown=0.0, semantic=True)
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
    """Write a set as scripts/sets.py reads it, and return its folder."""
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
    """What two runs printed and left: the first stored the sets, the second had its evidence."""

    runs: list[subprocess.CompletedProcess[str]]
    targets: list[Path]
    evidence: Path


def fitting(cache_dir: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run scripts/fit.py in a process of its own."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    command = [sys.executable, str(SCRIPTS / "fit.py"), *map(str, arguments)]
    environment = ours | {"RECOLLECT_CACHE_DIR": str(cache_dir)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory, cache_dir: Path) -> Fitted:
    """Fit twice on the same evidence, with few rounds."""
    home = tmp_path_factory.mktemp("fit")
    folders = talks(home / "talks"), notes(home / "notes")
    evidence, targets = home / "evidence.pickle", [home / "first.json", home / "second.json"]
    options = ("--evidence", evidence, "--rounds", 15)
    runs = [fitting(cache_dir, *folders, *options, "--target", target) for target in targets]
    return Fitted(runs, targets, evidence)


def test_fit_writes_what_the_fusion_reads(fitted: Fitted) -> None:
    """Both networks are written, with every feature of the script, and give finite scores to what may be found."""
    assert [one.returncode for one in fitted.runs] == [0, 0], fitted.runs[0].stderr
    given = json.loads(fitted.targets[0].read_text(encoding="utf-8"))
    assert set(given) == {"fused", "words"}
    fused, words = (Network.read(given[name]) for name in ("fused", "words"))
    assert set(words.names) < set(fused.names)
    assert not any("cosine" in name or "late" in name for name in words.names)
    found = [Signals(cosine=0.5, bm25=9.0, coverage=1.0, late=0.5, rare=0.5, length=80), Signals(cosine=0.1)]
    for network, query in ((fused, QUERY), (words, replace(QUERY, semantic=False))):
        scores = network.scores(features(found, query, network.names))
        assert scores.shape == (2,)
        assert np.isfinite(scores).all()


def test_fit_is_deterministic(fitted: Fitted) -> None:
    """The same evidence gives the same file, byte for byte, and is not gathered again."""
    first, second = (target.read_bytes() for target in fitted.targets)
    assert first == second
    assert fitted.evidence.is_file()
    assert ["storing" in one.stderr for one in fitted.runs] == [True, False]


def test_fit_prints_what_the_cross_validation_found(fitted: Fitted) -> None:
    """Either table has a row for each set with its questions, the adversarial one and the foreign ones aside."""
    for run in fitted.runs:
        assert "words and meaning, cross-validated over conversations" in run.stdout
        assert "words alone, cross-validated over conversations" in run.stdout
        rows = [line.replace("│", " ").split() for line in run.stdout.splitlines() if "│" in line]
        counted = [(row[0], row[1]) for row in rows]
        assert counted == [("talks", "9"), ("notes", "5")] * 2
        assert all(0.0 <= float(value) <= 100.0 for row in rows for value in row[2:])
        assert all(len(row) == 9 for row in rows)
    assert fitted.runs[0].stdout.replace("first.json", "second.json") == fitted.runs[1].stdout


def test_foreign_questions_are_examples_without_answers(fitted: Fitted, module: Callable[[str], ModuleType]) -> None:
    """Each group was also asked what only others answer, a single group the questions of the other sets."""
    training = module("training")
    examples = module("pickle").loads(fitted.evidence.read_bytes())
    assert all(isinstance(one, training.Example) for one in examples)
    foreign = [one for one in examples if one.category == "foreign"]
    assert {one.group for one in foreign if one.set == "talks"} == set(TALKS)
    assert len([one for one in foreign if one.set == "notes"]) == len(QUESTIONS)
    assert not any(any(one.relevant) or one.answers for one in foreign)
    own = [one for one in examples if one.category != "foreign"]
    assert [one.answers for one in own] == [len(answers) for *_, answers in (*QUESTIONS, *QUERY_OF_NOTES)]
    assert all(sum(one.relevant) == one.answers and len(one.found) == 6 for one in own)
    assert {one.query.semantic for one in examples} == {True}
    assert len({one.fold for one in examples if one.group == "ann"}) == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"target": "absent/fusion.json"}, "its folder does not exist"),
        ({"evidence": "absent/evidence.pickle"}, "its folder does not exist"),
        ({}, "queries.jsonl cannot be read"),
    ],
)
def test_fit_looks_before_it_works(
    module: Callable[[str], ModuleType],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    options: dict[str, str],
    sentence: str,
) -> None:
    """A folder that is not there is said in one sentence before anything is stored, and ends with exit code 2."""
    given = {"target": "fusion.json"} | options
    with pytest.raises(module("typer").Exit) as ended:
        module("fit").main([tmp_path / "nowhere"], **{name: tmp_path / path for name, path in given.items()})
    printed, said = capsys.readouterr()
    assert (ended.value.exit_code, printed, sentence in said, "storing" in said) == (2, "", True, False)


def a_network(seed: int, units: int = 3) -> Network:
    """Return a network of two features with some weights."""
    dice = np.random.default_rng(seed)
    some = lambda *shape: dice.normal(size=shape).astype(np.float32)  # noqa: E731
    mean, scale = np.array([0.2, 0.3], dtype=np.float32), np.array([0.5, 2.0], dtype=np.float32)
    hidden, hidden_bias, out = some(2, units), some(units), some(units)
    return Network(("bm25", "held"), mean, scale, some(2), float(dice.normal()), hidden, hidden_bias, out)


def an_example(training: ModuleType, size: int, answers: set[int], **fields: Any) -> Any:
    """Return a question whose answers are the candidates of highest cosine."""
    found = tuple(
        Signals(cosine=0.6 if number in answers else 0.01 * number, bm25=float(number + 1), length=number)
        for number in range(size)
    )
    relevant = tuple(number in answers for number in range(size))
    given = {"set": "s", "group": "g", "category": "all", "answers": len(answers), "fold": 0} | fields
    return training.Example(query=QUERY, found=found, relevant=relevant, **given)


def test_averaged_gives_the_mean_of_the_scores(module: Callable[[str], ModuleType]) -> None:
    """One network stands for several: its score of any row is the mean of theirs."""
    networks = [a_network(seed, units) for seed, units in ((1, 3), (2, 3), (3, 5))]
    rows = np.random.default_rng(4).normal(size=(50, 2)).astype(np.float32)
    together = module("training").averaged(networks)
    assert together.hidden.shape == (2, 11)
    expected = np.mean([one.scores(rows) for one in networks], axis=0)
    assert together.scores(rows) == pytest.approx(expected, abs=1e-5)


def test_calibrated_scores_are_log_odds(module: Callable[[str], ModuleType]) -> None:
    """Where answers come as often as twice the score less one says, that is what is found, and no order changes."""
    given = np.linspace(-4.0, 4.0, 81)
    often = 1.0 / (1.0 + np.exp(1.0 - 2.0 * given))
    scores, weights = [*given, *given], [*often, *(1.0 - often)]
    network = a_network(1)
    answers = [True] * len(given) + [False] * len(given)
    after = module("training").calibrated(network, scores, answers, weights)
    rows = np.random.default_rng(4).normal(size=(50, 2)).astype(np.float32)
    assert after.scores(rows) == pytest.approx(2.0 * network.scores(rows) - 1.0, abs=1e-3)


def test_a_network_is_written_as_it_is_read(module: Callable[[str], ModuleType]) -> None:
    """What JSON holds of a network scores as the network does, but for the digits left out."""
    network = a_network(2)
    rows = np.random.default_rng(4).normal(size=(50, 2)).astype(np.float32)
    again = Network.read(json.loads(json.dumps(module("training").plain(network))))
    assert again.names == network.names
    assert again.scores(rows) == pytest.approx(network.scores(rows), abs=1e-3)


def test_fit_learns_what_answers(module: Callable[[str], ModuleType]) -> None:
    """After a few rounds the answers score highest, one seed gives one network, and another another."""
    training = module("training")
    examples = [an_example(training, 8, {number % 8}) for number in range(24)]
    names = ("cosine", "bm25", "cosine_to_best")
    network, same, other = (training.fit(examples, names, seed, 60) for seed in (1, 1, 2))
    for one in examples:
        scores = network.scores(features(one.found, one.query, names))
        assert one.relevant[int(scores.argmax())]
    assert np.array_equal(network.linear, same.linear)
    assert not np.array_equal(network.linear, other.linear)


def test_a_smaller_store_holds_some_of_the_candidates(module: Callable[[str], ModuleType]) -> None:
    """A smaller store holds a few candidates in their order, never none, and an answer in about half of the cases."""
    training = module("training")
    whole = an_example(training, 30, {7, 20}, weight=2.0)
    dice = random.Random(1)
    made = [training.smaller(whole, dice) for _ in range(300)]
    for one in made:
        numbers = [found.length for found in one.found]
        assert numbers == sorted({*numbers})
        assert 1 <= len(numbers) <= max(training.SMALL) + 1
        assert one.relevant == tuple(whole.relevant[number] for number in numbers)
        assert (one.answers, one.fold, one.category) == (2, 0, "all")
        assert 0.0 < one.weight < whole.weight
    assert 0.4 < np.mean([any(one.relevant) for one in made]) < 0.6
    alone = an_example(training, 1, {0})
    assert {len(training.smaller(alone, dice).found) for _ in range(20)} == {1}


def test_a_smaller_store_knows_fewer_words(module: Callable[[str], ModuleType]) -> None:
    """Words count for less there, all by one factor; in half of the cases none is shared, and less of the meaning."""
    training = module("training")
    dice = random.Random(2)
    shared = {"coverage": 0.5, "fuzzy": 0.5, "passage": 0.4, "phrase": 0.3, "around": 0.6, "late": 0.5, "rare": 0.5}
    whole = an_example(training, 20, {3})
    whole = replace(whole, found=tuple(replace(one, **shared) for one in whole.found))
    made = [training.smaller(whole, dice) for _ in range(300)]
    strange = [one for one in made if one.query == replace(QUERY, rarest=0.0, unknown=1.0)]
    usual = [one for one in made if one.query == QUERY]
    assert len(strange) + len(usual) == 300
    assert 100 < len(strange) < 200
    for one in usual:
        shares = [found.bm25 / whole.found[found.length].bm25 for found in one.found]
        assert shares == pytest.approx([shares[0]] * len(shares))
        assert 0.0 <= shares[0] <= 1.0
        assert all(found == replace(whole.found[found.length], bm25=found.bm25) for found in one.found)
    for found in (found for one in strange for found in one.found):
        assert {getattr(found, name) for name in ("bm25", "coverage", "fuzzy", "passage", "phrase", "around")} == {0.0}
        assert 0.0 <= found.cosine <= whole.found[found.length].cosine
        assert found.late == found.rare <= 0.5


def test_conversations_keep_their_fold(module: Callable[[str], ModuleType]) -> None:
    """A conversation is in one fold in whatever set it stands; a set of one group is dealt by question."""
    sets, fit = module("sets"), module("fit")
    ask = lambda name, group: sets.Question(name, name, group, "all", frozenset("x"))  # noqa: E731
    groups = [f"c{number}" for number in range(12)]
    turns = sets.Set("turns", Path(), [ask(f"t{number}", group) for number, group in enumerate(groups * 2)])
    days = sets.Set("days", Path(), [ask(f"d{number}", group) for number, group in enumerate(groups[::-1])])
    alone = sets.Set("alone", Path(), [ask(f"a{number}", "all") for number in range(7)])
    folds = fit.folds_of([turns, days, alone])
    assert "all" not in folds
    assert [folds[f"a{number}"] for number in range(7)] == [0, 1, 2, 3, 4, 0, 1]
    assert {folds[group] for group in groups} == set(range(module("training").FOLDS))
    assert {group: fit.folds_of([turns])[group] for group in groups} == {group: folds[group] for group in groups}
    assert {group: fit.folds_of([days, turns])[group] for group in groups} == {group: folds[group] for group in groups}


def test_small_sets_count_for_more(module: Callable[[str], ModuleType]) -> None:
    """A question weighs by the root of its set's size, foreign and adversarial ones less; an empty one is left out."""
    training, fit = module("training"), module("fit")
    of = lambda name, category="all": an_example(training, 2, {0}, set=name, category=category)  # noqa: E731
    nothing = replace(of("small"), found=(), relevant=())
    ready = fit.weighted([of("big"), of("big", "foreign"), of("big", "adversarial"), of("big"), of("small"), nothing])
    root = 1.0 / math.sqrt(2)
    assert [one.weight for one in ready] == pytest.approx([0.5, 0.25, 0.05, 0.5, root])
