"""Turns in which a provider searched by itself, as each wire would send them."""

from __future__ import annotations

from typing import Any

from tests.toolloop.providers.encodings import sse

URL = "https://example.org/news"

RESPONSES_ITEMS: list[dict[str, Any]] = [
    {
        "id": "ws_1",
        "type": "web_search_call",
        "status": "completed",
        "action": {"type": "search", "query": "news", "sources": [{"type": "url", "url": URL}]},
    },
    {"id": "fs_1", "type": "file_search_call", "status": "completed", "queries": ["duty"]},
    {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [
            {
                "type": "output_text",
                "text": "Sure: ",
                "annotations": [],
            },
            {
                "type": "output_text",
                "text": "é is new.",
                "annotations": [
                    {
                        "type": "url_citation",
                        "start_index": 0,
                        "end_index": 8,
                        "url": URL,
                        "title": "News",
                    },
                    {"type": "file_citation", "file_id": "file_1", "filename": "a.pdf", "index": 9},
                ],
            },
        ],
    },
]


def responses_stream() -> bytes:
    events: list[dict[str, Any]] = []
    for index, item in enumerate(RESPONSES_ITEMS):
        events.append(
            {"type": "response.output_item.added", "output_index": index, "item": {**item}}
        )
        if item["type"] == "message":
            events += [
                {
                    "type": "response.output_text.delta",
                    "output_index": index,
                    "content_index": place,
                    "delta": part["text"],
                }
                for place, part in enumerate(item["content"])
            ]
        else:
            events.append({"type": f"response.{item['type']}.searching", "output_index": index})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    response = {
        "id": "resp_1",
        "status": "completed",
        "output": RESPONSES_ITEMS,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }
    return sse(*events, {"type": "response.completed", "response": response}, named=True)


SEARCH_RESULT = {
    "type": "web_search_result",
    "url": URL,
    "title": "News",
    "encrypted_content": "E+/=",
}
ANTHROPIC_CITATION = {
    "type": "web_search_result_location",
    "url": URL,
    "title": "News",
    "cited_text": "é is new, they say",
    "encrypted_index": "I+/=",
}


def anthropic_stream() -> bytes:
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
        (
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
            [
                {"type": "input_json_delta", "partial_json": '{"query"'},
                {"type": "input_json_delta", "partial_json": ': "news"}'},
            ],
        ),
        (
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srvtoolu_1",
                "content": [SEARCH_RESULT],
            },
            [],
        ),
        ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "Sure: "}]),
        (
            {"type": "text", "text": "", "citations": []},
            [
                {"type": "citations_delta", "citation": ANTHROPIC_CITATION},
                {"type": "text_delta", "text": "é is "},
                {"type": "text_delta", "text": "new."},
            ],
        ),
    ]
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "msg_1"}}]
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "server_tool_use": {"web_search_requests": 2, "web_fetch_requests": 0},
    }
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}
    return sse(*events, end, {"type": "message_stop"}, named=True)


GEMINI_CALL = {
    "toolCall": {"id": "t1", "toolType": "GOOGLE_SEARCH_WEB", "args": {"queries": ["news"]}},
    "thoughtSignature": "S+/==",
}


def google_stream() -> bytes:
    grounding = {
        "webSearchQueries": ["news", "news today"],
        "groundingChunks": [
            {"web": {"uri": URL, "title": "News"}},
            {
                "retrievedContext": {
                    "uri": "",
                    "title": "a.pdf",
                    "text": "5 %",
                    "fileSearchStore": "fileSearchStores/1",
                }
            },
        ],
        "groundingSupports": [
            {
                # Bytes, and "é" has two of them.
                "segment": {"startIndex": 6, "endIndex": 15, "text": "é is new"},
                "groundingChunkIndices": [0, 7],
            },
            {
                "segment": {"startIndex": 900, "endIndex": 904, "text": "nowhere"},
                "groundingChunkIndices": [1],
            },
        ],
    }

    def chunk(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **more}]}

    counts = {"promptTokenCount": 6, "toolUsePromptTokenCount": 4, "candidatesTokenCount": 5}
    return sse(
        chunk(GEMINI_CALL),
        chunk({"text": "Sure: "}),
        chunk({"text": "é is new."}, finishReason="STOP", groundingMetadata=grounding)
        | {"usageMetadata": counts},
    )
