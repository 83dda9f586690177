"""Notices by mail: one message of all that is new, in the person's language, to the address they have now.

A message is sent at most once: its notices are marked before it is handed to the mail server, and free again only where that
has refused it. What a killed worker was just sending stays marked, and is in the bell.
"""

from __future__ import annotations

import datetime
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from smtplib import SMTPException
from typing import Final

from django.core.mail import send_mail
from django.db import transaction
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import ngettext, override

from jobs.services import job_enqueue
from notices.models import MailState, Notice, NoticeSetting
from notices.selectors import (
    ToldNotice,
    groups_with,
    is_mail_set_up,
    notice_ways,
    notices_told,
    ways_of,
)
from notices.sources import MAIL, SOURCES
from tenancy.actors import system_actor
from tenancy.models import Membership, Tenant
from tenancy.portal_languages import ENGLISH, person_language
from tenancy.public_address import public_address
from tenancy.scope import platform_scope, tenant_scope
from tenancy.selectors import user_actor

JOB_KIND: Final = "notices.mail"
WAIT: Final = datetime.timedelta(minutes=2)
"""So long a person has to look by themselves."""
BETWEEN: Final = datetime.timedelta(minutes=10)
"""From one message to a person to the next; what happens meanwhile is in that one."""
_STEP = 1000


@dataclass(frozen=True, slots=True)
class Digest:
    """What one message says.

    Attributes:
        pks: of its notices, marked as being sent.
    """

    pks: Sequence[int]
    address: str
    subject: str
    text: str


def mails_due() -> int:
    """Enqueue a message for each person who wants their new notices by mail; returns how many. For the sweeper."""
    wanting, unwanted = _due()
    for tenant in Tenant.objects.filter(pk__in={*wanting, *unwanted}):
        with tenant_scope(tenant.pk):
            _close(tenant.pk, unwanted[tenant.pk])
            for person in sorted(wanting[tenant.pk]):
                job_enqueue(
                    tenant=tenant,
                    actor=system_actor(tenant.pk, person),
                    kind=JOB_KIND,
                    payload={"user_id": person},
                    dedupe_key=f"person:{person}",
                )
    return sum(map(len, wanting.values()))


def _due() -> tuple[Mapping[int, set[int]], Mapping[int, list[int]]]:
    """Return, by workspace, who is to be told by mail now, and the notices that go by no mail."""
    now = timezone.now()
    with platform_scope():
        waiting = Notice.objects.filter(mail=MailState.OPEN, at__lt=now - WAIT, tenant__is_active=True)
        rows = list(waiting.order_by("at")[:_STEP])
        people = {row.user_id for row in rows}
        # Who was told a moment ago waits for the next message, also where the notice is open again: it keeps mail_at.
        recent = Notice.objects.filter(user_id__in=people, mail_at__gt=now - BETWEEN)
        told = set(recent.exclude(mail=MailState.NONE).values_list("tenant_id", "user_id"))
        settings_of = NoticeSetting.objects.filter(user_id__in=people)
        chosen = {(row.tenant_id, row.user_id): row.ways for row in settings_of}
    wanting: dict[int, set[int]] = defaultdict(set)
    unwanted: dict[int, list[int]] = defaultdict(list)
    for row in rows:
        who = (row.tenant_id, row.user_id)
        if row.read_at is not None or not is_mailed(row.kind, chosen.get(who, {})):
            unwanted[row.tenant_id].append(row.pk)
        elif who not in told:
            wanting[row.tenant_id].add(row.user_id)
    return wanting, unwanted


def is_mailed(kind: str, stored: object) -> bool:
    """Tell whether a kind goes by mail to a person, from what is stored of their choice, {} for none."""
    source = SOURCES.get(kind)
    return source is not None and is_mail_set_up() and MAIL in ways_of(stored)[source.group]


def digest_take(*, tenant: Tenant, user_id: int) -> Digest | None:
    """Mark what a person is to be told of by mail, and return the message; None for nothing.

    What they have read, don't want by mail or may not see (any more) is left out for good, and all of it where they are no
    longer a member.
    """
    with transaction.atomic():
        waiting = Notice.objects.filter(tenant=tenant, user_id=user_id, mail=MailState.OPEN)
        rows = list(waiting.select_for_update().order_by("at"))
        members = Membership.objects.select_related("user", "tenant")
        member = members.filter(tenant=tenant, user_id=user_id, user__is_active=True).first()
        if not rows or member is None:
            _close(tenant.pk, [row.pk for row in rows])
            return None
        actor, language = user_actor(member), person_language(member.user) or ENGLISH
        wanted = groups_with(MAIL, notice_ways(actor=actor)) if is_mail_set_up() else []
        open_rows = [row for row in rows if row.read_at is None]
        with override(language):
            told = [one for one in notices_told(tenant, actor, open_rows) if one.group in wanted]
            pks = [one.pk for one in told]
            _close(tenant.pk, [row.pk for row in rows if row.pk not in pks])
            if not told:
                return None
            Notice.objects.filter(tenant=tenant, pk__in=pks).update(
                mail=MailState.SENDING, mail_at=timezone.now()
            )
            return Digest(pks, member.user.email, _subject(tenant, len(told)), _text(tenant, told))


def digest_send(digest: Digest) -> str:
    """Hand a message to the mail server; returns what went wrong, "" when it was taken."""
    try:
        send_mail(digest.subject, digest.text, None, [digest.address])
    # ValueError: an address that can't be written as mail needs it.
    except (SMTPException, OSError, ValueError) as error:
        return f"{type(error).__name__}: {error}"[:300]
    return ""


def digest_close(*, tenant: Tenant, digest: Digest, is_sent: bool) -> None:
    """Write down that a message was sent, or that its notices are to be tried again."""
    rows = Notice.objects.filter(tenant=tenant, pk__in=digest.pks, mail=MailState.SENDING)
    if is_sent:
        rows.update(mail=MailState.SENT, mail_at=timezone.now())
    else:
        rows.update(mail=MailState.OPEN, mail_at=None)


def digests_give_up(*, tenant_id: int, user_id: int) -> None:
    """Send nothing of what a person hasn't been told by mail yet: the mail server refuses it."""
    rows = Notice.objects.filter(tenant_id=tenant_id, user_id=user_id, mail=MailState.OPEN)
    _close(tenant_id, list(rows.values_list("pk", flat=True)))


def _close(tenant_id: int, pks: Sequence[int]) -> None:
    Notice.objects.filter(tenant_id=tenant_id, pk__in=pks).update(mail=MailState.NONE, mail_at=timezone.now())


def _subject(tenant: Tenant, count: int) -> str:
    said = ngettext(
        "%(count)s notification in %(workspace)s", "%(count)s notifications in %(workspace)s", count
    )
    return " ".join((said % {"count": count, "workspace": tenant.name}).split())


def _text(tenant: Tenant, told: Sequence[ToldNotice]) -> str:
    address = public_address()
    context = {
        "tenant": tenant,
        "address": address,
        # On one line each: a name with lines of its own could look like more of the message.
        "told": [
            (one.text, " ".join(one.name.split()), f"{address}{one.url}" if address else "") for one in told
        ],
        "settings_url": address and f"{address}{reverse('web:settings-notices', args=[tenant.slug])}",
    }
    return render_to_string("notices/digest.txt", context)
