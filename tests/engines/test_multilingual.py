"""The multilingual model: its card, and its architecture (a BERT encoder over a Unigram tokenizer) at a tiny size.

The real weights are 471 MB and in no package, so a small random model of the same build takes the very same way:
from a folder with a card, through onnxruntime and through sentence-transformers, into a store.
"""

from __future__ import annotations

import json
import shutil
import string
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from callers import ADA
from places import ROOT
from recollect import App, Draft, Query, Settings, recall, remember
from recollect.domain.search import ModelCard
from recollect.engines.embedding import OnnxEmbedder, SentenceTransformersEmbedder, find_card, open_embedder
from recollect.engines.embedding.weights import file_hash
from recollect.errors import ModelMismatch, ModelUnusable
from recollect.memory.prepare_write import stamps_of
from stores import open_app
from text_vectors import vectors

pytestmark = pytest.mark.slow

NAME = "paraphrase-multilingual-MiniLM-L12-v2"
ID = "acme/tiny-polyglot"
TEXTS = [
    "The database is backed up every night",
    "我们的主数据库部署在东京机房。",
    "データベースのバックアップは毎晩実行される",
    "Ёлку поставили в серверной, ключ у Фёдора",
    "مُحَمَّد يعمل في إدارة قواعد البيانات",
    "हिन्दी में लिखा गया दस्तावेज़",
    "เราสำรองฐานข้อมูลทุกคืน",
    "우리는 매주 화요일에 백업합니다",
    "rocket 🚀 and 👨‍👩‍👧",
    "",
]

_SIDE_FILES = {  # what the hub has beside weights and tokenizer
    "modules.json": [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
    ],
    "1_Pooling/config.json": {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True},
    "sentence_bert_config.json": {"max_seq_length": 24, "do_lower_case": False},
    "tokenizer_config.json": {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"},
    },
}


def _tokenizer(path: Path) -> int:
    """Write a Unigram tokenizer as XLM-R's, learnt from the texts alone, and return the size of its vocabulary."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.UnigramTrainer(
        vocab_size=400, special_tokens=special, unk_token="<unk>", show_progress=False, shrinking_factor=0.75
    )
    tokenizer.train_from_iterator([*TEXTS, string.ascii_letters, "query: passage: "] * 4, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[(one, tokenizer.token_to_id(one)) for one in ("<s>", "</s>")]
    )
    tokenizer.enable_truncation(128)  # as the published file has it; whoever reads it must undo it
    tokenizer.enable_padding(pad_id=1, pad_token="<pad>")
    tokenizer.save(str(path))
    return int(tokenizer.get_vocab_size())


def _card(folder: Path, **changes: object) -> ModelCard:
    card = ModelCard(
        id=ID,
        revision="tiny",
        dimensions=32,
        max_tokens=24,
        pooling="mean",
        licence="Apache-2.0",
        sha256=file_hash(folder / "model.safetensors"),
        runtime="onnx",
        query_prompt="query: ",
        document_prompt="passage: ",
    )
    card = replace(card, **changes)
    shown = ("id", "revision", "dimensions", "max_tokens", "pooling", "licence", "sha256", "runtime")
    lines = [f"{name} = {json.dumps(getattr(card, name))}" for name in (*shown, "query_prompt", "document_prompt")]
    (folder / "card.toml").write_text("\n".join(lines), encoding="utf-8")
    return card


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a models folder with a tiny model of the multilingual build, random but always the same."""
    import torch
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("models") / "tiny-polyglot"
    folder.mkdir()
    size = _tokenizer(folder / "tokenizer.json")
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    with torch.random.fork_rng():
        torch.manual_seed(7)
        config = BertConfig(vocab_size=size, max_position_embeddings=64, initializer_range=0.5, **shape)
        BertModel(config).save_pretrained(folder)
    for name, content in _SIDE_FILES.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    _card(folder)
    return folder.parent


@pytest.fixture
def polyglot(models: Path, tmp_path: Path) -> OnnxEmbedder:
    """Open the tiny model as the real one is opened: by its card, with onnxruntime."""
    opened = open_embedder("tiny-polyglot", models, tmp_path / "cache")
    assert isinstance(opened, OnnxEmbedder)
    return opened


@pytest.mark.parametrize("model", [NAME, f"sentence-transformers/{NAME}"])
def test_the_card_is_found(model: str) -> None:
    """The multilingual model has a card, by its folder's name and by its id, that pins one revision and one file."""
    card = find_card(model)
    assert card is not None
    assert (card.dimensions, card.max_tokens, card.pooling, card.runtime) == (384, 128, "mean", "onnx")
    assert (card.licence, card.query_prompt, card.document_prompt) == ("Apache-2.0", "", "")
    assert (len(card.revision), len(card.sha256)) == (40, 64)
    assert set(card.revision + card.sha256) <= set(string.hexdigits.lower())


def test_every_card_is_in_the_wheel() -> None:
    """Whoever installs Recollect has what this checkout knows of every model: its card, and what was fitted for it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    known = {
        path.relative_to(ROOT).as_posix()
        for name in ("card.toml", "fusion.json", "adapter.safetensors")
        for path in (ROOT / "models").glob(f"*/{name}")
    }
    assert f"models/{NAME}/card.toml" in known
    assert included == {path: f"recollect/{path}" for path in known}


def test_its_weights_are_nowhere_but_on_the_hub(tmp_path: Path, python: Callable) -> None:
    """Without its weights the model is an error that says where they may lie, before anything is written."""
    code = (
        "import sys; from pathlib import Path; from recollect.engines.embedding import open_embedder\n"
        "from recollect.errors import ModelUnusable\n"
        f"try: open_embedder({NAME!r}, None, Path(sys.argv[1])).warm()\n"
        "except ModelUnusable as error: print(error)"
    )
    done = python(code, tmp_path / "cache", HF_HUB_OFFLINE="1")
    for part in (NAME, "models", "hub", "model.safetensors", "online"):
        assert part in done.stdout, done.stderr
    assert not (tmp_path / "cache").exists()


@pytest.mark.full
def test_both_runtimes_agree_over_a_unigram_tokenizer(polyglot: OnnxEmbedder, models: Path) -> None:
    """The graph of a BERT encoder with XLM-R's tokens gives sentence-transformers' vectors, in every language."""
    reference = open_embedder(str(models / "tiny-polyglot"), None, models)
    assert isinstance(reference, SentenceTransformersEmbedder)
    for kind in ("query", "document"):
        rows = vectors(polyglot, [*TEXTS, " ".join(TEXTS)], kind)
        theirs = vectors(reference, [*TEXTS, " ".join(TEXTS)], kind)
        assert (rows.dtype, rows.shape) == (np.float32, (len(TEXTS) + 1, 32))
        assert (rows * theirs).sum(axis=1).min() > 0.9999
    for text in TEXTS:
        assert polyglot.spans(text) == reference.spans(text)


@pytest.mark.full
def test_prompts_are_put_in_front(polyglot: OnnxEmbedder, models: Path, tmp_path: Path) -> None:
    """A query and a document get the card's prompts, so that the same words are two vectors."""
    bare = OnnxEmbedder(replace(polyglot.card, query_prompt="", document_prompt=""), models, tmp_path / "cache")
    for kind, prompt in (("query", "query: "), ("document", "passage: ")):
        np.testing.assert_allclose(
            vectors(polyglot, TEXTS, kind), vectors(bare, [prompt + one for one in TEXTS]), atol=1e-6
        )
    assert not np.allclose(vectors(polyglot, ["数据库"], "query"), vectors(polyglot, ["数据库"], "document"), atol=1e-3)


def test_spans_lie_in_the_text(polyglot: OnnxEmbedder) -> None:
    """Unigram tokens have character offsets too, in order and over the whole text, however long it is."""
    for text in TEXTS:
        spans = polyglot.spans(text * 20)
        assert all(0 <= start <= end <= len(text) * 20 for start, end in spans)
        assert [start for start, _ in spans] == sorted(start for start, _ in spans)
        assert {place for start, end in spans for place in range(start, end)} >= {
            place for place, one in enumerate(text * 20) if one.isalnum()
        }


def test_a_card_without_a_hash_is_no_way_around_it(models: Path, tmp_path: Path) -> None:
    """Without a sha256 in the card onnxruntime's way refuses; with another one both runtimes do."""
    card = find_card(ID, models)
    assert card is not None
    with pytest.raises(ModelUnusable, match="needs the sha256"):
        OnnxEmbedder(replace(card, sha256=""), models, tmp_path).warm()
    with pytest.raises(ModelUnusable, match="found"):
        OnnxEmbedder(replace(card, sha256="0" * 64), models, tmp_path).warm()
    assert not list(tmp_path.iterdir())


def test_an_unpinned_model_is_known_by_its_revision(models: Path, tmp_path: Path) -> None:
    """A card with no sha256 serves through sentence-transformers, and a store is stamped with its revision."""
    folder = tmp_path / "tiny-polyglot"
    shutil.copytree(models / "tiny-polyglot", folder)
    _card(folder, sha256="", runtime="sentence-transformers")
    opened = open_embedder("tiny-polyglot", tmp_path, tmp_path / "cache")
    assert isinstance(opened, SentenceTransformersEmbedder)
    assert vectors(opened, ["数据库"]).shape == (1, 32)
    assert stamps_of(opened) == {"model": ID, "revision": "tiny", "dimensions": "32"}


@pytest.fixture
def polyglot_settings(settings: Settings, models: Path) -> Settings:
    """Return settings of a store that the tiny model serves."""
    return settings.model_copy(update={"model": "tiny-polyglot", "models_dir": models})


def test_a_store_in_another_model_refuses_the_first(
    polyglot_settings: Settings, open_store: Callable[..., App]
) -> None:
    """A store made with this model recalls with it, and no other model may open it."""
    with open_app(polyglot_settings) as app:
        remember(app, Draft(content="我们的主数据库部署在东京机房。", key="tokyo"), ADA)
        assert app.embedder.wait(60)
        assert [hit.memory.key for hit in recall(app, Query(query="东京", min_score=0.0), ADA).hits] == ["tokyo"]
    with pytest.raises(ModelMismatch, match=f"{ID}.*recollect reindex"):
        open_store()
