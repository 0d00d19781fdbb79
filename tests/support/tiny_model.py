"""A real model of sentence-transformers, tiny, random and always the same, of the build of the multilingual one.

It is a BERT encoder over a Unigram tokenizer, and serves wherever a test needs a model that is not the default one.
"""

from __future__ import annotations

import json
import string
from pathlib import Path

ID = "acme/tiny-polyglot"
WIDTH = 384  # as the card of the multilingual model says
LIMIT = 24  # tokens, special ones included
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
    "1_Pooling/config.json": {"word_embedding_dimension": WIDTH, "pooling_mode_mean_tokens": True},
    "sentence_bert_config.json": {"max_seq_length": LIMIT, "do_lower_case": False},
    "tokenizer_config.json": {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"},
    },
}


def build(folder: Path) -> Path:
    """Write the model into `folder`, as the hub has it, and return the folder."""
    import torch
    from transformers import BertConfig, BertModel

    (folder / "1_Pooling").mkdir(parents=True)
    size = _tokenizer(folder / "tokenizer.json")
    shape = {"hidden_size": WIDTH, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 64}
    with torch.random.fork_rng():
        torch.manual_seed(7)
        config = BertConfig(vocab_size=size, max_position_embeddings=130, initializer_range=0.5, **shape)
        BertModel(config).save_pretrained(folder)
    for name, content in _SIDE_FILES.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


def write_card(folder: Path, **changes: str | int) -> None:
    """Lay a card into a folder of models: that of the tiny model, but for `changes`."""
    card: dict[str, str | int] = {"id": ID, "revision": "tiny", "dimensions": WIDTH, "max_tokens": LIMIT}
    card |= {"pooling": "mean", "licence": "Apache-2.0"} | changes
    folder.mkdir(parents=True, exist_ok=True)
    lines = [f"{name} = {json.dumps(value)}" for name, value in card.items()]
    (folder / "card.toml").write_text("\n".join(lines), encoding="utf-8")


def keep_in_hub(home: Path, model: str, revision: str, folder: Path) -> None:
    """Let the hub's cache in `home`, which HF_HOME names, hold the files of `folder` as one revision of a model."""
    snapshots = home / "hub" / f"models--{model.replace('/', '--')}" / "snapshots"
    snapshots.mkdir(parents=True)
    (snapshots / revision).symlink_to(folder)


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
