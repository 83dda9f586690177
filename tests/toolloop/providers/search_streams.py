"""Turns in which a provider searched, read pages or ran programs by itself, as each wire would send them."""

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
            {"type": "output_text", "text": "Sure: ", "annotations": []},
            {
                "type": "output_text",
                "text": "é is new.",
                "annotations": [
                    {"type": "url_citation", "start_index": 0, "end_index": 8, "url": URL, "title": "News"},
                    {"type": "file_citation", "file_id": "file_1", "filename": "a.pdf", "index": 9},
                ],
            },
        ],
    },
]


def responses_stream() -> bytes:
    events: list[dict[str, Any]] = []
    for index, item in enumerate(RESPONSES_ITEMS):
        events.append({"type": "response.output_item.added", "output_index": index, "item": {**item}})
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


SEARCH_RESULT = {"type": "web_search_result", "url": URL, "title": "News", "encrypted_content": "E+/="}
ANTHROPIC_CITATION = {
    "type": "web_search_result_location",
    "url": URL,
    "title": "News",
    "cited_text": "é is new, they say",
    "encrypted_index": "I+/=",
}


Blocks = list[tuple[dict[str, Any], list[dict[str, Any]]]]


def anthropic_stream() -> bytes:
    blocks: Blocks = [
        (
            {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}},
            [
                {"type": "input_json_delta", "partial_json": '{"query"'},
                {"type": "input_json_delta", "partial_json": ': "news"}'},
            ],
        ),
        ({"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [SEARCH_RESULT]}, []),
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
    return _anthropic(blocks, {"web_search_requests": 2, "web_fetch_requests": 0})


def _anthropic(blocks: Blocks, served: dict[str, int]) -> bytes:
    events: list[dict[str, Any]] = [{"type": "message_start", "message": {"id": "msg_1"}}]
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": index})
    usage = {"input_tokens": 10, "output_tokens": 5, "server_tool_use": served}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}
    return sse(*events, end, {"type": "message_stop"}, named=True)


PROGRAM = "print(6 * 7)"


def anthropic_program_stream() -> bytes:
    """A page that is read and cited, and a command that is run."""
    document = {
        "type": "document",
        "source": {"type": "text", "media_type": "text/plain", "data": "It is new."},
        "title": "News",
        "citations": {"enabled": True},
    }
    cited = {
        "type": "char_location",
        "cited_text": "It is new.",
        "document_index": 0,
        "document_title": "News",
        "start_char_index": 0,
        "end_char_index": 10,
        "file_id": None,
    }
    return _anthropic(
        [
            (
                {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_fetch", "input": {}},
                [{"type": "input_json_delta", "partial_json": f'{{"url": "{URL}"}}'}],
            ),
            (
                {
                    "type": "web_fetch_tool_result",
                    "tool_use_id": "srvtoolu_1",
                    "content": {
                        "type": "web_fetch_result",
                        "url": URL,
                        "content": document,
                        "retrieved_at": "2026-11-01T00:00:00Z",
                    },
                },
                [],
            ),
            (
                {"type": "server_tool_use", "id": "srvtoolu_2", "name": "bash_code_execution", "input": {}},
                [{"type": "input_json_delta", "partial_json": '{"command": "echo 42"}'}],
            ),
            (
                {
                    "type": "bash_code_execution_tool_result",
                    "tool_use_id": "srvtoolu_2",
                    "content": {
                        "type": "bash_code_execution_result",
                        "stdout": "42\n",
                        "stderr": "",
                        "return_code": 0,
                        "content": [],
                    },
                },
                [],
            ),
            ({"type": "text", "text": ""}, [{"type": "text_delta", "text": "42: "}]),
            (
                {"type": "text", "text": "", "citations": []},
                [
                    {"type": "citations_delta", "citation": cited},
                    {"type": "text_delta", "text": "it is new."},
                ],
            ),
        ],
        {"web_search_requests": 0, "web_fetch_requests": 1},
    )


def responses_program_stream() -> bytes:
    """A program in the provider's container, whose file the answer cites."""
    program = {
        "id": "ci_1",
        "type": "code_interpreter_call",
        "status": "completed",
        "container_id": "cntr_1",
        "code": PROGRAM,
        "outputs": [{"type": "logs", "logs": "42\n"}],
    }
    note = {
        "type": "container_file_citation",
        "container_id": "cntr_1",
        "file_id": "cfile_1",
        "filename": "plot.png",
        "start_index": 4,
        "end_index": 14,
    }
    text = {"type": "output_text", "text": "42: it is new.", "annotations": [note]}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": [text]}
    events: list[dict[str, Any]] = [
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": program | {"status": "in_progress"},
        },
        {"type": "response.code_interpreter_call.in_progress", "output_index": 0, "item_id": "ci_1"},
        {
            "type": "response.code_interpreter_call_code.delta",
            "output_index": 0,
            "item_id": "ci_1",
            "delta": PROGRAM,
        },
        {"type": "response.code_interpreter_call.completed", "output_index": 0, "item_id": "ci_1"},
        {"type": "response.output_item.done", "output_index": 0, "item": program},
        {"type": "response.output_text.delta", "output_index": 1, "content_index": 0, "delta": text["text"]},
        {"type": "response.output_item.done", "output_index": 1, "item": message},
    ]
    response = {
        "id": "resp_1",
        "status": "completed",
        "output": [program, message],
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }
    return sse(*events, {"type": "response.completed", "response": response}, named=True)


def google_program_stream() -> bytes:
    """A page that is read without a search, another that cannot be, and a program."""
    pages = [
        {"retrievedUrl": URL, "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_SUCCESS"},
        {"retrievedUrl": f"{URL}/2", "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_PAYWALL"},
    ]
    code = {"executableCode": {"language": "PYTHON", "code": PROGRAM}}
    ran = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "42\n"}}

    def chunk(*parts: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, **more}]}

    counts = {"promptTokenCount": 10, "candidatesTokenCount": 5}
    return sse(
        chunk(code),
        chunk(ran),
        chunk({"text": "42: it is new."}, finishReason="STOP", urlContextMetadata={"urlMetadata": pages})
        | {"usageMetadata": counts},
    )


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
