"""Templates of questions: for a subject, its verb, and what is said of it. Pure; English."""

from __future__ import annotations

import re

from apps.datasets.generation.rule_doubts import (
    PRAISE,
    disagrees,
    is_no_phrase,
    is_person,
    is_stray,
    says_nothing,
)
from toolloop.best_sentences import content_terms

_FINITE = """
    apply provide include require mean refer establish contain define describe determine enable ensure serve consist rely
    protect connect specify maintain allow permit assess coordinate implement represent prevent reflect amend advise
    assist comprise depend govern regulate authorize prohibit exclude exempt impose deliver add remove replace combine
    reduce create produce envision convert calculate compute extract generate handle identify operate involve consider
    """.split()
PLURAL = """
    apply provide include require mean refer establish contain define describe ensure serve consist rely protect maintain
    allow permit represent prevent reflect depend comprise
    """.split()
"""Verbs whose plural is asked for; others are nouns too often: the reports, a permit."""
_OBJECTS = {
    *_FINITE,
    *"submit develop keep hold pay report file name state meet complete prepare publish review approve bear show use".split(),
}
ACTS = {
    *"""accept acknowledge allow apply appoint approve assign attend bring certify change check choose close collect complete
    conduct confirm contact copy create decide declare delete deliver describe disclose document enter establish explain file
    fill follow give grant identify implement inform install issue keep label list maintain make mark notify obtain offer open
    pay perform prepare present preserve prevent produce propose protect provide publish reduce refund register reject release
    remove replace report request respond restore retain return review revoke revise run secure select send set sign stop store
    submit suspend terminate test track train transfer update upload use verify withdraw write""".split()
}
"""What somebody does; other verbs tell what something is like: a phase takes two weeks, a name belongs to a list."""
_TAKE_OBJECTS = {
    "accept",
    "choose",
    "collect",
    "conduct",
    "create",
    "deliver",
    "disclose",
    "follow",
    "obtain",
    "offer",
    "retain",
    "select",
    "send",
}
_NEED_A_PREPOSITION = ("apply", "refer", "serve", "consist", "rely", "depend")
_STATES = ("consist", "comprise", "contain", "have", "include", "mean", "reflect", "require", "show", "state")
"""What something is like, though it must be so."""
_OPEN = (
    "consider",
    "continue",
    "create",
    "deliver",
    "develop",
    "enable",
    "ensure",
    "maintain",
    "promote",
    "provide",
    "support",
    "use",
)
_PERSONS = ("contact", "notify", "inform", "consult", "call", "ask")
_ALSO_THINGS = ("consult", "call")  # a table, a method
MODALS = ("must", "shall", "should", "may", "will", "would", "can")


_HEAD = re.compile(r" (?:of|in|for|to|with|on|that|which|who|from|by|at|under|between|as)\b|[,.;(]")
OBLIGE = ("must", "shall", "should")


def _third(verb: str) -> str:
    if re.search(r"[^aeiou]y$", verb):
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "x", "ch", "sh", "o")) else f"{verb}s"


BASE = {_third(verb): verb for verb in _FINITE}
_PARTICIPLE = re.compile(
    r"^(?:(?:also|now|usually|often|currently|widely|primarily|mainly|always|generally|only) )?"
    r"(?P<done>[a-z]{3,}ed|shown|found|made|given|held|kept|built|known|taken|seen|set|paid|sold|written|chosen|led|sent) "
    r"(?P<prep>in addition to|in excess of|by|with|from|for|as|into|under|through|via|using|on|in|at|to|of|against|between) "
)
_BY_A_SCALE = (
    "evaluated measured assessed determined calculated scored rated graded quantified estimated".split()
)
"""What is done by a test with a name as often as by somebody."""
_BINDS = {
    "to": "referred addressed submitted forwarded limited applied assigned attributed added restricted exposed connected linked related compared subjected".split(),
    "of": "comprised composed made informed".split(),
}
_GOES_WITH = {
    ("on", "based"),
    ("on", "built"),
    ("on", "modelled"),
    ("on", "modeled"),
    ("in", "involved"),
    ("in", "written"),
}
_NO_ANSWER = re.compile(
    r"(?:the same|accordance|this|these|order|part|addition|the (?:first|last|second|next) time|example|instance|now|long|"
    r"several|many|some|years|times?|least|which|where|when|how|and|or|all|most|writing|general|advance|full|person|turn|detail|it|them|him|her|you|us|your|our|their|its)\b"
)
_PLACED = "listed found located proposed published observed described shown kept held set stored posted given contained enumerated".split()
_SENT = ("referred", "addressed", "submitted", "forwarded")
_TO_DO = re.compile(
    r"^(?P<done>required|expected|allowed|permitted|authorized|obliged|entitled|encouraged|directed) to "
)
_QUALITY = re.compile(
    r"^(?:not )?(?P<what>responsible for|subject to|eligible for|liable for|exempt from|equal to|open to|available to|part of|accessible to)\b"
)
_COUNTED = re.compile(
    r"(?:approximately |about |over |more than |nearly |at least |up to |exactly )?(?:\d[\d,]*|two|three|four|five|six|seven|eight|"
    r"nine|ten|eleven|twelve)(?: million| billion)? (?P<what>(?!percent|per|or|and|to|of|in)[a-z-]+(?: (?!and|or|in|of|for|to|with|on|at|from)[a-z-]+){0,2}?s)\b(?! old)"
)
_LASTS = re.compile(
    r"(?:a |an )?(?:minimum of |maximum of |period of |total of |at least |at most |up to |no (?:more|longer|less) than |about |"
    r"approximately )*(?:\d+|one|two|three|four|five|six|seven|eight|nine|ten|twelve|thirty)(?: [a-z-]+)? (?:second|minute|hour|day|week|month|year)s?\b"
)
_MEANS = ("by", "using", "through", "via")
_AGENT = r"(?:the )?(?!Section|Proclamation|Executive|Act|Title|Public Law)[A-Z]"
_AGENTS = re.compile(
    r"(?:an? |the |each |any |all |your )?(?:(?!of |number |percent |share |rate )[\w-]+ ){0,3}?(?:unit|team|office|department|agency|secretary|officer|manager|user|organizer|"
    r"supervisor|owner|director|administrator|committee|board|council|client|server|employee|staff|author|operator|pilot|customer|"
    r"vendor|contractor|company|court|judge|president|state|sponsor|investigator|maintainer|developer|reviewer|editor|member|"
    r"parties|party|person|\w+(?:ologist|iatrist|ician|therapist)|people|applicant|government|commission|bank|provider|doctor|physician|nurse)(?:s|es)?\b"
)
_ARTICLE = re.compile(r"^(?:an?|the|one|any|each|part) ")
MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = rf"(?:(?:\d{{1,2}} )?{MONTH}(?: \d{{1,2}}\b)?(?:,? \d{{4}})?|(?:FY ?)?(?:19|20)\d\d\b|\d{{1,2}}:\d\d [ap]\.?m)"
_WHEN = re.compile(
    rf"^(?P<act>[^,;:]{{3,130}}?),? (?:(?P<prep>on|at|from|in|by|no later than|not later than|before|after|until|effective|"
    rf"beginning) (?:or (?:before|after) |approximately |the end of |about )?{_DATE}|(?P<within>within) \d+ (?:\w+ )?(?:days|months|years|weeks|hours))"
)
_STATE = re.compile(
    r"(?:not )?(?:first |last )?(?:[a-z]{3,}ed|held|made|built|written|sent|paid|due|effective|valid|open|closed|available)\b"
)
_RELATIVE = re.compile(r"\b(?:that|which|who|and (?:is|are|was|were|has|have|will|shall|must))\b")
MOST_WORDS = 16
_DEADLINES = ("by", "no later than", "not later than", "before")
_WHERE = re.compile(
    r"^be (?P<done>\w+)(?: online)? (?:at|on|to|in|via) (?:\S+ ){0,6}?(?:https?:|www\.|\S+@|\S+\.(?:gov|org|com)\b)"
)
_NO_ACT = re.compile(
    r"\w+ing\b|[^|]*\|also:|[^|]*\|(?:(?:always|also|still|only|then|first|never|both) )?(?:be|have|exist|seem|remain|live|[a-z]+ly)\b"
)
"""Nobody acts: preventing leaks must always be a priority."""
_BY_DOING = re.compile(r"^(?P<act>[^,;:]{8,140}?),? by (?:\w+ing\b)")


def asked(subject: str, verb: str, rest: str) -> tuple[str, bool] | None:
    """Return a question for a claim, and whether it asks how; None where no template reads well."""
    if subject.split(" ", 1)[0].lower() in (*_FINITE, *BASE):
        return None  # Ensure that ...: it tells somebody to do something.
    if is_no_phrase(subject) or disagrees(subject, verb, BASE.keys(), set(PLURAL)):
        return None
    if verb in ("is", "are", "was", "were"):
        return _of_state(subject, verb, rest)
    if verb in MODALS:
        return _of_duty(subject, verb, rest)
    if verb in ("has", "have"):
        counted = _COUNTED.match(rest)
        does = "does" if verb == "has" else "do"
        return (f"How many {counted['what']} {does} {subject} have?", False) if counted else None
    if verb in ("does not", "do not"):
        word, _, after = rest.partition(" ")
        if word not in _FINITE or is_stray(after):
            return None
        return f"What {verb[:-4]} {subject} not {word}{_preposition(after)}?", False
    preposition = _preposition(rest)
    if verb in ("means", "mean") and preposition:
        return None  # A structured means to balance risks: it is the noun.
    if is_stray(rest) or (BASE.get(verb, verb) in _NEED_A_PREPOSITION and not preposition):
        return None
    base = "set forth" if verb.startswith("set") else BASE.get(verb, verb)
    is_plural = verb in (*PLURAL, "set forth") or re.match(r"[a-z]+s \d", subject)
    does = "do" if is_plural else "does"
    if (
        re.match(r"and \w+s ", rest)
        or says_nothing(rest[len(preposition) :].lstrip())
        or re.match(rf"[^,;]{{0,60}} with an? {PRAISE}\b", rest)
    ):
        return None
    return f"What {does} {subject} {base}{preposition}?", False


def _preposition(rest: str) -> str:
    found = re.match(r"(?:only )?(to|with|from|for|on|as|of|by|into|between|against)(?=[ :])", rest)
    return f" {found[1]}" if found else ""


def _of_state(subject: str, verb: str, rest: str) -> tuple[str, bool] | None:
    timed = _timed(subject, verb, rest) if _STATE.match(rest) else None
    if timed is not None:
        return timed, False
    told = _TO_DO.match(rest)
    if (
        told is not None
        and rest[told.end() :].split(" ", 1)[0] in ACTS
        and (told["done"] != "required" or verb in ("are", "were"))
    ):
        return f"What {verb} {subject} {told['done']} to do?", False
    done = _PARTICIPLE.match(rest)
    if done is not None:
        return _of_done(f"{verb} {subject}", "", done)
    quality = _QUALITY.match(rest)
    if quality is not None:
        return f"What {verb} {subject} {quality[0]}?", False
    if rest.startswith("$"):
        return f"How much {verb} {subject}?", False
    if says_nothing(rest) or re.match(r"\d+(?:,| or) ", rest):
        return None  # One of several figures: in which case, the text around it says.
    if re.match(
        r"(?:[\w’'-]+ ){0,4}(?:contributor|same|reason|key|way|matter|thing|problem|step|case)\b", rest
    ):
        return None
    called = content_terms(_HEAD.split(rest, maxsplit=1)[0])
    if called and set(called) <= set(content_terms(subject)):
        return None  # The 2006 Plan is a plan to which ...
    says_what = (_ARTICLE.match(rest) or rest[0].isdigit()) and not re.match(r"\w+ing ", subject)
    asks = "Who" if is_person(subject, rest) else "What"
    return (f"{asks} {verb} {subject}?", False) if says_what else None


def _of_done(start: str, be: str, done: re.Match[str]) -> tuple[str, bool] | None:
    prep = done["prep"]
    after = done.string[done.end() :]
    is_bound = prep not in _BINDS or done["done"] in _BINDS[prep]
    if not is_bound or _NO_ANSWER.match(after) or after.startswith("be "):
        return None
    if prep == "for" and _LASTS.match(after):
        return f"For how long {start} {be}{done['done']}?", False
    if prep == "as" and not _ARTICLE.match(after):
        return None  # As something arises: when, and not what it is taken for.
    if prep == "by" and be.startswith("not "):
        return None
    is_named = re.match(_AGENT, after) is not None and done["done"] not in _BY_A_SCALE
    if prep == "by" and (is_named or _AGENTS.match(after)):
        return f"By whom {start} {be}{done['done']}?", False
    if prep in _MEANS:
        if after[0].isdigit() or re.match(
            r"(?:the (?:end|age|year|time)|one|two|three|age|at least|up to)\b", after
        ):
            return None  # Through 42 months: how long, and not how.
        is_how = prep != "by" or re.match(r"\w+ing\b", after) is not None
        return f"How {start} {be}{done['done']}?", is_how
    if (prep in ("in", "on", "at") and done["done"] in _PLACED) or (prep == "to" and done["done"] in _SENT):
        return f"Where {start} {be}{done['done']}?", False
    if prep in ("in", "at", "on", "under") and (prep, done["done"]) not in _GOES_WITH:
        return None  # When, where or in which case, and not in what.
    return f"What {start} {be}{done['done']} {prep}?", False


def _of_duty(subject: str, verb: str, rest: str) -> tuple[str, bool] | None:
    timed = _timed(subject, verb, rest)
    if timed is not None:
        return timed, False
    where = _WHERE.match(rest)
    if where is not None:
        return f"Where {verb} {subject} be {where['done']}?", True
    if rest.startswith(("be ", "not be ")):
        be, state = ("be ", rest[3:]) if rest.startswith("be ") else ("not be ", rest[7:])
        done, quality = _PARTICIPLE.match(state), _QUALITY.match(state)
        if done is not None:
            return _of_done(f"{verb} {subject}", be, done)
        return (f"What {verb} {subject} {be}{quality[0]}?", False) if quality else None
    if rest.startswith(("have ", "also be ", "cost $")):
        return (f"How much {verb} {subject} cost?", False) if rest[0] == "c" else None
    means = _BY_DOING.match(rest)
    if means is not None:
        return f"How {verb} {subject} {means['act']}?", True
    word, _, after = rest.partition(" ")
    word = word.rstrip(",:;")
    if verb not in OBLIGE and word in _OPEN:
        return None  # Of what somebody will provide there is no end.
    if word == "not":
        act, _, object_ = after.partition(" ")
        is_asked = act in _OBJECTS and not is_stray(object_)
        return (f"What {verb} {subject} not {act}?", False) if is_asked else None
    if word == "ask" and after.startswith("for "):
        return f"What {verb} {subject} ask for?", True
    if word in _PERSONS:
        if word in _ALSO_THINGS and not (_AGENTS.match(after) or re.match(_AGENT, after)):
            return f"What {verb} {subject} {word}?", True
        return f"Whom {verb} {subject} {word}?", True
    has_more = re.search(r"(?:,|,? and|,? or) (?:then )?(\w+) ", after)
    if has_more is not None and has_more[1] in ACTS and verb in OBLIGE:
        return f"What {verb} {subject} do?", True
    if word in (*_OBJECTS, *_TAKE_OBJECTS) and not is_stray(after):
        is_how = verb in OBLIGE and word not in _STATES
        return f"What {verb} {subject} {word}{_preposition(after)}?", is_how
    is_name = all(w[0].isupper() or len(w) < 4 for w in subject.split())
    is_told = verb in OBLIGE and not is_name and word in ACTS and not _NO_ACT.match(f"{subject}|{rest}")
    return (f"What {verb} {subject} do?", True) if is_told else None


def _timed(subject: str, verb: str, rest: str) -> str | None:
    match = _WHEN.match(rest)
    if match is None or len(match["act"].split()) > MOST_WORDS or _RELATIVE.search(match["act"]):
        return None
    prep = match["prep"]
    if match["within"]:
        asks = "Within what time"
    elif prep in _DEADLINES:
        asks = "By when"
    elif prep in ("until", "from"):
        asks = f"{prep.capitalize()} when"
    else:
        asks = "After which date" if prep == "after" else "When"
    return f"{asks} {verb} {subject} {match['act']}?"
