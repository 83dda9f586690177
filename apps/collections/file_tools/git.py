"""Tools of a model that work with the repository of a collection."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from apps.collections.file_tools.scope import FileScope, files_act, files_read
from apps.collections.models import Collection
from apps.collections.repositories import selectors as repositories
from apps.collections.repositories import services
from tenancy.actors import Actor
from toolloop.tools import ToolContext, ToolOutput, tool

_COMMITS = 30
_BLAMED = 400


@tool(group="collections.files.git")
async def git_status(context: ToolContext, collection: str, repository: str = "") -> ToolOutput:
    """Tell which files of a collection differ from the last commit of its repository, and which are new.

    Args:
        collection: name of the collection.
        repository: its folder, where the collection has several repositories.
    """
    return await files_read(
        context,
        collection,
        lambda actor, row: repositories.git_status(actor=actor, collection=row, repository=repository),
    )


@tool(group="collections.files.git")
async def git_log(
    context: ToolContext,
    collection: str,
    ref: str = "HEAD",
    path: str = "",
    skip: int = 0,
    repository: str = "",
) -> ToolOutput:
    """List commits of a collection's repository, newest first.

    Args:
        collection: name of the collection.
        ref: a branch, a tag or a commit.
        path: only commits that changed this file or folder.
        skip: commits to leave out.
        repository: its folder, where the collection has several repositories.
    """

    def work(actor: Actor, row: Collection) -> Any:
        commits = repositories.git_log(
            actor=actor, collection=row, ref=ref, path=path, skip=skip, limit=_COMMITS, repository=repository
        )
        return {"commits": commits}

    return await files_read(context, collection, work)


@tool(group="collections.files.git")
async def git_diff(
    context: ToolContext,
    collection: str,
    old: str = "HEAD",
    new: str = "",
    path: str = "",
    repository: str = "",
) -> ToolOutput:
    """Show what changed between two commits of a collection's repository, or from a commit to the files now.

    Args:
        collection: name of the collection.
        old: a branch, a tag or a commit.
        new: another one; leave it out for the files as they are now.
        path: only this file or folder.
        repository: its folder, where the collection has several repositories.
    """

    def work(actor: Actor, row: Collection) -> Any:
        found = repositories.git_diff(
            actor=actor, collection=row, old=old, new=new, path=path, repository=repository
        )
        return {"files": [asdict(one) for one in found]}

    return await files_read(context, collection, work)


@tool(group="collections.files.git")
async def git_blame(
    context: ToolContext,
    collection: str,
    path: str,
    start_line: int = 1,
    ref: str = "HEAD",
    repository: str = "",
) -> ToolOutput:
    """Tell for each line of a file which commit brought it, by whom and when, as of a commit.

    Args:
        collection: name of the collection.
        path: of the file, such as "src/main.py".
        start_line: first line to tell of, from 1; 400 lines are told at once.
        ref: a branch, a tag or a commit; the last commit if left out.
        repository: its folder, where the collection has several repositories.
    """

    def work(actor: Actor, row: Collection) -> Any:
        found = repositories.git_blame(actor=actor, collection=row, path=path, ref=ref, repository=repository)
        first = max(1, start_line)
        last = min(len(found["text"]), first + _BLAMED - 1)
        runs = [run for run in found["runs"] if run["line"] <= last and run["line"] + run["lines"] > first]
        text = "\n".join(found["text"][first - 1 : last])
        return {
            "path": path,
            "ref": found["ref"],
            "start_line": first,
            "total_lines": len(found["text"]),
            "has_more": last < len(found["text"]),
            "runs": runs,
            "text": text,
        }

    return await files_read(context, collection, work, (path,))


@tool(group="collections.files.git", side_effects=True, sequential=True)
async def git_commit(
    context: ToolContext,
    collection: str,
    message: str,
    paths: list[str] | None = None,
    branch: str = "",
    repository: str = "",
) -> ToolOutput:
    """Commit the files of a collection as they are now, on top of the last commit of its repository.

    The author is the person you work for. Look at git_status first: without paths everything that it lists is committed.

    Args:
        collection: name of the collection.
        message: what was done and why; the first line is the subject, at most 72 characters, then an empty line.
        paths: commit only these files and folders.
        branch: name of a new branch that begins with this commit; leave it out to stay on the branch.
        repository: its folder, where the collection has several repositories.
    """

    def work(scope: FileScope, actor: Actor, row: Collection) -> Any:
        made = services.git_commit(
            tenant=scope.tenant,
            actor=actor,
            collection=row,
            message=message,
            paths=paths or [],
            branch=branch,
            repository=repository,
        )
        return asdict(made)

    return await files_act(context, collection, work, None)
