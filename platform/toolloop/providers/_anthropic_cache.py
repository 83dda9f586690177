"""Mark what a request to the Messages API shares with the next ones, so that it is read from the prompt cache.

At most four marks are allowed, and a mark finds an earlier one only within twenty blocks before it:
https://platform.claude.com/docs/en/build-with-claude/prompt-caching. A mark is no part of what is cached, so it may
move from request to request.
"""

from __future__ import annotations

from typing import Any


def mark_cache(body: dict[str, Any], ttl: str = "") -> None:
    """Mark tools, system prompt, the end of the previous request and the end of this one.

    The end of the previous request is marked because a turn with many calls brings more blocks than a mark looks back.
    Blocks are replaced, never changed: they may belong to the stored history.

    Args:
        body: the request, changed in place.
        ttl: how long it is kept, "5m" or "1h"; "" for the provider's default. One for all marks: a longer one may not stand
            behind a shorter.
    """
    mark = {"type": "ephemeral", "ttl": ttl} if ttl else {"type": "ephemeral"}
    tools = body.get("tools", [])
    # A tool that is not loaded yet cannot be marked.
    last = next((i for i in range(len(tools) - 1, -1, -1) if "defer_loading" not in tools[i]), None)
    if last is not None:
        tools[last] = {**tools[last], "cache_control": mark}
    if "system" in body:
        body["system"] = [*body["system"][:-1], {**body["system"][-1], "cache_control": mark}]
    messages = body["messages"]
    users = [index for index, message in enumerate(messages) if message["role"] == "user"]
    for index in users[-2:]:
        content = messages[index]["content"]
        # An empty text cannot be marked.
        if content and content[-1].get("text") != "":
            marked = {**content[-1], "cache_control": mark}
            messages[index] = {**messages[index], "content": [*content[:-1], marked]}
