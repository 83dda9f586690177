"""Which adapters have a batch API, and the engine for one."""

from __future__ import annotations

from typing import Final

from toolloop.batches.base import BatchProvider
from toolloop.errors import UnsupportedFeature
from toolloop.providers.base import Provider

_WITH: Final = frozenset({"openai", "anthropic", "google"})
_WITHOUT: Final = {
    "xai": "Batches at xAI aren't supported: their results have a different format.",
    "compatible": (
        "Servers with an OpenAI-compatible API have no batch API in common. "
        "Choose a model of OpenAI, Anthropic or Google."
    ),
}


def missing_batches(provider: str) -> str:
    """Return why a provider has no batches, in words fit for a person; "" when it has.

    Args:
        provider: its name in the registry, e.g. "anthropic".
    """
    if provider in _WITH:
        return ""
    return _WITHOUT.get(provider, f"Models of {provider} run immediately, so there is no batch API.")


def batches_of(adapter: Provider) -> BatchProvider:
    """Return the batch API of an adapter's account; closing it closes the adapter.

    Raises:
        UnsupportedFeature: the provider has none that we speak, or the adapter is wrapped in something that makes
            several calls of one; the message says so in words fit for a person.
    """
    from toolloop.batches.anthropic import AnthropicBatches
    from toolloop.batches.google import GoogleBatches
    from toolloop.batches.openai import OpenAIBatches
    from toolloop.providers.anthropic import AnthropicProvider
    from toolloop.providers.google import GoogleProvider
    from toolloop.providers.openai import OpenAIProvider

    if why := missing_batches(adapter.name):
        raise UnsupportedFeature(why)
    if isinstance(adapter, OpenAIProvider):
        return OpenAIBatches(adapter)
    if isinstance(adapter, AnthropicProvider):
        return AnthropicBatches(adapter)
    if isinstance(adapter, GoogleProvider):
        return GoogleBatches(adapter)
    raise UnsupportedFeature(
        f"A {type(adapter).__name__} makes several calls for one answer, which a batch can't."
    )
