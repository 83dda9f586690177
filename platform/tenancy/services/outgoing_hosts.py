"""The list of hosts that a workspace's requests may go to."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import transaction

from basics.errors import Invalid
from basics.net_hosts import host_pattern
from basics.texts import gettext as _
from tenancy.actors import Actor
from tenancy.models import OutgoingHost, Tenant
from tenancy.scope import tenant_scope
from tenancy.services.audit import audit_record

MAX_HOSTS = 500


@transaction.atomic
def outgoing_hosts_set(*, tenant: Tenant, actor: Actor, hosts: Iterable[str]) -> list[str]:
    """Replace the list; an empty one lets every public host be called.

    Args:
        hosts: patterns: ``api.example.com``, or ``*.example.com`` for all below a host.

    Returns:
        The list as it is stored, by name.

    Raises:
        Denied: without the right ``tenant.manage``.
        Invalid: a pattern is no host, or there are more than ``MAX_HOSTS``.
    """
    actor.require("tenant.manage")
    try:
        wanted = sorted({host_pattern(text) for text in hosts})
    except ValueError as error:
        raise _invalid(str(error)) from error
    if len(wanted) > MAX_HOSTS:
        raise _invalid(
            _("Enter at most %(most)s hosts; use one pattern for many subdomains.") % {"most": MAX_HOSTS}
        )
    with tenant_scope(tenant.pk):
        Tenant.objects.select_for_update(no_key=True).get(pk=tenant.pk)  # one change at a time
        rows = OutgoingHost.objects.filter(tenant=tenant)
        before = sorted(rows.values_list("pattern", flat=True))
        if before == wanted:
            return wanted
        rows.exclude(pattern__in=wanted).delete()
        OutgoingHost.objects.bulk_create(
            OutgoingHost(tenant=tenant, pattern=one) for one in wanted if one not in before
        )
        audit_record(
            tenant=tenant,
            actor=actor,
            action="outgoing_hosts.set",
            object=tenant,
            data={"before": before, "after": wanted},
        )
    return wanted


def _invalid(message: str) -> Invalid:
    return Invalid("invalid", message, data={"field": "hosts", "fields": {"hosts": [message]}})
