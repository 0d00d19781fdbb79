"""A process that remembers, updates and forgets without end, and says on stdout what it is about to do and has done.

Each line is `begin` or `done`, a verb, a memory's name and, when done, its id. The parent kills it at any instant.
"""

from __future__ import annotations

import random
import sys

from recollect import Draft, Forget, Settings, forget, open_app, remember

VERBS = ("remember", "remember", "remember", "update", "forget", "long")


def say(*words: object) -> None:
    """Write one line and see to it that it has left this process."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def content_of(name: str, version: int, verb: str) -> str:
    """Return a text with a word that no other memory holds, several chunks long for `long`."""
    paragraph = f"The word {name} stands here, version v{version}x, beside ropes, masts and sails.\n\n"
    return paragraph * (60 if verb == "long" else 1)


def work(seed: int) -> None:
    """Work until killed."""
    chance, caller = random.Random(seed), Settings().caller
    living: dict[str, str] = {}
    with open_app() as app:
        say("ready")
        for number in range(1_000_000):
            verb = chance.choice(VERBS)
            if verb in ("remember", "long") or not living:
                name = f"q{seed}z{number}y"
                say("begin", "remember", name, 0)
                living[name] = remember(app, Draft(content=content_of(name, 0, verb), key=name), caller).id
                say("done", "remember", name, 0, living[name])
            elif verb == "update":
                name = chance.choice(list(living))
                size = chance.choice(VERBS)
                say("begin", "update", name, number)
                remember(app, Draft(content=content_of(name, number, size), key=name), caller)
                say("done", "update", name, number, living[name])
            else:
                name = chance.choice(list(living))
                say("begin", "forget", name, number)
                forget(app, Forget(id=living[name]), caller)
                say("done", "forget", name, number, living.pop(name))


if __name__ == "__main__":
    work(int(sys.argv[1]))
