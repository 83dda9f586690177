"""The "?" of a page: each full page has it, or stands in a list of those without. Held to every page that
``tests/permissions/test_matrix.py`` opens: drawing them all a second time would take six seconds of the processor.
"""

from __future__ import annotations

from typing import Any

from web.guide.topics import topic_of

WITHOUT_HELP = {
    "web:help": "the guide itself",
    "web:help-page": "the guide itself",
    "collections:document-erase": "a question, with all that it means on it",
    "conversations:erase": "a question, with all that it means on it",
    "evaluations:example-remove": "a question, with all that it means on it",
}
"""Full pages without a "?", and why."""
NOT_DRAWN = {
    "operate:overview": "for operators alone, not there for others",
    "web:tenant-create": "has the layout of signing in, without a head",
    "web:settings-invites": "leads to the list of members",
    "mfa_list_webauthn": "leads to the profile",
    "mfa_add_webauthn": "asks for the password first",
}
"""Pages with a topic that nobody gets in full there, and why: all others are full, so that none loses its head unseen."""
_ITS_HEAD = b'class="top"'
_ITS_HELP = b'popovertarget="page-help"'


def check_help(name: str, answer: Any) -> None:
    """Check that a page has help exactly if it has a topic, and that a full one without is in ``WITHOUT_HELP``.

    Args:
        name: of its URL.
        answer: what came; other things than full pages, such as fragments and files, need no help.
    """
    is_full = not answer.streaming and _ITS_HEAD in answer.content
    has_help = not answer.streaming and _ITS_HELP in answer.content
    has_topic = topic_of(name) is not None
    if is_full:
        assert has_help == has_topic
        assert has_topic != (name in WITHOUT_HELP), "add it to web/guide/topics.py, or say here why not"
    else:
        assert not has_topic or name in NOT_DRAWN, "a page with a topic has a head"
        assert not has_help
        assert name not in WITHOUT_HELP, "take it out: it is not a full page"
