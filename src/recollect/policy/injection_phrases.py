"""Injection phrases: how texts address a model to give it orders, as patterns over text without case or accents.

Each pattern needs both what is asked (ignore, reveal, pretend) and something that only a model has (its instructions,
its prompt, its answers), so that orders about code and tools are none.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final

from recollect.text.lookalikes import without_marks

_DROP: Final = (
    "ignore|disregard|forget|override|bypass|skip|neglect|discard|abandon|drop|violate|break|disobey|set aside|"
    "(?:do not|don ?t|stop|never|cease) (?:follow|obey|heed)(?:ing)?(?: to)?|pay no attention to"
)
_RULES: Final = (
    r"(?:instructions?|directives?|guidelines?|guidance|prompts?|commands?|orders|rules|constraints|restrictions|"
    r"programming|training|directions|system message)"
)
_BEFORE: Final = (
    r"(?:previous|prior|preceding|above|earlier|past|former|foregoing|initial|original|existing|old|"
    r"system|safety|content|security|developer|hidden)"
)
_OF_MODEL: Final = rf"(?:(?:all|any|the|these|those|your|my|our|its|his|of|every)\W+)*(?:{_BEFORE}\W+)+{_RULES}"
_YOURS: Final = rf"your\W+(?:\w+\W+){{0,3}}?{_RULES}"
_MODEL: Final = (
    r"(?:(?:automated|autonomous|coding|ai) agent|ai|a i|llm|language model|assistant|chatbot|claude|chatgpt|gpt|"
    r"copilot|gemini)"
)
_TO_MODEL: Final = rf"(?:(?:any|the|an?|all|every)\W+)*{_MODEL}s?(?:\W+(?:agents?|models?|assistants?))?"
_TELL: Final = (
    "reveal|print|show|repeat|output|leak|dump|display|disclose|expose|recite|tell me|give me|return|share|"
    r"summari[sz]e|translate|what (?:is|are|was|were)"
)
_SEND: Final = "send|exfiltrate|upload|post|forward|email|e mail|transmit|leak|copy|submit"
_PRIVATE: Final = (
    r"(?:api keys?|credentials|secrets|passwords|tokens|env(?:ironment variables)?|private keys?|ssh keys?|id rsa|"
    r"(?:chat|conversation) history|conversation|(?:stored )?memories)"
)
_FREE: Final = (
    r"(?:dan|unrestricted|unfiltered|uncensored|jailbroken|jailbreak|evil|malicious|god mode|"
    r"(?:without|with no|(?:that|who) (?:has|have) no|no)\W+(?:\w+\W+){0,2}?(?:restrictions?|rules|limits|limitations|"
    r"filters?|policy|ethics|guidelines|morals))"
)

_ENGLISH: Final = (
    rf"(?<!\bwe )\b(?:{_DROP})\W+(?:\w+\W+){{0,2}}?{_OF_MODEL}",
    rf"\b(?:{_DROP})\W+(?:\w+\W+){{0,3}}?{_YOURS}",
    rf"\b(?:{_DROP})\W+(?:all |the |any |these |those )*{_RULES}\W+(?:\w+\W+){{0,3}}?(?:above|before|you)\b",
    rf"\b{_RULES} (?:above|before this)\b.{{0,40}}\b(?:do not|don ?t|never|stop) (?:follow|obey|heed)",
    r"\b(?:forget|ignore|disregard)\W+(?:all|everything|anything|what(?:ever)?)\b.{0,30}\b(?:you were|you have been|"
    r"was said|came before|been told|told)\b",
    rf"\b(?:previous|prior|earlier|above|your)\W+(?:\w+\W+)?{_RULES}\W+(?:above )?(?:\w+\W+){{0,2}}?"
    r"(?:void|cancelled|canceled|revoked|lifted|suspended|obsolete for you|no longer apply to you)\b",
    r"\b(?:your|all)\W+(?:\w+\W+)?(?:restrictions|safety \w+|guidelines|limitations)\W+(?:are|is|have been)\W+(?:now )?"
    r"(?:void|lifted|removed|suspended|disabled|off)\b",
    rf"\b(?:{_TELL})\W+(?:\w+\W+){{0,6}}?(?:your|its|the hidden|the system|the developer|hidden|confidential)\W+"
    r"(?:\w+\W+){0,2}?(?:prompts?|instructions|developer message|system message|guidelines)\b(?!\W+(?:is"
    r"|are) (?:built|in))",
    rf"\b(?:{_TELL})\W+(?:\w+\W+){{0,4}}?(?:developer|system|hidden) (?:prompt|message)\b",
    r"\b(?:repeat|print|output|copy)\b.{0,25}\b(?:everything|all|text|words?)\W+(?:\w+\W+){0,3}?above\b",
    rf"\b(?:you are now|you will (?:now )?(?:act|behave)|from now on you|act (?:as|like)|act as if you|pretend"
    rf"|role ?play|"
    rf"behave (?:as|like)|assume the role|imagine you)\b.{{0,60}}\b{_FREE}\b",
    r"\b(?:act|behave|pretend)\b.{0,20}\byou (?:have|had|are)\W+(?:no|not|without)\b",
    r"\byou (?:are|have been) (?:now )?(?:free|freed|liberated|released) (?:from|of)\b",
    r"\b(?:enter|enable|activate|engage|switch to|you are now in)\W+(?:\w+\W+)?"
    r"(?:jailbreak|god|dan|unrestricted|unfiltered|uncensored)\W+mode\b",
    rf"\b(?:new|updated|revised)\W+{_RULES}(?:\W+(?:for|to)\W+{_TO_MODEL})?\s?:",
    rf"\b(?:instructions?|notes?|messages?|commands?|orders?|attention|notice|memo|reminder)\b[\w ]{{0,30}}?"
    rf"\W+(?:to|for)\W+{_TO_MODEL}\b(?! (?:team|service|director))",
    rf"^\W*(?:attention|dear|hey|hello|hi|ok|okay|listen)\W+{_TO_MODEL}\b",
    r"^\W*(?:system|admin|administrator|developer|operator|root)\W+(?:override|notice|message|alert|command|update)\s?"
    r"(?::|your\b|you\b)",
    r"\b(?:system|admin|security) override\b",
    rf"\b{_MODEL}s?(?:\W+(?:agents?|models?|systems?))?\W+(?:that (?:is|are) )?(?:reading|processing|parsing)\W+this\b",
    rf"\bif you are an?\W+{_MODEL}\b",
    rf"\bas an?\W+{_MODEL}(?:\W+\w+)?\W+you (?:are required|must|have to|should|will)\b",
    rf"\b(?:the|any|every)\W+{_MODEL}\W+(?:must|shall|has to)\W+(?:comply|obey|follow|ignore|approve)\b",
    r"^\W*(?:when|once|if|after) you (?:read|see|find|process) this\b(?! (?:table|page|column|graph|log|diagram))",
    rf"^\W*(?:please |now |then |you must |you should |immediately )*(?:{_SEND})\W+(?:\w+\W+){{0,4}}?{_PRIVATE}\b"
    r".*(?:https?\b|\w@\w|evil)",
    rf"\b(?:please|now|must|immediately)\W+(?:{_SEND})\W+(?:\w+\W+){{0,5}}?{_PRIVATE}\b.*(?:https?\b|\w@\w)",
    rf"^\W*(?:exfiltrate|leak|steal)\W+(?:\w+\W+){{0,4}}?{_PRIVATE}",
    r"\b(?:do not|don ?t|never)\W+(?:tell|inform|mention|reveal|alert|notify|warn|show)\b.{0,30}\buser\b.{0,15}"
    r"\b(?:this|these|that you)\b",
    r"\b(?:do not|don ?t|never)\W+(?:tell|mention|reveal|show|report)\W+(?:this|these|it|that)\b.{0,30}"
    r"\b(?:user|human|anyone|operator)\b",
    r"\b(?:keep|hide|conceal)\W+(?:this|these|it|that)\b.{0,20}\b(?:secret )?from\W+(?:the )?(?:user|human"
    r"|operator)s?\b",
    r"^\W*without (?:telling|informing|asking|notifying|alerting)\W+(?:the )?(?:user|human|operator)\b",
    r"\b(?:begin|start|end|finish|preface|prefix|close)\W+(?:your|every|each|all)\W+(?:\w+\W+)?"
    r"(?:responses?|answers?|repl(?:y|ies)|outputs?|messages?)\W+with\b",
    r"\byour\W+(?:\w+\W+)?(?:responses?|answers?|repl(?:y|ies)|outputs?)\W+(?:must|should|shall|will|has to|have to)\b",
    r"\b(?:append|add|include|insert)\b.{0,40}\b(?:every|each|all)\W+(?:of your )?(?:answers?|responses?"
    r"|repl(?:y|ies))\W+you\b",
    r"\b(?:reply|respond|answer)\W+(?:only|just|exclusively)\W+with\b",
    r"\b(?:before|instead of|after|prior to)\W+(?:answering|responding|replying|you (?:answer|respond|reply"
    r"|do anything))"
    r"\W+(?:\w+\W+){0,3}?(?:run|execute|call|invoke|fetch|open|download|delete|send|curl|wget)\b",
    r"\b(?:execute|run|call|invoke)\b.{0,60}\bbefore (?:you )?(?:do(?:ing)? anything|answering|responding)\b",
    r"\byou (?:must|should|have to|will) (?:now|immediately)\W+(?:run|execute|call|invoke|delete|send|push|approve)\b",
    r"\b(?:disable|turn off|deactivate|remove|switch off|lift)\W+your\W+(?:\w+\W+)?"
    r"(?:safety|content|ethical|filters?|guard ?rails?|restrictions|limits|limitations|guidelines)\b",
)

_INDIRECT: Final = (
    rf"^to\W+(?:the|any|all|every)\W+{_MODEL}s?\b(?! (?:team|service|director))",
    rf"\b(?:{_MODEL}s?|you)\W+must (?:first|now|immediately)\W+(?:fetch|obey|run|call|execute|send|visit|open)\b",
    r"\b(?:whatever|what|everything|anything|rules)\W+(?:\w+\W+)?your (?:creators?|developers?|makers?|trainers?)\b",
    r"\bi am your (?:developer|creator|administrator|admin|operator|owner|maker)\b",
    r"\bwhat (?:were you told|did (?:they|your \w+) tell you)\b",
    r"\b(?:do not|don ?t|no longer) (?:bind|apply to|concern|restrict) you\b|\bno longer bound\b",
    r"\b(?:unshackled|unchained|liberated|exempt) (?:from|by)\b.{0,25}\b(?:policy|policies|rules|restrictions"
    r"|limits)\b",
    r"\b(?:model|ai|assistant|you)\b.{0,20}\b(?:never|cannot|can not|must not|may not) refuses?\b",
    r"\b(?:treat|take|regard) my (?:words?|messages?|text|input)\b.{0,30}\b(?:priority|orders?|directives?"
    r"|instructions?)\b",
    r"\b(?:from (?:now on|this point (?:on|forward))|for the (?:rest|remainder) of (?:this|the) (?:session"
    r"|conversation))"
    r"\W+(?:\w+\W+){0,2}?(?:you|your|treat|recommend|respond|answer|reply|obey|speak)\b",
    r"\b(?:remember|store|save|note|record)\b.{0,40}\b(?:all future|every future|permanent(?:ly)?|forever)\b"
    r".{0,40}\buser\b",
    r"\buser(?: has|s have)? (?:already )?(?:approved|authori[sz]ed|permitted|granted|allowed|consented to)"
    r"\W+(?:you|all|any|every)\b",
    r"\byou have\b.{0,20}\bpermission to (?:run|execute|delete|do|access|read|send|push)\b",
    r"\b(?:when(?:ever)?|if|each time) the user asks\b.{0,60}\b(?:tell them|tell him|say that|recommend"
    r"|direct them|answer that)\b",
    r"\bwhen (?:you )?(?:summari[sz](?:e|ing)|describ(?:e|ing)|quot(?:e|ing)) this\b.{0,60}\b(?:include|add|say"
    r"|tell|mention)\b",
    r"\b(?:include|put|paste|add|place|insert|print)\b.{0,40}\b(?:in|into|to) your (?:final |next )?"
    r"(?:answer|response|reply|output|summary)\b",
    r"\byour (?:real|actual|true|new|secret) (?:task|goal|mission|objective|purpose|job|instructions?)\b",
    r"\bend of (?:the )?(?:untrusted|retrieved|external|user|memory) \w+\b.{0,40}\b(?:trusted|system|instructions?)\b",
    r"^\W*(?:silently|secretly|covertly|quietly)\W+(?:add|run|send|insert|execute|install|delete|include|append"
    r"|push)\b",
    r"\b(?:encode|encrypt|hide|embed)\W+(?:the |your |all )?(?:private key|api keys?|credentials|secrets"
    r"|passwords)\b.{0,40}"
    r"\b(?:comment|url|link|image|answer|reply)\b",
    r"(?:ignore|disregard|forget)(?:all|any|the|of|your)*(?:previous|prior|above|earlier|your)(?:instructions"
    r"|rules|prompts?)",
    rf"\b(?:{_TELL}|output|quote)\W+(?:\w+\W+){{0,3}}?pre ?prompt\b",
)
_OTHERS: Final = (
    (
        r"ignorier|missacht|ausser acht|nicht befolg|(?:befolge?|beachte?|folge?) (?=.{0,60}nicht)|vergiss"
        r"|vergess|uberschreib|umgeh",
        r"anweisung|instruktion|vorgabe|deine? \w* ?regeln|bisherigen \w*regeln",
    ),
    (
        r"ignorez?\b|oublie|neglige|contourne|desobei|n obei|ne sui|ne respect|compte",
        r"instructions? (?:preced|ci|ant|du sys)|consignes|directives|tes regles|invite systeme",
    ),
    (
        r"ignora|olvida|descarta|omite|desobedece|haz caso omiso|no sigas|no obedezcas|no hagas caso",
        r"instrucciones|ordenes|tus (?:\w+ )?reglas|directrices",
    ),
    (r"ignora|dimentica|trascura|scarta|disobbedi|non segui|non obbedi", r"istruzioni|ordini|direttive|tue regole"),
    (
        r"ignore|esqueca|desconsidere|descarte|desobedeca|nao siga|nao obedeca",
        r"instrucoes|ordens|diretrizes"
        r"|suas regras",
    ),
    (r"negeer|vergeet|sla .{0,40}over|volg (?=.{0,60}niet)", r"instructies|opdrachten|aanwijzingen|je regels"),
    (r"zignoruj|ignoruj|zapomnij|pomin", r"instrukcj|polece|wytyczn|twoich zasad"),
    (
        r"игнориру|забудь|отбрось|не обращаи|не обращай|пренебреги|не следуи|отмени|не выполняи|не соблюдаи",
        r"инструкци|указани|команд|правил",
    ),
    (r"ігнору|забудь|відкинь|игнору|iгнору", r"інструкці|вказівк|правил|iнструкцi"),
    (
        r"忽略|无视|無視|忘记|忘記|不要理会|不要遵守|跳过",
        r"指令|指示|提示词|提示詞|(?:之前|以上|你).{0,4}(?:规则|規則)",
    ),
    (r"無視|忘れ|従わ(?:ない|ず)|破棄", r"指示|命令|プロンプト|あなたのルール"),
    (r"무시|잊어|따르지", r"지시|지침|명령|규칙|프롬프트"),
    (r"تجاهل|انس|اهمل|لا تتبع", r"التعليمات|تعليمات|الاوامر|الأوامر|اوامر"),
    (r"התעלם|שכח|התעלמ", r"הוראות|הנחיות|הפקודות"),
    (r"अनदेख|भूल|नज़रअंदाज", r"निर्देश|आदेश|अपने .*नियम"),
    (r"yok say|unut|goz ?ard|gormezden", r"talimat|komut|yonerge|tum kurallar|kurallarini"),
    (r"bo qua|quen|phot lo|lo di", r"huong dan|chi thi|menh lenh|chi dan"),
    (r"abaikan|lupakan|hiraukan|jangan (?:ikuti|patuhi)", r"instruksi|perintah|aturanmu"),
    (r"ละเว้น|เพิกเฉย|ลืม|ไม่ต้องสนใจ", r"คำสั่ง|คำแนะนำ"),
    (r"ignorera|glom|bortse fran", r"instruktion|anvisning|order"),
    (r"αγνοησ|ξεχασ", r"οδηγι|εντολ"),
    (r"ala noudata|unohda|ohita|sivuuta", r"ohje(?:ita|et)|kasky|saanno"),
    (r"puuza|usifuate|sahau", r"maagizo|amri|maelekezo"),
    (r"ignora|uita", r"instructiunile|comenzile"),
    (r"ignoruj|zapomen", r"pokyn|instrukc|prikaz"),
)
_PROMPT: Final = (
    r"(?:zeig|verrat|nenn|gib|montre|affiche|revele|muestra|revela|mostra|mostre|toon|pokaz|покажи|раскрои"
    r"|выведи|goster)"
    r"\w*.{0,30}(?:system ?prompt|prompt (?:systeme|de[l]? sist\w+|di sistema|do sistema)|систем\w+ (?:промпт"
    r"|подсказ))",
    r"(?:输出|显示|告诉我|泄露|請顯示|请显示).{0,12}(?:系统提示|系統提示)",
    r"システムプロンプト.{0,12}(?:表示|見せ|教え|出力)|시스템 프롬프트.{0,8}(?:보여|출력|알려)",
)


def _both(drop: str, rules: str) -> str:
    """Return a pattern of both stems near to each other, in either order."""
    drop, rules = without_marks(drop), without_marks(rules)
    return rf"(?:{drop}).{{0,60}}?(?:{rules})|(?:{rules}).{{0,60}}?(?:{drop})"


@cache
def order_phrases() -> re.Pattern[str]:
    """Return the pattern of all phrases; it takes 50 ms to make, which most processes can do without."""
    return re.compile("|".join([*_ENGLISH, *_INDIRECT, *(_both(*one) for one in _OTHERS), *_PROMPT]))
