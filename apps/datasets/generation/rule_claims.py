"""Sentences that state something, each with the question that it answers. Pure, deterministic; English.

A sentence is asked about only where a template makes a question that reads well and stands alone; most sentences are
not. Nothing here understands a text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

from apps.datasets.generation.corpus import Passage
from apps.datasets.generation.rule_rows import rows_of
from apps.datasets.generation.rule_units import units_of
from toolloop.sentences import content_terms, identifiers

POINTS_AWAY = re.compile(
    r"\b(this|that|these|those|the above|the following) (passage|text|section|document|paragraph|table|study|paper|article|page)\b"
    r"|\b(passage|document) above\b|\b(?:see|in) (?:figure|table|section) \d|^(it|they|he|she|this|that) ",
    re.IGNORECASE,
)
_NO_SUBJECT = re.compile(
    r"^(?:it|its|they|their|there|this|these|that|those|he|she|his|her|we|our|you|your|such|which|what|who|if|when|where|"
    r"how|why|although|though|however|thus|hence|therefore|together|in|for|as|on|of|with|at|by|from|because|since|while|"
    r"moreover|finally|overall|note|here|to|after|before|during|both|some|additional information|many|most|several|few|more|further|furthermore|"
    r"additionally|also|and|but|or|so|then|under|within|among|between|despite|given|unlike|like|one|two|three|none|nothing|"
    r"no|not|yes|another|other|others|till|until|unless|see|results?|conclusions?|figure|fig|table|same|each other)\b"
    r"|\b(?:that|which|who|whom|whose|revealed|showed|shows|indicates?|suggests?|because|however|although|we|i|it|they)\b"
    r"|\b(?:latter|former|whether|others|this|these|those|such|its|their|our|your|herein|above|below|following|can|could|would)\b"
    r"|\b(?:of|in|to|for|and|or|the|a|an|with|by|from|as|at|on|not|also|only|then)$|https?:|@|_|—"
    r"|(?-i:[a-z]{2,}s [A-Z]\w*$)",
    re.IGNORECASE,
)
_DANGLES = re.compile(
    r"\b(?:this|these|those|such|it|they|them|herein|hereof|thereof|hereinafter|above|below|following|latter|former|"
    r"same|we|our|us|you|your|i|he|she|him|his|her|here)\b|[|<>=*{}\[\]_]|\.\.|\(con|@(?!\w)|https?: ?//",
    re.IGNORECASE,
)
_SUBJECT = re.compile(
    r"(?:[^.,;:?!|()<>=*\"“”\[\]]|(?<=\d)[.](?=\d)|(?<=\b[A-Z])[.]|(?<=\d), (?=(?:and |or )?\d)|\([a-z0-9]{1,4}\))"
    r"{2,160}"
)
_FINITE = (
    "apply provide include require mean refer establish contain define describe determine enable ensure serve consist rely"
    " protect connect specify maintain allow permit assess coordinate implement represent prevent reflect amend advise"
    " assist comprise depend govern regulate authorize prohibit exclude exempt impose deliver add remove replace combine"
    " reduce create produce envision convert calculate compute extract generate handle identify operate involve consider"
).split()  # noqa: SIM905 - a list of words reads better as text
_PLURAL = (
    "apply provide include require mean refer establish contain define describe ensure serve consist rely protect maintain"
    " allow permit represent prevent reflect depend comprise"
).split()  # noqa: SIM905
_OBJECTS = {
    *_FINITE,
    *"submit develop keep hold pay report file name state meet complete prepare publish review approve bear show use".split(),  # noqa: SIM905
}
_NEED_A_PREPOSITION = ("apply", "refer", "serve", "consist", "rely", "depend")
_NO_VERB = re.compile(r"(?:is|are|was|were|has|have|had|of|must|shall|should|may|will|would|can)\b")
"""What follows where the verb was none: the means are, the requirements of."""
_PERSONS = ("contact", "notify", "inform", "consult", "call", "ask")
_MODALS = ("must", "shall", "should", "may", "will", "would", "can")


def _third(verb: str) -> str:
    if re.search(r"[^aeiou]y$", verb):
        return f"{verb[:-1]}ies"
    return f"{verb}es" if verb.endswith(("s", "x", "ch", "sh", "o")) else f"{verb}s"


_BASE = {_third(verb): verb for verb in _FINITE}
_VERB = re.compile(
    rf"(?:, [^,]{{3,60}},)? (?P<verb>is|are|was|were|{'|'.join(_MODALS)}|has|have|does not|do not"
    rf"|{'|'.join([*_BASE, *_PLURAL])}|sets forth|(?<=\d )set forth) (?=[^|]{{6,1500}}$)"
)
_OPENS = re.compile(
    r"^(?:Except|For|In|On|Under|As|At|By|Beginning|After|Before|During|With|Within|Since|From|Pursuant|Subject|Through|Over)\b"
)
_CONNECTS = re.compile(
    r"^(?:Additionally|Specifically|Also|Further|Furthermore|Moreover|Finally|In addition|Currently|Generally|For example|For instance), ?"
)
_PARTICIPLE = re.compile(
    r"^(?:(?:also|now|usually|often|currently|widely|primarily|mainly|always|generally|only|not) )?"
    r"(?P<done>[a-z]{3,}ed|shown|found|made|given|held|kept|built|known|taken|seen|set|paid|sold|written|chosen|led|sent) "
    r"(?P<prep>in addition to|in excess of|by|with|from|for|as|into|under|through|via|using|on|in|at|to|of|against|between) "
)
_BINDS = {
    "to": "referred addressed submitted forwarded limited applied assigned attributed added restricted exposed connected linked related compared subjected".split(),  # noqa: SIM905
    "of": "comprised composed made informed".split(),  # noqa: SIM905
}
_PLACED = "listed found located proposed published observed described shown kept held set stored posted given contained enumerated".split()  # noqa: SIM905
_SENT = ("referred", "addressed", "submitted", "forwarded")
_TO_DO = re.compile(
    r"^(?P<done>required|expected|allowed|permitted|authorized|obliged|entitled|encouraged|directed) to "
)
_QUALITY = re.compile(
    r"^(?:not )?(?P<what>responsible for|subject to|eligible for|liable for|exempt from|equal to|open to|available to|part of|accessible to)\b"
)
_MEANS = ("by", "using", "through", "via")
_AGENT = r"(?:an? |the )?(?!Section|Proclamation|Executive|Act|Title|Public Law)[A-Z]"
_ARTICLE = re.compile(r"^(?:an?|the|one|any|each|part) ")
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = rf"(?:(?:\d{{1,2}} )?{_MONTH}(?: \d{{1,2}}\b)?(?:,? \d{{4}})?|(?:FY ?)?(?:19|20)\d\d\b|\d{{1,2}}:\d\d [ap]\.?m)"
_WHEN = re.compile(
    rf"^(?P<act>[^,;:]{{3,130}}?),? (?:(?P<prep>on|at|from|in|by|no later than|not later than|before|after|until|effective|"
    rf"beginning) (?:or (?:before|after) |approximately |the end of |about )?{_DATE}|(?P<within>within) \d+ (?:\w+ )?(?:days|months|years|weeks|hours))"
)
_DEADLINES = ("by", "no later than", "not later than", "before")
_WHERE = re.compile(
    r"^be (?P<done>\w+)(?: online)? (?:at|on|to|in|via) (?:\S+ ){0,6}?(?:https?:|www\.|\S+@|\S+\.(?:gov|org|com)\b)"
)
_BY_DOING = re.compile(r"^(?P<act>[^,;:]{8,140}?),? by (?:\w+ing\b)")
_ON_DAY = re.compile(
    rf"^On (?P<day>{_MONTH} \d{{1,2}}, \d{{4}}), (?P<subject>(?:the )?[A-Z][\w.’' -]{{2,60}}?) (?P<did>[a-z]+ed) "
)
_IF = re.compile(
    r"^(?P<word>If|Once|When) (?P<what>(?:[^,;:]|, (?=\d{4})){12,160}), (?P<then>.{15,400})$"
)
_TO = re.compile(r"^To (?P<what>[a-z][^,.;:]{8,90}), (?P<how>[^|]{20,300})$")
_AMENDS = re.compile(
    r"^By (?P<does>amend|revis|replac|modify)ing (?P<what>[^,;:]{5,120}?),? by (?:insert|delet|add|strik|replac)ing\b"
)
_INVERSE = re.compile(
    r" (?P<what>(?:must|shall) (?:continue to )?be [a-z]{3,}ed (?:[^,;:]|, (?=(?:and |or )?\d)){15,200}?)(?=, (?!(?:and |or )?\d)|;|$)"
)
_DONE = {"amend": "amended", "revis": "revised", "replac": "replaced", "modify": "modified"}
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_ASIDE = re.compile(r" \((?![a-z0-9]{1,4}\))[^()]{2,160}\)")
_ARTICLES = {"The", "A", "An", "Each", "All", "Any", "Every"}
_NUMBERED = {"Heading", "Headings", "Subheading", "Subheadings", "Chapter", "Chapters"}
_SUCH_OF = re.compile(r"\bsuch (?=\w+ of )")
MOST_SUBJECT_WORDS, LONGEST_SENTENCE, LONGEST_OPENING = 9, 700, 130
LONGEST_QUESTION = 320


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence with the question that it answers.

    Attributes:
        subject: as it stands in the middle of a sentence; "" where the question has none.
        is_how: it says how something is done, or what has to be done.
    """

    subject: str
    question: str
    sentence: str
    weight: float
    is_how: bool


def claims_of(passage: Passage) -> list[Claim]:
    """Return the sentences, lists and rows of tables of a passage that can be asked about."""
    found = []
    for unit in units_of(passage.text, passage.headings):
        if unit.is_edge and passage.char_start > 0:
            continue  # Passages overlap: the one before has all of it.
        claim = claim_read(unit.text, passage, is_list=unit.is_list)
        if claim is not None:
            found.append(claim)
    rows = rows_of(passage.text, title_of(passage.document))
    found += [Claim(r.subject, r.question, r.text, _weight(r.text), is_how=False) for r in rows]
    return list({claim.question: claim for claim in reversed(found)}.values())[::-1]


def claim_read(sentence: str, passage: Passage, *, is_list: bool = False) -> Claim | None:
    """Return a sentence with its question; None where no template reads well."""
    plain = _ASIDE.sub("", _LINK.sub(r"\1", sentence)).replace("**", "")
    plain = _CONNECTS.sub("", plain)
    ends = r"(?:[a-z0-9%)’'\"”]|[A-Z]{2})[.][)’'\"”]?$" + (
        r"|; ?(?:and|or)?$" if _AMENDS.match(plain) else ""
    )
    is_whole = is_list or re.search(ends, plain) is not None
    if (
        not is_whole
        or (len(sentence) > LONGEST_SENTENCE and not is_list)
        or POINTS_AWAY.search(sentence)
    ):
        return None
    if not is_list and (plain.count(";") > 2 or not re.match(r"[A-Z]", plain)):
        return None
    asked = _asked_of(plain.rstrip(".").rstrip(), passage.text)
    if asked is None:
        return None
    subject, question, is_how = asked
    question = " ".join(_SUCH_OF.sub("", question).split())
    if _DANGLES.search(question) or len(question) > LONGEST_QUESTION:
        return None
    if _is_vague(subject) if subject else not re.search(r"[A-Z0-9]", question[1:]):
        question = f"{question[:-1]}, according to {title_of(passage.document)}?"
    elif (
        len(content_terms(subject)) < 2
        and not re.search(r"\d", subject)
        and len(content_terms(question)) < 3
    ):
        return None
    return Claim(
        subject, f"{question[0].upper()}{question[1:]}", sentence, _weight(sentence), is_how
    )


def title_of(document: str) -> str:
    """Return a document's name as it is said in a sentence: codes in it are no codes of the text."""
    return f"“{re.sub(r'[-_.]+', ' ', PurePath(document).stem).strip()}”"


def _weight(sentence: str) -> float:
    return len(identifiers(sentence)) + min(len(content_terms(sentence)), 20) / 10


def _is_vague(subject: str) -> bool:
    """Tell whether a subject is one of many of its kind: the meeting, reservations."""
    is_named = re.search(r"[A-Z0-9]", subject) is not None
    return not is_named and len(content_terms(subject)) < 4


def _asked_of(plain: str, text: str) -> tuple[str, str, bool] | None:
    """Return subject, question, and whether it asks how."""
    day = _ON_DAY.match(plain)
    if day is not None and not _NO_SUBJECT.search(day["subject"]):
        return day["subject"], f"What did {day['subject']} do on {day['day']}?", False
    amended = _AMENDS.match(plain)
    if amended is not None:
        return amended["what"], f"How is {amended['what']} {_DONE[amended['does']]}?", True
    condition = _IF.match(plain)
    if condition is not None:
        return _conditional(condition, text)
    todo = _TO.match(plain)
    if (
        todo is not None
        and not todo["what"].startswith("be ")
        and not _DANGLES.search(todo["what"])
    ):
        return _of_purpose(todo["what"], todo["how"], text)
    for opening, clause in _clauses(plain):
        found = _stated(clause, text)
        if found is not None:
            return found[0], _prefaced(opening, found[1]), found[2]
    inverse = _INVERSE.search(plain)
    is_known = inverse is not None and not re.search(
        r"\bas (?:defined|described|provided|set)\b", inverse["what"]
    )
    if (
        inverse is not None
        and is_known
        and identifiers(inverse["what"])
        and not re.match(r"No\b", plain)
    ):
        return "", f"What {inverse['what']}?", False
    return None


def _clauses(plain: str) -> list[tuple[str, str]]:
    """Return a sentence, or, where it opens with a circumstance, where that may end and the main clause begin."""
    if not _OPENS.match(plain):
        return [("", plain)]
    if re.match(r"[^,]*\b(?:this|these)\b", plain) and not plain.startswith("Except"):
        return []
    starts = [m for m in re.finditer(r", (?!and |or |but |\d|which |that |except )", plain)]
    return [(plain[: m.start()], plain[m.end() :]) for m in starts[:12]]


def _prefaced(opening: str, question: str) -> str:
    """Return a question within the circumstance that its sentence opens with, unless that is an exception or points away."""
    is_told = opening and not opening.startswith("Except") and not _DANGLES.search(opening)
    if not is_told or len(opening) > LONGEST_OPENING:
        return question
    return f"{opening}, {question[0].lower()}{question[1:]}"


def _parts(clause: str) -> tuple[str, str, str] | None:
    """Return subject, verb and what follows; None where there is no plain subject before a verb."""
    for found in _VERB.finditer(clause):
        subject, verb = clause[: found.start()], found["verb"]
        if not _SUBJECT.fullmatch(subject):
            return None
        is_plural = re.search(r"[^s]s\b| and ", subject) and not re.match(
            r"(?:An?|Each|Any|Every) ", subject
        )
        is_noun = (verb in _PLURAL and not is_plural) or _NO_VERB.match(clause, found.end())
        if verb not in (*_BASE, *_PLURAL) or not is_noun:
            return _SUCH_OF.sub("", subject.strip()), verb, clause[found.end() :]
    return None


def _stated(clause: str, text: str) -> tuple[str, str, bool] | None:
    parts = _parts(clause)
    if parts is None:
        return None
    subject, verb, rest = parts
    terms = [term for term in content_terms(subject) if not term[0].isdigit()]
    if _NO_SUBJECT.search(subject) or not 1 <= len(terms) <= MOST_SUBJECT_WORDS:
        return None
    if re.match(r"The [^A-Z\d]+$", subject) and len(terms) < 2:
        return None  # The plan, the meeting: which one, the sentences before have said.
    subject = _lowered(subject, text)
    asked = _asked(subject, verb, rest)
    return None if asked is None else (subject, *asked)


def _conditional(condition: re.Match[str], text: str) -> tuple[str, str, bool] | None:
    word, what = condition["word"].lower(), condition["what"]
    if len(content_terms(what)) < 2 or not re.search(
        rf"\b(?:{'|'.join(_MODALS)})\b", condition["then"]
    ):
        return None
    parts = _parts(condition["then"])
    if parts is None or parts[1] not in _MODALS:
        return "", f"What happens {word} {what}?", False
    subject = _lowered(parts[0], text)
    if _NO_SUBJECT.search(subject) or parts[2].startswith(("be ", "not ")):
        return "", f"What happens {word} {what}?", False
    return subject, f"What {parts[1]} {subject} do {word} {what}?", True


def _of_purpose(what: str, how: str, text: str) -> tuple[str, str, bool] | None:
    parts = _parts(how)
    if parts is not None and parts[1] in _MODALS and not _NO_SUBJECT.search(parts[0]):
        subject = _lowered(parts[0], text)
        if not parts[2].startswith(("be ", "not ", "have ")):
            return subject, f"What {parts[1]} {subject} do to {what}?", True
    is_clause = re.match(
        r"(?:the |an? |[A-Z]|each |all |every |it |they |we |you |one |use |set |run |call )", how
    )
    return ("", f"How can one {what}?", True) if is_clause else None


def _asked(subject: str, verb: str, rest: str) -> tuple[str, bool] | None:
    """Return a question for a claim, and whether it asks how; None where no template reads well."""
    if verb in ("is", "are", "was", "were"):
        return _of_state(subject, verb, rest)
    if verb in _MODALS:
        return _of_duty(subject, verb, rest)
    if verb in ("has", "have"):
        if _ARTICLE.match(rest) or rest[0].isdigit():
            return f"What {'does' if verb == 'has' else 'do'} {subject} have?", False
        return None
    if verb in ("does not", "do not"):
        word, _, after = rest.partition(" ")
        if word not in _FINITE:
            return None
        return f"What {verb[:-4]} {subject} not {word}{_preposition(after)}?", False
    preposition = _preposition(rest)
    if _BASE.get(verb, verb) in _NEED_A_PREPOSITION and not preposition:
        return None
    base = "set forth" if verb.startswith("set") else _BASE.get(verb, verb)
    is_plural = verb in (*_PLURAL, "set forth") or re.match(r"[a-z]+s \d", subject)
    does = "do" if is_plural else "does"
    if re.match(r"and \w+s ", rest):
        return f"What {does} {subject} do?", False
    return f"What {does} {subject} {base}{preposition}?", base == "require"


def _preposition(rest: str) -> str:
    found = re.match(r"(?:only )?(to|with|from|for|on|as|of|by|into|between|against)(?=[ :])", rest)
    return f" {found[1]}" if found else ""


def _of_state(subject: str, verb: str, rest: str) -> tuple[str, bool] | None:
    timed = _timed(subject, verb, rest)
    if timed is not None:
        return timed, False
    told = _TO_DO.match(rest)
    if told is not None and (told["done"] != "required" or verb in ("are", "were")):
        return f"What {verb} {subject} {told['done']} to do?", False
    done = _PARTICIPLE.match(rest)
    if done is not None:
        return _of_done(f"{verb} {subject}", "", done)
    quality = _QUALITY.match(rest)
    if quality is not None:
        return f"What {verb} {subject} {quality[0]}?", False
    if rest.startswith("$"):
        return f"How much {verb} {subject}?", False
    says_what = (_ARTICLE.match(rest) or rest[0].isdigit()) and not re.match(r"\w+ing ", subject)
    return (f"What {verb} {subject}?", False) if says_what else None


def _of_done(start: str, be: str, done: re.Match[str]) -> tuple[str, bool] | None:
    prep = done["prep"]
    after = done.string[done.end() :]
    is_bound = prep not in _BINDS or done["done"] in _BINDS[prep]
    if not is_bound or re.match(r"(?:the same|accordance|this|these|order|part|addition)\b", after):
        return None
    if prep == "by" and re.match(_AGENT, after):
        return f"By whom {start} {be}{done['done']}?", False
    if prep in _MEANS:
        return f"How {start} {be}{done['done']}?", re.match(
            r"\w+ing\b", after
        ) is not None or prep != "by"
    if (prep in ("in", "on", "at") and done["done"] in _PLACED) or (
        prep == "to" and done["done"] in _SENT
    ):
        return f"Where {start} {be}{done['done']}?", False
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
    word, _, after = rest.removeprefix("also ").partition(" ")
    if word in _PERSONS:
        return f"Whom {verb} {subject} {word}?", True
    if word in _OBJECTS and not after.startswith("and "):
        return f"What {verb} {subject} {word}{_preposition(after)}?", verb in (
            "must",
            "shall",
            "should",
        )
    is_name = all(w[0].isupper() or len(w) < 4 for w in subject.split())
    is_told = verb in ("must", "shall", "should") and not is_name
    return (f"What {verb} {subject} do?", True) if is_told else None


def _timed(subject: str, verb: str, rest: str) -> str | None:
    match = _WHEN.match(rest)
    if (
        match is None
        or len(match["act"].split()) > 16
        or re.search(r"\b(?:that|which|who)\b", match["act"])
    ):
        return None
    asks = (
        "Within what time"
        if match["within"]
        else "By when"
        if match["prep"] in _DEADLINES
        else "When"
    )
    if match["prep"] in ("until", "after", "from"):
        asks = (
            f"{match['prep'].capitalize()} when" if match["prep"] != "after" else "After which date"
        )
    return f"{asks} {verb} {subject} {match['act']}?"


def _lowered(subject: str, text: str) -> str:
    """Return a subject as it stands within a sentence: its first word small, unless it seems to be a name."""
    head, space, rest = subject.partition(" ")
    small = f"{head.lower()}{space}{rest}"
    if head in _ARTICLES:
        return small
    if head in _NUMBERED and rest[:1].isdigit():
        return small
    if not re.fullmatch(r"[A-Z][a-z-]+", head) or re.search(rf"[a-z,] {head}\b", text):
        return subject
    is_word = re.search(rf"(?<!\w){head.lower()}(?!\w)", text) is not None
    return small if (is_word and not rest[:1].isupper()) or rest[:1].islower() else subject
