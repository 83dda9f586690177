"""Let a cheap model choose tools of a catalog: it reads names and first sentences, not schemas."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toolloop.errors import GenerationFailed
from toolloop.limits import Limits
from toolloop.metering import UsageHook
from toolloop.providers.base import Provider
from toolloop.structured import generate
from toolloop.tools.catalog import CatalogEntry
from toolloop.tools.context import ToolError
from toolloop.tools.meta_tools import Chooser

_SYSTEM = (
    "You choose tools. You get an intent and a list of tools. Give the names of the tools that fit the intent, the best "
    "first, none that does not. Give an empty list when none fits."
)
_LONGEST = 160
_LIMITS = Limits(max_seconds=20.0, max_retries=1, max_output_repairs=1)
_FORM = {
    "type": "object",
    "properties": {"names": {"type": "array", "items": {"type": "string"}}},
    "required": ["names"],
    "additionalProperties": False,
}


def model_chooser(
    provider: Provider,
    model: str,
    *,
    limits: Limits = _LIMITS,
    on_usage: UsageHook | None = None,
    usage_metadata: Mapping[str, Any] | None = None,
) -> Chooser:
    """Make a chooser for ``DynamicToolset`` that asks a model.

    Args:
        provider: stays open; the caller closes it after the run.
        model: bare name of a cheap model.
        limits: of one question.
        on_usage, usage_metadata: as for ``LoopServices``: the questions are not part of the run's own usage.
    """

    async def choose(intent: str, entries: Sequence[CatalogEntry]) -> Sequence[str]:
        listed = "\n".join(f"- {entry.name}: {_first_words(entry)}" for entry in entries)
        try:
            made = await generate(
                provider=provider,
                model=model,
                system=_SYSTEM,
                prompt=f"Tools:\n{listed}\n\nIntent: {intent}",
                output=_FORM,
                limits=limits,
                on_usage=on_usage,
                usage_metadata=usage_metadata,
            )
        except GenerationFailed as error:
            text = f"The tools could not be searched this way now ({error.code}). Use browse_toolkit."
            raise ToolError(text) from error
        names: list[str] = made.value["names"]
        return names

    return choose


def _first_words(entry: CatalogEntry) -> str:
    text = " ".join(entry.description.split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
