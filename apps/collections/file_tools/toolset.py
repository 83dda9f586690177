"""What a model may do with the files of the collections that its run works on.

Each call has the rights that the run's person has at that moment. Tools that change something are ``side_effects``: they
are never run twice for one call, and by default somebody approves each change.
"""

from __future__ import annotations

from apps.collections.file_tools.git import git_blame, git_commit, git_diff, git_log, git_status
from apps.collections.file_tools.reading import (
    check_syntax,
    diff_files,
    list_directory,
    project_structure,
    read_file,
    search_files,
)
from apps.collections.file_tools.scope import FILE_SCOPE, FileScope
from apps.collections.file_tools.writing import delete_file, edit_file, move_file, undo_change, write_file
from toolloop.tools import Toolset

__all__ = ["FILE_SCOPE", "FILE_TOOLS", "FileScope"]

FILE_TOOLS = Toolset(
    [
        list_directory,
        read_file,
        search_files,
        project_structure,
        diff_files,
        check_syntax,
        git_status,
        git_log,
        git_diff,
        git_blame,
        write_file,
        edit_file,
        delete_file,
        move_file,
        undo_change,
        git_commit,
    ]
)
