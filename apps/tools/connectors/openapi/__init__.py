"""Sources that are OpenAPI documents: each operation is a tool."""

from __future__ import annotations

from collections.abc import Sequence

from apps.tools.connectors.base import FoundTool, SourceError, SourceKind
from apps.tools.connectors.http import document_fetch, origin
from apps.tools.connectors.openapi.calls import tools_make
from apps.tools.connectors.openapi.operations import document_read
from apps.tools.connectors.secrets import secrets_read
from apps.tools.models import ToolSource
from basics.errors import Invalid
from basics.net_policy import AddressRefused, NetPolicy, url_check
from basics.texts import gettext as _
from tenancy.outgoing import outgoing_policy

__all__ = ["KIND"]


def source_check(source: ToolSource) -> None:
    """Look at the fields of an OpenAPI source.

    Raises:
        Invalid: neither a document nor its address, or an address that may not be called.
    """
    if not source.document_url and not source.document.strip():
        raise _invalid("document_url", _("Give the address of the OpenAPI document or its text."))
    policy = outgoing_policy(source.tenant_id)
    for field in ("url", "document_url"):
        value = getattr(source, field)
        if not value:
            continue
        try:
            url = url_check(value, policy)
        except AddressRefused as error:
            raise _invalid(field, error.message) from error
        if field == "url" and (url.query or url.fragment):
            raise _invalid(field, _("The address of an API can't contain a ? or #."))


def source_read(source: ToolSource) -> Sequence[FoundTool]:
    """Return the operations of a source's document, read again where it has an address.

    Raises:
        SourceError: the document cannot be read or used.
    """
    policy = outgoing_policy(source.tenant_id)
    if source.document_url:
        own = origin(source.document_url) == origin(source.url)
        secrets = secrets_read(source.tenant_id, source.pk) if own else []
        data = document_fetch(source, source.document_url, secrets, policy)
        try:
            source.document = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SourceError(_("The document isn't UTF-8 text. Save it as UTF-8 and try again.")) from error
    found = document_read(source.document, prefix=source.name, base=source.document_url)
    if not source.url:
        if not found.server:
            raise SourceError(
                _(
                    "The document doesn't say where the API is (“servers”). Enter its address in the source's settings."
                )
            )
        source.url = _server_checked(found.server, policy)
    source.title = source.title or found.title
    source.settings = {
        **source.settings,
        "security": [dict(one) for one in found.security],
        "skipped": [dict(one) for one in found.skipped],
    }
    return found.tools


def _server_checked(server: str, policy: NetPolicy) -> str:
    try:
        url = url_check(server, policy)
    except AddressRefused as error:
        text = _("The document says that the API is at %(server)s. %(why)s")
        raise SourceError(text % {"server": server[:200], "why": error.message}) from error
    if url.query or url.fragment or len(server) > 500:
        text = _(
            "The document says that the API is at %(server)s, which isn't a server address. Enter its address in the "
            "source's settings."
        )
        raise SourceError(text % {"server": server[:200]})
    return server


def _invalid(field: str, message: str) -> Invalid:
    return Invalid("invalid", message, data={"fields": {field: [message]}})


KIND = SourceKind("openapi", source_check, source_read, tools_make)
