"""Where requests on a workspace's behalf may go: to public addresses, and where it keeps a list, to those hosts alone."""

from __future__ import annotations

from django.conf import settings

from basics.net_guard import NetPolicy
from tenancy.actors import Actor
from tenancy.models import OutgoingHost
from tenancy.scope import tenant_scope


def outgoing_policy(tenant_id: int) -> NetPolicy:
    """Return the policy of every request that somebody in a workspace can lead somewhere; one query.

    Whatever sends such a request takes its policy from here, at the moment it sends: a list that was narrowed holds for
    what was stored before.
    """
    with tenant_scope(
        tenant_id
    ):  # Outside of it the list would look empty, and every host be allowed.
        hosts = list(OutgoingHost.objects.filter(tenant_id=tenant_id).values_list("pattern", flat=True))  # fmt: skip
    return NetPolicy.of(settings.FETCH_NETWORKS, hosts)


def outgoing_hosts(*, actor: Actor) -> list[str]:
    """Return the patterns of the workspace's list by name; none: every public host may be called. Raises Denied."""
    actor.require("tool.manage")
    rows = OutgoingHost.objects.visible_to(actor).order_by("pattern")
    return list(rows.values_list("pattern", flat=True))
