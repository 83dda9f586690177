"""The tool that reads the files attached to a conversation; a run that has some begins with a call of it."""

from __future__ import annotations

from collections.abc import Sequence

from apps.conversations.attachments.selectors import ATTACHED, passages_whole, whole_chosen
from apps.conversations.display.attached_files import is_audio, is_image, is_scan, state_of
from apps.conversations.models import Attachment
from apps.conversations.toolset.results import SCOPE, Scope, attached_now, result_row, results_output
from basics.errors import DomainError
from runs.actors import actor_now
from toolloop.tools import ToolContext, ToolError, ToolOutput, tool

_NAMED = 3


@tool
async def read_attached_files(context: ToolContext) -> ToolOutput:
    """Read the files that the user has attached: small ones whole, of others how to get at what they say."""
    scope: Scope = context.data[SCOPE]
    output: ToolOutput = await scope.in_db(_read, scope)
    return output


def _read(scope: Scope) -> ToolOutput:
    try:
        actor = actor_now(scope.run)
        rows = attached_now(scope, actor)
    except DomainError as error:
        raise ToolError(error.message) from error
    whole = whole_chosen(rows)
    results = [
        result_row(chunk, chunk.pk, chunk.document.name, chunk.document.version, ATTACHED)
        for chunk in passages_whole(whole, actor)
    ]
    told = [f"“{row.name}”: {_how(row, whole, row.pk in scope.given.shown)}" for row in rows]
    return results_output(scope, results, " ".join(told), _summary(rows), "")


def _how(row: Attachment, whole: dict[int, int], is_shown: bool) -> str:
    """Say how the model gets at what a file holds."""
    if is_audio(row):
        return (
            "you hear it beside the question."
            if is_shown
            else "a sound recording that you cannot hear; say so if it matters."
        )
    if is_image(row) or is_scan(row):
        return (
            "you see it beside the question."
            if is_shown
            else "pictures that you cannot see; say so if they matter."
        )
    if state_of(row) == "failed":
        return "it could not be read."
    beside = " Its pages are also shown beside the question." if is_shown else ""
    if row.document_id in whole:
        return f"all of its passages are here.{beside}"
    return f"too long to be here; search it with search_documents, collections: [“{ATTACHED}”].{beside}"


def _summary(rows: Sequence[Attachment]) -> str:
    names = list(dict.fromkeys(row.name for row in rows))
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}" if names else "No attached file"
