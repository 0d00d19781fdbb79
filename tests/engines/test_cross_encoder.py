"""The reranker: a tiny cross-encoder with weights set by hand, saved and loaded through the real library."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from recollect.engines.cross_encoder import CrossEncoderRerank, open_rerank
from recollect.errors import ModelUnusable
from tiny_model import keep_in_hub
from tiny_reranker import LIMIT, build

pytestmark = pytest.mark.slow

UNREACHABLE = {"HF_ENDPOINT": "http://127.0.0.1:9"}
REVISION = "a1" * 20
QUERY = "what is the river"
LONG = 300.0  # seconds: loading takes what it takes


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the tiny cross-encoder."""
    return build(tmp_path_factory.mktemp("reranker") / "tiny")


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """Return a copy of the cross-encoder that a test may damage."""
    return Path(shutil.copytree(folder, tmp_path / "copy"))


@pytest.fixture(scope="session")
def reranker(folder: Path) -> CrossEncoderRerank:
    """Return the cross-encoder, loaded."""
    opened = CrossEncoderRerank(str(folder), 30, patience=LONG)
    opened.warm()
    return opened


def test_scores_follow_the_model(reranker: CrossEncoderRerank) -> None:
    """Each text gets its own score of 0–1 in the order of the texts, as the model's weights have it."""
    golden, plain, muddy = reranker.scores(QUERY, ["the river is golden", "the river", "the river is muddy"])
    assert 0.0 < muddy < 0.1 < plain < 0.5 < golden < 1.0


def test_batches_change_nothing(reranker: CrossEncoderRerank) -> None:
    """Many texts of many lengths get the scores that each gets alone."""
    texts = [f"{'the river ' * (number % 7)}{'golden' if number % 3 else 'muddy'}" for number in range(30)]
    together = reranker.scores(QUERY, texts)
    assert together == pytest.approx([reranker.scores(QUERY, [text])[0] for text in texts], abs=1e-6)


def test_the_same_question_gets_the_same_answer(reranker: CrossEncoderRerank, folder: Path) -> None:
    """Scores are equal to the last digit when asked again, and when the model is loaded again."""
    texts = ["golden river", "muddy river", "the city", "a bridge"]
    first = reranker.scores(QUERY, texts)
    assert reranker.scores(QUERY, texts) == first
    assert CrossEncoderRerank(str(folder), 30, patience=LONG).scores(QUERY, texts) == first


def test_no_texts_give_no_scores(reranker: CrossEncoderRerank) -> None:
    """Nothing to judge is no error."""
    assert reranker.scores(QUERY, []) == []


def test_a_long_text_is_cut_at_the_limit(reranker: CrossEncoderRerank) -> None:
    """What lies beyond the model's limit does not count, and is no error."""
    padding = "the river " * LIMIT
    one, other = reranker.scores(QUERY, [f"{padding}golden", f"{padding * 100}muddy"])
    assert one == other


def test_a_long_query_leaves_room_for_the_text(reranker: CrossEncoderRerank) -> None:
    """A query longer than the model's limit does not push the text out."""
    golden, muddy = reranker.scores("what is the river " * 1000, ["golden", "muddy"])
    assert golden > muddy


def test_odd_texts_are_no_error(reranker: CrossEncoderRerank) -> None:
    """Empty texts, lone surrogates and words that the model does not know are scored like any other."""
    scores = reranker.scores("a \ud800 b", ["", "\udc00", "私は東京で", "party 🎉"])
    assert len(scores) == 4
    assert all(0.0 <= score <= 1.0 for score in scores)


def test_threads_share_a_cold_reranker(reranker: CrossEncoderRerank, folder: Path) -> None:
    """Sixteen threads that meet a cold model get the right scores."""
    shared = CrossEncoderRerank(str(folder), 30, patience=LONG)
    assert not shared.ready
    texts = [f"{'the ' * number}golden" for number in range(16)]
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda text: shared.scores(QUERY, [text])[0], texts))
    assert shared.ready
    assert found == pytest.approx(reranker.scores(QUERY, texts), abs=1e-6)


@pytest.mark.parametrize("activation", ["torch.nn.modules.activation.Sigmoid", "torch.nn.modules.linear.Identity"])
def test_a_saved_activation_is_not_applied_twice(copy: Path, reranker: CrossEncoderRerank, activation: str) -> None:
    """Whether a model was saved with a sigmoid or without, its scores are the sigmoid of its logits."""
    config = json.loads((copy / "config.json").read_text(encoding="utf-8"))
    config["sentence_transformers"] = {"activation_fn": activation}
    (copy / "config.json").write_text(json.dumps(config), encoding="utf-8")
    texts = ["the river is golden", "the river is muddy"]
    assert CrossEncoderRerank(str(copy), 30).scores(QUERY, texts) == reranker.scores(QUERY, texts)


def test_a_model_saved_by_the_library_is_loaded(folder: Path, tmp_path: Path, reranker: CrossEncoderRerank) -> None:
    """A folder as sentence-transformers itself saves it gives the same scores."""
    from sentence_transformers import CrossEncoder

    CrossEncoder(str(folder), local_files_only=True).save(str(tmp_path / "saved"))
    assert (tmp_path / "saved" / "config_sentence_transformers.json").is_file()
    saved = CrossEncoderRerank(str(tmp_path / "saved"), 30)
    assert saved.scores(QUERY, ["golden", "muddy"]) == reranker.scores(QUERY, ["golden", "muddy"])


# What can be wrong


def test_a_missing_folder_is_said_plainly(tmp_path: Path) -> None:
    """A path that leads nowhere, or to a folder without a model, gives the plain error."""
    with pytest.raises(ModelUnusable, match="There is no model folder"):
        CrossEncoderRerank(str(tmp_path / "nowhere"), 30).warm()
    with pytest.raises(ModelUnusable, match="holds no model"):
        CrossEncoderRerank(str(tmp_path), 30).warm()


def test_an_embedding_model_is_refused(tiny_model: Path) -> None:
    """An embedding model given by mistake is refused instead of answering at random."""
    with pytest.raises(ModelUnusable, match="it is no cross-encoder"):
        CrossEncoderRerank(str(tiny_model), 30).warm()


def test_a_declared_embedding_model_is_refused(copy: Path) -> None:
    """What the library saved as an embedding model is refused, whatever its architecture."""
    about = copy / "config_sentence_transformers.json"
    about.write_text('{"model_type": "SentenceTransformer"}', encoding="utf-8")
    with pytest.raises(ModelUnusable, match="it is no cross-encoder"):
        CrossEncoderRerank(str(copy), 30).warm()


def test_a_classifier_of_several_labels_is_refused(tmp_path: Path) -> None:
    """A cross-encoder that gives a pair three scores says nothing of relevance."""
    with pytest.raises(ModelUnusable, match="a pair gets 3 scores, not 1"):
        CrossEncoderRerank(str(build(tmp_path / "three", labels=3)), 30).warm()


@pytest.mark.parametrize("text", ["", "{", "[1]", "no json at all"])
@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"])
def test_a_damaged_file_is_said_plainly(copy: Path, name: str, text: str) -> None:
    """Whichever file is damaged, loading fails with the plain error, and the folder is named."""
    (copy / name).write_text(text, encoding="utf-8")
    with pytest.raises(ModelUnusable) as caught:
        CrossEncoderRerank(str(copy), 30).warm()
    assert str(copy) in str(caught.value)


def test_truncated_weights_are_said_plainly(copy: Path) -> None:
    """A download that was cut off is no traceback."""
    weights = copy / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ModelUnusable, match="cannot load the model"):
        CrossEncoderRerank(str(copy), 30).warm()


def test_a_failure_at_work_is_said_plainly(copy: Path) -> None:
    """A model whose tokenizer does not belong to it fails while scoring, with the plain error, and can be asked on."""
    tokenizer = json.loads((copy / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["model"]["vocab"]["golden"] = 4_000
    (copy / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    foreign = CrossEncoderRerank(str(copy), 30)
    with pytest.raises(ModelUnusable, match="The reranker failed at its work: "):
        foreign.scores(QUERY, ["golden"])
    assert len(foreign.scores(QUERY, ["muddy"])) == 1


def test_slowness_is_given_up_on(folder: Path) -> None:
    """After its patience the reranker begins no further batch, and says which settings to change."""
    hasty = CrossEncoderRerank(str(folder), 30, patience=0.0)
    with pytest.raises(ModelUnusable, match=r"8 of 20 passages\. Set RECOLLECT_RERANK to a smaller model"):
        hasty.scores(QUERY, ["golden"] * 20)
    assert len(hasty.scores(QUERY, ["golden"] * 8)) == 8


def test_whoever_waits_too_long_for_others_gives_up(folder: Path) -> None:
    """While another recall keeps the reranker busy, this one waits no longer than its patience."""
    hasty = CrossEncoderRerank(str(folder), 30, patience=0.0)
    hasty.warm()
    with hasty._scoring, pytest.raises(ModelUnusable, match="busy with other recalls"):
        hasty.scores(QUERY, ["golden"])
    assert len(hasty.scores(QUERY, ["golden"])) == 1


# Where it comes from, and when


def test_no_name_means_no_reranker() -> None:
    """The empty setting opens none."""
    assert open_rerank("") is None


def test_nothing_heavy_is_imported_before_loading(python: Callable) -> None:
    """Opening a reranker imports neither torch nor the libraries behind it."""
    code = (
        "import sys; from recollect.engines.cross_encoder import open_rerank\n"
        "opened = open_rerank('acme/reranker')\n"
        "heavy = ('torch', 'sentence_transformers', 'transformers', 'huggingface_hub', 'tokenizers')\n"
        "print(opened.model, opened.top, opened.ready, [name for name in heavy if name in sys.modules])"
    )
    done = python(code)
    assert done.stdout.strip() == "acme/reranker 30 False []", done.stderr


@pytest.mark.full
def test_an_unreachable_hub_is_said_plainly(python: Callable) -> None:
    """An id that cannot be had ends in one sentence."""
    code = (
        "from recollect.engines.cross_encoder import open_rerank\n"
        "from recollect.errors import ModelUnusable\n"
        "try: open_rerank('acme/nothing@' + 'a1' * 20).warm()\n"
        "except ModelUnusable as error: print(error)"
    )
    done = python(code, **UNREACHABLE)
    said = "The model `acme/nothing` is not in the hub's cache and the Hugging Face hub cannot be reached"
    assert done.stdout == f"{said} (or HF_HUB_OFFLINE is set).\n"
    assert done.stderr == ""


def test_a_reranker_of_the_hub_names_its_revision() -> None:
    """Without a commit the hub could serve other weights at any time, so it is not even asked."""
    for name in ("acme/tiny", "acme/tiny@main"):
        with pytest.raises(ModelUnusable, match="needs its revision"):
            open_rerank(name).warm()


@pytest.mark.full
def test_the_hub_cache_serves_offline(folder: Path, tmp_path: Path, python: Callable) -> None:
    """A reranker that was fetched once is loaded without the hub."""
    keep_in_hub(tmp_path / "hub", "acme/tiny", REVISION, folder)
    code = (
        "from recollect.engines.cross_encoder import open_rerank\n"
        f"golden, muddy = open_rerank('acme/tiny@{REVISION}').scores('what', ['golden', 'muddy'])\n"
        "print(golden > muddy)"
    )
    done = python(code, **UNREACHABLE)
    assert done.stdout.strip() == "True", done.stderr


def test_a_models_folder_comes_before_the_hub(folder: Path) -> None:
    """A folder below the models folder that has the id's last part as its name serves."""
    opened = open_rerank("acme/tiny", folder.parent)
    assert opened is not None
    assert len(opened.scores(QUERY, ["golden"])) == 1


def test_loading_in_the_background(folder: Path) -> None:
    """An attempt in the background makes it ready, and nothing failed."""
    opened = CrossEncoderRerank(str(folder), 30)
    attempt = opened.begin()
    assert not opened.wait(0.0)
    attempt()
    assert opened.wait(0.0)
    assert (opened.ready, opened.failure) == (True, "")


def test_a_failure_in_the_background_is_kept(tmp_path: Path) -> None:
    """What kept the model from loading is kept as a sentence, and asking again tells it again."""
    opened = CrossEncoderRerank(str(tmp_path / "nowhere"), 30)
    opened.begin()()
    assert not opened.ready
    assert opened.failure == f"There is no model folder {tmp_path / 'nowhere'}."
    with pytest.raises(ModelUnusable, match="There is no model folder"):
        opened.scores(QUERY, ["golden"])
