"""Find personal data and secrets in rows, and hide them. Pure: rules with their own checks, no model.

Rules prefer to miss over crying wolf where a form is common (a number that is no card number passes Luhn one time in ten,
so a card also needs a known first digit and length); what is found is shown masked, never in full.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from apps.datasets.records.record import Record, from_values, to_values


@dataclass(frozen=True, slots=True)
class SecretFinding:
    """Something in a row that should not leave the house unseen.

    Attributes:
        kind: ``email``, ``phone``, ``iban``, ``card``, ``ssn``, ``key``, ``token``, ``private_key`` or ``password``.
        field: of the record.
        shown: what was found, masked.
        fingerprint: hash of kind and value; an acceptance names it, so that the same value need not be looked at twice.
    """

    kind: str
    field: str
    shown: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class _Rule:
    kind: str
    pattern: re.Pattern[str]
    holds: Callable[[str], bool] = lambda _: True


def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def _luhn(text: str) -> bool:
    """Check digit of card numbers (ISO/IEC 7812-1, annex B)."""
    digits = [int(d) for d in _digits(text)][::-1]
    total = sum(digits[0::2]) + sum(sum(divmod(2 * d, 10)) for d in digits[1::2])
    return 13 <= len(digits) <= 19 and total % 10 == 0 and digits[-1] in (3, 4, 5, 6)


def _iban(text: str) -> bool:
    """Check digits of an IBAN (ISO 13616): 97 divides the rearranged number with remainder 1."""
    plain = re.sub(r"\s", "", text).upper()
    return 15 <= len(plain) <= 34 and int("".join(str(int(c, 36)) for c in plain[4:] + plain[:4])) % 97 == 1


def _wordless(text: str) -> bool:
    """A password in prose ("password: required") is a word; a true one has a digit."""
    return any(c.isdigit() for c in text)


def _phone(text: str) -> bool:
    return 9 <= len(_digits(text)) <= 15


SECRETS = frozenset({"key", "token", "private_key", "password"})
_EXAMPLES = ("example.com", "example.org", "example.net", ".test", ".invalid", ".example")
# Bounded repetitions everywhere: a hostile row must not make a search slow.
_RULES = (
    _Rule(
        "private_key",
        re.compile(r"-----BEGIN (?:[A-Z]{1,12} ){0,2}PRIVATE KEY-----[\s\S]{0,8000}?(?:-----END|\Z)"),
    ),
    _Rule("key", re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")),
    _Rule("key", re.compile(r"\bAIza[0-9A-Za-z_\-]{35}(?![0-9A-Za-z_\-])")),
    _Rule("key", re.compile(r"\bsk-(?:proj-|ant-|or-)?[A-Za-z0-9_\-]{20,200}")),
    _Rule(
        "token",
        re.compile(
            r"\bgh[pousr]_[A-Za-z0-9]{36,255}\b|\bgithub_pat_[A-Za-z0-9_]{22,255}\b|\bglpat-[A-Za-z0-9_\-]{20,64}\b"
        ),
    ),
    _Rule("token", re.compile(r"\bxox[abposr]-[A-Za-z0-9\-]{10,250}")),
    _Rule(
        "token",
        re.compile(r"\bhf_[A-Za-z0-9]{30,64}\b|\bgsk_[A-Za-z0-9]{40,64}\b|\bxai-[A-Za-z0-9]{40,100}\b"),
    ),
    _Rule(
        "token",
        re.compile(r"\beyJ[A-Za-z0-9_\-]{10,2000}\.eyJ[A-Za-z0-9_\-]{10,4000}\.[A-Za-z0-9_\-]{10,2000}"),
    ),
    _Rule(
        "password",
        re.compile(
            r"(?i)\b(?:password|passwd|passphrase|api[_-]?key|client[_-]?secret)\"?\s{0,3}[:=]\s{0,3}[\"']?(?P<value>(?!\[[A-Z_]{3,20}\])[^\s\"',;<>{}]{6,200})"
        ),
        _wordless,
    ),
    _Rule(
        "email",
        re.compile(r"(?<![\w.+\-])[\w.+\-]{1,64}@[A-Za-z0-9\-]{1,63}(?:\.[A-Za-z0-9\-]{1,63}){1,5}"),
        lambda t: not t.lower().endswith(_EXAMPLES),
    ),
    _Rule("iban", re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?\b"), _iban),
    _Rule("card", re.compile(r"(?<![\d.\-])\d(?:[ \-]?\d){12,18}(?![\d.\-]|\s?\d)"), _luhn),
    _Rule("ssn", re.compile(r"(?<![\d\-])(?!000|666|9\d\d)\d{3}-(?!00)\d{2}-(?!0000)\d{4}(?![\d\-])")),
    _Rule(
        "phone",
        re.compile(r"(?<![\w.])\+\d{1,3}[ .\-]?(?:\(\d{1,5}\)[ .\-]?)?\d{1,5}(?:[ .\-]?\d{2,5}){1,5}(?!\w)"),
        _phone,
    ),
    _Rule("phone", re.compile(r"(?<![\w.])\(\d{3}\) ?\d{3}[\-.]\d{4}(?!\w)")),
)


def scan(record: Record) -> list[SecretFinding]:
    """Return what a row holds of personal data and secrets, each value once a field."""
    found: dict[tuple[str, str], SecretFinding] = {}
    for field, text in _texts(record):
        for kind, start, end in matches(text):
            finding = SecretFinding(kind, field, masked(text[start:end]), fingerprint(kind, text[start:end]))
            found.setdefault((field, finding.fingerprint), finding)
    return list(found.values())


def redact(record: Record) -> tuple[Record, list[SecretFinding]]:
    """Return the row with everything that ``scan`` finds replaced by its kind in brackets, and what was replaced."""
    found = scan(record)
    if not found:
        return record, []
    values = {
        name: _mapped(value) if name not in _UNREAD else value for name, value in to_values(record).items()
    }
    return replace(from_values(values), id=record.id), found


def redact_text(text: str) -> str:
    """Return a text with personal data and secrets replaced by their kind in brackets."""
    pieces, at = [], 0
    for kind, start, end in matches(text):
        pieces += [text[at:start], f"[{kind.upper()}]"]
        at = end
    return "".join([*pieces, text[at:]])


def matches(text: str) -> list[tuple[str, int, int]]:
    """Return (kind, start, end) of what is found in a text, in order and without overlap; earlier rules win."""
    taken: list[tuple[str, int, int]] = []
    for rule in _RULES:
        for hit in rule.pattern.finditer(text):
            group = "value" if "value" in rule.pattern.groupindex else 0
            start, end = hit.span(group)
            if rule.holds(hit[group]) and all(end <= a or b <= start for _, a, b in taken):
                taken.append((rule.kind, start, end))
    return sorted(taken, key=lambda hit: hit[1])


def masked(value: str) -> str:
    """Return a value as a person may see it: its first and last two characters, for short ones none."""
    return f"{value[:2]}…{value[-2:]}" if len(value) >= 10 else "…"


def fingerprint(kind: str, value: str) -> str:
    """Return the hash that an acceptance names."""
    return hashlib.sha256(f"{kind}\0{value.strip().lower()}".encode()).hexdigest()


_UNREAD = ("id", "type", "difficulty", "expected", "split", "language")


def _texts(record: Record) -> Iterator[tuple[str, str]]:
    for name, value in to_values(record).items():
        if name not in _UNREAD:
            yield from ((name, text) for text in _strings(value))


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            # A pair is read as one text too: a password under its name has no sign of its own.
            if isinstance(inner, str) and inner:
                yield f"{name}: {inner}"
            else:
                yield from _strings(inner)
            yield str(name)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _strings(inner)


def _mapped(value: Any, name: str = "") -> Any:
    if isinstance(value, str):
        if name:
            head = f"{name}: "
            changed = redact_text(head + value)
            return changed.removeprefix(head) if changed.startswith(head) else redact_text(value)
        return redact_text(value)
    if isinstance(value, Mapping):
        return {redact_text(str(key)): _mapped(inner, str(key)) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(inner) for inner in value]
    return value
