"""The words by which sentences are compared: empty ones, linking ones, polar ones, and those that say the same."""

from __future__ import annotations

EMPTY = frozenset(
    """a an the that there now currently still already just really very quite also please so yes
    actually basically simply do does""".split()
)
ENGLISH = frozenset(
    """a the of and is are with for we our to by from user his her their they it its uses has have at this that my you
    your i've i'm don't it's does likes lives works should must""".split()
)
LINKS = frozenset(
    """of in on at for with to from by as than about into onto over under between through during per via and or but
    because since while where which who whose whom before after above below up down off out near inside outside
    toward towards across along around behind beside within upon among""".split()
)
_DENYING = """not no never none nobody nothing nowhere neither nor without unless except hardly barely rarely seldom
    nicht kein keine keinen keinem keiner keines nie niemals ohne ne pas jamais sans nunca jamas sin nao sem non senza
    niet geen nooit zonder не нет ни никогда без"""
_RESTRICTING = """only if when whenever until till once else instead rather all every each some most many few any
    both several more less fewer least much almost nearly approximately roughly half partly mostly sometimes often
    usually always former formerly previously legacy fake false wrong incorrect unlikely untrue excluding"""
_DOUBTING = """maybe perhaps possibly probably potentially might may could would should must shall can will need needs
    want wants wanted plan plans planned planning hope hopes consider considers considered considering think thinks
    thought believe believes believed guess suspect suspects try tries tried trying wish wishes intend intends intended
    expect expects expected propose proposes proposed suggest suggests suggested claim claims claimed pretend doubt
    doubts seem seems allegedly supposedly ask asks asked wonder wonders decide whether"""
_UNDOING = """stop stops stopped stopping quit quits cease ceased avoid avoids avoided avoiding refuse refuses refused
    reject rejects rejected cancel cancels cancelled canceled fail fails failed failing deny denies denied forbid
    forbids forbidden prohibit prohibited prevent prevents prevented disable disables disabled dislike dislikes hate
    hates drop drops dropped remove removes removed abandon abandoned retire retired deprecated lack lacks lacked miss
    missing unable impossible against forget forgot"""
POLAR = frozenset(f"{_DENYING} {_RESTRICTING} {_DOUBTING} {_UNDOING}".split())
CASED = frozenset(("Kb", "Mb", "Gb", "kb"))  # bits, where bytes are in capitals
DENYING_CHARACTERS = frozenset("不没沒无無非未别勿")
_SAME = """be is are am been being
was were
have has having
i me my mine myself
we us our ours ourselves
you your yours yourself
he him his himself
she her hers herself
they them their theirs
it its itself
use utilize utilizes utilizing
start begin begins
big large
buy purchase purchases
child kid kids children
movie film films movies
man men
woman women
person people
directory folder folders
repository repo repos
database db dbs
configuration config configs
documentation docs
kubernetes k8s
postgresql postgres
javascript js
typescript ts
application app apps
favorite favourite
color colour
colors colours
production prod
everybody everyone
picture photo
pictures photos
email e-mail
until till
fast quick
to →"""
ALIKE = {word: line.split()[0] for line in _SAME.splitlines() for word in line.split()}
