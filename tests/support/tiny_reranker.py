"""A real cross-encoder, tiny and with weights set by hand: it likes passages that say `golden`, and dislikes `muddy`.

Attention is uniform and everything else the identity, so that the share of those words decides alone.
"""

from __future__ import annotations

from pathlib import Path

WORDS = ["golden", "muddy", "what", "is", "the", "river", "mountain", "forest", "city", "harbour", "bridge", ":", "."]
WIDTH = 16
LIMIT = 32


def build(folder: Path, *, labels: int = 1) -> Path:
    """Save the model in `folder` as the hub's cross-encoders are saved, and return the folder."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS]
    config = BertConfig(
        vocab_size=len(tokens),
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=WIDTH,
        max_position_embeddings=LIMIT,
        num_labels=labels,
    )
    model = BertForSequenceClassification(config)
    words = torch.randn(len(tokens), WIDTH, generator=torch.Generator().manual_seed(7))
    words[:, 0] = 0.0
    words[tokens.index("golden"), 0], words[tokens.index("muddy"), 0] = 4.0, -4.0
    with torch.no_grad():
        for name, weights in model.named_parameters():
            weights.fill_(float("LayerNorm.weight" in name))
        model.bert.embeddings.word_embeddings.weight.copy_(words)
        layer = model.bert.encoder.layer[0].attention
        for square in (layer.self.value, layer.output.dense, model.bert.pooler.dense):
            square.weight.copy_(torch.eye(WIDTH))
        model.classifier.weight[:, 0] = 10.0
    model.save_pretrained(folder)
    _tokenizer(tokens).save_pretrained(folder)
    return folder


def _tokenizer(tokens: list[str]) -> object:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    plain = Tokenizer(models.WordPiece({word: number for number, word in enumerate(tokens)}, unk_token="[UNK]"))
    plain.normalizer = normalizers.BertNormalizer()
    plain.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    plain.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    special = {"unk_token": "[UNK]", "pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    return PreTrainedTokenizerFast(tokenizer_object=plain, model_max_length=LIMIT, **special)
