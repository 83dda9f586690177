"""Providers by name, and which of them an environment makes usable.

Which wire an OpenAI URL gets is decided here, by one rule: ``OPENAI_BASE_URL`` on ``api.openai.com`` or a host below it
(the regional ones) speaks the Responses API as provider ``openai``; on any other host it is an OpenAI-compatible server
and speaks chat completions as provider ``compatible``. ``OPENAI_API_KEY`` then belongs to that other host and is never
sent to OpenAI. Where ``GROUNDWORK_COMPATIBLE_BASE_URL`` is set too, that one is the compatible server.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from toolloop.errors import ConfigurationError
from toolloop.models import (
    DEFAULT_ENDPOINT,
    LOCAL_PROVIDERS,
    ModelCatalog,
    ModelInfo,
    default_catalog,
    parse_model,
)
from toolloop.providers._common import checked_base_url
from toolloop.providers._media import takes_media
from toolloop.providers.base import Provider
from toolloop.providers.compatible import list_remote_models
from toolloop.providers.profiles import DEFAULT_MODELS

if TYPE_CHECKING:
    import httpx2

__all__ = [
    "PROVIDERS",
    "ModelInfo",
    "configured_models",
    "environment_settings",
    "is_openai_host",
    "list_remote_models",
    "make_provider",
    "parse_model",
    "takes_media",
]

# name -> module and class, imported when first asked for
PROVIDERS: Final[dict[str, tuple[str, str]]] = {
    "openai": ("toolloop.providers.openai", "OpenAIProvider"),
    "compatible": ("toolloop.providers.compatible", "CompatibleProvider"),
    "anthropic": ("toolloop.providers.anthropic", "AnthropicProvider"),
    "google": ("toolloop.providers.google", "GoogleProvider"),
    "xai": ("toolloop.providers.xai", "XAIProvider"),
    "extractive": ("toolloop.providers.extractive", "ExtractiveProvider"),
    "scripted": ("toolloop.providers.scripted", "ScriptedProvider"),
}


def make_provider(
    name: str,
    *,
    api_key: str = "",
    base_url: str | None = None,
    http_client: httpx2.AsyncClient | None = None,
    **settings: Any,
) -> Provider:
    """Make an adapter for one account, to be used in one event loop and closed after.

    Args:
        name: one of ``PROVIDERS``.
        api_key: the account's key; not needed by the local providers and most compatible servers.
        base_url: None for the provider's own. The environment is not read: see ``environment_settings``.
        http_client: an ``httpx2.AsyncClient`` the adapter uses and closes.
        settings: the adapter's own keyword arguments, e.g. ``api_version`` for google.

    Raises:
        ConfigurationError: for an unknown provider or setting, a missing key or a missing SDK.
    """
    try:
        module, class_name = PROVIDERS[name]
    except KeyError:
        raise ConfigurationError(
            f"Unknown provider {name!r}; known: {', '.join(sorted(PROVIDERS))}."
        ) from None
    factory = cast("Callable[..., Provider]", getattr(importlib.import_module(module), class_name))
    if name not in LOCAL_PROVIDERS:
        settings |= {"api_key": api_key, "base_url": base_url, "http_client": http_client}
    try:
        return factory(**settings)
    except TypeError as exc:
        raise ConfigurationError(f"Provider {name!r} got an invalid setting: {exc}") from exc


def is_openai_host(base_url: str) -> bool:
    """Tell whether a URL belongs to OpenAI itself, and so has the Responses API."""
    host = (urlsplit(base_url).hostname or "").lower()
    return host == "api.openai.com" or host.endswith(".api.openai.com")


def environment_settings(name: str, env: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the arguments of ``make_provider`` that an environment gives a provider, None if it is not usable.

    Args:
        name: one of ``PROVIDERS``.
        env: e.g. ``os.environ``; empty values count as absent.

    Raises:
        ConfigurationError: for a base URL that cannot be used.
    """

    def read(*names: str) -> str:
        return next((env[key].strip() for key in names if env.get(key, "").strip()), "")

    def url(variable: str) -> str | None:
        value = read(variable)
        if not value:
            return None
        try:
            return checked_base_url(value)
        except ConfigurationError as exc:
            raise ConfigurationError(f"{variable}: {exc.message}") from exc

    if name in LOCAL_PROVIDERS:
        return {} if name == "extractive" else None
    openai_url = url("OPENAI_BASE_URL")
    openai_is_elsewhere = openai_url is not None and not is_openai_host(openai_url)
    if name == "compatible":
        own_url = url("GROUNDWORK_COMPATIBLE_BASE_URL")
        if own_url:
            return {"base_url": own_url, "api_key": read("GROUNDWORK_COMPATIBLE_API_KEY")}
        if openai_is_elsewhere:
            return {"base_url": openai_url, "api_key": read("OPENAI_API_KEY")}
        return None
    settings: dict[str, Any]
    if name == "openai":
        settings = {
            "api_key": "" if openai_is_elsewhere else read("OPENAI_API_KEY"),
            "base_url": openai_url,
            "organization": read("OPENAI_ORG_ID") or None,
            "project": read("OPENAI_PROJECT_ID") or None,
        }
    elif name == "anthropic":
        settings = {"api_key": read("ANTHROPIC_API_KEY"), "base_url": url("ANTHROPIC_BASE_URL")}
    elif name == "google":
        # The order in which google-genai itself reads them.
        settings = {
            "api_key": read("GOOGLE_API_KEY", "GEMINI_API_KEY"),
            "base_url": url("GOOGLE_GEMINI_BASE_URL"),
        }
        settings |= shared_settings(name, env)
    elif name == "xai":
        settings = {"api_key": read("XAI_API_KEY"), "base_url": None}
    else:
        raise ConfigurationError(f"Unknown provider {name!r}; known: {', '.join(sorted(PROVIDERS))}.")
    return settings if settings["api_key"] else None


def shared_settings(name: str, env: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of ``make_provider`` that an environment states for every account of a provider."""
    version = env.get("GROUNDWORK_GEMINI_API_VERSION", "").strip() if name == "google" else ""
    return {"api_version": version} if version else {}


def configured_models(env: Mapping[str, str], catalog: ModelCatalog | None = None) -> list[ModelInfo]:
    """List the models an environment makes usable, without asking anybody over the network.

    Providers with a key offer their default models; a compatible server offers what ``GROUNDWORK_COMPATIBLE_MODELS``
    (comma-separated) names, and ``list_remote_models`` tells the rest. ``extractive`` is always there, as the last.

    Args:
        env: e.g. ``os.environ``.
        catalog: what is known about them; the built-in facts when None.

    Raises:
        ConfigurationError: for a base URL that cannot be used.
    """
    known = catalog or default_catalog()
    found = [
        known.get_model_info(f"{provider}/{model}")
        for provider, models in DEFAULT_MODELS.items()
        if environment_settings(provider, env) is not None
        for model in models
    ]
    if environment_settings("compatible", env) is not None:
        names = env.get("GROUNDWORK_COMPATIBLE_MODELS", "").split(",")
        stripped = [name.strip() for name in names]
        # Of the default endpoint, whatever names this catalog's endpoints have.
        found += [
            known.get_model_info(f"compatible/{DEFAULT_ENDPOINT}/{name}")
            for name in dict.fromkeys(stripped)
            if name
        ]
    return [*found, known.get_model_info("extractive")]
