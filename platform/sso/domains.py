"""Mail domains: a workspace's provider may speak for the addresses of a domain once the domain's DNS says so."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

from django.db import connection, transaction
from django.utils import timezone

from basics.errors import Conflict, Invalid, Missing
from basics.texts import gettext as _
from sso.models import SsoDomain
from tenancy.actors import Actor
from tenancy.database.waiting import connections_let_go
from tenancy.models import Tenant
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import audit_record

RECORD = "_groundwork"
"""Name of the TXT record below the domain."""
PREFIX = "groundwork-domain="
MAX_DOMAINS = 50
_DNS_SECONDS = 8.0
_DOMAIN = re.compile(r"(?=.{4,253}\Z)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]")
# Mailboxes that anybody can get: who could verify one could sign in as its customers.
_PUBLIC = frozenset(
    {
        "gmail.com", "googlemail.com", "outlook.com", "hotmail.com", "live.com", "msn.com", "yahoo.com",
        "icloud.com", "me.com", "aol.com", "gmx.de", "gmx.net", "web.de", "proton.me", "protonmail.com",
        "mail.com", "mail.ru", "yandex.ru", "qq.com", "163.com", "onmicrosoft.com",
    }
)  # fmt: skip
Records = Callable[[str], list[str]]


def txt_records(name: str) -> list[str]:
    """Return the TXT records of a name, [] where there are none or nobody answers; asks the system's DNS servers."""
    import dns.exception  # 2 MB, and 2 % of a start, that only who verifies a domain needs
    import dns.resolver

    connections_let_go()
    try:
        answer = dns.resolver.resolve(name, "TXT", lifetime=_DNS_SECONDS, search=False)
    except dns.exception.DNSException:
        return []
    return [b"".join(record.strings).decode("ascii", "replace") for record in answer]


def domain_of(email: str) -> str:
    """Return the domain of an address, in lower case and ASCII, "" where it has none."""
    local, at, domain = email.strip().lower().rpartition("@")
    return domain if at and local else ""


def domain_is_verified(tenant: Tenant, email: str) -> bool:
    """Tell whether a workspace's provider may speak for an address: for that domain itself, not for those below it."""
    domain = domain_of(email)
    with tenant_scope(tenant.pk):
        rows = SsoDomain.objects.filter(tenant=tenant, domain=domain, verified_at__isnull=False)
        return bool(domain) and rows.exists()


@transaction.atomic
def domain_add(*, tenant: Tenant, actor: Actor, domain: str) -> SsoDomain:
    """Name a domain; it counts once it is verified.

    Raises:
        Denied: without the right ``tenant.manage``.
        Invalid: it is no domain, one of a public mail service, or one too many.
    """
    actor.require("tenant.manage")
    domain = domain.strip().lower().removeprefix("@").rstrip(".")
    if not _DOMAIN.fullmatch(domain):
        raise _invalid(_("Enter a domain such as example.com, in its ASCII form."))
    if domain in _PUBLIC:
        raise _invalid(_("Anyone can get an address there, so no workspace can have this domain."))
    with tenant_scope(tenant.pk):
        rows = SsoDomain.objects.filter(tenant=tenant)
        found = rows.filter(domain=domain).first()
        if found is not None:
            return found
        if rows.count() >= MAX_DOMAINS:
            raise _invalid(_("There are already %(most)s domains. Remove one first.") % {"most": MAX_DOMAINS})
        row: SsoDomain = SsoDomain.objects.create(
            tenant=tenant, domain=domain, token=secrets.token_urlsafe(32)
        )
        audit_record(tenant=tenant, actor=actor, action="sso.domain_add", object=row)
    return row


def domain_verify(*, tenant: Tenant, actor: Actor, pk: int, records: Records = txt_records) -> SsoDomain:
    """Look for the domain's TXT record, and verify the domain if it is there.

    Raises:
        Denied, Missing: without the right; no such domain here.
        Conflict: ``domain_unproven``, the record isn't there; ``domain_taken``, another workspace has the domain.
    """
    actor.require("tenant.manage")
    with tenant_scope(tenant.pk):
        row = SsoDomain.objects.filter(tenant=tenant, pk=pk).first()
    if row is None:
        raise Missing("domain")
    if f"{PREFIX}{row.token}" not in records(f"{RECORD}.{row.domain}"):
        raise Conflict(
            "domain_unproven",
            _(
                "No TXT record %(record)s.%(domain)s with this value was found. New records can take an hour "
                "to be seen."
            )
            % {"record": RECORD, "domain": row.domain},
        )
    return domain_mark(tenant=tenant, actor=actor, pk=row.pk)


@transaction.atomic
def domain_mark(*, tenant: Tenant, actor: Actor, pk: int) -> SsoDomain:
    """Let a domain count as verified: its DNS was seen, or the operator says so (``manage.py domain_verify``).

    Raises:
        Missing: no such domain here.
        Conflict: ``domain_taken``.
    """
    actor.require("tenant.manage")
    with tenant_scope(tenant.pk):
        row = SsoDomain.objects.select_for_update(of=("self",)).filter(tenant=tenant, pk=pk).first()
        if row is None:
            raise Missing("domain")
        with connection.cursor() as cursor:  # two workspaces at once: one of them
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [f"sso:{row.domain}"])
    with platform_scope():
        taken = SsoDomain.objects.filter(domain=row.domain, verified_at__isnull=False)
        if taken.exclude(tenant=tenant).exists():
            raise Conflict(
                "domain_taken",
                _("Another workspace of this server has verified this domain. Ask the operator."),
            )
    with tenant_scope(tenant.pk):
        row.verified_at = row.verified_at or timezone.now()
        row.save(update_fields=["verified_at"])
        audit_record(tenant=tenant, actor=actor, action="sso.domain_verify", object=row)
    return row


@transaction.atomic
def domain_remove(*, tenant: Tenant, actor: Actor, pk: int) -> None:
    """Forget a domain: its addresses can't sign in through the provider from now on. Raises Denied, Missing."""
    actor.require("tenant.manage")
    with tenant_scope(tenant.pk):
        row = SsoDomain.objects.filter(tenant=tenant, pk=pk).first()
        if row is None:
            raise Missing("domain")
        audit_record(tenant=tenant, actor=actor, action="sso.domain_remove", object=row)
        row.delete()


def domain_tenant(email: str) -> Tenant | None:
    """Return the workspace whose provider speaks for an address, None where there is none."""
    with platform_scope():
        row = (
            SsoDomain.objects.select_related("tenant")
            .filter(domain=domain_of(email), verified_at__isnull=False, tenant__is_active=True)
            .first()
        )
    return None if row is None else row.tenant


def _invalid(message: str) -> Invalid:
    return Invalid("invalid", message, data={"field": "domain", "fields": {"domain": [message]}})
