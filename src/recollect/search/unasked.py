"""Memories that are shown to an agent that did not ask: what recall finds with a match that is nearly sure.

A search that was asked for may show what is doubtful; here every line costs the reader, so most prompts get nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final

from recollect.app import App
from recollect.domain.enums import OF_SESSION
from recollect.domain.requests import Caller, Query
from recollect.domain.results import Memory
from recollect.prompt.fence import may_show_unasked
from recollect.search.candidates import FIRST, snapshot_for
from recollect.search.hits import ranking_of
from recollect.search.match import STRONG
from recollect.text.prompts import without_agent_blocks

LEAST: Final = STRONG
"""Match (0–1) from which a memory is shown unasked: of these four in five helped, in recordings that chose it."""

_BEGINNING, _ENDING = 700, 300  # characters of a long prompt that say what it wants
_MARKUP: Final = re.compile(r"```.*?(?:```|\Z)|<[^<>]{1,80}>", re.DOTALL)
_COMMAND: Final = re.compile(r"\s*[/!#][\w:-]+(?:\s|\Z)")


def sure_matches(
    app: App, text: str, caller: Caller, known: Mapping[int, datetime] = MappingProxyType({})
) -> list[Memory]:
    """Return the public, current memories that answer a prompt or a failure nearly for sure, the best first.

    Left out are memories that the agent has before it as they are (`known` says since when), memories that have a newer
    version or that a person denied, summaries of sessions, and all drafts except a rule in a person's own words.
    """
    question = question_of(text)
    if not question:
        return []
    query = Query(query=question, limit=FIRST)
    with snapshot_for(app, query, caller) as seen:
        hits = ranking_of(app, query, seen.model_copy(update={"condensed": False})).hits
    sure = [hit.memory for hit in hits if hit.match >= LEAST and hit.older_than is None and hit.contradicts is None]
    speaking = [one for one in sure if one.speaks_unasked and one.type not in OF_SESSION and may_show_unasked(one)]
    return [one for one in speaking if one.id not in known or one.updated_at > known[one.id]]


def question_of(prompt: str) -> str:
    """Return the text to search for: the prompt without markup and agents' additions, of a long prompt both ends.

    It is empty for a command, which nothing is searched for.
    """
    prompt = without_agent_blocks(prompt)
    if _COMMAND.match(prompt):
        return ""
    bare = " ".join(_MARKUP.sub(" ", prompt).split()) or " ".join(prompt.split())
    if len(bare) > _BEGINNING + _ENDING:
        bare = f"{bare[:_BEGINNING].rpartition(' ')[0]} … {bare[-_ENDING:].partition(' ')[2]}"
    return bare
