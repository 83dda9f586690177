"""Why the policy decided so, in the reader's language.

Decisions and the call log keep an English sentence, which models read too.
"""

from __future__ import annotations

import re

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

DEFAULT_NOTE = "Default rule of every workspace."
"""What the first rules of a workspace say of themselves; people can change it."""
_RULE = re.compile(r"rule (\d+) (allows|asks about|denies) this call(?:: (.*))?", re.DOTALL)
_BROKEN = re.compile(r"rule (\d+) cannot be (?:read|evaluated): (.*)", re.DOTALL)
_RIGHT = re.compile(r"it needs the right “(.*)”")
_VERBS = {
    "allows": gettext_lazy("rule %(rule)s allows this call"),
    "asks about": gettext_lazy("rule %(rule)s asks about this call"),
    "denies": gettext_lazy("rule %(rule)s denies this call"),
}
_FIXED = {
    "no rule allows this call": gettext_lazy("no rule allows this call"),
    "the tool is switched off in this workspace": gettext_lazy("the tool is switched off in this workspace"),
    "it is not in the toolkit of this assistant": gettext_lazy("it isn't in this assistant's toolkit"),
    "it is switched off in this conversation": gettext_lazy("it is switched off in this conversation"),
    "someone else must approve it": gettext_lazy("someone else must approve it"),
    "the tool asks for approval of such calls": gettext_lazy("the tool requires approval for such calls"),
    "its policy could not be evaluated": gettext_lazy("its policy could not be evaluated"),
}


def reason_words(why: str) -> str:
    """Return a decision's reason in the language that is active; one that is nobody's sentence here, as it is.

    Args:
        why: of a decision or a verdict, as the engine, the guard and the loop say it.
    """
    if found := _RULE.fullmatch(why):
        words = str(_VERBS[found[2]]) % {"rule": found[1]}
        return f"{words}: {note_words(found[3])}" if found[3] else words
    if found := _BROKEN.fullmatch(why):
        return _("rule %(rule)s can't be evaluated, so it denies: %(problem)s") % {
            "rule": found[1],
            "problem": found[2],
        }
    if found := _RIGHT.fullmatch(why):
        return _("it needs the right “%(right)s”") % {"right": found[1]}
    return str(_FIXED.get(why, why))


def note_words(note: str) -> str:
    """Return a rule's note: what a person wrote as it is, that of the first rules in the language that is active."""
    return _("Default rule of every workspace.") if note == DEFAULT_NOTE else note
