"""Infer a document's type from its name, media type and first pages, by rules that are plain data.

A rule set is a JSON object that each tenant may edit::

    {"version": 1, "default": "general", "rules": [
        {"type": "cbp_guide", "threshold": 4, "signals": [
            {"field": "content", "pattern": "informed compliance", "weight": 3, "at_least": 1}]}]}

A signal counts its ``weight`` (which may be negative) when its pattern is found in its field at least ``at_least``
times. The rule with the largest sum that reaches its own ``threshold`` wins; of equal ones the first. Patterns
are regular expressions without regard to case. They come from people: each search has a time limit (the ``regex``
module's), so that no pattern can hang a worker.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal, cast

import regex

from apps.collections.ingestion.types import ExtractedDocument
from basics.errors import DomainError
from basics.patterns import pattern_compile
from basics.texts import gettext as _

VERSION = 1
MAX_RULES, MAX_SIGNALS, MAX_PATTERN = 100, 40, 500
SAMPLE_PAGES, SAMPLE_CHARS = 5, 20_000
_SECONDS = 0.2  # for one pattern on one sample; honest ones take a thousandth
_MAX_COUNT = 1000
_MAX_NAME = 60
_TYPE = regex.compile(r"[a-z][a-z0-9_]*\Z")
_FIELDS = ("name", "content", "media_type")
_TRADE = Path(__file__).parent / "rules" / "trade_compliance.json"

Field = Literal["name", "content", "media_type"]


class RulesInvalid(DomainError):
    """A rule set that cannot be used; the message names the rule and what to change."""

    default_status = 400

    def __init__(self, message: str, **facts: object) -> None:
        super().__init__("document_type_rules_invalid", message % facts if facts else message)


@dataclass(frozen=True, slots=True)
class Signal:
    """One thing to look for.

    Attributes:
        field: where: ``name`` (the file's), ``content`` (text of the first pages) or ``media_type``.
        pattern: what, a regular expression.
        weight: what it counts for the rule; negative if it speaks against it.
        at_least: how many matches it takes.
    """

    field: Field
    pattern: str
    weight: float
    at_least: int = 1


@dataclass(frozen=True, slots=True)
class TypeRule:
    """The signals of one type, and the sum of weights it takes."""

    type: str
    threshold: float
    signals: tuple[Signal, ...]


@dataclass(frozen=True, slots=True)
class TypeRules:
    """A checked rule set; make it with ``document_type_rules_parse``."""

    rules: tuple[TypeRule, ...]
    default: str

    @property
    def types(self) -> tuple[str, ...]:
        """List the types it can give, the default last."""
        names = dict.fromkeys(rule.type for rule in self.rules)
        names.pop(self.default, None)
        return (*names, self.default)


def document_type_rules_parse(data: object) -> TypeRules:
    """Check a rule set as it came from JSON.

    Raises:
        RulesInvalid: anything missing, unknown, out of range, or a pattern that is no regular expression.
    """
    given = _object(data, _("The rule set"), {"version", "default", "rules"})
    if given.get("version") != VERSION:
        raise RulesInvalid(_('The rule set must have "version": %(version)s.'), version=VERSION)
    rules = given.get("rules")
    if not isinstance(rules, list) or len(rules) > MAX_RULES:
        raise RulesInvalid(_('"rules" must be a list of at most %(max_rules)s rules.'), max_rules=MAX_RULES)
    default = _type_name(given.get("default", "general"), '"default"')
    return TypeRules(tuple(_rule(rule, i) for i, rule in enumerate(rules, start=1)), default)


@cache
def trade_compliance_rules() -> TypeRules:
    """Load the shipped rules for trade compliance."""
    return document_type_rules_parse(trade_compliance_data())


def trade_compliance_data() -> dict[str, Any]:
    """Give the shipped rules for trade compliance as plain data, to start a tenant's own from."""
    data: dict[str, Any] = json.loads(_TRADE.read_text(encoding="utf-8"))
    return data


def document_sample(document: ExtractedDocument) -> str:
    """Take the text that content signals look at: the first pages that are not left out, at most 20,000 characters."""
    pages = [page.text for page in document.pages if page.junk is None]
    return "".join(pages[:SAMPLE_PAGES])[:SAMPLE_CHARS]


def document_type_infer(rules: TypeRules, name: str, media_type: str, text_sample: str) -> tuple[str, str]:
    """Infer the type of a document.

    Args:
        rules: the tenant's.
        name: of the file.
        media_type: what the file is.
        text_sample: text of its first pages, see ``document_sample``.

    Returns:
        The type, and the reason in a sentence for the document's owner.
    """
    fields = {"name": name, "content": text_sample[:SAMPLE_CHARS], "media_type": media_type}
    best: tuple[float, TypeRule, list[str]] | None = None
    too_slow: list[str] = []
    for rule in rules.rules:
        total = 0.0
        said: list[str] = []
        for signal in rule.signals:
            found = _look(signal, fields[signal.field])
            if found is None:
                too_slow.append(signal.pattern)
            elif len(found) >= signal.at_least:
                total += signal.weight
                if signal.weight > 0:
                    said.append(_told(signal, found))
        if total >= rule.threshold and (best is None or total > best[0]):
            best = (total, rule, said)
    slow = f" Patterns that took too long were left out: {'; '.join(too_slow)}." if too_slow else ""
    if best is None:
        return rules.default, f"No rule fits this document.{slow}"
    total, rule, said = best
    return rule.type, f"{'; '.join(said)} ({total:g} points, {rule.threshold:g} needed).{slow}"


def _look(signal: Signal, text: str) -> list[str] | None:
    """Find up to ``at_least`` matches; None when the time is up."""
    found: list[str] = []
    try:
        for match in _compiled(signal.pattern).finditer(text, timeout=_SECONDS):
            found.append(" ".join(match.group().split()))
            if len(found) >= signal.at_least:
                break
    except TimeoutError:
        return None
    return found


def _told(signal: Signal, found: list[str]) -> str:
    where = {"name": "name", "content": "text", "media_type": "media type"}[signal.field]
    more = f" and {len(found) - 1} more like it" if len(found) > 1 else ""
    return f"{where} has “{found[0][:60]}”{more}"


@lru_cache(maxsize=5000)
def _compiled(pattern: str) -> regex.Pattern[str]:
    return pattern_compile(pattern, regex.IGNORECASE)


def _rule(data: object, number: int) -> TypeRule:
    where = _("Rule %(number)s") % {"number": number}
    given = _object(data, where, {"type", "threshold", "signals"})
    name = _type_name(given.get("type"), f'{where}: "type"')
    where = _("Rule %(number)s (%(name)s)") % {"number": number, "name": name}
    threshold = _number(given.get("threshold", 1), f'{where}: "threshold"')
    if threshold <= 0:
        raise RulesInvalid(_('%(where)s: "threshold" must be above 0.'), where=where)
    signals = given.get("signals")
    if not isinstance(signals, list) or not 1 <= len(signals) <= MAX_SIGNALS:
        raise RulesInvalid(
            _('%(where)s: "signals" must be a list of 1 to %(max_signals)s.'),
            where=where,
            max_signals=MAX_SIGNALS,
        )
    place = _("%(where)s, signal %(number)s")
    made = tuple(_signal(s, place % {"where": where, "number": i}) for i, s in enumerate(signals, start=1))
    if sum(s.weight for s in made if s.weight > 0) < threshold:
        raise RulesInvalid(
            _("%(where)s can never win: all its weights together are below %(threshold)s."),
            where=where,
            threshold=f"{threshold:g}",
        )
    return TypeRule(name, threshold, made)


def _signal(data: object, where: str) -> Signal:
    given = _object(data, where, {"field", "pattern", "weight", "at_least"})
    field = given.get("field")
    if field not in _FIELDS:
        raise RulesInvalid(
            _('%(where)s: "field" must be one of %(fields)s.'), where=where, fields=", ".join(_FIELDS)
        )
    pattern = given.get("pattern")
    if not isinstance(pattern, str) or not 0 < len(pattern) <= MAX_PATTERN:
        raise RulesInvalid(
            _('%(where)s: "pattern" must be text of 1 to %(max_pattern)s characters.'),
            where=where,
            max_pattern=MAX_PATTERN,
        )
    try:
        is_empty = _compiled(pattern).match("", timeout=_SECONDS) is not None
    except (regex.error, TimeoutError, RecursionError, OverflowError, ValueError) as error:
        raise RulesInvalid(
            _("%(where)s: %(pattern)r isn't a regular expression: %(error)s."),
            where=where,
            pattern=pattern,
            error=error,
        ) from error
    if is_empty:
        raise RulesInvalid(
            _("%(where)s: %(pattern)r matches anything. Make it more specific."), where=where, pattern=pattern
        )
    weight = _number(given.get("weight", 1), f'{where}: "weight"')
    at_least = given.get("at_least", 1)
    if isinstance(at_least, bool) or not isinstance(at_least, int) or not 1 <= at_least <= _MAX_COUNT:
        raise RulesInvalid(
            _('%(where)s: "at_least" must be a whole number from 1 to %(max_count)s.'),
            where=where,
            max_count=_MAX_COUNT,
        )
    return Signal(cast("Field", field), pattern, weight, at_least)


def _object(data: object, where: str, keys: set[str]) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise RulesInvalid(_("%(where)s must be an object."), where=where)
    if unknown := sorted(str(key) for key in data.keys() - keys):
        raise RulesInvalid(
            _("%(where)s has unknown keys: %(unknown)s."), where=where, unknown=", ".join(unknown)[:200]
        )
    return data


def _type_name(value: object, where: str) -> str:
    if not isinstance(value, str) or len(value) > _MAX_NAME or not _TYPE.match(value):
        raise RulesInvalid(
            _(
                "%(where)s must be a name of small letters, digits and underscores, at most %(max_name)s long."
            ),
            where=where,
            max_name=_MAX_NAME,
        )
    return value


def _number(value: object, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -100 <= value <= 100:
        raise RulesInvalid(_("%(where)s must be a number from -100 to 100."), where=where)
    return float(value)
