"""What each question to a language model costs: the tokens of what is really sent, on texts of a usual size.

Counted with the tokenizer of the default embedding model, as every language model has another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel
from rich.console import Console
from rich.table import Table

from recollect import Settings
from recollect.domain.transfer import Said
from recollect.engines.chat import TokenUse, instructions_of, prompt_of
from recollect.engines.describe import ChatDescribe
from recollect.engines.embedding import open_embedder
from recollect.engines.reconcile import ChatReconcile
from recollect.errors import ModelUnusable
from recollect.sessions import extract

A = TypeVar("A", bound=BaseModel)

PROSE: Final = " ".join(Path("README.md").read_text(encoding="utf-8").split())


@dataclass
class Listener:
    """A `Chat` that notes what it would send, and has no answer."""

    model: str = "none"
    sent: list[tuple[str, str, int]] = field(default_factory=list)

    def ask(self, task: str, text: object, answer: type[A], *, most: int) -> A:
        """Note the instructions, the text and the limit of the answer."""
        self.sent.append((instructions_of(task, answer), prompt_of(text), most))
        raise ModelUnusable("It only listens.")

    def used(self) -> TokenUse:
        """Return that nothing was used."""
        return TokenUse(0, 0, 0, 0, 0, 0)


def pieces(count: int, length: int) -> list[str]:
    """Return so many stretches of prose of so many characters."""
    return [PROSE[place * length : (place + 1) * length] for place in range(count)]


def main() -> None:
    """Ask each question once and print what was sent."""
    listener = Listener()
    describe = ChatDescribe(listener)
    part = next(extract._message_parts([Said(speaker="user", content=one) for one in pieces(24, 500)]))
    questions = {
        "decision about a duplicate, 300 characters beside three of 300": lambda: ChatReconcile(listener).choose(
            PROSE[:300], pieces(3, 300)
        ),
        "extraction of a part, 12,000 characters": lambda: extract._ask_for_candidates(listener, part),
        "abstract, overview, facts and entities of a text, 3,000 characters": lambda: describe.text(PROSE[:3_000]),
        "summary of a cluster, five memories of 400 characters": lambda: describe.together(pieces(5, 400)),
        "summary of a session, eight notes of 300 characters": lambda: describe.session(pieces(8, 300)),
    }
    settings = Settings()
    count = open_embedder(settings.model, settings.models_dir).counter()
    assert count is not None
    table = Table("question", "instructions", "text", "in all", "answer at most", "reserved")
    for name, ask in questions.items():
        try:
            ask()
        except ModelUnusable:
            task, text, most = listener.sent[-1]
            tokens = (count(task), count(text))
            reserved = len(task.encode()) + len(text.encode()) + 200 + most
            table.add_row(name, *map(str, (*tokens, sum(tokens), most, reserved)))
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
