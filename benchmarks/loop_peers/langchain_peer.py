"""LangChain's create_agent with one tool."""

from __future__ import annotations

from typing import Any

from _worker import MODELS, QUESTION, SYSTEM, Conversation, add, serve
from langchain.agents import create_agent
from langchain_core.tools import tool


def model_of(protocol: str, url: str) -> Any:
    name = MODELS[protocol]
    if protocol == "anthropic":
        from langchain_anthropic import ChatAnthropic

        return ChatAnthropic(model=name, api_key="none", base_url=url, max_retries=0, max_tokens=4096)
    if protocol == "gemini":
        from langchain_google_genai import ChatGoogleGenerativeAI

        return ChatGoogleGenerativeAI(model=name, google_api_key="none", base_url=url)
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(
        model=name,
        api_key="none",
        base_url=f"{url}/v1",
        max_retries=0,
        use_responses_api=protocol == "responses",
        stream_usage=True,
    )


async def opener(protocol: str, streamed: bool, url: str) -> Conversation:
    model = model_of(protocol, url)
    made = 0

    @tool("add")
    async def counted_add(a: int, b: int) -> int:
        """Add two numbers."""
        nonlocal made
        made += 1
        return add(a, b)

    agents = {
        scenario: create_agent(model, tools=[counted_add], system_prompt=SYSTEM.format(scenario))
        for scenario in ("seq", "par")
    }
    # One step for the model and one for its tools.
    config: Any = {"recursion_limit": 100}

    async def converse(scenario: str) -> tuple[str, int]:
        nonlocal made
        made = 0
        agent, question = agents[scenario], {"messages": [("user", QUESTION)]}
        if not streamed:
            state = await agent.ainvoke(question, config)
            return state["messages"][-1].text, made
        text = ""
        async for message, meta in agent.astream(question, config, stream_mode="messages"):
            if meta["langgraph_node"] == "model":
                text += message.text
        return text, made

    return converse


if __name__ == "__main__":
    serve(
        opener,
        (
            "langchain",
            "langchain-openai",
            "langchain-anthropic",
            "langchain-google-genai",
            "openai",
            "anthropic",
            "google-genai",
        ),
    )
