"""Tell people of something, in the transaction in which it happens, and write down what they have seen."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Mapping

from django.db import connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from basics.errors import Denied, Invalid
from erasure.holds import tenants_held
from jobs.services import job_enqueue
from notices.models import Notice, NoticeSetting
from notices.selectors import (
    ToldNotice,
    groups_with,
    notice_ways,
    notices_told,
    notices_unread,
    of_groups,
)
from notices.sources import BROWSER, GROUPS, SOURCES, WAYS
from tenancy.actors import Actor, system_actor
from tenancy.models import Membership, Tenant
from tenancy.scope import platform_scope

KEPT_DAYS = 30
LOOKED_S = 5.0
"""So long a page in front of its person has to say that it shows the thing itself, before a browser is told."""
SPREAD_JOB = "notices.spread"
SPREAD = 500
"""People told in one transaction: each has their membership locked until it ends."""
CLAIMED = 5
"""Notices that a browser shows at once at most; the bell has all of them."""

# One statement: answers end with it. The membership's flag is always written, so that who takes it away waits. When its
# person was sent a mail stays: the next one waits for that (notices.mailing).
_PUT = """
WITH people AS (
    SELECT user_id FROM tenancy_membership WHERE tenant_id = %(tenant)s AND user_id = ANY (%(people)s)
), put AS (
    INSERT INTO notices_notice (tenant_id, user_id, kind, object_id, state)
    SELECT %(tenant)s, user_id, %(kind)s, %(pk)s, %(state)s FROM people ORDER BY user_id
    ON CONFLICT (tenant_id, user_id, kind, object_id) DO UPDATE SET state = excluded.state, at = now(),
        read_at = NULL, shown_at = NULL, mail = 'open',
        mail_at = CASE WHEN notices_notice.mail <> 'none' THEN notices_notice.mail_at END
)
UPDATE tenancy_membership SET has_notices = true WHERE tenant_id = %(tenant)s AND id IN (
    SELECT id FROM tenancy_membership WHERE tenant_id = %(tenant)s AND user_id = ANY (%(people)s)
    ORDER BY user_id FOR NO KEY UPDATE)
"""


def notice_put(*, tenant_id: int, people: Collection[int | None], kind: str, pk: int, state: str) -> None:
    """Tell people of something, in the transaction in which it happens; nothing to who is not a member.

    Args:
        people: ids of users; None is nobody.
        kind: what it is about, as a source has it (``notices.sources``).
        pk: which one; a notice of the same thing from before is replaced.
        state: what has become of it.

    Raises:
        ValueError: no source has this kind.
    """
    told = sorted({person for person in people if person is not None})
    if kind not in SOURCES:
        raise ValueError(f"unknown kind of notice {kind!r}")
    if not told:
        return
    with connection.cursor() as cursor:
        cursor.execute(_PUT, {"tenant": tenant_id, "people": told, "kind": kind, "pk": pk, "state": state})


def notice_spread(*, tenant: Tenant, kind: str, pk: int, state: str) -> None:
    """Have a job tell all whom a source names (``Source.people``), however many: whoever caused it doesn't wait for that."""
    payload: dict[str, int | str] = {"kind": kind, "pk": pk, "state": state}
    job_enqueue(tenant=tenant, actor=system_actor(tenant.pk), kind=SPREAD_JOB, payload=payload)


def notices_spread(*, tenant_id: int, kind: str, pk: int, state: str, since: datetime.datetime) -> None:
    """Do what ``notice_spread`` asks for, in several transactions; who was told since then is not told again."""
    source = SOURCES[kind]
    people = set() if source.people is None else set(source.people(tenant_id, pk))
    told = Notice.objects.filter(tenant_id=tenant_id, kind=kind, object_id=pk, state=state, at__gte=since)
    left = sorted(people - set(told.values_list("user_id", flat=True)))
    for start in range(0, len(left), SPREAD):
        notice_put(tenant_id=tenant_id, people=left[start : start + SPREAD], kind=kind, pk=pk, state=state)


def notices_look(*, membership: Membership, actor: Actor, path: str) -> list[ToldNotice]:
    """Return what the member hasn't read, after writing down that they have this page in front of them.

    What can't be told any more counts as read too: it would be looked up on each page. No statement for who has nothing to
    read.

    Args:
        path: of the page; "" for none.
    """
    if not membership.has_notices:
        return []
    rows = list(notices_unread(actor=actor))
    unread = [one for one in notices_told(membership.tenant, actor, rows) if one.path != path]
    done = {row.pk for row in rows} - {one.pk for one in unread}
    if done:
        Notice.objects.visible_to(actor).filter(pk__in=done, read_at=None).update(read_at=timezone.now())
    if not unread:
        _flag_down(membership, actor)
    return unread


def notices_read(*, tenant: Tenant, actor: Actor, pk: int | None = None) -> int:
    """Mark one notice of the actor's as read, or all of them; returns how many were unread.

    Raises:
        Denied: for a key.
    """
    person_require(actor)
    rows = Notice.objects.visible_to(actor).filter(read_at=None)
    if pk is not None:
        rows = rows.filter(pk=pk)
    count: int = rows.update(read_at=timezone.now())
    return count


def notices_claim(*, tenant: Tenant, actor: Actor) -> tuple[list[ToldNotice], float | None]:
    """Hand the actor's new notices to one browser, and to no other: the one whose page asks first.

    Returns:
        The notices, and in how many seconds to ask again because something is too new; None for nothing.
    """
    rows = of_groups(Notice.objects.visible_to(actor), groups_with(BROWSER, notice_ways(actor=actor)))
    waiting = rows.filter(read_at=None, shown_at=None)
    now = timezone.now()
    looked = now - datetime.timedelta(seconds=LOOKED_S)
    with transaction.atomic():
        due = list(waiting.filter(at__lte=looked).select_for_update(skip_locked=True).order_by("-at"))
        Notice.objects.filter(tenant=tenant, pk__in=[row.pk for row in due]).update(shown_at=now)
    newest = waiting.filter(at__gt=looked).order_by("-at").values_list("at", flat=True).first()
    again = None if newest is None else max(1.0, LOOKED_S - (now - newest).total_seconds() + 1.0)
    return notices_told(tenant, actor, due)[:CLAIMED], again


def notice_ways_set(*, tenant: Tenant, actor: Actor, ways: Mapping[str, Collection[str]]) -> None:
    """Choose in which ways the actor is told of what; groups that ``ways`` lacks stay as they are.

    Raises:
        Denied: for a key.
        Invalid: no such group or way.
    """
    person = person_require(actor)
    for group, chosen in ways.items():
        wrong = [group] if group not in GROUPS else sorted(set(chosen) - WAYS.keys())
        if wrong:
            known = ", ".join(GROUPS if group not in GROUPS else WAYS)
            message = _("“%(value)s” isn't one of: %(known)s.") % {"value": wrong[0], "known": known}
            raise Invalid("invalid", message, data={"field": group, "fields": {group: [message]}})
    with transaction.atomic():
        row, _made = NoticeSetting.objects.select_for_update().get_or_create(tenant=tenant, user_id=person)
        row.ways = {**row.ways, **{group: sorted(chosen) for group, chosen in ways.items()}}
        row.save()


def notices_forget() -> int:
    """Remove notices older than ``KEPT_DAYS``, but of workspaces on hold; returns how many. For the sweeper."""
    with platform_scope():
        old = Notice.objects.filter(at__lt=timezone.now() - datetime.timedelta(days=KEPT_DAYS))
        return int(old.exclude(tenant_id__in=tenants_held()).delete()[0])


def person_require(actor: Actor) -> int:
    """Return who the actor is as a person, signed in. Raises Denied for a key."""
    if actor.kind != "user" or actor.user_id is None:
        raise Denied("person_needed", _("Only the person themselves can use their notifications."))
    return actor.user_id


def _flag_down(membership: Membership, actor: Actor) -> None:
    """Say that there is nothing to read. Locked before it is read again: what is told later raises the flag afterwards."""
    with transaction.atomic():
        rows = Membership.objects.select_for_update(no_key=True)
        row = rows.filter(tenant_id=membership.tenant_id, pk=membership.pk).first()
        if row is not None and not notices_unread(actor=actor).exists():
            row.has_notices = membership.has_notices = False
            row.save(update_fields=["has_notices"])
