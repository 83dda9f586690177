"""The way back that the next page offers after several conversations were changed at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core import signing

from apps.conversations.models import Conversation
from apps.conversations.turns import bulk
from basics.errors import Invalid
from basics.texts import gettext as _
from basics.texts import ngettext
from web.requests import TenantRequest

_SESSION = "conversations_undo"


@dataclass(frozen=True, slots=True)
class Undo:
    """What was done, in a sentence, and the token that takes it back."""

    said: str
    token: str


def undo_keep(
    request: TenantRequest, did: str, rows: Sequence[int] | Mapping[int, int | None], said: str = ""
) -> None:
    """Note what can be undone, for the next page with a list of conversations.

    Args:
        did: delete, archive, unarchive or move.
        rows: the ids of the conversations; for move, with the id of the project each was in.
        said: a sentence that says what was done; "" for the usual one.
    """
    moved = (
        [[pk, was] for pk, was in rows.items()] if isinstance(rows, Mapping) else [[pk, None] for pk in rows]
    )
    if moved:
        token = signing.dumps({"did": did, "rows": moved}, salt=_salt(request), compress=True)
        request.session[_SESSION] = {"said": said or _said(did, len(moved)), "token": token}


def undo_take(request: TenantRequest) -> Undo | None:
    """Return what this page offers to undo, once; None for nothing, or what can't be undone any more."""
    found = request.session.pop(_SESSION, None)
    if found is None:
        return None
    try:
        _read(request, found["token"])
    except signing.BadSignature:
        return None
    return Undo(**found)


def undo_do(request: TenantRequest, token: str) -> None:
    """Take back what a token stands for, with the rights of now; conversations that are gone since are left out.

    Raises:
        Invalid: ``undo_gone``, it is too late, or the token is not of this workspace; or as the services of ``bulk`` say.
    """
    try:
        kept = _read(request, token)
    except signing.BadSignature as error:
        raise Invalid("undo_gone", _("This can no longer be undone.")) from error
    did, every = kept["did"], Conversation.objects
    mine = every.kept_for(request.actor) if did == "delete" else every.visible_to(request.actor)
    named: dict[int, int | None] = dict(kept["rows"])
    pks = list(mine.filter(pk__in=named).values_list("pk", flat=True))
    if not pks:
        raise Invalid("undo_gone", _("This can no longer be undone."))
    who: dict[str, Any] = {"tenant": request.tenant, "actor": request.actor}
    for start in range(0, len(pks), bulk.MOST):
        part = pks[start : start + bulk.MOST]
        if did == "delete":
            bulk.conversations_undelete(**who, conversations=part)
        elif did in ("archive", "unarchive"):
            bulk.conversations_archive(**who, conversations=part, is_archived=did == "unarchive")
    if did == "move":
        for project in {named[pk] for pk in pks}:
            back = [pk for pk in pks if named[pk] == project]
            bulk.conversations_move(**who, conversations=back, project=project)


def _read(request: TenantRequest, token: str) -> Any:
    """Return what a token of ``undo_keep`` holds. Raises BadSignature."""
    return signing.loads(token, salt=_salt(request), max_age=bulk.UNDO_S)


def _said(did: str, n: int) -> str:
    if did == "delete":
        said = ngettext("%(n)s conversation deleted.", "%(n)s conversations deleted.", n)
    elif did == "archive":
        said = ngettext("%(n)s conversation archived.", "%(n)s conversations archived.", n)
    elif did == "unarchive":
        said = ngettext("%(n)s conversation restored.", "%(n)s conversations restored.", n)
    else:
        said = ngettext("%(n)s conversation moved.", "%(n)s conversations moved.", n)
    return said % {"n": n}


def _salt(request: TenantRequest) -> str:
    return f"conversations.undo:{request.tenant.pk}:{request.user.pk}"
