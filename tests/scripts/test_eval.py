"""scripts/eval and scripts/duplicates as their users run them, over tiny sets whose figures are known."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import typer

from recollect import Settings
from script_process import run_module

METRICS = "recall@1 recall@5 recall@10 any@1 any@5 any@10 all@5 all@10 ndcg@10 mrr".split()
CORPUS = {
    "ann": [
        "The rocket engine test failed because of a cracked valve",
        "Ann planted tomatoes in the garden behind the old mill",
        "Bread tastes best after a long cold fermentation of the dough",
    ],
    "bob": [
        "The dentist moved the appointment to Thursday afternoon",
        "Copper roofs turn green after about twenty years",
        "The choir rehearses Mozart on Monday evenings",
    ],
}
# Group, text, category, and which memories of the group answer.
QUERIES = [
    ("ann", "Why did the rocket engine test fail?", "single", [0]),
    ("ann", "What did Ann plant, and how is bread fermented?", "multi", [1, 2]),
    ("bob", "When is the dentist appointment?", "single", [0]),
    ("bob", "Which composer does the choir rehearse?", "single", [2]),
    ("bob", "Which roofs did Ann turn green?", "adversarial", [1]),
]
Run = Callable[..., subprocess.CompletedProcess[str]]
MISTAKES = {
    "no such folder": ("queries.jsonl", None, "cannot be read: No such file or directory"),
    "no qrels": ("qrels.tsv", None, "cannot be read: No such file or directory"),
    "an empty corpus": ("corpus.jsonl", "\n", "is empty"),
    "queries that are not JSON": ("queries.jsonl", '{"id": "q0"', "line 1: this is not JSON"),
    "a query without text": ("queries.jsonl", '\n{"id": "q0"}', "line 2: an object with"),
    "qrels without tabs": ("qrels.tsv", "q0 ann/0 1", "line 1: query id, tab, corpus id is needed"),
    "an unknown query": ("qrels.tsv", "q0\tann/0\t1\nq99\tann/0\t1", "line 2: queries.jsonl has no query 'q99'"),
    "an unknown memory": ("qrels.tsv", "q0\tann/77\t1", "line 1: corpus.jsonl has no memory 'ann/77'"),
    "no answers": ("qrels.tsv", "q0\tann/0\t0", "names no answer"),
}


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    """Return a set of two groups with three memories each."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    corpus = [
        {"id": f"{group}/{place}", "text": text, "group": group, "timestamp": "2024-05-01T12:00:00", "pos": place}
        for group, texts in CORPUS.items()
        for place, text in enumerate(texts)
    ]
    queries = [
        {"id": f"q{number}", "text": text, "group": group, "category": category}
        for number, (group, text, category, _) in enumerate(QUERIES)
    ]
    answers = [f"q{number}\t{one[0]}/{place}\t1" for number, one in enumerate(QUERIES) for place in one[3]]
    for name, rows in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    (folder / "qrels.tsv").write_text("\n".join(answers) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def script(environment: dict[str, str], tmp_path: Path) -> Run:
    """Return a function that runs one of our scripts, with more environment where that is given."""

    def run(name: str, *arguments: object, **more: str) -> subprocess.CompletedProcess[str]:
        return run_module(name, *arguments, environment=environment | more, cwd=tmp_path)

    return run


def test_metrics_are_those_of_the_textbook(module: Callable[[str], ModuleType]) -> None:
    """Recall is fractional, nDCG counts from the best possible order, and nothing below rank 10 counts."""
    measures = module("evaluation.sets").measures
    answers = frozenset("abc")
    found = measures([*"axbyzvwsut", "c"], answers)
    third, two = pytest.approx(1 / 3), pytest.approx(2 / 3)
    ideal = 1 + 1 / math.log2(3) + 1 / 2
    expected = dict(zip(METRICS, [third, two, two, 1, 1, 1, 0, 0, pytest.approx(1.5 / ideal), 1], strict=True))
    assert found == expected
    late = measures([*"xabc"], answers)
    assert (late["recall@1"], late["any@1"], late["recall@5"], late["all@5"], late["mrr"]) == (0, 0, 1, 1, 0.5)
    assert set(measures([], answers).values()) == {0.0}


def test_intervals_draw_whole_groups_where_there_are_enough(module: Callable[[str], ModuleType]) -> None:
    """Five groups that each agree with themselves give a wider interval than the same answers drawn one by one."""
    interval, numpy = module("evaluation.__main__").interval, module("numpy")
    values = numpy.repeat([[1.0], [0.0], [1.0], [0.0], [1.0]], 20, axis=0)
    low, high, over = interval(values, [f"g{number // 20}" for number in range(100)])
    narrow_low, narrow_high, otherwise = interval(values, ["one"] * 100)
    assert (over, otherwise) == ("groups", "queries")
    assert low[0] < narrow_low[0] < 60.0 < narrow_high[0] < high[0]


def test_calibration_counts_as_by_hand(module: Callable[[str], ModuleType]) -> None:
    """Each set weighs the same in the reliability of all, and the suggested floor keeps 97 in 100."""
    calibration = module("evaluation.calibration")
    one = calibration.Sample("one", [0.25] * 4, [True, False, False, False], [0.25] * 4, [0.05], [0.05])
    two = calibration.Sample("two", [0.29, 1.0], [True, True], [0.29, 1.0], [], [])
    report = calibration.report([one, two], 0.3)
    low, top = (
        next(row for row in report["reliability"] if (row["set"], row["from"]) == ("all", at)) for at in (0.2, 0.9)
    )
    assert (low["n"], low["weight"], top["n"], top["relevant"]) == (5, 0.75, 1, 1.0)
    assert low["match"] == pytest.approx((0.25 + 0.29 / 2) / 1.5)
    assert low["relevant"] == pytest.approx((0.25 + 1 / 2) / 1.5)
    assert report["error"] == pytest.approx({"one": 0.0, "two": 0.355, "all": 0.75 * (low["relevant"] - low["match"])})
    at_card = {row["set"]: (row["kept"], row["refused"]) for row in report["floors"] if row["floor"] == 0.3}
    assert at_card == {"one": (0.0, 1.0), "two": (0.5, None), "mean": (0.25, 1.0)}
    assert report["suggested"] == {"every set": 0.25, "mean": 0.25}


def test_foreign_questions_are_never_the_groups_own(module: Callable[[str], ModuleType]) -> None:
    """A group is asked what only others answer; where a set has one group, the other sets' questions serve."""
    sets, foreign = module("evaluation.sets"), module("evaluation.calibration").foreign
    ask = lambda text, group: sets.Question(text, text, group, "all", frozenset("x"))  # noqa: E731
    grouped = sets.Set("grouped", Path(), [ask("who?", "a"), ask("where?", "a"), ask("who?", "b"), ask("why?", "b")])
    single = sets.Set("single", Path(), [ask("how?", "all"), ask("why?", "all")])
    assert sorted(foreign(grouped, [grouped, single])) == [("a", "why?"), ("b", "where?")]
    assert sorted(foreign(single, [grouped, single])) == [("all", "where?"), ("all", "who?")]
    assert foreign(single, [single]) == []


def test_eval_measures_what_recall_brings_back(script: Run, tiny: Path, tmp_path: Path) -> None:
    """The command line prints a table and writes rows, a chart and the calibration."""
    files = {name: tmp_path / f"out.{name}" for name in ("json", "plot", "calibration")}
    done = script("evaluation", tiny, *(part for name, path in files.items() for part in (f"--{name}", path)))
    assert done.returncode == 0, done.stderr
    assert "bootstrap over queries" in done.stdout
    rows: list[dict[str, Any]] = json.loads(files["json"].read_text(encoding="utf-8"))
    categories = {"all": 5, "all but adversarial": 4, "single": 3, "multi": 1, "adversarial": 1}
    systems = ("recollect", "fts", "dense", "rrf")
    assert {(one["system"], one["category"]): one["n"] for one in rows} == {
        (system, category): n for system in systems for category, n in categories.items()
    }
    for one in rows:
        assert one.keys() == {
            *("set", "system", "category", "n", "p50_ms", "p95_ms", "interval", "interval_over"),
            *METRICS,
        }
        assert (one["set"], 0 < one["p50_ms"] <= one["p95_ms"]) == ("tiny", True)
        for metric in METRICS:
            low, high = one["interval"][metric]
            assert 0 <= low <= one[metric] <= high <= 100
    ours = {one["category"]: one for one in rows if one["system"] == "recollect"}
    assert (ours["single"]["recall@1"], ours["single"]["mrr"], ours["single"]["ndcg@10"]) == (100, 100, 100)
    assert (ours["multi"]["recall@1"], ours["multi"]["all@5"]) == (50, 100)
    assert ours["all but adversarial"]["recall@1"] == 87.5
    assert files["plot"].read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    check_calibration(json.loads(files["calibration"].read_text(encoding="utf-8")))


@pytest.mark.full
def test_a_bad_memory_costs_no_set(script: Run, tiny: Path, tmp_path: Path) -> None:
    """A memory that cannot be stored is skipped with a note; questions without an answer give a rate of silence."""
    with (tiny / "corpus.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"id": "ann/bad", "text": "x", "group": "ann", "pos": -1}) + "\n")
    with (tiny / "queries.jsonl").open("a", encoding="utf-8") as file:
        asked = {"id": "q9", "text": "Who won the regatta in Lisbon?", "group": "bob", "category": "unanswerable-far"}
        file.write(json.dumps(asked) + "\n")
    done = script("evaluation", tiny, "--json", tmp_path / "out.json")
    assert done.returncode == 0, done.stderr
    assert f"Skipped: {tiny / 'corpus.jsonl'}, memory 'ann/bad': Invalid position" in done.stderr
    assert len(json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))) == 20
    rows = [line.replace("│", " ").split() for line in done.stdout.splitlines() if "│ tiny" in line]
    assert ["tiny", "unanswerable-far", "1", "100.0"] in rows


@pytest.mark.full
def test_aged_asks_at_three_ages(script: Run, tiny: Path) -> None:
    """Each memory is stored at its own date; what is relevant is the same at every age."""
    done = script("evaluation", tiny, "--aged")
    assert done.returncode == 0, done.stderr
    rows = [line.replace("│", " ").split() for line in done.stdout.splitlines() if line.startswith("│")]
    by_age, first = rows[:3], rows[3:]
    assert [row[1:3] for row in by_age] == [["0", "100.0"], ["60", "100.0"], ["700", "100.0"]]
    assert len({row[3] for row in by_age}) == 1
    assert [row[1] for row in first] == ["fresh", "0", "60", "700"]
    assert all(0 <= float(share) <= 100 for row in first for share in row[2:])


@pytest.mark.full
def test_growth_asks_among_more_and_more(
    module: Callable[[str], ModuleType], settings: Settings, tiny: Path, tmp_path: Path
) -> None:
    """The questions are asked of the set alone and at each size, with texts that never stood together beside it."""
    noise = tmp_path / "noise"
    noise.mkdir()
    texts = [
        f"Meeting {number}: the {word} of the harbour was discussed. Nothing was settled."
        for number, word in enumerate(("depth", "noise", "light", "price", "guard", "plan"))
    ]
    rows = [json.dumps({"id": str(number), "text": text}) for number, text in enumerate(texts)]
    (noise / "corpus.jsonl").write_text("\n".join(rows), encoding="utf-8")
    growth = module("evaluation.growth")
    found = growth.measured(module("evaluation.sets").load([tiny]), [noise], (10, 20), settings)
    assert [one.size for one in found] == [6, 10, 20]
    for one in found:
        assert {len(one.first[system]) for system in ("recollect", *growth.PARENTS)} == {len(QUERIES)}
        assert one.row()["recollect five"] >= 60.0
    growth.draw([one.row() for one in found], tmp_path / "growth.png")
    assert (tmp_path / "growth.png").read_bytes().startswith(b"\x89PNG")


def test_sizes_counts_what_agents_get(module: Callable[[str], ModuleType], settings: Settings, tiny: Path) -> None:
    """Each question is asked through the tool, and its answer counted, within the budget that the tool keeps."""
    [one] = module("evaluation.sets").load([tiny])
    found = module("evaluation.answer_sizes").measured(one, settings)
    assert len(found.tokens) == len(found.characters) == len(one.questions)
    assert all(0 < tokens <= 2_000 for tokens in found.tokens)
    assert max(found.memories) >= 1


def check_calibration(report: dict[str, Any]) -> None:
    """Four questions are answerable, and the five of either group's neighbours are foreign."""
    assert report["error"].keys() == {"tiny", "all"}
    hits = [row for row in report["reliability"] if row["set"] == "tiny"]
    assert [row["from"] for row in hits] == [number / 10 for number in range(10)]
    assert 4 <= sum(row["n"] for row in hits) <= 12
    assert sum(row["n"] * row["relevant"] for row in hits if row["n"]) == pytest.approx(5)
    assert all(row["from"] <= row["match"] <= row["to"] for row in hits if row["n"])
    floors = [row for row in report["floors"] if row["set"] == "tiny"]
    assert {(row["n"], row["foreign"]) for row in floors} == {(4, 5)}
    assert report["card"] in [row["floor"] for row in floors]
    kept, refused = [row["kept"] for row in floors], [row["refused"] for row in floors]
    assert kept == sorted(kept, reverse=True)
    assert refused == sorted(refused)
    assert kept[0] == 1.0
    suggested = report["suggested"]
    assert 0 < suggested["every set"] == suggested["mean"] <= 1
    assert all(row["kept"] == 1.0 for row in floors if row["floor"] <= suggested["every set"])


@pytest.fixture
def evaluated(
    module: Callable[[str], ModuleType], capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Return a function that runs scripts/eval in this process: its exit code and both its streams."""

    def run(*folders: Path, **options: Path) -> tuple[int, str, str]:
        with pytest.raises(typer.Exit) as ended:
            module("evaluation.__main__").main(list(folders), **options)
        return ended.value.exit_code, *capsys.readouterr()

    return run


@pytest.mark.parametrize("mistake", MISTAKES)
def test_eval_says_which_file_is_wrong(
    evaluated: Callable[..., tuple[int, str, str]], tiny: Path, mistake: str
) -> None:
    """Whatever is wrong with a set ends in one sentence that names the file, and exit code 2."""
    name, text, sentence = MISTAKES[mistake]
    if text is None:
        (tiny / name).unlink()
    else:
        (tiny / name).write_text(text, encoding="utf-8")
    code, _, said = evaluated(tiny)
    assert code == 2
    assert f"{tiny / name}" in said
    assert sentence in said


def test_eval_looks_before_it_works(
    evaluated: Callable[..., tuple[int, str, str]], tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Absent matplotlib, a folder that is not there and two sets of one name are said before anything is stored."""
    absent = evaluated(tiny, json_file=tmp_path / "absent" / "a.json")
    twice = evaluated(tiny, tiny)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    unplotted = evaluated(tiny, plot_file=tmp_path / "a.png")
    for (code, printed, said), sentence in (
        (absent, "its folder does not exist"),
        (twice, "Two folders are named tiny"),
        (unplotted, "--plot needs matplotlib, which is not installed: run `scripts/setup --test`"),
    ):
        assert (code, printed) == (2, "")
        assert sentence in said
        assert "storing" not in said


def test_eval_ends_a_mistake_without_a_traceback(script: Run, tmp_path: Path) -> None:
    """A wrong folder on the real command line ends with exit code 2 and one line on the error stream."""
    done = script("evaluation", tmp_path / "nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    path = tmp_path / "nowhere" / "queries.jsonl"
    assert done.stderr == f"Error: {path} cannot be read: No such file or directory.\n"


@pytest.mark.full
def test_duplicates_measures_each_threshold(script: Run, tmp_path: Path) -> None:
    """Precision and recall are those of the pairs above a cosine or of the same words; a malformed line is named."""
    pairs, rows, corpus = tmp_path / "pairs.tsv", tmp_path / "rows.json", tmp_path / "corpus.jsonl"
    texts = ("The sky is blue.", "Cooking rice takes a quarter of an hour.", "The sky is blue today.")
    lines = [json.dumps({"id": text, "text": text}) for text in texts]
    corpus.write_text("\n".join(lines), encoding="utf-8")
    pairs.write_text(
        "A man plays a guitar.\tA man is playing the guitar.\t4.8\n"
        "The sky is blue.\tthe sky is blue\t5\n"
        "The sky is blue.\tCooking rice takes a quarter of an hour.\t4.0\n"
        "The sky is blue.\tThe sky is blue today.\t2.0\n",
        encoding="utf-8",
    )
    done = script("evaluation.duplicates", pairs, "--json", rows, "--corpus", corpus)
    assert done.returncode == 0, done.stderr
    assert "3 pairs say the same" in done.stdout
    found = json.loads(rows.read_text(encoding="utf-8"))
    assert [row["threshold"] for row in found["rows"]] == [hundredths / 100 for hundredths in range(50, 99)]
    first = found["rows"][0]
    assert (first["pairs"], first["precision"], first["recall"]) == (3, pytest.approx(2 / 3), pytest.approx(2 / 3))
    assert found["suggested"]["opening"] is None
    assert found["words"] == {"found": 2, "wrong": 0}
    assert "takes 2 of them for the same, and 0 others" in done.stdout
    assert first["named"] == pytest.approx(1 / 3)
    pairs.write_text("only one text\n", encoding="utf-8")
    wrong = script("evaluation.duplicates", pairs)
    assert (wrong.returncode, f"{pairs}, line 1" in wrong.stderr, "Traceback" in wrong.stderr) == (2, True, False)
