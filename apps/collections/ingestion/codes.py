"""Codes of a text in one canonical form each: tariff numbers, CAS numbers, parts of the CFR, dockets, a workspace's own.

The same function reads passages and questions: ``8481.80.3055``, ``8481803055``, ``8481 80 30 55`` and ``８４８１–８０–３０５５``
are all ``code:hts:8481803055``. A longer code begins with the shorter one it is under, so a look-up by prefix goes down.

Tariff numbers are read by a scanner of digits; everything else by patterns that are plain data::

    {"version": 1, "kinds": [{"name": "part", "pattern": "PX[- ]?\\d{4}", "keep": "letters_digits", "prefixes": true}]}

Patterns come from people: each search of one has a time limit, and one that is late too often is left out and named. A code has a digit.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import regex

from apps.collections.ingestion.word_parts import set_apart
from basics.errors import DomainError
from basics.patterns import pattern_compile

FORM = 1  # of what is recognised here; raise it with every change, and passages are indexed again
CODE_PREFIX = "code:"
HTS = "hts"
HTS_DIGITS = (4, 6, 8, 10)
MAX_KINDS, MAX_PATTERN, MAX_CANONICAL = 20, 500, 80
_SECONDS = 0.05  # for one pattern on one passage; honest ones take a thousandth
_MOST_LATE = 3

Keep = Literal["digits", "letters_digits"]

_OTHER_DIGIT = re.compile(r"(?![0-9])\d")
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_SAME = str.maketrans(
    dict.fromkeys("‐‑‒–—―−⁃﹣－", "-") | dict.fromkeys("·‧∙⋅。", ".") | {"\u202f": " ", "\u2007": " "}
)

_TOKEN = re.compile(
    r"(?:(?<![\w.,])(?<!\w-)|(?<=\bHTS)|(?<=\bHTSUS)|(?<=\bHS))\d{2,10}(?:[.\-]\d{1,10})*(?!\w|[,.]\d|-\w|\s?%)"
)
# A code that its line ends in, or that somebody has written with blanks around the dots: two of them at least.
_DOTS_APART = re.compile(
    r"(?<![\w.])\d{4}\s?\.\s?\d{2}(?:\s?\.\s?\d{2})?\s?\.\s?(?:\d{4}|\d{2})(?!\w|[.,]\d)"
)
_GAP = re.compile(r" |\t| \| ")
_HEADING = re.compile(r"\b(?:(?:sub)?headings?|hts(?:us)?|hs|tariff|codes?)\b[^\n;]{0,40}\Z", re.IGNORECASE)
_LIST = re.compile(
    r"(?:[\d.,\s()/:]|nos?\.?|numbers?|codes?|items?|lines?|and|or|through|to)*\Z", re.IGNORECASE
)
_NAMED_SO = re.compile(r"\A\s*(?:hts(?:us)?|hs|(?:sub)?heading|code|number|no\.?|#|:|\s)+", re.IGNORECASE)
_LINE_START = re.compile(r"(?:\A|\n)[ \t|*#]*\Z")
_QUANTITY = re.compile(r"\s?(?:%|per\s?cent)|/", re.IGNORECASE)
_YEAR = re.compile(r"(?:19[5-9]|20[0-4])\d\Z")
_DATE = re.compile(r"(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])\Z")


class CodesInvalid(DomainError):
    """Patterns that cannot be used; the message names the one and what to change."""

    default_status = 400

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__("code_patterns_invalid", message % facts if facts else message)


@dataclass(frozen=True, slots=True)
class Code:
    """One code of a text.

    Attributes:
        kind: ``hts``, or the name of a pattern.
        canonical: its one form.
        text: as it is written there.
        is_sure: nothing else looks so; a code that may be a date or two numbers side by side is not.
    """

    kind: str
    canonical: str
    text: str
    is_sure: bool = True

    @property
    def lexeme(self) -> str:
        """Give what the index holds of it."""
        return f"{CODE_PREFIX}{self.kind}:{self.canonical}"


@dataclass(frozen=True, slots=True)
class CodeKind:
    """A kind of code that a pattern finds.

    Attributes:
        pattern: a regular expression, without regard to case. Where it has groups, the code is what they hold.
        keep: which characters of it count.
        prefixes: a shorter code finds the longer ones that begin with it (group by group, where there are groups).
    """

    name: str
    pattern: regex.Pattern[str]
    keep: Keep = "digits"
    prefixes: bool = False

    def find(self, text: str) -> Iterator[Code]:
        """Yield the codes of a text. Raises TimeoutError."""
        for match in self.pattern.finditer(text, timeout=_SECONDS):
            parts = [part for part in match.groups() if part] or [match.group()]
            kept = ".".join(filter(None, (self._kept(part) for part in parts)))
            if len(kept) <= MAX_CANONICAL and any(map(str.isdigit, kept)):
                yield Code(self.name, kept, " ".join(match.group().split()))

    def _kept(self, text: str) -> str:
        if self.keep == "digits":
            return "".join(ch for ch in text if ch.isdigit())
        return "".join(ch for ch in text if ch.isalnum()).lower()

    @property
    def has_groups(self) -> bool:
        """Tell whether a code has parts, with a dot between them."""
        return self.pattern.groups > 0


def _shipped(name: str, pattern: str, *, keep: Keep = "digits", prefixes: bool = False) -> CodeKind:
    return CodeKind(name, pattern_compile(pattern, regex.IGNORECASE), keep, prefixes)


# CAS Registry Numbers: https://www.cas.org/training/documentation/chemical-substances/checkdig; parts of the Code of
# Federal Regulations as the Federal Register writes them; dockets of regulations.gov.
SHIPPED = (
    _shipped(
        "cas",
        r"(?<![\w\-.])\d{2,7} ?- ?\d{2} ?- ?\d(?![\w]|-\w)|\bCAS(?:RN| ?nos?\.?| numbers?)?[ :#]{1,3}\d{5,10}\b",
    ),
    _shipped(
        "cfr",
        r"\b(\d{1,2}) ?C\.? ?F\.? ?R\.?,? ?(?:parts? |§{1,2} ?|sec(?:tions?|s?\.) )?(\d{1,4})(?:\.(\d{1,4}[a-z]?))?(?![\w])",
        keep="letters_digits",
        prefixes=True,
    ),
    _shipped(
        "docket",
        r"\b[A-Z]{2,8}(?:-[A-Z]{1,6})?[- ](?:19|20)\d\d(?:-[A-Z]{1,4})?-\d{3,5}(?![\w]|-\d)",
        keep="letters_digits",
    ),
)


class CodeKinds:
    """The kinds of code of one workspace: those that come with the code, then its own. Shared by threads."""

    def __init__(self, own: Sequence[CodeKind] = (), digest: str = "") -> None:
        self.own, self.digest = tuple(own), digest
        self.form = f"{FORM}.{digest}" if digest else str(FORM)
        self._kinds = (*SHIPPED, *self.own)
        self._late: dict[str, int] = {}
        self._lock = threading.Lock()

    @property
    def late(self) -> list[str]:
        """List the patterns that are left out since they took too long again and again."""
        return sorted(name for name, times in self._late.items() if times >= _MOST_LATE)

    def find(self, text: str) -> list[Code]:
        """List the distinct codes of a text, longer ones before those they begin with."""
        text = plain(text)
        if not any(map(str.isdigit, text)):
            return []  # Every code has a digit. Most questions have none, and each pattern lets go of the interpreter's lock.
        found: dict[str, Code] = {}
        for code in _tariff_numbers(text):
            if code.is_sure or code.lexeme not in found:
                found[code.lexeme] = code
        for kind in self._kinds:
            if self._late.get(kind.name, 0) >= _MOST_LATE:
                continue
            try:
                for code in kind.find(text):
                    found.setdefault(code.lexeme, code)
            except TimeoutError:
                with self._lock:
                    self._late[kind.name] = self._late.get(kind.name, 0) + 1
        return sorted(found.values(), key=lambda code: -len(code.canonical))

    def lexemes(self, text: str) -> list[str]:
        """List what the index holds of a passage."""
        return [code.lexeme for code in self.find(text)]

    def below(self, code: Code) -> str:
        """Return with what the lexemes of longer codes under this one begin, "" where the kind has none."""
        kind = next((kind for kind in self._kinds if kind.name == code.kind), None)
        if code.kind == HTS:
            return code.lexeme if len(code.canonical) < HTS_DIGITS[-1] else ""
        if kind is None or not kind.prefixes:
            return ""
        return f"{code.lexeme}." if kind.has_groups else code.lexeme

    def parents(self, code: Code) -> list[Code]:
        """List the shorter codes it stands under, the longest first. A heading of four digits names too much."""
        if code.kind == HTS:
            sizes = [size for size in HTS_DIGITS if 4 < size < len(code.canonical)]
            return [_tariff_code(code.canonical[:size]) for size in reversed(sizes)]
        kind = next((kind for kind in self._kinds if kind.name == code.kind), None)
        if kind is None or not (kind.prefixes and kind.has_groups):
            return []
        parts = code.canonical.split(".")
        # One part alone, the title of a CFR, names no code.
        shorter = [".".join(parts[:n]) for n in range(len(parts) - 1, 1, -1)]
        return [Code(code.kind, text, text) for text in shorter]


EVERYWHERE = CodeKinds()
"""What a workspace without patterns of its own has."""


def tariff_code(text: str) -> Code | None:
    """Return the tariff number that a text is, whatever stands between its digits; None for anything else."""
    digits = re.sub(r"[\s.\-/_|]", "", _NAMED_SO.sub("", plain(text)))
    is_code = re.fullmatch("[0-9]+", digits) and len(digits) in HTS_DIGITS
    return _tariff_code(digits) if is_code else None


def plain(text: str) -> str:
    """Return a text with one form of digits, blanks, dots and hyphens, and without characters that nobody sees.

    Letters of scripts that put no blanks between words stand apart, so that a code between them is one.
    """
    if text.isascii():
        return text
    text = _UNSEEN.sub("", unicodedata.normalize("NFKC", text)).translate(_SAME)
    text = _OTHER_DIGIT.sub(lambda match: str(unicodedata.decimal(match.group())), text)
    return set_apart(text)


def _tariff_code(digits: str) -> Code:
    """Write digits as the schedules of the United States print them: 8481.80.3055."""
    return Code(HTS, digits, ".".join(filter(None, (digits[:4], digits[4:6], digits[6:]))))


def _tariff_numbers(text: str) -> Iterator[Code]:
    """Yield what may be a tariff number: digits joined by dots or hyphens, or apart by single blanks."""
    spans = []
    for match in _DOTS_APART.finditer(text):
        token = match.group()
        if not token.isprintable() or " " in token:
            yield Code(HTS, re.sub(r"\D", "", token), " ".join(token.split()), "\n" not in token)
            spans.append(match.span())
    tokens = list(_TOKEN.finditer(text))
    apart_to = 0
    for number, match in enumerate(tokens):
        token = match.group()
        digits = re.sub(r"\D", "", token)
        if match.start() >= apart_to and (code := _apart(text, tokens, number)) is not None:
            apart_to = match.start() + len(code.text)
            yield code
        is_part = match.start() < apart_to or any(a <= match.start() < b for a, b in spans)
        if is_part and len(digits) < 6:
            continue
        if len(digits) == 4:
            if _is_heading(text, match, token):
                yield Code(HTS, digits, token, _YEAR.match(token) is None)
        elif _is_grouped(token, digits):
            is_date = _DATE.match(digits) is not None and token.count("-") == 2
            is_sure = not is_date and (len(digits) > 6 or bool(re.match(r"\d{4}\.\d\d\Z", token)))
            yield Code(HTS, digits, token, is_sure)
        if "-" in token:
            # A range: each end of it is a code.
            for part in token.split("-"):
                inner = part.replace(".", "")
                if len(inner) in (6, 8, 10) and inner != digits:
                    yield Code(HTS, inner, part, "." in part)


def _is_grouped(token: str, digits: str) -> bool:
    """Tell whether digits stand as codes are written; groups of odd length between hyphens are a telephone's."""
    if len(digits) not in (6, 8, 10):
        return False
    return "-" not in token or all(len(group) % 2 == 0 for group in re.split(r"[.\-]", token))


def _is_heading(text: str, match: re.Match[str], token: str) -> bool:
    """Tell whether four digits are a heading: named as one, or first in their line with words behind them."""
    if not re.match(r"\d{4}\Z|\d\d\.\d\d\Z", token):
        return False
    before = text[max(0, match.start() - 60) : match.start()]
    named = _HEADING.search(before)
    if named and _LIST.match(re.sub(r"^\w+", "", named.group())):
        return True
    if len(token) > 4 or not _LINE_START.search(before):
        return False
    return re.match(r"\s*(?:\||\n|\Z)|[ \t]+[A-Z(]", text[match.end() : match.end() + 8]) is not None


def _apart(text: str, tokens: Sequence[re.Match[str]], first: int) -> Code | None:
    """Return the longest code whose groups are apart by one blank, or whose last two digits stand in the next column."""
    sizes: list[int] = []
    begin = end = tokens[first].start()
    longest: Code | None = None
    for match in tokens[first : first + 6]:
        gap, group = text[end : match.start()], match.group()
        size = sum(ch.isdigit() for ch in group)
        if sizes:
            if gap != " " and not (sum(sizes) == 8 and _GAP.fullmatch(gap)):
                break
            if size != 2 and not (size == 4 and sum(sizes) == 6 and sizes[0] > 2):
                break
        elif size not in (2, 4, 6, 8):
            break
        if "-" in group or (sizes and "." in group):
            break
        sizes.append(size)
        end = match.end()
        total = sum(sizes)
        if total > 10:
            # More numbers in a row than a code has groups: columns of a table, or a year before a code.
            return None if sizes[0] == 2 or _YEAR.match(tokens[first].group()) else longest
        if len(sizes) > 1 and total > 4 and _QUANTITY.match(text, end) is None:
            digits = re.sub(r"\D", "", text[begin:end])
            is_sure = sizes[0] < 6 and total > 6 and _DATE.match(digits) is None
            longest = Code(HTS, digits, text[begin:end], is_sure)
    return longest
