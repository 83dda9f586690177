"""What people call the tools that come with the code, and what each does for them; models read the tools' own descriptions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from apps.tools.toolset.bundles import Bundle, bundle_list

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True, slots=True)
class ToolWords:
    """A tool's name for people, and what it does in a sentence."""

    title: StrOrPromise
    description: StrOrPromise


_WORDS: Mapping[str, ToolWords] = {
    "calculate": ToolWords(
        _("Calculator"), _("Calculates exactly instead of leaving arithmetic to the model.")
    ),
    "current_datetime": ToolWords(_("Date and time"), _("Tells the current date and time.")),
    "date_add": ToolWords(
        _("Add to a date"), _("Finds the date some days, weeks, months or years from another.")
    ),
    "date_difference": ToolWords(_("Time between dates"), _("Counts the days between two dates.")),
    "date_info": ToolWords(
        _("Calendar"),
        _("Tells the weekday and calendar week of a date, and whether the year is a leap year."),
    ),
    "draw_chart": ToolWords(
        _("Draw a chart"), _("Shows numbers as lines, bars, points or a histogram, with a table of them.")
    ),
    "list_directory": ToolWords(_("List a folder"), _("Shows the files in a folder of a collection.")),
    "read_file": ToolWords(_("Read a file"), _("Reads lines of a file in a collection.")),
    "search_files": ToolWords(
        _("Search files"), _("Finds lines in the files of a collection, or files by name.")
    ),
    "project_structure": ToolWords(_("Folder tree"), _("Shows all folders and files of a collection.")),
    "diff_files": ToolWords(_("Compare two files"), _("Shows the lines in which two files differ.")),
    "check_syntax": ToolWords(
        _("Check a file for errors"), _("Finds mistakes in source code, JSON, TOML and YAML files.")
    ),
    "git_status": ToolWords(
        _("Uncommitted changes"), _("Lists the files that changed since the last commit.")
    ),
    "git_log": ToolWords(_("Commit history"), _("Lists the commits of a collection's repository.")),
    "git_diff": ToolWords(_("Changes between commits"), _("Shows what changed from one commit to another.")),
    "git_blame": ToolWords(
        _("Who changed a line"), _("Shows who last changed each line of a file, and when.")
    ),
    "write_file": ToolWords(_("Write a file"), _("Creates a file in a collection, or replaces one.")),
    "edit_file": ToolWords(_("Edit files"), _("Changes parts of files in a collection.")),
    "delete_file": ToolWords(_("Delete a file"), _("Deletes a file from a collection. You can undo it.")),
    "move_file": ToolWords(_("Move a file"), _("Moves or renames a file in a collection.")),
    "undo_change": ToolWords(_("Undo a file change"), _("Takes back an earlier change of files.")),
    "git_commit": ToolWords(
        _("Commit files"), _("Saves the files of a collection as a commit of its repository.")
    ),
    "search_documents": ToolWords(
        _("Search documents"), _("Finds passages in your documents by meaning, words and codes.")
    ),
    "search_documentation": ToolWords(
        _("Search text, not code"), _("Searches texts and tables, and leaves source code out.")
    ),
    "search_codebase": ToolWords(
        _("Search source code"), _("Finds functions, classes and files, and what uses them.")
    ),
    "get_chunk": ToolWords(
        _("Read around a passage"), _("Reads a passage with the ones before and after it.")
    ),
    "get_linked_chunk": ToolWords(
        _("Follow a related passage"), _("Goes from a passage to one that is about the same thing.")
    ),
    "list_documents": ToolWords(
        _("List documents"), _("Lists which documents there are, without their text.")
    ),
    "lookup_hts_code": ToolWords(
        _("Look up a tariff code"), _("Finds a US tariff code with its description and duty rates.")
    ),
    "check_tariffs": ToolWords(
        _("Check additional duties"), _("Finds extra duties and exclusions for a tariff code.")
    ),
    "check_agency_requirements": ToolWords(
        _("Check import requirements"), _("Finds permits, filings and marking that agencies ask for.")
    ),
}


def tool_words(name: str, bundle: Bundle) -> ToolWords | None:
    """Return the words for a tool that comes with the code; None for a workspace's own, whatever its name."""
    return _WORDS.get(name) if bundle in bundle_list() else None
