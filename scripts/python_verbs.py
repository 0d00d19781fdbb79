"""Write `client/verbs.pyi`, what type checkers know of the methods of a connection, from the table of verbs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from enum import Enum
from inspect import Parameter
from pathlib import Path
from textwrap import dedent, fill, indent
from types import UnionType
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from recollect.client import verbs
from recollect.domain.fields import id_as_text
from recollect.domain.verbs import VERBS, Verb
from recollect.doors.handlers import HANDLERS

TYPES: Final = Path(verbs.__file__).with_suffix(".pyi")
WIDTH: Final = 120
_ROOM: Final = "recollect.domain."


class Stub:
    """Collects the types that the signatures name, each of which is imported or declared once."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.choices: dict[type[Enum], str] = {}

    def taken(self, kind: Any, *marks: Any) -> str:
        """Return what may be given for a field of this type."""
        origin, inner = get_origin(kind), get_args(kind)
        if origin is Annotated:
            return self.taken(inner[0], *inner[1:], *marks)
        if origin in (Union, UnionType):
            return " | ".join(dict.fromkeys(part for one in inner for part in self.taken(one, *marks).split(" | ")))
        if origin is Literal:
            return f"Literal[{', '.join(f'{self._default(one)}, {str(one)!r}' for one in inner)}]"
        if origin in (tuple, list, frozenset):
            return f"Sequence[{self.taken(inner[0])}]"
        if kind is str and any(getattr(one, "func", None) is id_as_text for one in marks):
            return "str | int"
        if kind is datetime:
            return "datetime | date | str"
        if isinstance(kind, type) and issubclass(kind, Enum):
            self.choices[kind] = f"Literal[{', '.join(repr(str(one)) for one in kind)}]"
            return f"{self.named(kind)} | {kind.__name__}Word"
        return self.named(kind)

    def named(self, kind: Any) -> str:
        """Return a type as the stub writes it."""
        if inner := get_args(kind):
            return f"{self.named(get_origin(kind))}[{', '.join(self.named(one) for one in inner)}]"
        if kind in (None, type(None)):
            return "None"
        if kind is Any:
            return "Any"
        if kind.__module__ == "builtins":
            return str(kind.__name__)
        module = kind.__module__.removeprefix(_ROOM)
        self.modules.add(module)
        return f"{module}.{kind.__name__}"

    def method(self, verb: Verb, opening: str) -> str:
        """Return the declaration of a method."""
        hints = get_type_hints(verb.request, include_extras=True)
        words = ["self", *_starred(verbs.parameters(verb), lambda one: self._parameter(one, hints[one.name]))]
        answer = self.named(verb.answer)
        about = fill(f'"""{_summary(verb)}"""', WIDTH - 8)
        return f"{opening} {verb.name}({', '.join(words)}) -> {answer}:\n{indent(about, '    ')}\n"

    def _parameter(self, one: Parameter, kind: Any) -> str:
        default = "" if one.default is Parameter.empty else f" = {self._default(one.default)}"
        return f"{one.name}: {self.taken(kind)}{default}"

    def _default(self, value: Any) -> str:
        return f"{self.named(type(value))}.{value.name}" if isinstance(value, Enum) else repr(value)


def _starred(taken: list[Parameter], written: Callable[[Parameter], str]) -> Iterator[str]:
    """Yield parameters as they are written, with a star before those that are given by name."""
    starred = False
    for one in taken:
        if one.kind is Parameter.KEYWORD_ONLY and not starred:
            starred = True
            yield "*"
        yield written(one)


def _summary(verb: Verb) -> str:
    return dedent(HANDLERS[verb.name].__doc__ or "").partition("\n")[0]


def stub() -> str:
    """Return the text of the file."""
    made = Stub()
    classes = []
    for name, opening, how in (("Verbs", "def", "waits for its answer"), ("AsyncVerbs", "async def", "is awaited")):
        methods = "\n".join(indent(made.method(verb, opening), "    ") for verb in VERBS)
        classes.append(f'class {name}:\n    """A method for each verb, which {how}."""\n\n{methods}')
    words = [f"{kind.__name__}Word: TypeAlias = {text}" for kind, text in made.choices.items()]
    modules = ", ".join(sorted(made.modules))
    head = [
        '"""The methods of a connection for type checkers, written by `scripts/python_verbs.py`."""\n',
        "from collections.abc import Sequence",
        "from datetime import date, datetime",
        "from inspect import Parameter",
        "from typing import Any, Literal, TypeAlias\n",
        f"from recollect.domain import {modules}",
        "from recollect.domain.verbs import Verb\n",
        *words,
        "\ndef parameters(verb: Verb) -> list[Parameter]: ...\n",
    ]
    format_as_ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", TYPES, "-"]
    text = "\n".join([*head, *classes])
    return subprocess.run(format_as_ruff, input=text, capture_output=True, text=True, check=True).stdout


if __name__ == "__main__":
    TYPES.write_text(stub(), encoding="utf-8")
