"""What a generation job is asked for: checked once, kept as JSON in the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Self

from apps.datasets.generation.row_languages import name_of
from apps.datasets.models import Difficulty, QuestionType
from basics.errors import Invalid
from basics.texts import gettext as _
from basics.texts import number_told
from batches.delivery import Delivery
from toolloop.service import CACHE_TTLS, NAMES, TIERS

SCORES = ("completeness", "accuracy", "relevance", "clarity", "specificity", "reasoning")
MADE_TYPES = (
    QuestionType.FACTUAL,
    QuestionType.MULTI_HOP,
    QuestionType.COMPARISON,
    QuestionType.HOW_TO,
    QuestionType.CODE,
    QuestionType.UNANSWERABLE,
    QuestionType.ADVERSARIAL,
    QuestionType.INJECTED,
    QuestionType.CONTRADICTORY,
    QuestionType.MULTI_TURN,
)
"""Types that generation makes: all there are."""
MAX_ROWS, MAX_CONCURRENCY, MAX_DRIVERS, MAX_TEXT = 10_000, 200, 8, 120
MAX_VOICES, MAX_VOICE, MAX_TURNS = 20, 200, 10
_TYPES = {"factual": 5.0, "multi_hop": 2.0, "comparison": 1.0, "how_to": 1.0, "unanswerable": 1.0}
_LISTS = ("collections", "personas", "styles", "script")
_DIFFICULTY = {"easy": 4.0, "medium": 4.0, "hard": 2.0}


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a job.

    Attributes:
        collections: ids of those whose documents are asked about.
        rows: how many are wanted.
        types, difficulty: shares of the rows, any positive numbers; what is not named is not made.
        judge_model: with its routing prefix; "" takes the job's model.
        language: of questions and answers, as a tag ("de") or an English name; "" follows the documents.
        personas: who asks, each in a few words; the rows take them in turn. None: nobody in particular.
        styles: how they write, such as "a few keywords" or "a polite letter"; taken in turn as well.
        max_turns: what the user says at most in a conversation of several turns.
        script: what the user says after their first question, in turn; none: the model plays the user.
        keep_at, repair_at: weighted scores, 0 to 1, from which a row is kept, and from which it is worth a repair.
        weights: of the six scores; minima: the least value of a score, 0 to 1.
        max_refines: how often a question may be worded anew by what the filter says.
        max_repairs: how often an answer may be written anew.
        rounds: candidates for each wanted row before it counts as missing.
        max_steps: model turns of an answer that may call tools.
        concurrency: requests under way at once in a worker, for each of its models; drivers: workers that work on the job at once.
        seed: chooses the passages.
        row_usd: most that one row may cost; None takes a ceiling from list prices.
        delivery: "now" asks models directly; "batch" by their providers' batch APIs, at half the price and within a day
            for each turn of a model.
        service_tier, cache_ttl, background: of every request, the judge's too; see ``toolloop.service``.
    """

    collections: tuple[int, ...]
    rows: int = 50
    types: Mapping[str, float] = field(default_factory=lambda: dict(_TYPES))
    difficulty: Mapping[str, float] = field(default_factory=lambda: dict(_DIFFICULTY))
    judge_model: str = ""
    language: str = ""
    personas: tuple[str, ...] = ()
    styles: tuple[str, ...] = ()
    max_turns: int = 3
    script: tuple[str, ...] = ()
    keep_at: float = 0.7
    repair_at: float = 0.4
    weights: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(SCORES, 1.0))
    minima: Mapping[str, float] = field(default_factory=lambda: {"accuracy": 0.5})
    max_refines: int = 1
    max_repairs: int = 1
    rounds: int = 3
    max_steps: int = 6
    concurrency: int = 8
    drivers: int = 1
    seed: int = 0
    row_usd: float | None = None
    service_tier: str = ""
    cache_ttl: str = ""
    background: bool = False
    delivery: str = Delivery.NOW.value

    @property
    def is_batched(self) -> bool:
        """Tell whether models are asked by batch."""
        return self.delivery == Delivery.BATCH

    @property
    def service(self) -> dict[str, Any]:
        """Return what requests say about the provider's service, as ``ModelRequest.options`` has it."""
        return {name: value for name in NAMES if (value := getattr(self, name))}

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), **{name: list(getattr(self, name)) for name in _LISTS}}

    def voice(self, slot: int) -> tuple[str, str]:
        """Return the persona and the style of a wanted row; every persona meets every style."""
        persona = self.personas[slot % len(self.personas)] if self.personas else ""
        turn = slot // max(1, len(self.personas))
        return persona, self.styles[turn % len(self.styles)] if self.styles else ""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild settings that ``settings_checked`` has let through."""
        values = {f.name: data[f.name] for f in fields(cls) if f.name in data}
        return cls(**{**values, **{name: tuple(values[name]) for name in _LISTS if name in values}})


def settings_checked(data: Mapping[str, Any]) -> Settings:
    """Return settings made of what somebody has entered; what is left out has its default.

    Raises:
        Invalid: with a sentence for each field that is wrong.
    """
    known = {f.name for f in fields(Settings)}
    wrong: dict[str, list[str]] = {name: [_("Unknown setting.")] for name in data if name not in known}
    chosen = data.get("collections")
    if not isinstance(chosen, list | tuple) or not chosen:
        wrong["collections"] = [_("Choose at least one collection.")]
    elif not all(type(pk) is int and 0 < pk < 2**63 for pk in chosen):
        wrong["collections"] = [_("Give collection ids as whole numbers.")]
    for name in ("judge_model", "language"):
        text = data.get(name, "")
        if not isinstance(text, str) or len(text) > MAX_TEXT or not text.isprintable():
            wrong[name] = [_("Enter a text of at most %(max_text)s characters.") % {"max_text": MAX_TEXT}]
    if not wrong.get("language") and data.get("language") and not name_of(data["language"]):
        wrong["language"] = [_("Enter a language as a tag, such as de or pt-BR, or by its English name.")]
    for name in ("personas", "styles", "script"):
        if not _are_voices(data.get(name, [])):
            wrong[name] = [
                _("Give at most %(max_voices)s texts of at most %(max_voice)s characters.")
                % {"max_voices": MAX_VOICES, "max_voice": MAX_VOICE}
            ]
    for name, low, most in (
        ("rows", 1, MAX_ROWS),
        ("max_turns", 2, MAX_TURNS),
        ("max_refines", 0, 3),
        ("max_repairs", 0, 5),
        ("rounds", 1, 10),
        ("max_steps", 1, 25),
        ("concurrency", 1, MAX_CONCURRENCY),
        ("drivers", 1, MAX_DRIVERS),
        ("seed", 0, 2**31 - 1),
    ):
        value = data.get(name, low)
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= most:
            wrong[name] = [_("Enter a whole number from %(low)s to %(most)s.") % {"low": low, "most": most}]
    for name in ("keep_at", "repair_at"):
        if not _is_number(data.get(name, 0.5), 0, 1):
            wrong[name] = [_("Enter a number from 0 to 1.")]
    if data.get("delivery", Delivery.NOW) not in Delivery.values:
        wrong["delivery"] = [_("Enter %(values)s.") % {"values": " or ".join(Delivery.values)}]
    elif data.get("delivery") == Delivery.BATCH:
        if data.get("drivers", 1) != 1:
            wrong["drivers"] = [_("A single worker sends a job's batches; leave this at 1.")]
        for name in ("service_tier", "background"):
            if data.get(name):
                wrong[name] = [_("Batches have their own price and speed; leave this out.")]
    for name, choices in (("service_tier", TIERS), ("cache_ttl", CACHE_TTLS)):
        if data.get(name, "") not in ("", *choices):
            wrong[name] = [
                _("Choose one of: %(choices)s; or leave it out.") % {"choices": ", ".join(choices)}
            ]
    if not isinstance(data.get("background", False), bool):
        wrong["background"] = [_("Enter true or false.")]
    if data.get("row_usd") is not None and not _is_number(data["row_usd"], 1e-6, 1000):
        wrong["row_usd"] = [_("Enter an amount in USD above 0.")]
    for name, names, high in (
        ("types", tuple(t.value for t in MADE_TYPES), 1e6),
        ("difficulty", tuple(Difficulty.values), 1e6),
        ("weights", SCORES, 1e6),
        ("minima", SCORES, 1.0),
    ):
        if name in data:
            problem = _shares_problem(data[name], names, high, needs_one=name != "minima")
            if problem:
                wrong[name] = [problem]
    if wrong:
        first = next(iter(wrong))
        raise Invalid("invalid_settings", ": ".join((first, wrong[first][0])), data={"fields": wrong})
    settings = Settings.from_json({**data, "collections": sorted(set(data["collections"]))})
    if settings.repair_at > settings.keep_at:
        raise Invalid(
            "invalid_settings",
            _("repair_at can't be above keep_at."),
            data={"fields": {"repair_at": [_("This can't be above the minimum quality.")]}},
        )
    return settings


def _are_voices(value: object) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) <= MAX_VOICES
        and all(isinstance(v, str) and v.strip() and len(v) <= MAX_VOICE and v.isprintable() for v in value)
    )


def _is_number(value: object, low: float, high: float) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and low <= value <= high


def _shares_problem(value: object, names: tuple[str, ...], high: float, *, needs_one: bool) -> str:
    if not isinstance(value, Mapping):
        return _("Give a number for some of: %(names)s.") % {"names": ", ".join(names)}
    unknown = [str(name) for name in value if name not in names]
    if unknown:
        return _("“%(unknown)s” is unknown. Known: %(names)s.") % {
            "unknown": unknown[0],
            "names": ", ".join(names),
        }
    if not all(_is_number(share, 0, high) for share in value.values()):
        return _("Each number must be from 0 to %(high)s.") % {"high": number_told(high, None)}
    if needs_one and not any(value.values()):
        return _("At least one number must be above 0.")
    return ""
