"""Where requests on a workspace's behalf may go: to public addresses, and where it keeps a list, to those hosts alone."""

from __future__ import annotations

import functools
from ipaddress import IPv4Network, IPv6Network, ip_network

from django.conf import settings

from basics.net_policy import NetPolicy, Network
from tenancy.actors import Actor
from tenancy.models import OutgoingHost
from tenancy.scope import tenant_scope


def outgoing_policy(tenant_id: int) -> NetPolicy:
    """Return the policy of every request that somebody in a workspace can lead somewhere; one query.

    Whatever sends such a request takes its policy from here, at the moment it sends: a list that was narrowed holds for
    what was stored before.
    """
    with tenant_scope(tenant_id):  # Outside of it the list would look empty, and every host be allowed.
        hosts = list(OutgoingHost.objects.filter(tenant_id=tenant_id).values_list("pattern", flat=True))
    return NetPolicy.of(settings.FETCH_NETWORKS, hosts)


def model_policy() -> NetPolicy:
    """Return the policy of connections to a model server that a workspace has named.

    The workspace's list of hosts is not part of it (docs/decisions.md, 76). Model servers listen on ports of their own.
    """
    allow = tuple(ip_network(text) for text in settings.FETCH_NETWORKS)
    if settings.ALLOW_PRIVATE_MODEL_URLS:
        allow += _private()
    return NetPolicy(allow=allow, high_ports=True)


@functools.cache
def _private() -> tuple[Network, ...]:
    """Return the networks that people run servers in; where clouds keep the keys of machines is in none of them."""
    found: list[Network] = [
        *(IPv4Network(text) for text in ("10.0.0.0/8", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")),
        *IPv4Network("100.64.0.0/10").address_exclude(IPv4Network("100.100.100.200/32")),
        IPv6Network("::1/128"),
        *IPv6Network("fc00::/7").address_exclude(IPv6Network("fd00:ec2::/32")),
    ]
    return tuple(found)


def outgoing_hosts(*, actor: Actor) -> list[str]:
    """Return the patterns of the workspace's list by name; none: every public host may be called. Raises Denied."""
    actor.require("tool.manage")
    rows = OutgoingHost.objects.visible_to(actor).order_by("pattern")
    return list(rows.values_list("pattern", flat=True))
