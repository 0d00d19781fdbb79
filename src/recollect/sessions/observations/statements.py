"""Statements: what of a prompt states a rule, a decision, a fact or a reason, apart from what it asks for.

A person writes short and loosely: a prompt is cut into sentences and clauses, and each is read by itself.

Explanations: what the comments of a file, or the sentences of a document, say about why it is as it is.

Replacement: what a person says is gone, and whether a memory says to use just that.

It is sure only where the words of replacement name something, and the older memory has every one of those names, in its
subject or behind a word of use. What names the thing beside its own subject stays.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Final

from recollect.text.terms import STOP_WORDS, stem
from recollect.text.writing_systems import fold

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


_MARK: Final = re.compile(r"^\s*@?(?:#+!?|//+!?|--|/?\*+/?|<!--|;)(?P<said>.*)$")
_BEHIND: Final = re.compile(r"(?<=\s)(?:#|//)\s")  # code
_WHY: Final = re.compile(
    r"\b(?:never|always|must|only|not|because|since|otherwise|so that|needs?|requires?|do not|don'?t|instead|falls? "
    r"back|overrid\w+|careful|beware|note|important|temporar\w+|workaround|on purpose|deliberate\w*|by hand|"
    r"no longer|breaks?|fails?|until|unless|before|after|cannot|can'?t|would|without|history|rejected|limit\w*)\b",
    re.IGNORECASE,
)
_DOCUMENTS: Final = (".md", ".rst", ".txt", ".adoc", ".mdx")
_SHORTEST: Final = 4
_NO_PROSE: Final = re.compile(r"^#{1,6} |^\||^```")  # headings, tables and fences


def is_document(path: str) -> bool:
    """Say whether a file is prose for people."""
    return path.lower().endswith(_DOCUMENTS)


def explanations(text: str, path: str) -> list[str]:
    """Return the comments of a file that give a reason or a rule, each with the line of code that it stands before.

    Of a document these are its paragraphs that do.
    """
    blocks = _paragraphs(text) if is_document(path) else _comments(text)
    return [block for block in blocks if len(block.split()) >= _SHORTEST and _WHY.search(block)]


def _paragraphs(text: str) -> list[str]:
    lines = (line.strip() for line in text.split("\n"))
    groups = groupby(lines, key=lambda line: bool(line) and not _NO_PROSE.match(line))
    return [" ".join(group) for is_text, group in groups if is_text]


def _comments(text: str) -> list[str]:
    """Return the blocks of comment lines that explain, with the code after them, and the comments at a line's end."""
    found: list[str] = []
    block: list[str] = []
    for line in [*text.split("\n"), ""]:
        if (mark := _MARK.match(line)) and not line.startswith("#!"):
            block.append(mark["said"].rstrip().removesuffix("-->").removesuffix("*/").strip())
            continue
        said = " ".join(filter(None, block))
        if len(said.split()) >= _SHORTEST and _WHY.search(said):
            found.append(f"{said} (`{line.strip()}`)" if line.strip() and len(line) < 120 else said)
        block = []
        found += islice(_behind_code(line), 1)
    return found


def _behind_code(line: str) -> Iterator[str]:
    """Yield what a line of code says behind its last mark of a comment, and behind marks before that."""
    for mark in reversed(list(_BEHIND.finditer(line))[-_SHORTEST - 1 :]):
        code, said = line[: mark.start()].strip(), line[mark.end() :].strip()
        if code and len(said.split()) >= _SHORTEST:
            yield f"{said} (`{code}`)"


_PHRASE: Final = r"(?P<what>(?:[^.;:!?\n]|\.(?=\w)){3,80}?)"
_END: Final = r"(?=[;:,!?\n]|\.(?!\w)|$)"
_GONE: Final = (
    re.compile(
        rf"\bforget (?:about )?(?:the|that|about|our|what we said about) {_PHRASE}(?: thing| stuff| rule|"
        rf" part)?{_END}"
    ),
    re.compile(
        rf"(?:^|[.;:,!?\n]|\bso\b|\band\b|\bbut\b) ?{_PHRASE} (?:is|are|was|were|has been|have been) (?:now )?(?:gone|"
        rf"history|dead|retired|"
        r"obsolete|deprecated|replaced|removed|shut down|decommissioned|switched off|no longer|not used any ?more)\b"
    ),
    re.compile(
        rf"\b(?:no longer|don'?t|do not|never) (?:use|need|run|have|want|support) (?:the |a |any )?{_PHRASE}(?: any "
        rf"?more)(?=\W|$)"
    ),
    re.compile(rf"\bno longer (?:use|need|run|have|want|support)s? (?:the |a |any )?{_PHRASE}{_END}"),
    re.compile(
        rf"\b(?:replaced|dropped|removed|retired|killed) (?:the |our )?{_PHRASE}(?: (?:with|by|for|in favou?r of|"
        rf"completely)\b|{_END})"
    ),
    re.compile(rf"\b(?:moved|migrated|switched) (?:\w+ ){{0,4}}from (?:the |our )?{_PHRASE} (?:to|over)\b"),
    re.compile(rf"\binstead of the old {_PHRASE}{_END}"),
)
_NO_LONGER: Final = re.compile(
    rf"(?:^|[.;:!?\n]) ?(?P<subject>[^.;:!?\n]{{0,120}}?)\bno longer (?:\w+ )?(?P<link>from|with|by|via|through|in|on|"
    rf"to) (?:the |our )?{_PHRASE}(?=[;:,!?\n]|\.(?!\w)|$| (?:but|since|because|as|so|and)\b)"
)
_USING: Final = frozenset(
    "use uses using used run runs running start starts call calls need needs want wants support supports prefer choose "
    "deploy deploys build builds install import make with via from by through up to take takes".split()
)
_BESIDE: Final = 3  # words from such a word to a name, and of a sentence that are its subject
_CLAUSE: Final = re.compile(r"(?<=[.!?;:])\s+|\n+")
_AND: Final = re.compile(r",| and | or ")
_WORD: Final = re.compile(r"[\w][\w./+-]*[\w]|\w")
_EMPTY: Final = frozenset(
    "thing things stuff old new way anymore now rule part everything whole one ones entire completely used using use "
    "idea "
    "plan approach setup same current previous former today yesterday week".split()
)


@dataclass(frozen=True, slots=True)
class Gone:
    """The names of a thing that is gone; with a `link` only as what some `subject` was from, with or on."""

    names: frozenset[str]
    link: str = ""
    subject: frozenset[str] = frozenset()


def replaced(text: str) -> tuple[Gone, ...]:
    """Return each thing that a text says is gone; a thing without a name of its own is left out."""
    folded = fold(text).replace("’", "'")
    found: dict[Gone, None] = {}
    for pattern in (*_GONE, _NO_LONGER):
        for match in pattern.finditer(folded):
            said = match.groupdict()
            subject = frozenset(_names(said.get("subject", "")))
            for part in _AND.split(match["what"]):
                names = frozenset(_names(part))
                if names and (len(names) > 1 or any(re.search(r"[\d./_-]", name) for name in names)):
                    found.setdefault(Gone(names, said.get("link", ""), subject))
    return tuple(found)


def is_about(text: str, gone: tuple[Gone, ...]) -> bool:
    """Say whether a memory says to use one of the replaced things, or tells something of it."""
    folded = fold(text)
    words = frozenset(_names(folded))
    sentences = [[_bare(word) for word in one.split()] for one in _CLAUSE.split(folded)]
    return any(
        one.names <= words and (not one.subject or one.subject & words) and any(_tells(said, one) for said in sentences)
        for one in gone
    )


def _tells(sentence: list[str], gone: Gone) -> bool:
    """Say whether a sentence begins with what is gone, or has it behind a word of use, an option, or its link."""
    for place in (place for place, word in enumerate(sentence) if stem(word.lstrip("-")) in gone.names):
        before = sentence[max(place - _BESIDE, 0) : place]
        if gone.link and gone.link in before:
            return True
        if not gone.link and (place < _BESIDE or any(word in _USING or word[:1] == "-" for word in before)):
            return True
    return False


def _bare(word: str) -> str:
    return word.strip("`'\"()[]{}<>*.,;:!?")


def _names(text: str) -> Iterator[str]:
    for word in _WORD.findall(text):
        if word not in STOP_WORDS and word not in _EMPTY:
            yield stem(word)
