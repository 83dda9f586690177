"""toolloop, as a plain Python program uses it. It always streams."""

from __future__ import annotations

import sys
from pathlib import Path

from toolloop.loop_values import LoopInput, LoopServices

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "platform"))

from _worker import MODELS, QUESTION, SYSTEM, Conversation, add, serve

from toolloop.events import RunFinished, ToolFinished
from toolloop.limits import Limits
from toolloop.loop import run_loop
from toolloop.messages import UserMessage
from toolloop.providers.base import Provider
from toolloop.providers.registry import make_provider
from toolloop.tools import Toolset, tool

PROVIDERS = {
    "responses": ("openai", "/v1"),
    "chat": ("compatible", "/v1"),
    "anthropic": ("anthropic", ""),
    "gemini": ("google", ""),
}


def provider_of(protocol: str, url: str) -> Provider:
    name, path = PROVIDERS[protocol]
    return make_provider(name, api_key="none", base_url=url + path)


async def opener(protocol: str, streamed: bool, url: str) -> Conversation:
    provider = provider_of(protocol, url)
    toolset = Toolset([tool(add)])

    async def converse(scenario: str) -> tuple[str, int]:
        answer, made = "", 0
        async for event in run_loop(
            LoopInput(
                model=MODELS[protocol],
                system=SYSTEM.format(scenario),
                history=[UserMessage(QUESTION)],
                toolset=toolset,
                limits=Limits(),
            ),
            LoopServices(provider=provider),
        ):
            if isinstance(event, ToolFinished):
                made += not event.result.is_error
            elif isinstance(event, RunFinished):
                answer = event.text
        return answer, made

    return converse


if __name__ == "__main__":
    serve(opener, ("openai", "anthropic", "google-genai"))
