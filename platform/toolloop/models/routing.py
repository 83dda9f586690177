"""Which provider and model a name means.

A routing name is ``<provider>/<model>``: ``openai/``, ``anthropic/``, ``google/`` or ``gemini/``, ``xai/``, ``compatible/``. A
bare name is routed by how it begins (``gpt-``, ``o1`` to ``o4``, ``chatgpt-``, ``claude-``, ``gemini-``, ``grok-``).

``compatible/`` can mean several servers. One rule decides: when what stands before the next slash is the name of a known
endpoint, that server is meant and the rest is the model; otherwise everything is the model of the default endpoint, whose
models may have slashes in their names themselves. ``default`` is always known and means the default endpoint.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from toolloop.errors import ConfigurationError

DEFAULT_ENDPOINT: Final = "default"
LOCAL_PROVIDERS: Final = frozenset({"extractive", "scripted"})
"""They run in this process, take neither key nor URL, and their model needs no name."""

# What stands before the first slash -> provider. Aliases come after the name a routing name is written back with.
PREFIXES: Final[Mapping[str, str]] = {
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "google",
    "gemini": "google",
    "xai": "xai",
    "compatible": "compatible",
    "extractive": "extractive",
    "scripted": "scripted",
}
# How a bare name begins -> provider.
_BARE: Final[tuple[tuple[re.Pattern[str], str, str], ...]] = (
    (re.compile(r"gpt-."), "openai", "gpt-"),
    (re.compile(r"o[1-4](-.|$)"), "openai", "o1 to o4"),
    (re.compile(r"chatgpt-."), "openai", "chatgpt-"),
    (re.compile(r"claude-."), "anthropic", "claude-"),
    (re.compile(r"gemini-."), "google", "gemini-"),
    (re.compile(r"grok-."), "xai", "grok-"),
)
_ENDPOINT_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,29}")


@dataclass(frozen=True, slots=True)
class Route:
    """Where a model is to be had.

    Attributes:
        id: the routing name in its one written form; aliases and bare names are resolved.
        provider: registry name.
        model: bare name, as the provider knows it.
        endpoint: named endpoint of provider ``compatible``, "" for the default one and all other providers.
    """

    id: str
    provider: str
    model: str
    endpoint: str = ""


def model_route(name: str, endpoints: Iterable[str] = ()) -> Route:
    """Find out what a routing name or a bare model name means; see the top of this module for the rules.

    Args:
        name: e.g. "anthropic/claude-sonnet-5-5", "gpt-6-luna", "compatible/lab/org/model".
        endpoints: names of the known compatible endpoints.

    Raises:
        ConfigurationError: it means none; the message lists what is possible.
    """
    known = frozenset(endpoints)
    cleaned = name.strip()
    head, slash, rest = cleaned.partition("/")
    if not cleaned.isprintable() or any(char.isspace() for char in cleaned):
        raise _unknown(name, known)
    if not slash and head not in LOCAL_PROVIDERS:
        for begins, provider, _ in _BARE:
            if begins.match(head):
                return Route(f"{provider}/{head}", provider, head)
        raise _unknown(name, known)
    if head not in PREFIXES:
        raise _unknown(name, known)
    provider = PREFIXES[head]
    if provider in LOCAL_PROVIDERS:
        model = rest or provider
        return Route(provider if model == provider else f"{provider}/{model}", provider, model)
    endpoint, model = "", rest
    if provider == "compatible":
        first, _, tail = rest.partition("/")
        if first == DEFAULT_ENDPOINT and tail:
            model = tail
        elif first in known:
            endpoint, model = first, tail
    if not model:
        raise _unknown(name, known)
    return Route(_written(provider, endpoint, model, known), provider, model, endpoint)


def parse_model(name: str, endpoints: Iterable[str] = ()) -> tuple[str, str]:
    """Split a name into provider and bare model: "compatible/org/model" -> ("compatible", "org/model").

    "extractive" and "scripted" stand for themselves. See ``model_route``, which also tells the endpoint.

    Raises:
        ConfigurationError: it isn't a model name.
    """
    route = model_route(name, endpoints)
    return route.provider, route.model


def is_endpoint_name(name: str) -> bool:
    """Tell whether a compatible endpoint may have this name.

    Small letters, digits and hyphens, at most 30; not "default", and no provider's name: model names often begin with
    one ("openai/gpt-oss-20b"), and would then be sent to the endpoint.
    """
    taken = name in PREFIXES or name == DEFAULT_ENDPOINT
    return _ENDPOINT_NAME.fullmatch(name) is not None and not taken


def _written(provider: str, endpoint: str, model: str, known: frozenset[str]) -> str:
    if endpoint:
        return f"{provider}/{endpoint}/{model}"
    first = model.partition("/")[0]
    if provider == "compatible" and "/" in model and first in known | {DEFAULT_ENDPOINT}:
        return f"{provider}/{DEFAULT_ENDPOINT}/{model}"
    return f"{provider}/{model}"


def _unknown(name: str, endpoints: frozenset[str]) -> ConfigurationError:
    prefixes = ", ".join(f"{prefix}/" for prefix in PREFIXES if prefix not in LOCAL_PROVIDERS)
    bare = ", ".join(sign for _, _, sign in _BARE)
    text = (
        f"{name[:200]!r} isn't a model name. Write <provider>/<model> with one of {prefixes}, a bare name "
        f"that begins with "
        f"{bare}, or {' or '.join(sorted(LOCAL_PROVIDERS))}."
    )
    if endpoints:
        text += f" Endpoints for compatible/<endpoint>/<model>: {', '.join(sorted(endpoints))}."
    return ConfigurationError(text)
