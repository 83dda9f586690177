"""Languages of rows: from what somebody entered to a tag, and whether a text is in the wrong one. Pure."""

from __future__ import annotations

import re
from typing import Literal

from basics.texts import gettext as _
from toolloop.language_detection import TAGS, language_name

_NAMES = {tag: name for name, tag in TAGS.items()}
_TAG = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8}){0,2}")


def name_of(entered: str) -> str:
    """Return the English name of a language given as tag or name, the tag itself for one without a name here.

    "" is what is neither.
    """
    text = entered.strip()
    if text.title() in TAGS:
        return text.title()
    head = text.split("-")[0].lower()
    tag = head + text[len(head) :]
    if not _TAG.fullmatch(tag):
        return ""
    known = _NAMES.get(head, "")
    return known if known and tag == head else f"{known} ({tag})".strip() if known else tag


def tag_of(entered: str) -> str:
    """Return the BCP 47 tag of a language given as tag or name, "" for what is neither."""
    text = entered.strip()
    if text.title() in TAGS:
        return TAGS[text.title()]
    head, dash, rest = text.partition("-")
    tag = head.lower() + dash + rest
    return tag if _TAG.fullmatch(tag) else ""


def detected(text: str) -> str:
    """Return the tag of the language that a text is plainly in, "" where it is not plain."""
    return TAGS.get(language_name(text), "")


def fault(part: Literal["question", "answer"], text: str, wanted: str) -> str:
    """Return what is wrong with the language of a text, "" when nothing is or it cannot be told.

    Args:
        part: which text of a row it is.
        wanted: a tag; "" for any. Regions of one language are not told apart.
    """
    is_known = wanted.partition("-")[0] in _NAMES
    found = detected(text) if is_known else ""
    if not found or found == wanted.partition("-")[0]:
        return ""
    tags = {"found": found, "wanted": wanted}
    if part == "question":
        return _("The question is in the language %(found)s instead of %(wanted)s.") % tags
    return _("The answer is in the language %(found)s instead of %(wanted)s.") % tags
