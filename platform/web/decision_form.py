"""Read what a card about a waiting call says: the same form stands in the chat and in the inbox."""

from __future__ import annotations

import json

from django.http import QueryDict

from basics.errors import Invalid
from basics.line_ends import line_ends
from basics.texts import gettext as _
from toolloop.deferred import Decision


def decision_read(fields: QueryDict) -> Decision:
    """Return what a card says: only the button that was pressed counts.

    Raises:
        Invalid: no known button was pressed, or the arguments are not one JSON object.
    """
    kind = fields.get("decision", "")
    if kind == "reject":
        return Decision("reject", reason=fields.get("reason", ""))
    if kind == "answer":
        return Decision("answer", content=line_ends(fields.get("answer", "")))
    if kind != "approve":
        raise Invalid("decision_invalid", _("Press one of the buttons: approve, reject or answer."))
    text = fields.get("arguments", "").strip()
    if not text:
        return Decision("approve")
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Invalid(
            "decision_invalid",
            _("The arguments are not JSON: %(error)s. Correct them, then approve.") % {"error": error},
        ) from error
    if not isinstance(arguments, dict):
        raise Invalid("decision_invalid", _("The arguments must be one JSON object."))
    return Decision("approve", arguments=arguments)
