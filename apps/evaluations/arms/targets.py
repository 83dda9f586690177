"""What an arm asks: a retriever, a model, an assistant, or the rows themselves. Checked values with a JSON form, and sweeps over their settings.

An external endpoint that speaks OpenAI's protocol is a model: it is a credential of the workspace (kind ``compatible``),
and its name stands before the model's, as everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Annotated, Any, Literal

from django.utils.text import capfirst, get_text_list
from django.utils.translation import gettext_noop, override
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from apps.collections.search import LEGS, MAX_K
from apps.evaluations.arms.tool_sets import ToolSet
from basics.errors import Invalid
from basics.texts import gettext as _
from basics.texts import ngettext
from toolloop.service import NAMES

MAX_ARMS, MAX_NAME = 24, 160
MAX_NEIGHBOURS = 5
_LEGS_TOLD = {
    ("vector",): gettext_noop("dense search"),
    ("lexical",): gettext_noop("keyword search"),
    ("exact",): gettext_noop("exact search"),
    LEGS: gettext_noop("hybrid search"),
}


TOOLS_TOLD: Mapping[str, str] = {
    "none": gettext_noop("no tools"),
    "read": gettext_noop("read-only tools"),
    "ask": gettext_noop("ask before tools that change data"),
    "all": gettext_noop("all its tools"),
}
"""What an assistant's tools are called in English; pages translate it."""


class _Target(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Asked(_Target):
    """A target that a model answers; how its provider is to serve it, see ``toolloop.service``. None leaves it as it is."""

    service_tier: Literal["standard", "flex", "priority"] | None = None
    cache_ttl: Literal["5m", "30m", "1h", "12h", "24h"] | None = None
    background: bool | None = None

    @property
    def service(self) -> dict[str, Any]:
        """Return what is said about it, as ``ModelRequest.options`` has it."""
        return {name: value for name in NAMES if (value := getattr(self, name)) is not None}


class RetrieverTarget(_Target):
    """Search alone; its answer is the ranking.

    The last question of a conversation is made to stand alone by rule, as quick mode does without a model.
    """

    kind: Literal["retriever"] = "retriever"
    collections: tuple[int, ...] = Field(min_length=1, max_length=50)
    k: int = Field(10, ge=1, le=MAX_K)
    legs: tuple[Literal["vector", "lexical", "exact"], ...] = Field(
        ("vector", "lexical", "exact"), min_length=1
    )


class ModelTarget(_Asked):
    """A model without tools.

    Attributes:
        model: with its routing prefix.
        system: its instructions.
        with_sources: the row's own passages stand in the question ("open book").
    """

    kind: Literal["model"] = "model"
    model: str = Field(min_length=1, max_length=120)
    system: str = Field("", max_length=20_000)
    with_sources: bool = False


class AssistantTarget(_Asked):
    """The tool-calling loop as people use it: an assistant's version, or a plain chat over collections.

    It has what was said before a row's question, as far back as the version remembers.

    Attributes:
        version: id of an assistant's version; None for a plain chat.
        model: instead of the version's own; "" keeps it, or takes the workspace's default.
        collections: instead of the version's own; None keeps them, or takes all.
        prompt, mode: instead of the version's own; None keeps them.
        k: passages of each search; None leaves it to the version.
        legs: ways of searching, as of a retriever; None for all.
        neighbours: passages shown before and after each that was found; None leaves it to the version.
        tools: which of its tools it has; see ``holding``. None leaves it to the version.
        executes: calls that change data are carried out, not just recorded. Never in rows of a safety suite.
    """

    kind: Literal["assistant"] = "assistant"
    version: int | None = None
    model: str = Field("", max_length=120)
    collections: tuple[int, ...] | None = Field(None, max_length=50)
    prompt: str | None = Field(None, max_length=20_000)
    mode: Literal["quick", "planned", "tools", "code"] | None = None
    k: int | None = Field(None, ge=1, le=MAX_K)
    legs: tuple[Literal["vector", "lexical", "exact"], ...] | None = Field(None, min_length=1)
    neighbours: int | None = Field(None, ge=0, le=MAX_NEIGHBOURS)
    tools: ToolSet | None = None
    executes: bool = False


class ReferenceTarget(_Target):
    """Nobody is asked: the answer that stands in the row is graded."""

    kind: Literal["reference"] = "reference"


Target = RetrieverTarget | ModelTarget | AssistantTarget | ReferenceTarget
_ADAPTER: TypeAdapter[Target] = TypeAdapter(Annotated[Target, Field(discriminator="kind")])


def target_read(values: Mapping[str, Any]) -> Target:
    """Return the target of JSON values. Raises Invalid, which names what is wrong."""
    try:
        return _ADAPTER.validate_python(_tuples(values))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        place = ".".join(str(part) for part in first["loc"][1:]) or "target"
        message = f"Target, {place}: {first['msg']}."
        raise Invalid("target_invalid", message, data={"fields": {"arms": [message]}}) from error


def target_told(target: Target) -> str:
    """Return a target's settings in a few words, for lists."""
    return ", ".join(_parts_told(target))


def _parts_told(target: Target) -> list[str]:
    if isinstance(target, RetrieverTarget):
        return [capfirst(_legs_told(target.legs)), _("k %(k)s") % {"k": target.k}]
    if isinstance(target, ModelTarget):
        parts = [target.model, _("with sources") if target.with_sources else _("without sources")]
        parts += [_("own instructions")] if target.system else []
        return parts + _tier_told(target)
    if isinstance(target, ReferenceTarget):
        return [_("Answers stored in the rows")]
    parts = [_("Plain chat") if target.version is None else _("Assistant")]
    parts.append(target.model or _("its own model"))
    parts += [_("mode %(mode)s") % {"mode": target.mode}] if target.mode else []
    parts += [_("another prompt")] if target.prompt is not None else []
    parts += [_("k %(k)s") % {"k": target.k}] if target.k else []
    parts += [_legs_told(target.legs)] if target.legs else []
    if (around := target.neighbours) is not None:
        parts.append(ngettext("%(count)s neighbour", "%(count)s neighbours", around) % {"count": around})
    parts += [_(TOOLS_TOLD[target.tools])] if target.tools else []
    parts += [_("changes are carried out")] if target.executes else []
    return parts + _tier_told(target)


def _tier_told(target: ModelTarget | AssistantTarget) -> list[str]:
    return [_("%(tier)s tier") % {"tier": target.service_tier}] if target.service_tier else []


def arms_named(
    given: Sequence[str],
    targets: Sequence[Target],
    *,
    collections: Mapping[int, str],
    versions: Mapping[int, str],
) -> list[str]:
    """Return a name for each arm that no other arm of the experiment has.

    Where settings or people name several alike, what they search or who answers sets them apart, and else a number.

    Args:
        given: names by people; "" for one made of the target's settings.
        collections, versions: names of collections and of assistants' versions, by id.
    """
    with override("en"):  # names are stored, and the same for everyone
        names = [
            " ".join(name.split())[:MAX_NAME] or target_told(target)
            for name, target in zip(given, targets, strict=True)
        ]
    for parts in (
        [_searched(target, collections) for target in targets],
        [versions.get(getattr(target, "version", None) or 0, "") for target in targets],
    ):
        taken = Counter(names)
        names = [
            f"{name[: MAX_NAME - 2 - len(part[:60])]}, {part[:60]}" if part and taken[name] > 1 else name
            for name, part in zip(names, parts, strict=True)
        ]
    found: list[str] = []
    for name in names:
        n, free = 1, name
        while free in found:
            n += 1
            free = f"{name[: MAX_NAME - 6]} ({n})"
        found.append(free)
    return found


def arms_expand(
    base: Mapping[str, Any], sweep: Mapping[str, Sequence[Any]], names: Mapping[int, str] | None = None
) -> list[tuple[str, Target]]:
    """Return an arm for every combination of settings, with what sets it apart as its name.

    Args:
        base: a target's JSON values.
        sweep: setting -> the values to try.
        names: of collections, by id.

    Raises:
        Invalid: an unknown setting, no value, or more than ``MAX_ARMS`` arms.
    """
    for name, values in sweep.items():
        if not values:
            raise Invalid("sweep_invalid", _("Give at least one value of %(name)s to try.") % {"name": name})
    count = 1
    for values in sweep.values():
        count *= len(values)
    if count > MAX_ARMS:
        raise Invalid(
            "sweep_too_large",
            _("%(count)s arms are too many. Choose settings that give at most %(max_arms)s.")
            % {"count": count, "max_arms": MAX_ARMS},
        )
    arms = []
    for choice in product(*sweep.values()):
        chosen = dict(zip(sweep, choice, strict=True))
        target = target_read({**base, **chosen})
        with override("en"):  # as above
            told = ", ".join(_setting_told(name, value, names or {}) for name, value in chosen.items())
            arms.append((told or target_told(target), target))
    return arms


def _searched(target: Target, names: Mapping[int, str]) -> str:
    chosen = getattr(target, "collections", None)
    if chosen is None:
        return ""
    return " and ".join(names.get(pk, f"collection {pk}") for pk in chosen) or "no collection"


def _legs_told(legs: tuple[str, ...]) -> str:
    return _(_LEGS_TOLD[legs]) if legs in _LEGS_TOLD else get_text_list(list(legs), _("and"))


def _setting_told(name: str, value: Any, names: Mapping[int, str]) -> str:
    if name == "collections":
        return " and ".join(names.get(pk, f"collection {pk}") for pk in value)
    if name == "legs":
        return _legs_told(tuple(value))
    return f"{name} {_told(value)}"


def _tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}


def _told(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "+".join(str(v) for v in value)
    return str(value)[:60]
