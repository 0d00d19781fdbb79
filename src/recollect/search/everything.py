"""Questions about everything, such as "what do you remember about this project?": a list answers them."""

from __future__ import annotations

import re
from typing import Final

from recollect.domain.enums import FactType
from recollect.text.normalization import fold
from recollect.text.terms import STOP_WORDS

EVERYTHING: Final = "*"
"""A query that names no subject, as a filter without any query does."""

_WORD: Final = re.compile(r"[^\W_]+")
_KINDS: Final = {
    "decision": FactType.DECISION,
    "decisions": FactType.DECISION,
    "preference": FactType.PREFERENCE,
    "preferences": FactType.PREFERENCE,
}
_NO_SUBJECT: Final = frozenset(
    "all any anything everything every list show give tell summary summarise summarize overview context memory "
    "memories remember remembered recall know known knows learn learnt learned store stored saved save note notes far "
    "project repo repository codebase here current important relevant team rules rule start begin work".split()
)
"""Words that name no subject: whoever uses no other word asks for everything."""


def kind_asked_for(query: str) -> FactType | None:
    """Return the kind of knowledge that a question about everything names, None where it names none."""
    return next((_KINDS[word] for word in _words(query) if word in _KINDS), None)


def asks_for_everything(query: str) -> bool:
    """Say whether a question names no subject: `*`, `everything`, `decisions`, or one in such words alone."""
    found = _words(query)
    return query.strip() == EVERYTHING or (bool(found) and all(word in _NO_SUBJECT or word in _KINDS for word in found))


def _words(query: str) -> list[str]:
    """Return the folded words of a query that say something."""
    return [word for word in _WORD.findall(fold(query)) if word not in STOP_WORDS]
