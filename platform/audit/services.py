"""Add and remove the streams of a workspace, and keep one for each workspace where the operator's settings name a receiver."""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.db import connection, transaction

from audit.models import AuditStream
from basics.errors import Invalid, Missing
from basics.net_policy import AddressRefused, url_check
from basics.texts import gettext as _
from tenancy import crypto
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.outgoing import outgoing_policy
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import audit_record
from webhooks.signing import secret_make

MAX_STREAMS: Final = 3
PURPOSE: Final = "audit stream"
_SYSLOG: Final = ("syslog+tcp", "syslog+tls")


@transaction.atomic
def stream_create(
    *, tenant: Tenant, actor: Actor, url: str, has_reads: bool = True
) -> tuple[AuditStream, str]:
    """Send a workspace's audit events, from its first on, to an address.

    Args:
        url: ``https://`` for signed webhooks, ``syslog+tls://host:port`` or ``syslog+tcp://host:port``.
        has_reads: reads of contents as well.

    Returns:
        The stream and, for a webhook, its secret, which is shown this once ("" for syslog).

    Raises:
        Denied: without the right ``tenant.manage``.
        Invalid: the address may not be called, or there are ``MAX_STREAMS`` already.
    """
    actor.require("tenant.manage")
    url, secret = url.strip(), ""
    with tenant_scope(tenant.pk):
        kind = _checked(tenant, url)
        own = AuditStream.objects.filter(tenant=tenant, is_operators=False)
        if own.count() >= MAX_STREAMS:
            raise Invalid(
                "streams_full",
                _("There are already %(most)s streams. Remove one first.") % {"most": MAX_STREAMS},
            )
        row = AuditStream(tenant=tenant, kind=kind, url=url, has_reads=has_reads)
        if kind == AuditStream.Kind.WEBHOOK:
            secret = secret_make()
            row.secret_encrypted = crypto.encrypt(secret, tenant_id=tenant.pk, purpose=PURPOSE)
        row.save()
        row.refresh_from_db()
        audit_record(
            tenant=tenant, actor=actor, action="audit_stream.create", object=row, data={"reads": has_reads}
        )
    return row, secret


def _checked(tenant: Tenant, url: str) -> str:
    """Return the kind of stream that an address is for. Raises Invalid."""
    parts = urlsplit(url)
    is_syslog = parts.scheme in _SYSLOG
    try:
        has_port = parts.port is not None
    except ValueError:
        has_port = False
    if is_syslog and (not parts.hostname or not has_port or parts.path.strip("/") or "@" in parts.netloc):
        raise _invalid(_("Write a syslog address as syslog+tls://host:port."))
    if not is_syslog and parts.scheme not in {"http", "https"}:
        raise _invalid(_("Write an address that begins with https://, syslog+tls:// or syslog+tcp://."))
    try:
        # The rules of hosts are those of webhooks; a syslog receiver's port is its own.
        policy = outgoing_policy(tenant.pk)
        url_check(f"https://{parts.hostname}/" if is_syslog else url, policy)
    except AddressRefused as refused:
        raise _invalid(refused.message) from refused
    return AuditStream.Kind.SYSLOG if is_syslog else AuditStream.Kind.WEBHOOK


def _invalid(message: str) -> Invalid:
    return Invalid("stream_url_invalid", message, data={"field": "url", "fields": {"url": [message]}})


@transaction.atomic
def stream_delete(*, tenant: Tenant, actor: Actor, pk: int) -> None:
    """Stop a stream; what it has sent stays with its receiver. Raises Denied, Missing."""
    actor.require("tenant.manage")
    with tenant_scope(tenant.pk):
        row = (
            AuditStream.objects.select_for_update(of=("self",))
            .filter(tenant=tenant, pk=pk, is_operators=False)
            .first()
        )
        if row is None:
            raise Missing("audit stream")
        audit_record(tenant=tenant, actor=actor, action="audit_stream.delete", object=row)
        row.delete()


def stream_secret(stream: AuditStream) -> list[crypto.Secret]:
    """Return what signs a webhook's calls. Raises DecryptionError."""
    if stream.is_operators:
        return [crypto.Secret(settings.AUDIT_STREAM_SECRET)]
    if stream.secret_encrypted is None:
        return []
    return [crypto.decrypt(stream.secret_encrypted, tenant_id=stream.tenant_id, purpose=PURPOSE)]


def streams_of_operator_ensure() -> None:
    """Have a stream of the operator's in each workspace while the settings name a receiver; without one they rest."""
    is_on = bool(settings.AUDIT_STREAM)
    with platform_scope(), connection.cursor() as cursor:
        if is_on:
            cursor.execute(
                """
                INSERT INTO audit_auditstream (tenant_id, kind, url, is_operators, is_enabled, has_reads, event_seq,
                    read_seq, sent_count, failures, error, lease)
                SELECT t.id, %s, '', true, true, true, 0, 0, 0, 0, '', '' FROM tenancy_tenant t
                WHERE NOT EXISTS (
                    SELECT 1 FROM audit_auditstream s WHERE s.tenant_id = t.id AND s.is_operators)
                ON CONFLICT DO NOTHING
                """,
                [operator_kind(settings.AUDIT_STREAM)],
            )
        cursor.execute(
            "UPDATE audit_auditstream SET is_enabled = %s WHERE is_operators AND is_enabled <> %s",
            [is_on, is_on],
        )


def operator_kind(url: str) -> str:
    """Return the kind of stream that the setting's address is for."""
    scheme = urlsplit(url).scheme
    if scheme == "file":
        return AuditStream.Kind.FILE
    return AuditStream.Kind.SYSLOG if scheme in _SYSLOG else AuditStream.Kind.WEBHOOK
