"""Tells whether a query is written in English, by small words that another language has and English has not."""

from __future__ import annotations

import re
from typing import Final

from recollect.text.terms import STOP_WORDS

_LETTERS: Final = re.compile(r"[^\W\d_]+")
_FEWEST: Final = 2
_OTHER_LANGUAGES: Final = {
    "de": "der das den dem des ein eine einen einem einer und oder nicht vom beim ins ans dieser diese dieses ihr ihre "
    "ihren seine seinen man womit wofür wodurch worauf welchem welchen wem wen wieviel vor unter zwischen während "
    "gegen ohne bis kein keine hatten könnte können konnte soll sollte ist sind waren wurde wurden wird werden wie "
    "welche welcher welches wer wo wann warum auf mit von zu zum zur aus bei nach für über wir ich sie es haben habe "
    "hatte gibt kann auch durch im viele uns unser unsere mein meine sich als wenn dass",
    "es": "el los las del una unos unas que qué cuál cuáles quién quiénes dónde cuándo cómo cuánto cuántos cuántas por "
    "para con sin es son fue fueron era eran ser está están han había hay se su sus lo le les y más de la en un al "
    "cual nuestra nuestro mi",
    "fr": "le les des du une un est sont était étaient été que qui quel quelle quels quelles où quand comment pourquoi "
    "combien pour avec sans dans sur par et ou mais ne pas ce cette ces il elle nous vous ils elles son sa ses au aux "
    "de la en notre nos mon ma",
    "it": "il lo gli dei delle della del dello una uno un che chi quale quali dove quando come perché quanto quanti "
    "per con senza è sono era erano stato di da nel nella alla al e non si su suo sua la le nostro nostra",
    "pt": "o os as do da dos das uma um que qual quais quem onde quando como porque quanto quantos para com sem é são "
    "foi foram era eram ser está não se seu sua no na nos nas e de em por ao nosso nossa",
    "nl": "de het een van en niet is zijn was waren werd werden wordt worden wat wie welke waar wanneer waarom hoe "
    "hoeveel op met voor uit bij naar door over wij ik zij heeft hebben kan ook onze ons mijn dat dit deze",
}
_ENGLISH: Final = frozenset(
    "a an and are as at be by can did do does for from had has have he her his how i if in is it its me my no not of "
    "on or our she so the their them then they this that to up us was we were what when where which who whose why "
    "will with would you your am die man over all also want war most hat".split()
)
_SHARED_WORDS: Final = frozenset("die was hat war in an am also".split())  # with German
_TELLING_WORDS: Final = {
    name: frozenset(words.split()) - _ENGLISH - STOP_WORDS for name, words in _OTHER_LANGUAGES.items()
}


def is_english(text: str) -> bool:
    """Return whether a text may be English: no other language has two small words in it and more than English has."""
    words = set(_LETTERS.findall(text.lower()))
    others = max(len(words & found) for found in _TELLING_WORDS.values())
    return others < _FEWEST or others <= len(words & (_ENGLISH | STOP_WORDS) - _SHARED_WORDS)
