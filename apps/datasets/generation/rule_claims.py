"""Sentences that state something, each with the question that it answers. Pure, deterministic; English.

A sentence is asked about only where a template makes a question that reads well and stands alone; most sentences are
not. Nothing here understands a text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePath

from apps.datasets.generation.corpus import CorpusPassage
from apps.datasets.generation.rule_asking import ACTS, BASE, MODALS, MONTH, OBLIGE, PLURAL, asked
from apps.datasets.generation.rule_doubts import is_bare_noun, is_no_aside, points_elsewhere
from apps.datasets.generation.rule_rows import rows_of
from apps.datasets.generation.rule_units import units_of
from toolloop.best_sentences import content_terms, identifiers

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
    r"multiple|various|certain|numerous|different|illustrates|no|not|yes|another|other|others|only|whichever|whatever|examples? of|choosing|depending|till|until|unless|see|results?|conclusions?|figure|fig|table|same|each other)\b"
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
_NO_VERB = re.compile(r"(?:is|are|was|were|has|have|had|of|must|shall|should|may|will|would|can)\b")
"""What follows where the verb was none: the means are, the requirements of."""
_VERB = re.compile(
    rf"(?P<aside>, [^,]{{3,60}},)? (?P<verb>is|are|was|were|{'|'.join(MODALS)}|has|have|does not|do not"
    rf"|{'|'.join([*BASE, *PLURAL])}|sets forth|(?<=\d )set forth) (?=[^|]{{6,1500}}$)"
)
_OPENS = re.compile(
    r"^(?:Except|For|In|On|Under|As|At|By|Beginning|After|Before|During|With|Within|Since|From|Pursuant|Subject|Through|Over)\b"
)
_ADDS = re.compile(
    r"(?:In (?:short|fact|practice|general|particular|addition|other words|summary|contrast|turn|this|these)|As such|As a result|For (?:example|instance|now)|"
    r"At the same time)\b"
)
_IF_THE = re.compile(r"\b(?:if|when|once|unless) the [a-z-]+ (?:is|are|was|were|has|have|does|do) ")
_GENERIC = re.compile(
    r"the (?:overall|specific|main|remaining|resulting|corresponding|respective|next|last|first|second|third|other|final|above|"
    r"whole|entire|actual|new|old|given|present)\b"
)
_CONNECTS = re.compile(r"^(?:Currently|Generally|Specifically), ?")
_OBLIGES = re.compile(r"\b(?:MUST|SHALL|SHOULD|MAY|WILL|REQUIRED|NOT|RECOMMENDED)\b")
"""Key words of requirements, written in capitals (RFC 2119, section 1)."""
_ON_DAY = re.compile(
    rf"^On (?P<day>{MONTH} \d{{1,2}}, \d{{4}}), (?P<subject>(?:the )?[A-Z][\w.’' -]{{2,60}}?) (?P<did>[a-z]+ed) "
)
_IF = re.compile(r"^(?P<word>If|Once|When) (?P<what>(?:[^,;:]|, (?=\d{4})){12,160}), (?P<then>.{15,400})$")
_TO = re.compile(r"^To (?P<what>[a-z][^,.;:]{8,90}), (?P<how>[^|]{20,300})$")
_AMENDS = re.compile(
    r"^By (?P<does>amend|revis|replac|modify)ing (?P<what>[^,;:]{5,120}?),? by (?:insert|delet|add|strik|replac)ing\b"
)
_INVERSE = re.compile(
    r" (?P<what>(?:must|shall) (?:continue to )?be [a-z]{3,}ed (?:[^,;:]|, (?=(?:and |or )?\d)){15,200}?)(?=, (?!(?:and |or )?\d)|;|$)"
)
_DONE = {"amend": "amended", "revis": "revised", "replac": "replaced", "modify": "modified"}
_LINK = re.compile(
    r"\[\[([^\]\[]*)\]\]\([^)]*\)|"
    r"!?\[([^\]\[]*)\](?:\([^)]*\)|\[[^\]\[]*\])|\[\^\w+\]()|(?<!\w)[*_](?=\w)|(?<=\w)[*_](?!\w)"
)
_NO_TITLE = re.compile(
    r"[^\x00-\u024f‘’–—…]|[\"<>{}|\\]|\.\w{2,4}$|:$|^(?:microsoft|untitled|frequently asked|table of contents)\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(r" \((?![a-z0-9]{1,4}\))[^()]{2,160}\)")
_DAY = re.compile(rf"{MONTH}|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?")
_ARTICLES = {"The", "A", "An", "Each", "All", "Any", "Every"}
_NUMBERED = {"Heading", "Headings", "Subheading", "Subheadings", "Chapter", "Chapters"}
_ENDS = re.compile(r"(?:[a-z0-9%)’'\"”]|[A-Z]{2})[.][)’'\"”]?$")
_LIST_GOES_ON = re.compile(r":(?: ?[\d.]{4,};)+$")
"""Codes after a colon, the last of which is followed by no “and”: the list seems to go on elsewhere."""
_SUCH_OF = re.compile(r"\bsuch (?=\w+ of )")
MOST_SUBJECT_WORDS, LONGEST_SENTENCE, LONGEST_OPENING = 9, 700, 130
LONGEST_QUESTION, LONGEST_QUOTED_LIST = 320, 1600
LONG_SENTENCE, LONG_QUESTION, LONGEST_TITLE = 330, 150, 110
OF_A_ROW = 1
"""The doubt of every row of a table: a sentence says more, and tables have many rows."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence with the question that it answers.

    Attributes:
        subject: as it stands in the middle of a sentence; "" where the question has none.
        is_how: it says how something is done, or what has to be done.
        told: the part of the sentence that is the answer, "" where that is all of it: one cell of a row.
        column: of a row of a table, see ``Row``.
        doubt: how much speaks against it; among many, those of the least are asked.
    """

    subject: str
    question: str
    sentence: str
    weight: float
    is_how: bool
    told: str = ""
    column: str = ""
    doubt: int = 0


def claims_of(passage: CorpusPassage) -> list[Claim]:
    """Return the sentences, lists and rows of tables of a passage that can be asked about."""
    found = []
    for unit in units_of(passage.text, passage.headings):
        if unit.is_edge and passage.char_start > 0:
            continue  # Passages overlap: the one before has all of it.
        claim = claim_read(unit.text, passage, is_list=unit.is_list)
        if claim is not None:
            found.append(claim)
    found += [
        Claim(r.subject, r.question, r.text, _weight(r.text), False, r.told, r.column, OF_A_ROW)
        for r in rows_of(passage.text, title_of(passage))
    ]
    sentences: dict[str, set[str]] = {}
    for claim in found:
        sentences.setdefault(claim.question, set()).add(claim.sentence)
    # What two sentences answer in two ways has no one answer.
    return [claim for claim in _once_each(found) if len(sentences[claim.question]) == 1]


def _once_each(claims: list[Claim]) -> list[Claim]:
    return list({claim.question: claim for claim in reversed(claims)}.values())[::-1]


def claim_read(sentence: str, passage: CorpusPassage, *, is_list: bool = False) -> Claim | None:
    """Return a sentence with its question; None where no template reads well."""
    if len(sentence) > (LONGEST_QUOTED_LIST if is_list else LONGEST_SENTENCE):
        return None
    plain = _CONNECTS.sub("", _ASIDE.sub("", _LINK.sub(r"\1\2\3", sentence.replace("**", ""))))
    plain = _OBLIGES.sub(lambda m: m[0].lower(), plain)
    is_amendment = _AMENDS.match(plain) is not None and plain.endswith((";", "; and", "; or"))
    if _LIST_GOES_ON.search(plain) or points_elsewhere(plain, is_list=is_list):
        return None
    if not (is_list or is_amendment or _ENDS.search(plain)) or POINTS_AWAY.search(sentence):
        return None
    if (not is_list and not plain[0].isupper()) or _ADDS.match(plain):
        return None
    made = _asked_of(plain.rstrip(".").rstrip(), passage.text)
    if made is None:
        return None
    subject, question, is_how = made
    question = " ".join(_SUCH_OF.sub("", question).split())
    if (
        _DANGLES.search(question)
        or re.search(r" that[,?]", question)
        or len(question) > LONGEST_QUESTION
        or is_bare_noun(subject)
    ):
        return None
    doubt = _doubt(subject, question, sentence)
    if is_vague(subject) if subject else not re.search(r"[A-Z0-9]", question[1:]):
        if not _may_be_vague(subject, question):
            return None
        question = f"{question[:-1]}, according to {title_of(passage)}?"
    elif _is_bare(subject) and len(content_terms(question)) < 3:
        return None
    elif (_is_bare(subject) and subject.startswith("the ")) or _IF_THE.search(question):
        # The Department, the Board: of whom? If the value is an Err: which?
        question = f"{question[:-1]}, according to {title_of(passage)}?"
    question = f"{question[0].upper()}{question[1:]}"
    return Claim(subject, question, sentence, _weight(sentence), is_how, doubt=doubt)


def _may_be_vague(subject: str, question: str) -> bool:
    """Tell whether a question about one of many of a kind can be asked of a whole document.

    What it is, and how something is done with it, can; what it may, or what was done to one of them, stands in a context.
    """
    if not subject:
        return True
    of_kind = re.match(
        r"(?:How|What (?:is|are)|What do(?:es)? .* (?:mean|define|include|contain|consist of)\b)", question
    )
    is_event = re.match(
        r"What (?:is|are|was|were|can|may) .* \w+(?:ed|en|wn) (?:to|with|from|for|as|into|by|of|on|in|against|via)\?",
        question,
    )
    if re.match(r"(?:an?|any|each|every) ", subject) and re.search(r"\b(?:must|shall) ", question):
        return True  # What is demanded of each of them is said of the kind.
    has_terms = len(content_terms(subject)) > 1
    is_one = re.match(r"an? ", subject) is not None and not re.match(
        r"(?:What (?:is|does) an? .*(?:mean)?\?|How )", question
    )
    if (
        is_event
        or _GENERIC.match(subject)
        or (is_one and re.search(r"\b(?:include|contain|have|require|provide|create)\?$", question))
    ):
        return False
    is_open = re.match(r"(?:What|Who|When) (?:can|may|will|would) ", question) is not None
    return (has_terms and not is_open) or (of_kind is not None and (has_terms or question.startswith("How")))


def _doubt(subject: str, question: str, sentence: str) -> int:
    """Return how many things speak against a question that a template has made."""
    against = (
        bool(subject) and is_vague(subject),
        re.match(r"What (?:must|shall|should|happens)\b.*(?: do\b|\bif\b|\bonce\b|\bwhen\b)", question)
        is not None,
        re.match(r".{0,80}\b(?:can|may|would) ", question) is not None,
        not question.startswith(("What", "How", "Who", "When", "By", "Where", "Within", "For how")),
        len([term for term in content_terms(question) if not term[0].isdigit()]) < 4
        and not question.startswith("What is"),
        len(sentence) > LONG_SENTENCE,
        re.search(r"\b(?:it|they|this|these|its|their|such)\b", sentence) is not None,
        len(question) > LONG_QUESTION,
        re.search(r"[;:]", sentence.rstrip(";:")) is not None,
    )
    return sum(against)


def title_of(passage: CorpusPassage) -> str:
    """Return a document's title as it is said in a sentence, else its name without what is no word of it."""
    title = " ".join(passage.title.split())
    if len(content_terms(title)) > 1 and len(title) <= LONGEST_TITLE and not _NO_TITLE.search(title):
        return f"“{title}”"
    return f"“{re.sub(r'[-_.]+', ' ', PurePath(passage.document).stem).strip()}”"


def _weight(sentence: str) -> float:
    return len(identifiers(sentence)) + min(len(content_terms(sentence)), 20) / 10


def is_vague(subject: str) -> bool:
    """Tell whether a subject is one of many of its kind: the meeting, reservations."""
    is_named = re.search(r"[A-Z0-9]", subject) is not None
    leans = (
        re.search(r" the [a-z-]+$", subject) is not None
    )  # The authenticator: of which the text around it speaks.
    return not is_named and len(content_terms(subject)) < (7 if leans else 4)


def _is_bare(subject: str) -> bool:
    """Tell whether a subject alone does not say what a question is about: the Board."""
    return len(content_terms(subject)) < 2 and re.search(r"\d", subject) is None


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
    if todo is not None and not todo["what"].startswith("be ") and not _DANGLES.search(todo["what"]):
        return _of_purpose(todo["what"], todo["how"], text)
    for opening, clause in _clauses(plain):
        found = _stated(clause, text)
        if found is not None:
            return found[0], _prefaced(opening, found[1]), found[2]
    inverse = _INVERSE.search(plain)
    is_known = inverse is not None and not re.search(
        r"\bas (?:defined|described|provided|set)\b", inverse["what"]
    )
    if inverse is not None and is_known and identifiers(inverse["what"]) and not re.match(r"No\b", plain):
        return "", f"What {inverse['what']}?", False
    return None


def _clauses(plain: str) -> list[tuple[str, str]]:
    """Return a sentence, or, where it opens with a circumstance, where that may end and the main clause begin."""
    if not _OPENS.match(plain):
        return [("", plain)]
    if re.match(r"[^,]*\b(?:this|these)\b", plain) and not plain.startswith("Except"):
        return []
    starts = list(re.finditer(r", (?!and |or |but |\d|which |that |except )", plain))
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
        if not _SUBJECT.fullmatch(subject) or is_no_aside(found["aside"] or ""):
            return None
        if verb not in ("is", "are", "was", "were", *MODALS) and re.match(
            r", (?:which|who)\b", found["aside"] or ""
        ):
            return None  # The verb may be the second of the clause that stands between.
        is_plural = re.search(r"[^s]s\b| and ", subject) and not re.match(r"(?:An?|Each|Any|Every) ", subject)
        is_noun = (verb in PLURAL and not is_plural) or _NO_VERB.match(clause, found.end())
        if verb not in (*BASE, *PLURAL) or not is_noun:
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
    if re.match(r"(?:also|still|again|now|both|therefore|thus|however)\b|(?:be |not )also\b", rest):
        return None  # It adds to what the sentences before have said.
    subject = _lowered(subject, text)
    found = asked(subject, verb, rest)
    return None if found is None else (subject, *found)


def _conditional(condition: re.Match[str], text: str) -> tuple[str, str, bool] | None:
    word, what = condition["word"].lower(), condition["what"]
    if len(content_terms(what)) < 2 or _DANGLES.search(what) or what.startswith("more "):
        return None
    parts = _parts(condition["then"])
    if parts is None or parts[1] not in MODALS:
        return None
    subject = _lowered(parts[0], text)
    is_known = not _NO_SUBJECT.search(subject)
    if re.match(r"be (?:\w+ly )?\w+(?:ed|en|wn|ne|de|lt|pt|nt|id|ld)\b", parts[2]) and parts[1] in OBLIGE:
        return "", f"What {parts[1]} be done {word} {what}?", False
    if parts[2].startswith(("be ", "not ")) or not is_known:
        return (
            ("", f"What happens {word} {what}?", False)
            if parts[1] in ("will", "shall") and is_known
            else None
        )
    does = parts[2].split(" ", 1)[0]
    return (subject, f"What {parts[1]} {subject} do {word} {what}?", True) if does in ACTS else None


def _of_purpose(what: str, how: str, text: str) -> tuple[str, str, bool] | None:
    parts = _parts(how)
    if parts is not None and parts[1] in MODALS and not _NO_SUBJECT.search(parts[0]):
        subject = _lowered(parts[0], text)
        if parts[2].split(" ", 1)[0] in ACTS:
            return subject, f"What {parts[1]} {subject} do to {what}?", True
    is_clause = re.match(
        r"(?:the |an? |[A-Z]|each |all |every |it |they |we |you |one |use |set |run |call )", how
    )
    return ("", f"How can one {what}?", True) if is_clause else None


def _lowered(subject: str, text: str) -> str:
    """Return a subject as it stands within a sentence: its first word small, unless it seems to be a name."""
    head, space, rest = subject.partition(" ")
    small = f"{head.lower()}{space}{rest}"
    if head in _ARTICLES:
        return small
    if _DAY.fullmatch(head) or re.match(r"(?:of|and|for) [A-Z]", rest):
        return subject  # Sunday service, Bureau of Industry
    if head in _NUMBERED and rest[:1].isdigit():
        return small
    if not re.fullmatch(r"[A-Z][a-z-]+", head) or re.search(rf"[a-z,] {head}\b", text):
        return subject
    is_word = re.search(rf"(?<!\w){head.lower()}(?!\w)", text) is not None
    return small if (is_word and not rest[:1].isupper()) or rest[:1].islower() else subject
