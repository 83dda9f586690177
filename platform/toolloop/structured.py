"""One question, one answer of a given form: the loop without tools, for callers that want a value and no events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolloop.errors import GenerationFailed
from toolloop.events import RunFinished
from toolloop.json_reading import clean_json, extract_json
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.loop_values import LoopInput, LoopServices
from toolloop.messages import ModelMessage, UserMessage
from toolloop.metering import UsageHook
from toolloop.output import Form, Output, output_of
from toolloop.providers.base import Provider
from toolloop.providers.profiles import Profile
from toolloop.tokens import Usage
from toolloop.tools.toolset import Toolset

__all__ = ["Generated", "GenerationFailed", "Output", "clean_json", "extract_json", "generate", "output_of"]


@dataclass(frozen=True, slots=True)
class Generated:
    """An answer.

    Attributes:
        text: as the model wrote it.
        value: the checked value; None when no form was asked for.
        usage, cost_usd: of all attempts; the cost is None where the price is unknown.
    """

    text: str
    value: Any
    usage: Usage
    cost_usd: float | None


async def generate(
    *,
    provider: Provider,
    model: str,
    prompt: str | Sequence[ModelMessage],
    output: Form = None,
    system: str = "",
    limits: Limits = Limits(),  # noqa: B008 - frozen
    options: Mapping[str, Any] | None = None,
    cache_key: str = "",
    user_key: str = "",
    profile: Profile | None = None,
    on_usage: UsageHook | None = None,
    usage_metadata: Mapping[str, Any] | None = None,
) -> Generated:
    """Ask a model once, with the loop's retries and limits.

    Args:
        provider: the caller closes it.
        model: bare model name.
        prompt: the question, or a history that ends in one.
        output: type or JSON Schema of the answer, see ``toolloop.output.output_of``; None for text. An answer that does
            not fit is sent back ``limits.max_output_repairs`` times.
        system, limits, options, cache_key, user_key, profile, on_usage, usage_metadata: as for ``LoopInput`` and ``LoopServices``.

    Raises:
        GenerationFailed: when there is no answer of that form.
        ConfigurationError: for an ``output`` that is no form.
    """
    form = None if output is None else output_of(output)
    history = [UserMessage(prompt)] if isinstance(prompt, str) else list(prompt)
    end: RunFinished | None = None
    async for event in run_loop(
        LoopInput(
            model=model,
            system=system,
            history=history,
            toolset=Toolset(),
            limits=limits,
            options=options,
            cache_key=cache_key,
            user_key=user_key,
            output=form,
        ),
        LoopServices(provider=provider, profile=profile, on_usage=on_usage, usage_metadata=usage_metadata),
    ):
        if isinstance(event, RunFinished):
            end = event
    if end is None:
        raise RuntimeError("the loop ended without RunFinished")
    if end.status != "completed":
        raise GenerationFailed(end.error_message, end.error_code, retryable=end.retryable, usage=end.usage)
    if form is not None and not end.has_output:
        text = f"The model gave no answer in the requested form (it stopped with {end.stop!r})."
        raise GenerationFailed(text, "no_answer", retryable=False, usage=end.usage)
    return Generated(end.text, end.output, end.usage, end.data["cost_usd"])
