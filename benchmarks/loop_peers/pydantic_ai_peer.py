"""pydantic-ai: one agent with one tool."""

from __future__ import annotations

from collections.abc import AsyncIterable
from typing import Any

from _worker import MODELS, QUESTION, SYSTEM, Conversation, add, serve
from pydantic_ai import Agent, RunContext


def model_of(protocol: str, url: str) -> Any:
    name = MODELS[protocol]
    if protocol == "anthropic":
        from anthropic import AsyncAnthropic
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        client = AsyncAnthropic(api_key="none", base_url=url, max_retries=0)
        return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=client))
    if protocol == "gemini":
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider

        return GoogleModel(name, provider=GoogleProvider(api_key="none", base_url=url))
    from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
    from pydantic_ai.providers.openai import OpenAIProvider

    kind = OpenAIResponsesModel if protocol == "responses" else OpenAIChatModel
    return kind(name, provider=OpenAIProvider(base_url=f"{url}/v1", api_key="none"))


async def opener(protocol: str, streamed: bool, url: str) -> Conversation:
    model = model_of(protocol, url)
    made = 0

    async def counted_add(a: int, b: int) -> int:
        nonlocal made
        made += 1
        return add(a, b)

    counted_add.__doc__ = add.__doc__
    agents = {}
    for scenario in ("seq", "par"):
        agents[scenario] = Agent(model, instructions=SYSTEM.format(scenario))
        agents[scenario].tool_plain(name="add")(counted_add)

    async def read(_: RunContext[None], events: AsyncIterable[Any]) -> None:
        async for _event in events:
            pass

    async def converse(scenario: str) -> tuple[str, int]:
        nonlocal made
        made = 0
        result = await agents[scenario].run(QUESTION, event_stream_handler=read if streamed else None)
        return result.output, made

    return converse


if __name__ == "__main__":
    serve(opener, ("pydantic-ai-slim", "openai", "anthropic", "google-genai"))
