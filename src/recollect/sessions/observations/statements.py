"""Statements: what of a prompt states a rule, a decision, a fact or a reason, apart from what it asks for.

A person writes short and loosely: a prompt is cut into sentences and clauses, and each is read by itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from recollect.text.normalization import fold

_BLOCK: Final = re.compile(
    r"<([\w-]{0,40}?memor(?:y|ies)[\w-]{0,40}+|system-reminder|environment_context|ide_\w+)\b[^>]{0,500}+>"
    r".*?(?:</\1>|\Z)",
    re.DOTALL,
)
_FENCED: Final = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_SENTENCE: Final = re.compile(r"(?<=[.!?…])\s+(?=\S)|\n+|(?<=;)\s+")
_ABBREVIATED: Final = re.compile(r"\b(?:e\.g|i\.e|etc|vs|approx|no|nr|ca|cf)\.$", re.IGNORECASE)

SIGNS: Final[Mapping[str, re.Pattern[str]]] = {
    "rule": re.compile(
        r"\b(?:stop (?:using|doing|adding|writing)|use \S+(?: \S+)?,? not|, not [\w-]+$|never|must(?: not)?|mustn'?t|"
        r"from now on|(?:the|a|one|our) rule|rule(?:s)? (?:for|is)|convention|policy|not allowed|forbidden|nowhere|"
        r"nothing (?:newer|older|else|under|may)|may not|may only|only ever|every (?:\w+ ){1,3}(?:has|have|gets?|"
        r"needs?|must|goes)|at most|at least|no (?:new |plain |more )?[\w./-]+(?: \w+)? (?:please|in|for|anymore|"
        r"without|on|under|outside|and no)|not? \w+ without|(?:do not|don'?t|dont) (?:ever )?(?:use|touch|edit|call|"
        r"run|add|commit|push|merge|rename|change|put|write|log|store|rely|trust|send|deploy|import|hard-?code|mock|"
        r"delete|remove|upgrade|bump|cache)|make (?:that|it|this) the|stick (?:to|with)|keep (?:it|to|the|using)|"
        r"should (?:never|always|only)|needs? to be|ha(?:s|ve) to be|is (?:the )?only|leave .{1,30} alone|everywhere|"
        r"nobody|no one|no \w+ for (?:that|this|it)|no \w+ and no|careful|beware|watch out|whoever)\b",
        re.IGNORECASE,
    ),
    "habit": re.compile(r"\b(?:always|any ?more|no more|only|every|until|please)\b", re.IGNORECASE),
    "decision": re.compile(
        r"\b(?:decision|decided|(?:let'?s|we(?:'ll| will)?|i'?ll|then|so|we're|we are) (?:go|going|use|using|take|"
        r"settle|stick|stay|keep|drop|switch|standardi[sz]e)\b|settled?|agreed|go with|going with|go for|go back to|"
        r"instead(?: of)?|rather than|we (?:use|chose|picked|want|prefer)|i (?:want|prefer|chose|picked)|final answer|"
        r"make (?:that|it|this)|switch(?:ed)? to|drop(?:ped)? (?:the )?\w+ and|approved|rejected|no way|"
        r"then (?:\w+ ){0,3}(?:for|on|against|with|it is)|so: )",
        re.IGNORECASE,
    ),
    "fact": re.compile(
        r"\b(?:heads up|fyi|my name is|i work (?:on|at|in|with|for)|we (?:deploy|build|test|store|log|release|ship|"
        r"call|name|host) \S+ (?:\S+ )?(?:with|in|to|on|by|as|from)|we (?:deploy|build|test|release|ship|"
        r"log) (?:with|in|to|on|from)|(?:is|are) (?:\w+ )?\d|note that|by the way|btw|for the record|"
        r"remember(?: that)?|(?:is|are|was|were) (?:the (?:new|old|only|one)|on|in|at|behind|under|owned|run|hosted|"
        r"called|named|used by|used for|not|always|stored|kept|generated|pinned|limited|supported|managed)\b|"
        r"lives? (?:in|on|at|under)|stays?|remains?|go(?:es)? (?:into|through|via|over|to the|in)|may (?:retry|use|"
        r"take|run|have)|runs? (?:on|in|through|under|behind|every|at|as)|belongs? to|comes? from|there (?:is|"
        r"are) (?:no|only|a|two|three)|we (?:have|had|promised|run|host|support|ship|pay)|they (?:run|use|have|need)|"
        r"(?:people|customers|users|clients) (?:\w+ )?(?:run|use|have|need|still)|on port|port \d+|listens? on|"
        r"half (?:of )?(?:our|the|their))\b",
        re.IGNORECASE,
    ),
    "replacement": re.compile(
        r"\b(?:no longer|not? (?:\w+ )?any ?more|(?:is|are|was|were) (?:gone|history|dead|retired|replaced|obsolete|"
        r"deprecated|shut down|decommissioned|switched off)|moved (?:\w+ ){0,6}to|migrated (?:\w+ ){0,4}to|replaced|"
        r"forget (?:the|about|that|what)|landed|used to be|instead of the old|switched (?:\w+ ){0,4}(?:to|over)|"
        r"renamed|now (?:comes|lives|runs|uses|needs|goes|in|on|at)|as of)\b",
        re.IGNORECASE,
    ),
    "reason": re.compile(
        r"\b(?:because|since|otherwise|so that|so (?:the|this|it|we|they|nothing|nobody)|as (?:the|it|they|we)|"
        r"that is why|the reason|due to|or else|in case|needs? the|would|will (?:\w+ )?(?:break|fail|deadlock|"
        r"overwrite|be)|can'?t|cannot|costs?|we had that|ended up|came back|promised)\b",
        re.IGNORECASE,
    ),
    "preference": re.compile(
        r"\b(?:i (?:prefer|like|hate|don'?t like|want)|we (?:prefer|like)|please(?: always| no| keep| use)?|"
        r"my (?:team|machine|laptop|editor|shell))\b",
        re.IGNORECASE,
    ),
    "limit": re.compile(
        r"\b(?:under|below|within|at most|at least|no more than|less than|more than|up to|max(?:imum)?|min(?:imum)?|"
        r"after|every|against|until)\s+(?:[^\W\d]+\s*)?\d|\b\d+(?:\.\d+)?\s?(?:ms|s|sec(?:ond)?s?|min(?:ute)?s?|hours?|days?|"
        r"weeks?|%|[KMG]i?B|gb|mb|p|px|cents?|requests?|rows?)\b",
        re.IGNORECASE,
    ),
    "name": re.compile(
        r"`[^`]+`|\b\w+_\w+\b|\b[\w-]{1,60}/[\w./-]+|\b[a-z]+[A-Z]\w+|--\w[\w-]+|\b\w+=\S+|\b[\w-]{1,60}\.\w{2,5}\b"
    ),
    "question": re.compile(
        r"\?\s*$|^(?:(?:and|so|but|ok) )?(?:why|what|where|when|which|who|how)\b|^(?:is|are|does|do|did|can|could|"
        r"would|should|any)\b.*\?|\b(?:find out|no idea|any idea|not sure|wonder|see what|look (?:at|into))\b",
        re.IGNORECASE,
    ),
    "task": re.compile(
        r"^(?:(?:ok(?:ay)?|now|next(?: one)?|then|please|also|and|first|so|great|good|lovely|quick one|"
        r"different thing|last (?:topic|thing)|hi|morning|hey|can you|could you|let'?s)[\s,:;.!-]+)*(?:add|fix|run|"
        r"check|write|build|implement|create|make|update|look|find|see|reproduce|profile|measure|try|test|deploy|put|"
        r"show|explain|read|commit|push|pull|merge|rebase|clean|remove|delete|rename|refactor|investigate|debug|"
        r"compare|get|give|tell|open|review|bump|upgrade|install|set up|start|stop|restart|continue|go (?:on|ahead)|"
        r"do|revert|list|migrate|now|next)\b",
        re.IGNORECASE,
    ),
    "complaint": re.compile(
        r"\b(?:says?|shows?|gives?|takes?|fails?|failing|broken|red|crash\w*|slow|hangs?|stuck|twice|wrong|weird|"
        r"error|(?:does|did)(?:n'?t| not)|isn'?t|won'?t|killed|arrives?|locks us out|flaky|ticket|bug|customer|"
        r"happens?|although|even though|for nothing|suddenly|still (?:\w+ )?(?:fails?|red|broken|slow)|raises?|reran|"
        r"nobody knows|every now and then|times? out|supposed to)\b",
        re.IGNORECASE,
    ),
    "chatter": re.compile(
        r"\b(?:thanks?|thank you|great work|nice|perfect|cool|see you|enough for today|that'?s all|bye|good night|"
        r"off for|tomorrow|next week|bis morgen|super|lovely|great|good|awesome|cheers|well done|go ahead|yes|"
        r"continue|sounds good|lgtm|morning|hello|hi)\b",
        re.IGNORECASE,
    ),
}
"""What a clause of a prompt does, in English."""

STATING: Final = ("rule", "habit", "decision", "fact", "replacement", "reason", "preference", "limit")
_STATED: Final[Mapping[str, float]] = {
    "rule": 2.0,
    "habit": 0.8,
    "decision": 1.5,
    "fact": 1.2,
    "replacement": 1.5,
    "reason": 0.8,
    "preference": 0.5,
    "limit": 0.7,
    "name": 0.2,
    "question": -2.0,
    "task": -1.0,
    "complaint": -1.0,
    "chatter": -1.0,
}
_LEAST: Final = 0.9


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of a prompt, with the signs it has."""

    text: str
    signs: frozenset[str]

    @property
    def worth(self) -> float:
        """Return how much it states, below 0 for what only asks or complains."""
        return sum(_STATED[sign] for sign in self.signs)

    @property
    def states(self) -> bool:
        """Say whether it states something that holds later too."""
        return self.worth >= _LEAST and not self.signs.isdisjoint(STATING)


def statements(prompt: str) -> list[Statement]:
    """Return the sentences of a prompt in order, without fenced code and what an agent's program added."""
    return [Statement(one, _signs(one)) for one in _sentences(said(prompt))]


def asked(prompt: str, *, opens: bool = False) -> str:
    """Return what a prompt asks for or complains of, empty for one that does neither.

    A prompt that opens a topic tells what the work is about in any case: then it is all that the prompt says.
    """
    stated = statements(prompt)
    if not any(_asks(one) for one in stated):
        return " ".join(one.text for one in stated) if opens else ""
    return " ".join(one.text for one in stated if _asks(one) or not (one.states or "chatter" in one.signs))


def _asks(one: Statement) -> bool:
    return not one.states and bool(one.signs & {"task", "question", "complaint"}) and len(one.text.split()) >= 4


def said(prompt: str) -> str:
    """Return what the person wrote: a prompt without memory, reminders and other blocks put into it."""
    return _FENCED.sub(" ", _BLOCK.sub(" ", prompt)).strip()


def _sentences(text: str) -> list[str]:
    found: list[str] = []
    for one in _SENTENCE.split(text):
        bare = one.strip().lstrip("-*•> ").strip()
        if found and _ABBREVIATED.search(found[-1]):
            found[-1] = f"{found[-1]} {bare}"
        elif bare:
            found.append(bare)
    return found


def _signs(sentence: str) -> frozenset[str]:
    folded = fold(sentence)
    return frozenset(
        name for name, sign in SIGNS.items() if sign.search(sentence if name == "name" else folded.replace("’", "'"))
    )
