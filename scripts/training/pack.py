"""Pack what an adapter of the embedding model learns from, so that any machine can fit it.

It reads the sets, cuts their memories as recall stores them, and lets a larger model, the teacher, read all texts.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

import numpy as np
import torch
import typer
from rich.console import Console
from rich.progress import track
from safetensors.numpy import load_file, save_file
from transformers import AutoModel, AutoTokenizer

from evaluation.sets import Question, Set, err, load, rows_of
from recollect.engines.embedding.cards import CARD_FILE, read_card
from recollect.engines.embedding.tokens import Tokens
from recollect.search.word_weights import rarity
from recollect.text.chunk import chunk
from recollect.text.normalization import fold
from recollect.text.speaker_names import name_words, transcript_speakers, without_names
from recollect.text.terms import STOP_WORDS, stem
from training import adapter, base
from training.adapter import Group
from training.parts import part_of

MODELS: Final = Path(__file__).resolve().parents[2] / "models"
TEACHER: Final = "all-mpnet-base-v2"
SIZE: Final = 128  # tokens of a chunk, and how many two of them share, as recall stores them
OVERLAP: Final = 16
MOST: Final = 40  # chunks of a memory
LONGEST: Final = 256  # tokens
CHARACTERS: Final = 2_000  # of a question
TOGETHER: Final = 32  # texts of about one length that the teacher reads at once
KEPT: Final = 256  # dimensions of the teacher's vectors, those that differ most
LOOSE: Final = frozenset(
    "tldr stackfaq qmsum cookbook_docs talks talk_passages talk_sessions".split()
    + "chats_friends chats_assistant chats_channel".split()
)
SHARES: Final = {"talks": 0.35, "talk_passages": 0.35, "talk_sessions": 0.35, "talk_facts": 0.7}
"""How many questions of a set a round sees; the talks ask the same of turns, passages and sessions."""
_WORD: Final = re.compile(r"\w+")
out = Console(width=160)


@dataclass
class Texts:
    """Texts by number, and for those that are asked how rare (0–1) each word is among how many memories."""

    all: list[str] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)
    asked: dict[int, tuple[Counter[str], int]] = field(default_factory=dict)

    def add(self, text: str) -> int:
        """Return the number of a text."""
        if text not in self.places:
            self.places[text] = len(self.all)
            self.all.append(text)
        return self.places[text]


def groups_of(one: Set, tokens: Tokens, texts: Texts) -> list[Group]:
    """Return the groups of a set that are asked something, with their memories cut as recall stores them."""
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows_of(one.folder / "corpus.jsonl"):
        if row["text"].strip():
            rows[row.get("group") or "all"].append(row)
    asked: dict[str, list[Question]] = defaultdict(list)
    for question in one.questions:
        asked[question.group].append(question)
    return [_group(one.name, name, rows[name], asked[name], tokens, texts) for name in rows if asked[name]]


def _group(
    name: str, group: str, rows: Sequence[dict[str, Any]], asked: Iterable[Question], tokens: Tokens, texts: Texts
) -> Group:
    speakers = {row["speaker"] for row in rows if row.get("speaker")}
    speakers |= {speaker for row in rows for speaker in transcript_speakers(row["text"])}
    uses = Counter(word for row in rows for word in {stem(fold(one)) for one in _WORD.findall(row["text"])})
    memories = []
    for row in rows:
        spans = chunk(row["text"], tokens.spans(row["text"]), SIZE, OVERLAP)
        memories.append([texts.add(row["text"][start:end]) for start, end in spans[:MOST]])
    places = {row["id"]: number for number, row in enumerate(rows)}
    questions = []
    for one in asked:
        number = texts.add(without_names(one.text[:CHARACTERS], {part for who in speakers for part in name_words(who)}))
        texts.asked[number] = (uses, len(rows))
        questions.append((number, sorted(places[answer] for answer in one.answers if answer in places)))
    answered = [(text, answers) for text, answers in questions if answers]
    part = part_of(name, group)
    return Group(f"{name}/{group}", memories, answered, name in LOOSE, SHARES.get(name, 1.0), part)


def pack(sets: Sequence[Set], place: Path, folder: Path, teacher: Path | None) -> None:
    """Write what `adapter` reads: texts as token ids with their weights, groups, and the base that lies in `folder`.

    Without a `teacher` the larger model is fetched from the Hugging Face hub, at the revision of its card.
    """
    tokens, texts = Tokens.read(folder / base.TOKENIZER), Texts()
    groups = [group for one in track(sets, "Cutting", console=err) for group in groups_of(one, tokens, texts)]
    ids, starts, plain, rare = [], [0], [], []
    for number, one in enumerate(tokens.tokenized(texts.all, LONGEST)):
        weights = np.zeros((2, len(one.ids)))
        weights[:, one.places] = _weights_of(texts, number, one.spans)
        ids.append(np.array(one.ids))
        starts.append(starts[-1] + len(one.ids))
        plain.append(weights[0])
        rare.append(weights[1])
    used, short = np.unique(np.concatenate(ids), return_inverse=True)
    halves = {name: np.concatenate(some).astype(np.float16) for name, some in (("plain", plain), ("rare", rare))}
    shown = {"ids": short.astype(np.uint16), "starts": np.array(starts, dtype=np.int32), "used": used.astype(np.int32)}
    place.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(place / adapter.TEXTS, **shown, **halves)
    (place / adapter.GROUPS).write_text(json.dumps([asdict(one) for one in groups]), encoding="utf-8")
    np.savez_compressed(place / adapter.TAUGHT, vectors=_narrowed(_taught(texts.all, teacher)))
    shutil.copy(folder / base.CONFIG, place / adapter.CONFIG)
    _save_base(folder / base.WEIGHTS, used, place / adapter.BASE)
    count = sum(len(one.questions) for one in groups)
    out.print(f"{count:,} questions, {len(texts.all):,} texts, {starts[-1]:,} tokens in {place}")


def _weights_of(texts: Texts, number: int, spans: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return what the tokens of a text weigh in late interaction: alike, and by how rare each word is; float[2, t]."""
    if number not in texts.asked:
        return np.ones((2, len(spans)))
    uses, size = texts.asked[number]
    text = texts.all[number]
    words = {place: fold(word[0]) for word in _WORD.finditer(text) for place in range(*word.span())}
    names = [words.get(start, "") for start, _ in spans]
    telling = [place for place, word in enumerate(names) if word and word not in STOP_WORDS] or [*range(len(names))]
    known = {names[place]: rarity(uses[stem(names[place])], size) for place in telling if uses[stem(names[place])]}
    rarest = max(known.values(), default=1.0) or 1.0
    found = np.zeros((2, len(spans)))
    found[0, telling] = 1 / max(len(telling), 1)
    found[1, telling] = [known.get(names[place], rarest) for place in telling]
    found[1] /= max(found[1].sum(), 1e-9)
    return found


def _taught(texts: Sequence[str], folder: Path | None) -> np.ndarray:
    """Return the larger model's unit vectors of all texts, float32[n, d]."""
    card = read_card(MODELS / TEACHER / CARD_FILE)
    source, revision = (card.id, card.revision) if folder is None else (str(folder), "main")
    model = AutoModel.from_pretrained(source, revision=revision).to(torch.bfloat16)
    tokenizer = AutoTokenizer.from_pretrained(source, revision=revision)
    order = sorted(range(len(texts)), key=lambda place: len(texts[place]))
    found = np.zeros((len(texts), model.config.hidden_size), dtype=np.float32)
    for start in track(range(0, len(order), TOGETHER), f"{TEACHER}: reading", console=err):
        some = order[start : start + TOGETHER]
        cut = [texts[place] for place in some]
        read = tokenizer(cut, padding=True, truncation=True, max_length=LONGEST, return_tensors="pt")
        with torch.no_grad():
            hidden = model(**read).last_hidden_state.float()
        mask = read["attention_mask"].unsqueeze(-1).float()
        found[some] = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1).numpy()
    return found


def _narrowed(vectors: np.ndarray) -> np.ndarray:
    """Return the principal dimensions of unit vectors as whole numbers of one byte, the largest of each 127."""
    _, axes = np.linalg.eigh(vectors.T @ vectors / len(vectors))
    shown = vectors @ axes[:, -KEPT:]
    found: np.ndarray = np.round(shown / np.abs(shown).max(1, keepdims=True) * 127).astype(np.int8)
    return found


def _save_base(weights: Path, used: np.ndarray, target: Path) -> None:
    """Write the base in half precision, with the vectors of used words only, as whole numbers with a scale each."""
    held = {name: one for name, one in load_file(weights).items() if "pooler" not in name and "_ids" not in name}
    words = held.pop("embeddings.word_embeddings.weight")[used].astype(np.float32)
    scale = np.abs(words).max(1) / 127
    short = {name: one.astype(np.float16) for name, one in held.items()}
    short["embeddings.word_embeddings.weight"] = np.round(words / scale[:, None]).astype(np.int8)
    save_file(short | {"scale": scale.astype(np.float32)}, target)


def main(
    folders: Annotated[list[Path], typer.Argument(help="Evaluation sets: folders with corpus, queries and qrels.")],
    target: Annotated[Path, typer.Option("--out", help="The folder that gets what `adapter` reads.")],
    folder: base.Base = None,
    teacher: Annotated[
        Path | None,
        typer.Option(
            help=f"Folder of {TEACHER}, as transformers reads it. Default: it is fetched from the Hugging Face hub."
        ),
    ] = None,
) -> None:
    """Read the sets, let the larger model read all their texts, and pack what `adapter` learns from."""
    pack(load(folders), target, base.base_folder(folder), teacher)
