"""What a version of an assistant is, as plain values: its settings and the options of its mode, checked. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any

from apps.collections.search.filters import parse_filters
from basics.errors import DomainError, Invalid
from basics.texts import gettext as _
from toolloop.service import CACHE_TTLS, NAMES, TIERS

MAX_TYPES = 50
MAX_HELPER_DEPTH = 2
"""How deep assistants ask each other: the one that was asked first, its helper, and that one's helper."""
MAX_STARTERS, MAX_STARTER_CHARS = 6, 200
EFFORTS = ("minimal", "low", "medium", "high", "xhigh", "max")
RANGES: Mapping[str, tuple[int, int]] = {
    "top_k": (1, 50),
    "neighbours": (0, 2),
    "max_steps": (1, 20),
    "max_replans": (0, 5),
    "max_tool_calls": (1, 100),
    "memory_turns": (0, 40),
}
"""Smallest and largest value of each option that is a whole number."""
_ALWAYS = ("max_tool_calls", "memory_turns", "temperature", "effort", *NAMES)
OF_MODE: Mapping[str, tuple[str, ...]] = {
    "tools": (*_ALWAYS, "max_steps"),
    "code": (*_ALWAYS, "max_steps"),
    "planned": (*_ALWAYS, "max_steps", "max_replans"),
    "quick": (*_ALWAYS, "top_k", "neighbours", "document_types", "filters"),
}
"""Which options each mode has."""


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of a mode; make one with ``options_read``. What a mode does not have keeps its default.

    Attributes:
        top_k: passages of the one search (quick).
        neighbours: passages before and after each that are shown too (quick).
        document_types: documents of these types alone, () for any (quick).
        filters: conditions on documents and their metadata, as a search takes them (quick).
        max_steps: model turns that may call tools; in a plan, its steps.
        max_replans: how often a plan may be made anew after a step failed (planned).
        max_tool_calls: tool calls of one answer.
        memory_turns: earlier questions of the conversation that the model is shown with their answers.
        temperature: None leaves it to the model; models that take none ignore it.
        effort: how long to think, "" leaves it to the model; models that have no such level ignore it.
        service_tier, cache_ttl, background: see ``toolloop.service``; models that do not have it refuse to answer.
    """

    top_k: int = 8
    neighbours: int = 0
    document_types: tuple[str, ...] = ()
    filters: Mapping[str, Any] = field(default_factory=dict)
    max_steps: int = 12
    max_replans: int = 2
    max_tool_calls: int = 30
    memory_turns: int = 40
    temperature: float | None = None
    effort: str = ""
    service_tier: str = ""
    cache_ttl: str = ""
    background: bool = False

    @property
    def search_filters(self) -> dict[str, Any]:
        """Return the filters of the search, document types among them."""
        types = {"document_type": {"in": list(self.document_types)}} if self.document_types else {}
        return {**self.filters, **types}

    @property
    def model_options(self) -> dict[str, Any]:
        """Return what the provider is told, by its name in ``ModelRequest.options``."""
        given: dict[str, Any] = {"temperature": self.temperature, "effort": self.effort or None}
        given |= {name: getattr(self, name) or None for name in NAMES}
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class VersionSpec:
    """What a version of an assistant is made of.

    Attributes:
        mode: of ``Mode``.
        model: routing name; "" for the workspace's default at the time of each question.
        prompt: what the model reads beside our own rules.
        collections: ids to search, () for none; None for all, later ones too.
        toolkit: id of the only tools it may use.
        has_toolkit: the tools are chosen: without ``toolkit`` there are none. False leaves all to it.
        output: of ``Output``.
        output_name, output_schema: with the output "schema": its name and JSON Schema.
        options: as ``options_read`` takes them.
        starters: questions that a new conversation offers.
        helpers: ids of assistants that it may ask as tools.
    """

    mode: str = "tools"
    model: str = ""
    prompt: str = ""
    collections: Sequence[int] | None = None
    toolkit: int | None = None
    has_toolkit: bool = False
    output: str = "text"
    output_name: str = ""
    output_schema: Mapping[str, Any] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    starters: Sequence[str] = ()
    helpers: Sequence[int] = ()


def options_read(mode: str, given: Mapping[str, Any]) -> Options:
    """Check the options of a mode.

    Args:
        mode: of ``Mode``.
        given: by name; what is left out keeps its default.

    Raises:
        Invalid: ``assistant_invalid``, with the messages by option in ``data["fields"]``.
    """
    known = OF_MODE.get(mode)
    if known is None:
        raise refused("mode", _("Choose a mode: %(modes)s.") % {"modes": ", ".join(OF_MODE)})
    if not isinstance(given, Mapping):
        raise refused("options", _("Options must be an object of names and values."))
    for name in given:
        if name not in known:
            text = _("The mode “%(mode)s” has no option “%(option)s”. It has: %(options)s.") % {
                "mode": mode,
                "option": str(name)[:60],
                "options": ", ".join(sorted(known)),
            }
            raise refused("options", text)
    options = Options(**{name: _value(name, value) for name, value in given.items()})
    if options.document_types and "document_type" in options.filters:
        raise refused("filters", _("Put the types in “document_types” or in “filters”, not in both."))
    return options


def options_json(options: Options) -> dict[str, Any]:
    """Return what differs from the defaults, as ``options_read`` takes it."""
    plain = Options()
    told: dict[str, Any] = {}
    for one in fields(Options):
        value = getattr(options, one.name)
        if value != getattr(plain, one.name):
            told[one.name] = list(value) if isinstance(value, tuple) else value
    return {k: dict(v) if isinstance(v, Mapping) else v for k, v in told.items()}


def starters_read(given: Sequence[str]) -> list[str]:
    """Return the starters without spaces around them, empty ones left out. Raises Invalid."""
    starters = [" ".join(text.replace("\x00", "").split()) for text in given]
    starters = list(dict.fromkeys(filter(None, starters)))
    if len(starters) > MAX_STARTERS or any(len(text) > MAX_STARTER_CHARS for text in starters):
        raise refused(
            "starters",
            _("Give at most %(most)s questions of at most %(length)s characters.")
            % {"most": MAX_STARTERS, "length": MAX_STARTER_CHARS},
        )
    return starters


def refused(name: str, message: str, code: str = "assistant_invalid") -> Invalid:
    """Return the refusal of one field."""
    return Invalid(code, message, data={"fields": {name: [message]}})


def _value(name: str, value: Any) -> Any:
    if name in RANGES:
        low, high = RANGES[name]
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise refused(
                name,
                _("“%(name)s” must be a whole number from %(low)s to %(high)s.")
                % {"name": name, "low": low, "high": high},
            )
        return value
    return _READERS[name](value)


def _temperature(value: Any) -> float | None:
    if value is None:
        return None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= 2:
        raise refused("temperature", _("“temperature” must be a number from 0 to 2."))
    return float(value)


def _of(name: str, known: Sequence[str], value: Any) -> str:
    if value not in ("", *known):
        raise refused(
            name,
            _("“%(name)s” is one of %(options)s, or empty.") % {"name": name, "options": ", ".join(known)},
        )
    return str(value)


def _background(value: Any) -> bool:
    if not isinstance(value, bool):
        raise refused("background", _("“background” must be true or false."))
    return value


def _types(value: Any) -> tuple[str, ...]:
    if (
        not isinstance(value, list | tuple)
        or len(value) > MAX_TYPES
        or not all(isinstance(t, str) and 0 < len(t) <= 60 for t in value)
    ):
        raise refused(
            "document_types",
            _("“document_types” is a list of at most %(most)s types, as the documents have them.")
            % {"most": MAX_TYPES},
        )
    return tuple(dict.fromkeys(value))


def _filters(value: Any) -> Mapping[str, Any]:
    try:
        parse_filters(value)
    except DomainError as error:
        raise refused("filters", error.message) from error
    return dict(value or {})


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "temperature": _temperature,
    "effort": partial(_of, "effort", EFFORTS),
    "service_tier": partial(_of, "service_tier", TIERS),
    "cache_ttl": partial(_of, "cache_ttl", CACHE_TTLS),
    "background": _background,
    "document_types": _types,
    "filters": _filters,
}
