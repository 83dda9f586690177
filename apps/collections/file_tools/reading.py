"""Tools of a model that look at the files of a collection."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Literal

from apps.collections.file_tools.scope import files_read
from apps.collections.files import checks as file_checks
from apps.collections.files import history as file_history
from apps.collections.files import search as file_search
from apps.collections.files import selectors as file_selectors
from apps.collections.models import Collection
from tenancy.actors import Actor
from toolloop.tools import ToolContext, ToolError, ToolOutput, tool

_LISTED = 200


@tool(group="collections.files")
async def list_directory(
    context: ToolContext,
    collection: str,
    folder: str = "",
    pattern: str = "",
    recursive: bool = False,
    show_hidden: bool | None = None,
    offset: int = 0,
) -> ToolOutput:
    """List the files and folders in a folder of a collection.

    Args:
        collection: name of the collection.
        folder: such as "src/app"; leave it out for the root.
        pattern: list only files that match it, such as "*.py".
        recursive: list all files below the folder by their paths, in place of its folders.
        show_hidden: false leaves out names that begin with a dot; left out, the rules of the collection decide.
        offset: entries to leave out, when a page was full.
    """

    def work(actor: Actor, row: Collection) -> Any:
        page = file_selectors.file_list(
            actor=actor,
            collection=row,
            folder=folder,
            offset=max(0, offset),
            limit=_LISTED,
            pattern=pattern,
            is_recursive=recursive,
            show_hidden=show_hidden,
        )
        return _listing(page)

    return await files_read(context, collection, work, None)


@tool(group="collections.files")
async def read_file(
    context: ToolContext,
    collection: str,
    path: str,
    start_line: int = 1,
    end_line: int = 0,
    encoding: str = "",
) -> ToolOutput:
    """Read lines of a file in a collection, with the checksum (sha256) that an edit of it needs.

    Args:
        collection: name of the collection.
        path: of the file, such as "src/main.py".
        start_line: first line, from 1.
        end_line: last line, inclusive; 0 reads 500 lines.
        encoding: such as "utf-8" or "latin-1"; left out, it is recognised.
    """
    return await files_read(
        context,
        collection,
        lambda actor, row: _read(actor, row, path, start_line, end_line or None, encoding),
        (path,),
    )


@tool(group="collections.files")
async def search_files(
    context: ToolContext,
    collection: str,
    query: str,
    kind: Literal["text", "name", "regex"] = "text",
    folder: str = "",
    names: str = "",
    case_sensitive: bool = False,
    max_results: int = file_search.PAGE,
    offset: int = 0,
) -> ToolOutput:
    """Search the files of a collection line by line, or find files by name.

    Args:
        collection: name of the collection.
        query: a text, a pattern of names such as "*.py", or a regular expression.
        kind: what the query is.
        folder: search below this folder only.
        names: search only files whose names match this pattern, such as "*.py".
        case_sensitive: tell capital letters from small ones; names are always told apart.
        max_results: matches to give at most, 1 to 200.
        offset: matches to leave out: next_offset of the page before.
    """

    def work(actor: Actor, row: Collection) -> Any:
        found = file_search.search_files(
            actor=actor,
            collection=row,
            query=query,
            kind=kind,
            folder=folder,
            names=names,
            is_case_sensitive=case_sensitive,
            offset=offset,
            limit=max_results,
        )
        return asdict(found)

    return await files_read(context, collection, work)


@tool(group="collections.files")
async def project_structure(
    context: ToolContext, collection: str, folder: str = "", depth: int = 3
) -> ToolOutput:
    """Show the tree of folders and files of a collection with sizes and programming languages.

    Args:
        collection: name of the collection.
        folder: show what is below this folder; leave it out for all.
        depth: levels to show, 1 to 8.
    """

    def work(actor: Actor, row: Collection) -> Any:
        levels = min(max(1, depth), 8)
        root = file_selectors.project_structure(
            actor=actor, collection=row, folder=folder, depth=levels, most=100
        )
        return file_selectors.as_json(root)

    return await files_read(context, collection, work, None)


@tool(group="collections.files")
async def diff_files(context: ToolContext, collection: str, path: str, other: str) -> ToolOutput:
    """Show the lines in which two files of a collection differ, as a unified diff.

    Args:
        collection: name of the collection.
        path: the first file.
        other: the second file.
    """
    return await files_read(
        context,
        collection,
        lambda actor, row: {
            "diff": file_history.diff_files(actor=actor, collection=row, path=path, other=other)
        },
        (path, other),
    )


@tool(group="collections.files")
async def check_syntax(context: ToolContext, collection: str, path: str) -> ToolOutput:
    """Check whether a source file, or a JSON, TOML or YAML file, can be parsed, and where it cannot.

    Args:
        collection: name of the collection.
        path: of the file.
    """
    return await files_read(
        context,
        collection,
        lambda actor, row: asdict(file_checks.check_syntax(actor=actor, collection=row, path=path)),
        (path,),
    )


def _listing(page: file_selectors.Listing) -> Any:
    entries = [
        {"name": one.name + ("/" if one.is_folder else ""), "size": one.size, "files": one.files}
        if one.is_folder
        else {"name": one.name, "size": one.size}
        for one in page.entries
    ]
    return {"folder": page.folder, "entries": entries, "total": page.total, "has_more": page.has_more}


def _read(actor: Actor, row: Collection, path: str, start: int, end: int | None, encoding: str) -> Any:
    found = file_selectors.file_read(
        actor=actor, collection=row, path=path, start=start, end=end, encoding=encoding
    )
    if found.is_binary:
        raise ToolError(f"“{path}” isn't text ({found.size} bytes).")
    return {
        "path": found.path,
        "start_line": found.start,
        "total_lines": found.total_lines,
        "has_more": found.has_more,
        "encoding": found.encoding,
        "sha256": found.sha256,
        "text": "\n".join(found.lines),
    }
