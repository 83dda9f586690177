"""What is known about models: the built-in facts, what somebody states over them, and both as one catalog."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, Literal

from toolloop.errors import ConfigurationError
from toolloop.models.routing import LOCAL_PROVIDERS, PREFIXES, Route, model_route
from toolloop.providers.model_facts import MODELS
from toolloop.providers.profiles import Prices, Profile, profile_for
from toolloop.tokens import Usage

CAPABILITIES: Final = (
    "tools",
    "structured_output",
    "reasoning",
    "image_input",
    "pdf_input",
    "audio_input",
    "file_input",
    "cites_passages",
    "web_search",
    "file_search",
    "web_fetch",
    "code_execution",
    "deferred_tools",
)
"""What ``ModelInfo.capabilities`` may hold and an override may switch."""

_EFFORTS: Final = ("low", "medium", "high")
_EXTRACTIVE_LABEL: Final = "Extractive (no language model)"


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model a person can choose.

    Attributes:
        id: routing name in its one written form; what ``model_route`` takes.
        provider, model, endpoint: its parts.
        label: to show.
        profile: everything adapters and limits need to know.
        is_language_model: False for the extractive one, whose answers must be labelled.
        is_known: somebody has stated facts about this very model; otherwise they are its family's or provider's.
    """

    id: str
    provider: str
    model: str
    label: str
    profile: Profile
    endpoint: str = ""
    is_language_model: bool = True
    is_known: bool = True

    @property
    def context_window(self) -> int | None:
        """Tokens that fit, None when unknown."""
        return self.profile.context_window

    @property
    def max_output_tokens(self) -> int | None:
        """Tokens an answer may have, None when unknown."""
        return self.profile.max_output_tokens

    @property
    def prices(self) -> tuple[Prices, ...]:
        """USD per million tokens, by prompt size; empty when unknown."""
        return self.profile.prices

    @property
    def prompt_cache(self) -> Literal["automatic", "marked", "none"]:
        """How prompts are cached, see ``Profile``."""
        return self.profile.prompt_cache

    @property
    def deprecated_on(self) -> str:
        """ISO date of the model's announced end, "" for none."""
        return self.profile.deprecated_on

    @property
    def replaced_by(self) -> str:
        """Bare name of its successor, "" for none known."""
        return self.profile.replaced_by

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Those of ``CAPABILITIES`` that it has, in that order."""
        return tuple(name for name in CAPABILITIES if _has(self.profile, name))


def _has(profile: Profile, capability: str) -> bool:
    if capability == "structured_output":
        return profile.structured_output != "never"
    if capability == "reasoning":
        return profile.thinking != "none"
    return bool(getattr(profile, capability))


@dataclass(frozen=True, slots=True)
class ModelOverride:
    """What somebody states about a model: a new one, or other facts about one there is. None and "" state nothing.

    Args:
        name: routing name or bare name.
        label: to show.
        is_hidden: do not offer it.
        context_window, max_output_tokens: tokens, above zero.
        prices: USD per million tokens, tiers by ``above_tokens`` rising from 0; empty means that the price is unknown.
        capabilities: by name of ``CAPABILITIES``, whether the model has it.
        prompt_cache, deprecated_on, replaced_by: see ``Profile``.

    Raises:
        ConfigurationError: a limit, a tier or a capability that cannot be.
    """

    name: str
    label: str = ""
    is_hidden: bool = False
    context_window: int | None = None
    max_output_tokens: int | None = None
    prices: tuple[Prices, ...] | None = None
    capabilities: Mapping[str, bool] = field(default_factory=dict)
    prompt_cache: Literal["automatic", "marked", "none"] | None = None
    deprecated_on: str = ""
    replaced_by: str = ""

    def __post_init__(self) -> None:
        for limit in (self.context_window, self.max_output_tokens):
            if limit is not None and limit < 1:
                raise ConfigurationError(f"{self.name}: {limit} isn't a valid token limit.")
        if unknown := set(self.capabilities) - set(CAPABILITIES):
            raise ConfigurationError(
                f"{self.name}: unknown capabilities {', '.join(sorted(unknown))}; known: {', '.join(CAPABILITIES)}."
            )
        starts = [tier.above_tokens for tier in self.prices or ()]
        if starts and (starts[0] != 0 or starts != sorted(set(starts))):
            raise ConfigurationError(f"{self.name}: price tiers must begin at 0 tokens and rise from there.")

    def applied(self, profile: Profile) -> Profile:
        """Return the profile with what is stated here."""
        changed: dict[str, Any] = {
            name: value
            for name in ("context_window", "max_output_tokens", "prices", "prompt_cache")
            if (value := getattr(self, name)) is not None
        }
        changed |= {
            name: value for name in ("deprecated_on", "replaced_by") if (value := getattr(self, name))
        }
        for name, has in self.capabilities.items():
            if name == "structured_output":
                if has != _has(profile, name):
                    changed[name] = "always" if has else "never"
            elif name == "reasoning":
                if has and profile.thinking == "none":
                    changed |= {"thinking": "effort", "efforts": profile.efforts or _EFFORTS}
                elif not has:
                    changed |= {"thinking": "none", "efforts": ()}
            else:
                changed[name] = has
        return replace(profile, **changed) if changed else profile


class ModelCatalog:
    """What is known about models: the built-in facts, with overrides and additions on top. Never changes once made.

    Args:
        overrides: facts somebody states; a later one about the same model wins.
        endpoints: names of the compatible endpoints that routing names may use.

    Raises:
        ConfigurationError: an override names no model.
    """

    def __init__(self, overrides: Iterable[ModelOverride] = (), *, endpoints: Iterable[str] = ()) -> None:
        self.endpoints = frozenset(endpoints)
        self._overrides: dict[str, ModelOverride] = {}
        for override in overrides:
            self._overrides[self.route(override.name).id] = override
        self._infos: dict[str, ModelInfo] = {}

    def route(self, name: str) -> Route:
        """Find out what a name means among this catalog's endpoints; see ``model_route``."""
        return model_route(name, self.endpoints)

    def get_model_info(self, name: str) -> ModelInfo:
        """Return what is known about a model; for an unknown one of a known provider, that provider's safe defaults.

        Raises:
            ConfigurationError: the name means no model; the message lists what is possible.
        """
        route = self.route(name)
        found = self._infos.get(route.id)
        if found is None:
            found = self._infos[route.id] = self._described(route)
        return found

    def profile(self, name: str) -> Profile:
        """Return the facts that adapters and the loop act on; see ``get_model_info``."""
        return self.get_model_info(name).profile

    def is_hidden(self, name: str) -> bool:
        """Tell whether the model is not to be used."""
        override = self._overrides.get(self.route(name).id)
        return override is not None and override.is_hidden

    def list_models(
        self, provider: str | None = None, capability: str | None = None, include_deprecated: bool = False
    ) -> list[ModelInfo]:
        """List the models that facts are stated about, by provider: built-in ones first, then additions.

        Whether anybody has a key for them is another question: see ``registry.configured_models``.

        Args:
            provider: only this one's; ``gemini`` means ``google``.
            capability: only models that have it, one of ``CAPABILITIES``.
            include_deprecated: also those whose end has been announced.

        Raises:
            ConfigurationError: unknown provider or capability.
        """
        if capability is not None and capability not in CAPABILITIES:
            raise ConfigurationError(f"Unknown capability {capability!r}; known: {', '.join(CAPABILITIES)}.")
        if provider is not None:
            if provider not in PREFIXES:
                raise ConfigurationError(f"Unknown provider {provider!r}; known: {', '.join(PREFIXES)}.")
            provider = PREFIXES[provider]
        names = [f"{owner}/{model}" for owner, models in MODELS.items() for model in models]
        found = [
            self.get_model_info(name)
            for name in dict.fromkeys([*names, *self._overrides])
            if not self.is_hidden(name)
        ]
        order = {name: place for place, name in enumerate(PREFIXES)}
        found.sort(key=lambda info: order[info.provider])
        return [
            info
            for info in found
            if (provider is None or info.provider == provider)
            and (capability is None or capability in info.capabilities)
            and (include_deprecated or not info.deprecated_on)
        ]

    def compute_cost(self, name: str, usage: Usage, tier: str = "") -> float | None:
        """Price one model call in USD, None when the price is unknown; see ``Profile.cost_usd``.

        Raises:
            ConfigurationError: the name means no model.
        """
        return self.profile(name).cost_usd(usage, tier)

    def _described(self, route: Route) -> ModelInfo:
        override = self._overrides.get(route.id)
        profile = profile_for(route.provider, route.model)
        label = _EXTRACTIVE_LABEL if route.provider == "extractive" else route.model
        if route.endpoint:
            label = f"{route.model} ({route.endpoint})"
        return ModelInfo(
            id=route.id,
            provider=route.provider,
            model=route.model,
            label=(override.label if override else "") or label,
            profile=override.applied(profile) if override else profile,
            endpoint=route.endpoint,
            is_language_model=route.provider != "extractive",
            is_known=override is not None
            or route.provider in LOCAL_PROVIDERS
            or route.model in MODELS.get(route.provider, ()),
        )


@cache
def default_catalog() -> ModelCatalog:
    """Return the catalog of the built-in facts."""
    return ModelCatalog()


def list_models(
    provider: str | None = None, capability: str | None = None, include_deprecated: bool = False
) -> list[ModelInfo]:
    """List the models of the built-in facts; see ``ModelCatalog.list_models``."""
    return default_catalog().list_models(provider, capability, include_deprecated)


def get_model_info(name: str) -> ModelInfo:
    """Return the built-in facts about a model; see ``ModelCatalog.get_model_info``."""
    return default_catalog().get_model_info(name)


def compute_cost(name: str, usage: Usage, tier: str = "") -> float | None:
    """Price one model call in USD by the built-in facts; see ``ModelCatalog.compute_cost``."""
    return default_catalog().compute_cost(name, usage, tier)
