"""The providers' own packages, used as their documentation shows it; tools are called by hand."""

from __future__ import annotations

import json
from typing import Any

from _worker import MODELS, QUESTION, SYSTEM, TOOL_NAME, TOOL_SCHEMA, TOOL_TEXT, Conversation, add, serve

FUNCTION = {"name": TOOL_NAME, "description": TOOL_TEXT, "parameters": TOOL_SCHEMA}


def responses(streamed: bool, url: str, model: str) -> Conversation:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0)
    tools: Any = [{"type": "function", **FUNCTION, "strict": True}]

    async def converse(scenario: str) -> tuple[str, int]:
        items: list[Any] = [{"role": "user", "content": QUESTION}]
        made = 0
        while True:
            answer: Any = await client.responses.create(
                model=model,
                instructions=SYSTEM.format(scenario),
                input=items,
                tools=tools,
                store=False,
                stream=streamed,
            )
            if streamed:
                text = ""
                async for event in answer:
                    if event.type == "response.output_text.delta":
                        text += event.delta
                    elif event.type == "response.completed":
                        whole = event.response
            else:
                text, whole = answer.output_text, answer
            calls = [item for item in whole.output if item.type == "function_call"]
            if not calls:
                return text, made
            made += len(calls)
            items += whole.output
            for call in calls:
                output = str(add(**json.loads(call.arguments)))
                items.append({"type": "function_call_output", "call_id": call.call_id, "output": output})

    return converse


def chat(streamed: bool, url: str, model: str) -> Conversation:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(api_key="none", base_url=f"{url}/v1", max_retries=0)
    tools: Any = [{"type": "function", "function": FUNCTION}]
    extra: Any = {"stream": True, "stream_options": {"include_usage": True}} if streamed else {}

    async def ask(messages: list[Any]) -> dict[str, Any]:
        answer: Any = await client.chat.completions.create(
            model=model, messages=messages, tools=tools, **extra
        )
        if not streamed:
            return answer.choices[0].message.model_dump(exclude_none=True)
        text, calls = "", dict[int, dict[str, Any]]()
        async for chunk in answer:
            if not chunk.choices:
                continue
            delta = chunk.choices[0].delta
            text += delta.content or ""
            for piece in delta.tool_calls or ():
                if piece.id:
                    calls[piece.index] = piece.model_dump(include={"id", "type", "function"})
                else:
                    calls[piece.index]["function"]["arguments"] += piece.function.arguments
        message: dict[str, Any] = {"role": "assistant", "content": text}
        return {**message, "tool_calls": list(calls.values())} if calls else message

    async def converse(scenario: str) -> tuple[str, int]:
        messages: list[Any] = [
            {"role": "system", "content": SYSTEM.format(scenario)},
            {"role": "user", "content": QUESTION},
        ]
        made = 0
        while True:
            message = await ask(messages)
            calls = message.get("tool_calls", ())
            if not calls:
                return message["content"], made
            made += len(calls)
            messages.append(message)
            for call in calls:
                output = str(add(**json.loads(call["function"]["arguments"])))
                messages.append({"role": "tool", "tool_call_id": call["id"], "content": output})

    return converse


def anthropic(streamed: bool, url: str, model: str) -> Conversation:
    from anthropic import AsyncAnthropic

    client = AsyncAnthropic(api_key="none", base_url=url, max_retries=0)
    tools: Any = [{"name": TOOL_NAME, "description": TOOL_TEXT, "input_schema": TOOL_SCHEMA}]

    async def ask(system: str, messages: list[Any]) -> list[dict[str, Any]]:
        answer: Any = await client.messages.create(
            model=model, max_tokens=4096, system=system, messages=messages, tools=tools, stream=streamed
        )
        if not streamed:
            return [block.model_dump(mode="json", exclude_none=True) for block in answer.content]
        blocks: list[dict[str, Any]] = []
        raw = ""
        async for event in answer:
            if event.type == "content_block_start":
                blocks.append(event.content_block.model_dump(mode="json", exclude_none=True))
                raw = ""
            elif event.type == "content_block_delta":
                if event.delta.type == "text_delta":
                    blocks[-1]["text"] += event.delta.text
                else:
                    raw += event.delta.partial_json
            elif event.type == "content_block_stop" and raw:
                blocks[-1]["input"] = json.loads(raw)
        return blocks

    async def converse(scenario: str) -> tuple[str, int]:
        messages: list[Any] = [{"role": "user", "content": QUESTION}]
        made = 0
        while True:
            blocks = await ask(SYSTEM.format(scenario), messages)
            calls = [block for block in blocks if block["type"] == "tool_use"]
            if not calls:
                return "".join(block["text"] for block in blocks), made
            made += len(calls)
            messages.append({"role": "assistant", "content": blocks})
            results = [
                {"type": "tool_result", "tool_use_id": call["id"], "content": str(add(**call["input"]))}
                for call in calls
            ]
            messages.append({"role": "user", "content": results})

    return converse


def gemini(streamed: bool, url: str, model: str) -> Conversation:
    from google import genai
    from google.genai import types

    client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=url))
    declaration = types.FunctionDeclaration(
        name=TOOL_NAME, description=TOOL_TEXT, parameters_json_schema=TOOL_SCHEMA
    )
    off = types.AutomaticFunctionCallingConfig(disable=True)

    async def ask(config: Any, contents: list[Any]) -> Any:
        models = client.aio.models
        if not streamed:
            answer = await models.generate_content(model=model, contents=contents, config=config)
            return answer.candidates[0].content
        parts: list[Any] = []
        async for chunk in await models.generate_content_stream(
            model=model, contents=contents, config=config
        ):
            parts += chunk.candidates[0].content.parts or ()
        return types.Content(role="model", parts=parts)

    async def converse(scenario: str) -> tuple[str, int]:
        config = types.GenerateContentConfig(
            system_instruction=SYSTEM.format(scenario),
            tools=[types.Tool(function_declarations=[declaration])],
            automatic_function_calling=off,
        )
        contents: list[Any] = [types.Content(role="user", parts=[types.Part(text=QUESTION)])]
        made = 0
        while True:
            content = await ask(config, contents)
            calls = [part.function_call for part in content.parts if part.function_call]
            if not calls:
                return "".join(part.text for part in content.parts), made
            made += len(calls)
            contents.append(content)
            parts = [
                types.Part(
                    function_response=types.FunctionResponse(
                        id=call.id, name=call.name, response={"output": str(add(**call.args))}
                    )
                )
                for call in calls
            ]
            contents.append(types.Content(role="user", parts=parts))

    return converse


async def opener(protocol: str, streamed: bool, url: str) -> Conversation:
    makers = {"responses": responses, "chat": chat, "anthropic": anthropic, "gemini": gemini}
    return makers[protocol](streamed, url, MODELS[protocol])


if __name__ == "__main__":
    serve(opener, ("openai", "anthropic", "google-genai"))
