"""What a model may do with the files of the collections that its conversation works on.

Each call has the rights that the run's person has at that moment. Tools that change something are ``side_effects``: they
are never run twice for one call, and by default somebody approves each change.
"""

from __future__ import annotations

from dataclasses import replace

from apps.collections.file_tool_scope import FILE_SCOPE, FileScope
from apps.collections.file_tools_reading import (
    check_syntax,
    diff_files,
    git_diff,
    git_log,
    git_status,
    list_directory,
    project_structure,
    read_file,
    search_files,
)
from apps.collections.file_tools_writing import (
    delete_file,
    edit_file,
    move_file,
    undo_change,
    write_file,
)
from toolloop.tools import Tool, Toolset

__all__ = ["FILE_SCOPE", "FILE_TOOLS", "READING", "WRITING", "FileScope", "file_toolset"]

READING = (
    list_directory, read_file, search_files, project_structure, diff_files, check_syntax, git_status, git_log, git_diff,
)  # fmt: skip
WRITING = (write_file, edit_file, delete_file, move_file, undo_change)
FILE_TOOLS = Toolset([*READING, *WRITING])


def file_toolset(*, can_write: bool, needs_approval: bool = True) -> Toolset:
    """Return the file tools of a run.

    Args:
        can_write: whether those that change something are among them.
        needs_approval: whether somebody must approve each change.
    """
    writing: list[Tool] = [replace(one, needs_approval=needs_approval) for one in WRITING]
    return Toolset([*READING, *(writing if can_write else [])])
