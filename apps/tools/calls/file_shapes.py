"""Calls in the shape of the file API that this platform has absorbed: one call of a tool, with that API's names of arguments.

A request is ``{"function_name", "arguments", "tool_call_id"}``, the arguments an object or its JSON text. That API knew one
tree of files, named by ``path``; here the tree is a collection's, and a folder is a ``folder``.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from apps.collections.file_tools.toolset import FILE_TOOLS
from apps.collections.models import Collection
from apps.tools.calls.services import call_parse
from tenancy.actors import Actor
from toolloop.messages import ToolCall

_OF_FOLDERS = frozenset({"list_directory", "search_files", "project_structure"})
_COLLECTION = "collection"


def file_call(
    *,
    actor: Actor,
    name: str,
    arguments: str | Mapping[str, Any],
    call_id: str,
    collections: Sequence[int] | None,
) -> ToolCall:
    """Return such a call as a call of ours.

    Args:
        arguments: an object or its JSON text; what is no object is told to the caller as any call's wrong arguments are.
        call_id: "" makes one.
        collections: ids of those the call is about, None for all: where it is one, a file tool's call need not name it.
    """
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    call = call_parse(call_id or f"call_{uuid.uuid4().hex}", name, text)
    if call.arguments is None or name not in FILE_TOOLS.names():
        return call
    ours = _named(name, dict(call.arguments))
    if _COLLECTION not in ours and (only := _only_collection(actor, collections)):
        ours[_COLLECTION] = only
    return ToolCall(call.id, name, ours, json.dumps(ours, ensure_ascii=False))


def _named(name: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return arguments by our names. One that is given by both names keeps ours, and the other is told as unknown."""
    if name in _OF_FOLDERS and "path" in given and "folder" not in given:
        folder = given.pop("path")
        given["folder"] = "" if folder in (".", "/", "./") else folder
    if name == "search_files" and "pattern" in given:
        if "query" not in given:
            given["query"], given["kind"] = given.pop("pattern"), given.get("kind", "name")
        elif "names" not in given:
            given["names"] = given.pop("pattern")
    return given


def _only_collection(actor: Actor, collections: Sequence[int] | None) -> str:
    rows = Collection.objects.visible_to(actor)
    if collections is not None:
        rows = rows.filter(pk__in=collections)
    names = list(rows.values_list("name", flat=True)[:2])
    return names[0] if len(names) == 1 else ""
