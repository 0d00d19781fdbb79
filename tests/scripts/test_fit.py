"""scripts/fit.py as its users run it, over two tiny sets, and what it fits, averages, calibrates and deals by hand."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from places import ROOT, SCRIPTS
from recollect.domain.search import QuerySignals, Signals
from recollect.engines.matching import Network, Part, columns
from recollect.errors import InvalidInput

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
    """What a run printed and left, and how it is done again on the evidence that it gathered."""

    run: subprocess.CompletedProcess[str]
    target: Path
    evidence: Path
    again: Callable[[Path], subprocess.CompletedProcess[str]]


def fitting(cache_dir: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    """Run scripts/fit.py in a process of its own."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("RECOLLECT_")}
    command = [sys.executable, str(SCRIPTS / "fit.py"), *map(str, arguments)]
    environment = ours | {"RECOLLECT_CACHE_DIR": str(cache_dir)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory, cache_dir: Path) -> Fitted:
    """Fit with few rounds, and judge by one of the sets."""
    home = tmp_path_factory.mktemp("fit")
    folders = talks(home / "talks"), notes(home / "notes")
    evidence = home / "evidence"
    options = ("--evidence", evidence, "--rounds", 15, "--seeds", 2, "--plots", home)

    def fit(target: Path) -> subprocess.CompletedProcess[str]:
        shutil.rmtree(home / "judge", ignore_errors=True)
        return fitting(cache_dir, *folders, "--judge", talks(home / "judge"), *options, "--target", target)

    return Fitted(fit(home / "first.json"), home / "first.json", evidence, fit)


@pytest.mark.full
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
        scores = network.scores(found, query)
        assert scores.shape == (2,)
        assert np.isfinite(scores).all()


def test_coefficients_of_another_model_lie_beside_its_card(module: Callable[[str], ModuleType]) -> None:
    """The default model's coefficients are the package's, another's are its own."""
    fit = module("fit")
    assert fit.target_of("notes-MiniLM-L6-v2") == ROOT / "src" / "recollect" / "engines" / "fusion.json"
    for other in ("all-MiniLM-L6-v2", "all-mpnet-base-v2"):
        assert fit.target_of(other) == ROOT / "models" / other / "fusion.json"
        assert fit.target_of(other).is_file()


@pytest.mark.full
def test_fit_is_deterministic(fitted: Fitted, tmp_path: Path) -> None:
    """The same evidence gives the same file and the same tables, byte for byte, and is not gathered again."""
    second = fitted.again(tmp_path / "first.json")
    assert fitted.target.read_bytes() == (tmp_path / "first.json").read_bytes()
    assert second.stdout.replace(str(tmp_path), "") == fitted.run.stdout.replace(str(fitted.target.parent), "")
    assert ["storing" in one.stderr for one in (fitted.run, second)] == [True, False]


@pytest.mark.full
def test_fit_keeps_its_evidence(fitted: Fitted) -> None:
    """What was gathered of each set lies in a file of its own."""
    assert sorted(path.name for path in fitted.evidence.iterdir()) == ["judge.pickle", "notes.pickle", "talks.pickle"]


@pytest.mark.full
def test_fit_prints_what_each_set_left_out_gave(fitted: Fitted) -> None:
    """Tables for words and meaning, for words alone and for the set that judges; the adversarial question is aside."""
    for title in ("words and meaning, each set left out", "words alone, each set left out", "only for judging"):
        for table in ("nDCG@10 / recall@10", "silent, in percent", "relevant, in percent"):
            assert f"{title}: {table}" in fitted.run.stdout
    rows = [line.replace("│", " ").split() for line in fitted.run.stdout.splitlines() if " / " in line and "│" in line]
    assert [(row[0], row[1]) for row in rows] == [("talks", "9"), ("notes", "10")] * 2 + [("judge", "9")]


@pytest.mark.full
def test_fit_draws_reliability_and_silence(fitted: Fitted) -> None:
    """Two charts lie in the folder that was asked for."""
    for name in ("reliability.png", "silence.png"):
        assert (fitted.evidence.parent / name).read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.full
def test_foreign_questions_are_examples_without_answers(fitted: Fitted, module: Callable[[str], ModuleType]) -> None:
    """Each group was also asked what only other groups and other sets answer."""
    gathering = module("gathering")
    examples = [
        one for name in ("talks", "notes") for one in pickle.loads((fitted.evidence / f"{name}.pickle").read_bytes())
    ]
    assert all(isinstance(one, gathering.Example) for one in examples)
    foreign = [one for one in examples if one.category == "foreign"]
    assert {one.group for one in foreign if one.set == "talks"} == set(TALKS)
    assert len([one for one in foreign if one.set == "notes"]) == 2 * len(QUESTIONS)  # alone, and among others
    assert not any(any(one.relevant) or one.answers for one in foreign)
    strange = ("foreign", gathering.REQUEST)
    own = {one.text: one for one in examples if one.category not in strange and not one.crowded}
    assert {text: one.answers for text, one in own.items()} == {
        text: len(answers) for *_, text, answers in (*QUESTIONS, *QUERY_OF_NOTES)
    }
    assert all(sum(one.relevant) == one.answers and len(one.found) == 6 for one in own.values())
    assert {one.query.semantic for one in examples} == {True}


def test_evidence_of_several_parts_is_one_set(module: Callable[[str], ModuleType], tmp_path: Path) -> None:
    """What each part's adapter found of a set is put together in the order of the parts, and nothing is asked again."""
    gathering = module("gathering")
    for part in (1, 0):
        (tmp_path / f"talks.part{part}.pickle").write_bytes(pickle.dumps([f"of part {part}"]))
    assert gathering.kept_in(tmp_path, "talks", pytest.fail) == ["of part 0", "of part 1"]
    assert gathering.kept_in(tmp_path, "notes", lambda: ["asked"]) == ["asked"]
    assert gathering.kept_in(tmp_path, "notes", pytest.fail) == ["asked"]


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"target": "absent/fusion.json"}, "its folder does not exist"),
        ({"evidence": "absent/evidence"}, "its folder does not exist"),
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


def test_fitting_further_writes_nothing_where_a_set_is_wrong(
    module: Callable[[str], ModuleType], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The folder that is missing is named, and the coefficients stay as they are."""
    target = tmp_path / "fusion.json"
    target.write_text(module("fit").DEFAULT.read_text(encoding="utf-8"), encoding="utf-8")
    before = target.read_bytes()
    with pytest.raises(module("typer").Exit) as ended:
        module("fit_further").main([tmp_path / "nowhere"], target=target)
    said = capsys.readouterr().err
    assert (ended.value.exit_code, "nowhere" in said, target.read_bytes() == before) == (2, True, True)


def a_part(seed: int, units: int = 3) -> Part:
    """Return a part of two features with some weights."""
    dice = np.random.default_rng(seed)
    some = lambda *shape: dice.normal(size=shape).astype(np.float32)  # noqa: E731
    mean, scale = np.array([0.2, 0.3], dtype=np.float32), np.array([0.5, 2.0], dtype=np.float32)
    hidden, hidden_bias, out = some(2, units), some(units), some(units)
    return Part(("bm25", "held"), mean, scale, some(2), float(dice.normal()), hidden, hidden_bias, out)


def some_columns() -> dict[str, np.ndarray]:
    """Return fifty values of two features."""
    rows = np.random.default_rng(4).normal(size=(50, 2)).astype(np.float32)
    return {"bm25": rows[:, 0], "held": rows[:, 1]}


def an_example(gathering: ModuleType, size: int, answers: set[int], **fields: Any) -> Any:
    """Return a question whose answers are the candidates of highest cosine."""
    found = tuple(
        Signals(cosine=0.6 if number in answers else 0.01 * number, bm25=float(number % 5 + 1), length=number)
        for number in range(size)
    )
    relevant = tuple(number in answers for number in range(size))
    given = {"set": "s", "group": "g", "category": "all", "answers": len(answers)} | fields
    return gathering.Example(query=QUERY, found=found, relevant=relevant, **given)


def test_averaged_gives_the_mean_of_the_sums(module: Callable[[str], ModuleType]) -> None:
    """One part stands for several: its sum for any candidate is the mean of theirs."""
    parts = [a_part(seed, units) for seed, units in ((1, 3), (2, 3), (3, 5))]
    together = module("training").averaged(parts)
    assert together.hidden.shape == (2, 11)
    expected = np.mean([one(some_columns()) for one in parts], axis=0)
    assert together(some_columns()) == pytest.approx(expected, abs=1e-5)


def test_a_network_is_written_as_it_is_read(module: Callable[[str], ModuleType]) -> None:
    """What JSON holds of a network sums as the network does, but for the digits left out."""
    network = Network(a_part(2), a_part(3, 2), a_part(4, 1), 1.25)
    again = Network.read(json.loads(json.dumps(module("training").plain(network))))
    assert again.stretch == network.stretch
    for part in ("own", "talk", "query"):
        first, second = getattr(network, part), getattr(again, part)
        assert first.names == second.names
        assert second(some_columns()) == pytest.approx(first(some_columns()), abs=1e-3)


@pytest.mark.full
def test_fit_learns_what_answers(module: Callable[[str], ModuleType]) -> None:
    """After a few rounds the answers score highest, one seed gives one network, and another another."""
    training, gathering = module("training"), module("gathering")
    sets = [
        training.compiled([an_example(gathering, 8, {number % 8}) for number in range(12)], True, False)
        for _ in range(2)
    ]
    (own, talk), (same, _), (other, _) = (training.fit(sets, training.FUSED, seed, 60) for seed in (1, 1, 2))
    network = Network(own, talk, training.nothing(), 1.0)
    for one in (question for some in sets for question in some):
        assert one.relevant[int(network.order(one.known).argmax())]
    assert np.array_equal(own.linear, same.linear)
    assert not np.array_equal(own.linear, other.linear)


@pytest.mark.parametrize("wanted", [True, False], ids=["the speaker is named", "another speaker is named"])
def test_fitted_further_only_the_part_for_conversations_moves(
    module: Callable[[str], ModuleType], *, wanted: bool
) -> None:
    """It begins as it was, and then puts the answers, told by who speaks alone, a little higher than before."""
    training, gathering = module("training"), module("gathering")
    shipped = Network.read(json.loads(module("fit").DEFAULT.read_text(encoding="utf-8"))["fused"])
    own, talk = shipped.own, shipped.talk
    found = tuple(Signals(cosine=0.4, bm25=2.0, speaker_named=one % 2 == 0, in_session=True) for one in range(8))
    relevant = tuple((one % 2 == 0) == wanted for one in range(8))
    asked = gathering.Example("s", "g", "all", QUERY, found, relevant, 4)
    questions = training.compiled([asked] * 8, True, False)
    moved = training.further((own, talk), [questions], training.FUSED)
    assert moved.names == talk.names
    known, right = questions[0].known, np.array(relevant)

    def ahead(part: Part) -> float:
        scores = Network(own, part, training.nothing(), 1.0).order(known)
        return float(scores[right].mean() - scores[~right].mean())

    assert ahead(moved) > ahead(talk) + 0.1


def test_a_part_that_was_fitted_before_gives_the_same_sums(module: Callable[[str], ModuleType]) -> None:
    """What a fit begins with is what ships: each part sums as before, but for weights of nothing."""
    training = module("training")
    network = Network.read(json.loads(module("fit").DEFAULT.read_text(encoding="utf-8"))["fused"])
    for name in ("own", "talk"):
        part = getattr(network, name)
        scale = training.Scale([*part.names], part.mean, part.scale, np.ones(len(part.names), dtype=bool))
        net = training.Net(len(training.FUSED.rising[name]), scale, part.hidden.shape[1])
        net.begin_with(part)
        known = dict.fromkeys(part.names, np.linspace(-1, 1, 9, dtype=np.float32))
        assert net.part(scale)(known) == pytest.approx(part(known), abs=1e-2)


def test_what_must_not_lower_a_score_has_no_negative_weight(module: Callable[[str], ModuleType]) -> None:
    """Whatever the answers look like, no rising feature gets a negative weight; one without spread gets none."""
    training, gathering = module("training"), module("gathering")
    against = [an_example(gathering, 8, {0, 1, 2}) for _ in range(12)]
    against = [replace(one, relevant=tuple(not answer for answer in one.relevant)) for one in against]
    own, _ = training.fit([training.compiled(against, True, False)], training.FUSED, 2, 60)
    rising = [own.names.index(name) for name in training.FUSED.rising["own"]]
    assert (own.linear[rising] >= 0).all()
    assert (own.hidden[rising] >= 0).all()
    assert (own.out >= 0).all()
    flat = own.names.index("passage")
    assert own.linear[flat] == 0
    assert not own.hidden[flat].any()


def test_a_smaller_store_holds_some_of_the_candidates(module: Callable[[str], ModuleType]) -> None:
    """A smaller store holds a few candidates in their order, never none, and an answer in about half of the cases."""
    training, gathering = module("training"), module("gathering")
    whole = an_example(gathering, 30, {7, 20})
    dice = random.Random(1)
    made = [training.smaller(whole, dice) for _ in range(300)]
    for one in made:
        numbers = [found.length for found in one.found]
        assert numbers == sorted({*numbers})
        assert 1 <= len(numbers) <= max(training.SMALL) + 1
        assert one.relevant == tuple(whole.relevant[number] for number in numbers)
        assert (one.answers, one.category) == (2, "all")
    assert 0.4 < np.mean([any(one.relevant) for one in made]) < 0.6
    alone = an_example(gathering, 1, {0})
    assert {len(training.smaller(alone, dice).found) for _ in range(20)} == {1}


def test_a_smaller_store_knows_fewer_words(module: Callable[[str], ModuleType]) -> None:
    """Words count for less there, all by one factor; in half of the cases none is shared, and less of the meaning."""
    training, gathering = module("training"), module("gathering")
    dice = random.Random(2)
    shared = {"coverage": 0.5, "fuzzy": 0.5, "passage": 0.4, "phrase": 0.3, "around": 0.6, "late": 0.5, "rare": 0.5}
    whole = an_example(gathering, 20, {3})
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


def test_other_words_leave_the_meaning(module: Callable[[str], ModuleType]) -> None:
    """In other words no answer shares one, in half of the cases no candidate does, and every cosine stays."""
    training, gathering = module("training"), module("gathering")
    dice = random.Random(3)
    whole = an_example(gathering, 10, {3, 4})
    whole = replace(whole, found=tuple(replace(one, coverage=0.5) for one in whole.found))
    made = [training.otherwise(whole, dice) for _ in range(100)]
    every = [one for one in made if one.query.unknown == 1.0]
    assert 30 < len(every) < 70
    assert {found.coverage for one in every for found in one.found} == {0.0}
    for one in made:
        assert [found.cosine for found in one.found] == [found.cosine for found in whole.found]
        assert one.relevant == whole.relevant
        assert all(found.coverage == 0.0 for found, right in zip(one.found, one.relevant, strict=True) if right)
    rest = [one for one in made if one not in every]
    assert {found.coverage for one in rest for place, found in enumerate(one.found) if place not in (3, 4)} == {0.5}


def test_silence_tells_whether_anything_answers(module: Callable[[str], ModuleType]) -> None:
    """Queries whose best evidence is better get better odds, by weights of which none is negative."""
    training, gathering, silence = module("training"), module("gathering"), module("silence")
    known = [an_example(gathering, 8, {number % 8}) for number in range(20)]
    foreign = [replace(one, found=one.found[:1], relevant=(False,), answers=0) for one in known]
    questions = training.compiled([*known, *foreign], True, False)
    orders = [question.known["cosine"] for question in questions]
    judged = [silence.judged(question, order) for question, order in zip(questions, orders, strict=True)]
    part, stretch = silence.fit([judged], training.FUSED, 1)
    odds = [stretch * one.orders[0] + part(one.known)[0] for one in judged]
    assert stretch > 0
    assert (part.linear >= 0).all()
    assert min(odds[:20]) > max(odds[21:])


def test_each_set_counts_alike(module: Callable[[str], ModuleType]) -> None:
    """The questions of a set and their copies weigh one together, however many they are; an empty one is left out."""
    training, gathering = module("training"), module("gathering")
    one = an_example(gathering, 6, {0})
    for some in ([one] * 3, [one] * 30, [one, replace(one, found=(), relevant=())]):
        questions = training.compiled(some, True, True)
        assert sum(question.weight for question in questions) == pytest.approx(1.0)
        assert len(questions) == 3 * len([each for each in some if each.found])
    blind = training.compiled([one], False, True)
    assert not any("cosine" in question.known for question in blind)
    assert columns(one.found, one.query).keys() > blind[0].known.keys()


def test_a_set_for_the_order_alone_is_one_of_the_folders(module: Callable[[str], ModuleType], tmp_path: Path) -> None:
    """A name that no folder has is refused before anything is gathered."""
    fit, gathering = module("fit"), module("gathering")
    given = fit.Given(1, 10, True, gathering.Limits(), None, frozenset({"nobody"}))
    with pytest.raises(InvalidInput, match="No set is named nobody"):
        fit.run([talks(tmp_path / "talks")], [], None, tmp_path / "fusion.json", given)
