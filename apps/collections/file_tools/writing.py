"""Tools of a model that change the files of a collection."""

from __future__ import annotations

from typing import Any, Literal, TypedDict

from apps.collections.file_tools.scope import FileScope, files_act
from apps.collections.files import history as file_history
from apps.collections.files import services as files_services
from apps.collections.files import undo
from apps.collections.files.edits import TextEdit
from apps.collections.files.services import FileEdit
from apps.collections.models import Collection, FileBatch
from tenancy.actors import Actor
from toolloop.tools import ToolContext, ToolError, ToolOutput, tool


class EditArgument(TypedDict, total=False):
    """One edit of a file, as a model writes it."""

    kind: Literal["insert", "replace_lines", "delete_lines", "replace_text"]
    text: str
    line: int
    end_line: int
    old: str
    count: int


class FileEditArgument(TypedDict, total=False):
    """The edits of one file, as a model writes them."""

    path: str
    expected: str
    edits: list[EditArgument]


@tool(group="collections.files", side_effects=True, sequential=True)
async def write_file(
    context: ToolContext,
    collection: str,
    path: str,
    content: str,
    expected: str | None = None,
    overwrite: bool = False,
    encoding: str = "",
    create_directories: bool = True,
    note: str = "",
) -> ToolOutput:
    """Write a whole new file in a collection, or one in place of a file that is there. Prefer edit_file for small changes.

    Args:
        collection: name of the collection.
        path: of the file, such as "src/main.py".
        content: all of its text.
        expected: sha256 that read_file gave: the file is replaced if it still is that one; "" when there must be no such file.
        overwrite: replace a file whatever it holds now. Without it and expected, a file that exists is left as it is.
        encoding: such as "utf-8" or "latin-1"; left out, a new file is UTF-8 and another keeps its own.
        create_directories: make folders that are missing; false refuses instead.
        note: why, for the history.
    """

    def work(scope: FileScope, actor: Actor, row: Collection) -> Any:
        batch = files_services.file_write(
            tenant=scope.tenant,
            actor=actor,
            collection=row,
            path=path,
            content=content,
            expected=expected,
            note=note,
            run=scope.run,
            encoding=encoding,
            may_overwrite=overwrite,
            may_make_folders=create_directories,
        )
        return _changed(actor, row, batch)

    return await files_act(context, collection, work)


@tool(group="collections.files", side_effects=True, sequential=True)
async def edit_file(
    context: ToolContext, collection: str, files: list[FileEditArgument], note: str = ""
) -> ToolOutput:
    """Edit one or several files of a collection; all edits are made, or none.

    Read the files first. Line numbers are those of the file as you read it, whatever the other edits do.

    Args:
        collection: name of the collection.
        files: for each file its path, expected (the sha256 that read_file gave) and edits. An edit has a kind: insert (text
            goes before line; one more than there are lines appends), replace_lines (line to end_line become text),
            delete_lines (line to end_line), replace_text (old, exactly as it stands there, becomes text; count says how
            often old occurs, 1 if left out).
        note: why, for the history.
    """

    def work(scope: FileScope, actor: Actor, row: Collection) -> Any:
        edits = [_file_edit(one) for one in files]
        batch = files_services.files_edit(
            tenant=scope.tenant, actor=actor, collection=row, edits=edits, note=note, run=scope.run
        )
        return _changed(actor, row, batch)

    return await files_act(context, collection, work)


@tool(group="collections.files", side_effects=True, sequential=True)
async def delete_file(
    context: ToolContext, collection: str, path: str, expected: str | None = None, note: str = ""
) -> ToolOutput:
    """Delete a file of a collection. It can be undone.

    Args:
        collection: name of the collection.
        path: of the file.
        expected: sha256 that read_file gave.
        note: why, for the history.
    """

    def work(scope: FileScope, actor: Actor, row: Collection) -> Any:
        batch = files_services.file_delete(
            tenant=scope.tenant,
            actor=actor,
            collection=row,
            path=path,
            expected=expected,
            note=note,
            run=scope.run,
        )
        return _changed(actor, row, batch)

    return await files_act(context, collection, work)


@tool(group="collections.files", side_effects=True, sequential=True)
async def move_file(context: ToolContext, collection: str, path: str, to: str, note: str = "") -> ToolOutput:
    """Give a file of a collection another path or name.

    Args:
        collection: name of the collection.
        path: where it is.
        to: where it shall be.
        note: why, for the history.
    """

    def work(scope: FileScope, actor: Actor, row: Collection) -> Any:
        batch = files_services.file_move(
            tenant=scope.tenant, actor=actor, collection=row, path=path, to=to, note=note, run=scope.run
        )
        return _changed(actor, row, batch)

    return await files_act(context, collection, work)


@tool(group="collections.files", side_effects=True, sequential=True)
async def undo_change(context: ToolContext, collection: str, change: int) -> ToolOutput:
    """Take back a change of files, as a whole. Refused when one of the files was changed since.

    Args:
        collection: name of the collection.
        change: its number, as the tool that made it told.
    """

    def work(scope: FileScope, actor: Actor, row: Collection) -> Any:
        batch = file_history.batch_get(actor=actor, collection=row, pk=change)
        made = undo.batch_undo(tenant=scope.tenant, actor=actor, collection=row, batch=batch, run=scope.run)
        return _changed(actor, row, made)

    return await files_act(context, collection, work)


def _file_edit(one: FileEditArgument) -> FileEdit:
    if not one.get("path") or not one.get("edits"):
        raise ToolError("Each file needs a path and edits.")
    if any("kind" not in edit for edit in one["edits"]):
        raise ToolError("Each edit needs a kind: insert, replace_lines, delete_lines or replace_text.")
    return FileEdit(one["path"], [TextEdit(**edit) for edit in one["edits"]], one.get("expected"))


def _changed(actor: Actor, row: Collection, batch: FileBatch | None) -> Any:
    if batch is None:
        return {"changed": [], "note": "No change: the files already hold this."}
    rows = file_history.revision_list(actor=actor, collection=row, batches=[batch])
    changed = [{"path": one.path, "sha256": one.after.sha256 if one.after else None} for one in rows]
    return {"change": batch.pk, "changed": changed}
