"""What speaks against asking about a sentence that a template would fit. Pure; English.

Templates read words, not grammar: where a sentence is built otherwise than they take it to be, its question is nonsense,
and where it says nothing, so does its answer. Fewer questions are better than such ones.
"""

from __future__ import annotations

import re
from collections.abc import Set

_OF_FREQUENCY = r"""(?:often|sometimes|usually|typically|generally|normally|always|never|frequently|rarely|increasingly|
    currently|already|still|ever|simply|automatically|directly|primarily|mainly|largely|mostly|successfully|jointly)"""
_NO_PHRASE = re.compile(
    rf"\b{_OF_FREQUENCY}\b|\b(?:if|how|why|when|where|while|please|let|etc|e\.g|i\.e)\b|(?:^|[ ])[-–—~>\#+](?:[ ]|$)|:|\b\d+\.[ ]",
    re.IGNORECASE | re.VERBOSE,
)
"""What no subject has within it: an adverb stands before its verb, so the verb that was found is another one."""
_FIRST_ADVERB = re.compile(
    r"(?!early|only|daily|weekly|monthly|quarterly|yearly|hourly|friendly|family|elderly|likely|costly)\w+ly ",
    re.IGNORECASE,
)
_RUN_IN = re.compile(r"(?<=\w )(?:The|An|This|These|Each|It|If|When|In|For|To) ")
"""A heading without a mark at its end, and the sentence after it."""
_TITLED = re.compile(
    r"(?:Definition|Purpose|Objectives?|Background|Summary|Overview|Scope|Description|Introduction|Methods?|Methodology|Rationale|"
    r"Goals?|Targets?|Measures?|Research|Possible|Step|Discussion|Baseline|Source|Strategy|Data Verification|Limitations?) (?=[A-Z])"
)
_TELLS_TO = re.compile(
    r"(?:strengthen|improve|increase|enhance|expand|promote|foster|encourage|develop|advance|leverage|build|implement|conduct|"
    r"provide|ensure|establish|maintain|identify|reduce|modernize|address|continue|keep|make|use|create|add|remove|help)(?= \w+ \w)",
    re.IGNORECASE,
)
_LATE_ADVERB = re.compile(
    r" (?!(?:family|supply|assembly|reply|anomaly|monopoly|ally|rally|bully|butterfly|italy|july)$)\w{3,}ly$",
    re.IGNORECASE,
)
_ASIDE_OPENS = re.compile(
    r", (?:which|who|whose|where|when|whether|if|including|such as|as|or|with|without|in|on|at|by|for|from|to|under|through|"
    r"unlike|like|along|together|formerly|also|and (?:their|its|any)|an?|the|one|each|both|\w+ed|\w+ing|known|[A-Z]\S*)\b"
)
_STRAY = re.compile(
    r"(?:up|out|off|down|away|back|over|through|within|in|at|under|across|during|without|when|where|if|because|along|among|"
    r"toward|towards|around|together|well|after|before|until|and|or|than|that|this|these|those|it|them|us|me|you|your|our|"
    r"their|its|his|her)\b"
)
"""What follows a verb that has no object, or one that only the text around it tells: operates within, show up, use it."""
PRAISE = r"""(?:good|great|excellent|important|critical|key|essential|helpful|useful|vital|shared|integral|significant|major|
    crucial|valuable|powerful|perfect|common|top|high|highest|higher|best|better|big|popular|nice|necessary|core|central|
    longer|shorter|different|similar|unique|new|wonderful|huge|real|proud|happy|easy|hard|difficult|simple|enormous|greater|
    greatest|biggest|largest|increased|improved|enhanced|tremendous|ideal|popular|solid|strong|robust|flexible|additional)"""
_NOTHING = r"""(?:ways?|parts?|places?|examples?|steps?|priorit(?:y|ies)|aspects?|components?|resources?|responsibilit(?:y|ies)|
    challenges?|opportunit(?:y|ies)|options?|ideas?|factors?|elements?|concerns?|issues?|goals?|reasons?|matters?|problems?|
    exceptions?|cases?|things?|results?|efforts?|lot|number|few|bit|kinds?|sorts?|combination|team|variety|range|member)"""
_SAYS_NOTHING = re.compile(
    rf"(?:(?:an?|the|one|of|our|your|their|its|also|often|very|really|particularly|especially|highly|most|more|still|not|another|any|part|among)[ ])*"
    rf"(?:(?<=more[ ])(?!than\b)[a-z]+[ ][a-z]|{PRAISE}\b|(?:[\w-]+[ ])?{_NOTHING}\b)",
    re.IGNORECASE | re.VERBOSE,
)
_PERSON = re.compile(
    r"an? (?:[\w-]+ ){0,4}?(?:consultant|director|officer|manager|engineer|specialist|author|employee|official|secretary|"
    r"president|chair|professor|scientist|researcher|analyst|developer|designer|lawyer|attorney|physician|writer|editor|"
    r"architect|administrator|commissioner|judge|senator|founder|partner|lecturer|economist|artist|poet|singer)\b"
)
_FULL_NAME = re.compile(r"(?:Dr\. |Mr\. |Ms\. |Mrs\. )?[A-Z][\w’'-]+(?: [A-Z]\.)?(?: [A-Z][\w’'-]+){1,2}")
_HEAD_ENDS = re.compile(
    r" (?:of|in|for|to|with|on|from|by|at|under|within|between|about|into|as|against|via|through|outside|above|"
    r"[a-z]{3,}ed|[a-z]{3,}ing)\b|[(,]"
)
_EITHER = re.compile(
    r"(?:news|means|series|status|species|data|staff|criteria|media|people|children|men|women|feet|police|personnel|headquarters|"
    r"basis|analysis|emphasis|address|access|process|business|class|loss|mathematics|physics|\w+['’]s?|\w*\d\w*)$",
    re.IGNORECASE,
)
_ELSEWHERE = re.compile(
    r"\b(?:above|below|aforementioned|herein|here|previously|earlier|so far|in turn|instead|otherwise|likewise|again)\b"
    r"|;(?: and| or)? [A-Z]|;.*;.*;|\b(?:described|defined|shown|listed|mentioned|noted|discussed) (?:in|at|by) (?:this|that|the (?:next|previous))\b"
    r"|\b(?:the|as) follow(?:ing|s)\b|\b(?:Listing|Figure|Fig\.|Exhibit) \d"
    r"|\b(?:we|I|you)(?:[’']ve| have| had)? (?:just |already |also )?(?:covered|wrote|written|saw|seen|discussed|learned|"
    r"mentioned|looked|introduced|talk|talked|showed|shown)\b",
    re.IGNORECASE,
)
_GLUED = re.compile(r"(?<!\w)(?:of|for|to|in|and|the|by|with|on|from)[A-Z][a-z]|[a-z]{3},[a-z]{3}")
"""Words of a page whose spaces were lost."""
_TO_SECTION = re.compile(
    r"\b(?:requirements|provisions|criteria|conditions|rules|guidelines|guidance|instructions|procedures?) (?:\w+ )?(?:of|in|from|at|under|by) "
    r"(?:the )?(?:Sec\b|Sections?|Table|Annex|Appendix|Part|Chapter)[^,;]{0,30}$"
)
_FOLLOWS = re.compile(r"\b(?:the|as) follow(?:ing|s)\b|;(?: and| or)? [A-Z]|;.*;.*;|\bbelow\b", re.IGNORECASE)
_MASS = re.compile(
    r"(?:ing|tion|sion|ity|ness|ance|ence|ency|ancy|ship|ism|age|ure|cy|ware|ics|data|support|access|information|guidance|"
    r"equipment|leadership|law|policy|compliance|research|work|time|money|travel|health|safety|water|air|energy|traffic|growth|"
    r"evidence|feedback|advice|knowledge|experience|training|treatment|employment|development|management|government|congress|"
    r"agreement|approval|review|control|use|risk|change|demand|income|revenue|trade|transport|treason|help|storage)$",
    re.IGNORECASE,
)
"""How nouns end that stand without an article though they are singular."""
_SINGULAR = ("is", "was", "has", "does not")
_PLURAL = ("are", "were", "have", "do not")


def is_no_phrase(subject: str) -> bool:
    """Tell whether a subject has what no noun phrase has, so that the verb after it is not its verb."""
    if (
        _NO_PHRASE.search(subject)
        or _FIRST_ADVERB.match(subject)
        or _LATE_ADVERB.search(subject)
        or _TELLS_TO.match(subject)
    ):
        return True
    names = re.findall(r"\b[A-Z]\w{3,}", subject)
    if len(names) > len(set(names)) or _TITLED.match(subject):
        return True
    words = subject.casefold().split()
    is_said_twice = len(words) > 1 and words[: len(words) // 2] == words[len(words) // 2 :]
    return is_said_twice or _RUN_IN.search(subject) is not None


def is_no_aside(aside: str) -> bool:
    """Tell whether what stands between commas before a verb is rather one of several verbs: “fuel x, spur y, protect z”."""
    return bool(aside) and _ASIDE_OPENS.match(aside) is None


def points_elsewhere(sentence: str, *, is_list: bool) -> bool:
    """Tell whether a sentence leans on what stands around it, or is damaged, so that it is no answer alone.

    Args:
        is_list: what follows its lead stands in it.
    """
    if _GLUED.search(sentence) or _TO_SECTION.search(sentence):
        return True
    found = [m.group() for m in _ELSEWHERE.finditer(sentence)]
    return any(not (is_list and _FOLLOWS.fullmatch(text)) for text in found)


def is_bare_noun(subject: str) -> bool:
    """Tell whether a subject is one thing of many without an article, as only notes have it: “Request must include”."""
    head = _HEAD_ENDS.split(subject, maxsplit=1)[0]
    words = head.split()
    if not words or re.match(
        r"(?:an?|the|each|every|any|all|no|most|some|both|either|one|two|three|other)$",
        words[0],
        re.IGNORECASE,
    ):
        return False
    last = words[-1]
    is_plain = re.fullmatch(r"[a-z][a-z-]+", last) is not None
    is_plural_or_mass = re.search(r"(?:[^s]s|ia|ta|men|people|children|ed|ers)$", last) or _MASS.search(last)
    return is_plain and " and " not in head and not is_plural_or_mass and not re.match(r"\w+ing$", words[0])


def is_stray(rest: str) -> bool:
    """Tell whether what follows a verb is no object of it."""
    return _STRAY.match(rest) is not None


def says_nothing(rest: str) -> bool:
    """Tell whether what something is said to be is praise, or a word that any thing could be called: an important part."""
    return _SAYS_NOTHING.match(rest) is not None


def is_person(subject: str, rest: str) -> bool:
    """Tell whether a subject is a person's name, by what the person is said to be."""
    return _FULL_NAME.fullmatch(subject) is not None and _PERSON.match(rest) is not None


def is_plural(subject: str) -> bool | None:
    """Tell whether a subject is plural; None where its form does not say: names, the data."""
    head = _HEAD_ENDS.split(subject, maxsplit=1)[0]
    if re.match(r"(?:an?|each|every|any|this|one)\b", head, re.IGNORECASE):
        return False
    if re.search(r"\b(?:and|or)\b", head):
        return None if re.search(r"\b[A-Z]", head[1:]) or " or " in head else True
    last = head.rpartition(" ")[2]
    if last[:1].isupper() or _EITHER.match(last):
        return None
    return last.endswith("s") and not last.endswith(("ss", "us", "is"))


def disagrees(subject: str, verb: str, third_persons: Set[str], bases: Set[str]) -> bool:
    """Tell whether verb and subject differ in number: the verb is then another word's, or none.

    Args:
        third_persons, bases: the verbs known, as in “she applies” and “they apply”.
    """
    plural = is_plural(subject)
    if plural is None:
        return False
    return verb in ({*_SINGULAR, *third_persons} if plural else {*_PLURAL, *bases})
