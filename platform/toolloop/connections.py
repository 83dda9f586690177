"""From names of models to adapters that can be asked: keys from the environment, fallbacks, and a cache around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from toolloop.errors import ConfigurationError
from toolloop.fallback import FallbackProvider
from toolloop.models import ModelCatalog
from toolloop.providers.base import Provider
from toolloop.providers.profiles import Profile, profile_for
from toolloop.providers.registry import environment_settings, make_provider
from toolloop.response_cache import CachedProvider, CacheSettings
from toolloop.usage import ProfileLookup

KEY_VARIABLES = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "google": "GOOGLE_API_KEY",
    "xai": "XAI_API_KEY",
    "compatible": "GROUNDWORK_COMPATIBLE_API_KEY",
}


@dataclass(slots=True)
class Connection:
    """Adapters of one event loop, closed together.

    Attributes:
        provider: what to ask: the first model's adapter with fallbacks and cache around it.
        model: bare name of the first model.
        profile: facts about it, None where its adapter was made elsewhere.
        profiles: facts about every model that may answer, by provider and bare name.
    """

    provider: Provider
    model: str
    profile: Profile | None
    profiles: ProfileLookup
    _made: dict[tuple[str, str], Provider] = field(default_factory=dict)

    async def aclose(self) -> None:
        """Close every adapter that was made for this connection."""
        async with AsyncExitStack() as stack:
            for provider in self._made.values():
                stack.push_async_callback(provider.aclose)


def connection_open(
    models: Sequence[str],
    *,
    env: Mapping[str, str],
    facts: ModelCatalog,
    endpoints: Mapping[str, Mapping[str, Any]],
    api_key: str | None = None,
    base_url: str | None = None,
    provider: Provider | None = None,
    cache: CacheSettings | None = None,
) -> Connection:
    """Make the adapters for a model and its fallbacks.

    Args:
        models: routing names, the preferred one first.
        env: where keys and URLs are looked up.
        facts: what is known about the models, and which endpoints there are.
        endpoints: settings of the compatible endpoints, by name.
        api_key: of the first model's provider; from the environment when None.
        base_url: of the first model's provider. Keys of the environment are not sent to it: they belong to another host.
        provider: an adapter made elsewhere for the first model, whose name is bare then; it stays open.
        cache: answers requests without tools from here.

    Raises:
        ConfigurationError: for an unknown model or provider, a missing key or a missing SDK.
    """
    made: dict[tuple[str, str], Provider] = {}
    candidates: list[tuple[Provider, str]] = []
    known: dict[tuple[str, str], Profile] = {}
    first: Profile | None = None
    scope = "" if cache is None else cache.scope
    for number, name in enumerate(models):
        if number == 0 and provider is not None:
            candidates.append((provider, name))
            continue
        route = facts.route(name)
        server = (route.provider, route.endpoint)
        is_own = number == 0
        if server not in made and route.endpoint:
            made[server] = endpoint_open(
                route.endpoint, endpoints, is_overridden=is_own and bool(api_key or base_url)
            )
        elif server not in made:
            key, url = (api_key, base_url) if is_own else (None, None)
            made[server] = provider_open(route.provider, env=env, api_key=key, base_url=url)
        candidates.append((made[server], route.model))
        profile = facts.profile(route.id)
        known.setdefault((route.provider, route.model), profile)
        if is_own:
            first = profile
            # Two servers may have models of one name.
            scope = f"{scope}\n{route.endpoint}" if route.endpoint else scope

    def profiles(owner: str, model: str) -> Profile:
        return known.get((owner, model)) or profile_for(owner, model)

    asked: Provider = candidates[0][0]
    if len(candidates) > 1:
        asked = FallbackProvider(candidates, profiles=profiles)
    if cache is not None:
        asked = CachedProvider(asked, cache.cache, ttl_s=cache.ttl_s, scope=scope)
    return Connection(asked, candidates[0][1], first, profiles, made)


def is_one_server(facts: ModelCatalog, one: str, other: str) -> bool:
    """Tell whether two routing names belong to one account on one server."""
    a, b = facts.route(one), facts.route(other)
    return (a.provider, a.endpoint) == (b.provider, b.endpoint)


def endpoint_open(name: str, endpoints: Mapping[str, Mapping[str, Any]], *, is_overridden: bool) -> Provider:
    """Make the adapter of a named endpoint.

    Raises:
        ConfigurationError: its settings are missing or wrong, or somebody gave a key or URL beside them.
    """
    if name not in endpoints:
        raise ConfigurationError(
            f"The endpoint {name!r} has no settings here: pass its base_url in endpoints."
        )
    if is_overridden:
        raise ConfigurationError(
            f"The endpoint {name!r} has its URL and key in endpoints: don't pass them again."
        )
    return make_provider("compatible", **endpoints[name])


def provider_open(
    name: str, *, env: Mapping[str, str], api_key: str | None = None, base_url: str | None = None
) -> Provider:
    """Make the adapter of a provider; arguments as for ``connection_open``."""
    if base_url is not None:
        return make_provider(name, api_key=api_key or "", base_url=base_url)
    variable = KEY_VARIABLES.get(name, "")
    given = {**env, variable: api_key} if api_key and variable else env
    settings = environment_settings(name, given)
    if settings is None:
        if name == "compatible":
            raise ConfigurationError(
                "A compatible server needs a URL: pass base_url, or set GROUNDWORK_COMPATIBLE_BASE_URL."
            )
        if not api_key:
            raise ConfigurationError(f"There is no key for {name}: pass api_key, or set {variable}.")
        settings = {}
    if api_key:
        settings["api_key"] = api_key
    return make_provider(name, **settings)
