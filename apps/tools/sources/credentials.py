"""What a source's calls prove themselves with: set and forgotten, never shown."""

from __future__ import annotations

import re

from django.db import transaction
from django.utils.translation import gettext as _

from apps.tools.connectors.http import origin
from apps.tools.models import ToolCredential, ToolSource
from apps.tools.sources.services import invalid, source_locked
from basics.errors import Missing
from basics.texts import number_told
from tenancy import crypto
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.scope import tenant_scope
from tenancy.services import audit_record

MAX_CREDENTIALS = 10
MAX_SECRET = 4_000
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,80}")
# What frames a request or names its receiver is the transport's, not a credential's.
_RESERVED = frozenset(
    {
        "host",
        "content-length",
        "content-type",
        "transfer-encoding",
        "connection",
        "upgrade",
        "te",
        "trailer",
        "expect",
        "accept-encoding",
        "proxy-authorization",
        "proxy-connection",
        "keep-alive",
    }
)


@transaction.atomic
def credential_set(
    *, tenant: Tenant, actor: Actor, source: int, placement: str, secret: str, parameter: str = ""
) -> ToolCredential:
    """Store a credential of a source, encrypted; an earlier one of the same place is replaced. It is never shown again.

    Args:
        source: id of the source; the credential is sent to the host of its address alone.
        placement: bearer, basic, header or query.
        secret: the token, key or password.
        parameter: name of the header or query parameter, the user's name for ``basic``, "" for ``bearer``.

    Raises:
        Denied: without the right ``tool.manage``.
        Invalid: a field cannot be used; ``data["fields"]`` says which.
        Missing: there is no such source.
    """
    actor.require("tool.manage")
    secret, parameter = secret.strip(), parameter.strip()
    _check(placement, parameter)
    if not secret or len(secret) > MAX_SECRET or not secret.isascii() or not secret.isprintable():
        raise invalid(
            "secret",
            _("A credential is one line of 1 to %(most)s characters of ASCII.")
            % {"most": number_told(MAX_SECRET)},
        )
    with tenant_scope(tenant.pk):
        row_source = source_locked(tenant, source)
        if row_source.kind != ToolSource.Kind.PLUGIN and not origin(row_source.url)[1]:
            raise invalid(
                "source", _("Enter the source's address first. A credential is sent only to that host.")
            )
        own = ToolCredential.objects.filter(tenant=tenant, source=row_source)
        row = own.filter(placement=placement, parameter=parameter).first()
        is_new = row is None
        if is_new and own.count() >= MAX_CREDENTIALS:
            raise invalid(
                "placement",
                _("This source already has %(most)s credentials. Remove one first.")
                % {"most": MAX_CREDENTIALS},
            )
        row = row or ToolCredential(
            tenant=tenant, source=row_source, placement=placement, parameter=parameter
        )
        row.secret_encrypted = crypto.encrypt(secret, tenant_id=tenant.pk, purpose=row.purpose)
        row.last_four = secret[-4:] if len(secret) >= 12 else ""
        row.save()
        row.refresh_from_db()
        audit_record(
            tenant=tenant,
            actor=actor,
            action="tool_credential.set",
            object=row,
            object_name=row_source.name,
            data={"is_new": is_new, "placement": placement, "parameter": parameter, "source": row_source.pk},
        )
    return row


@transaction.atomic
def credential_forget(*, tenant: Tenant, actor: Actor, pk: int, source: int | None = None) -> None:
    """Forget a credential.

    Args:
        source: it must be of this one.

    Raises:
        Denied, Missing: without the right ``tool.manage``; there is none.
    """
    actor.require("tool.manage")
    with tenant_scope(tenant.pk):
        rows = ToolCredential.objects.select_for_update(of=("self",)).select_related("source")
        row = rows.filter(tenant=tenant, pk=pk).first()
        if row is None or source not in (None, row.source_id):
            raise Missing("credential")
        audit_record(
            tenant=tenant,
            actor=actor,
            action="tool_credential.forget",
            object=row,
            object_name=row.source.name,
            data={"placement": row.placement, "parameter": row.parameter, "source": row.source_id},
        )
        row.delete()


def _check(placement: str, parameter: str) -> None:
    kinds = ToolCredential.Placement
    if placement not in kinds.values:
        raise invalid("placement", _("Use one of %(known)s.") % {"known": ", ".join(kinds.values)})
    if placement == kinds.BEARER and parameter:
        raise invalid("parameter", _("A bearer token needs no name. Leave it empty."))
    if placement == kinds.HEADER and (not _HEADER.fullmatch(parameter) or parameter.lower() in _RESERVED):
        raise invalid(
            "parameter", _("Give the name of a header that can carry a credential, for example X-Api-Key.")
        )
    if placement in (kinds.QUERY, kinds.BASIC) and (
        not 1 <= len(parameter) <= 80 or not parameter.isprintable()
    ):
        raise invalid(
            "parameter", _("Give the name of the query parameter, or of the user, in at most 80 characters.")
        )
    if placement == kinds.BASIC and (":" in parameter or not parameter.isascii()):
        raise invalid("parameter", _("The user name must be ASCII without a colon."))
