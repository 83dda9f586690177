"""Sources of a workspace's own tools: connected, read, accepted, tested. Selectors read, services write."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.debug import sensitive_post_parameters, sensitive_variables
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.tools.connectors.base import SourceError, kind_get
from apps.tools.models import ToolSource, ToolVersion
from apps.tools.sources import credentials, services, versions
from apps.tools.sources.forms import CredentialForm, SourceForm, pretty
from apps.tools.sources.selectors import (
    contract_test_list,
    credential_list,
    source_get,
    source_list,
    version_changes,
    version_get,
    version_list,
)
from apps.tools.sources.services import JOB_KIND
from basics.errors import Conflict, DomainError, Invalid
from jobs.models import ACTIVE, Job
from web.requests import TenantRequest, allowed

VERSIONS_SHOWN = 200


@require_GET
@allowed("tool.manage")
def sources(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the workspace's sources."""
    rows = list(source_list(actor=request.actor))
    reading = _reading(request, rows)
    context = {"tab": "sources", "sources": [(row, row.pk in reading) for row in rows], "kinds": _kinds()}
    return render(request, "tools/sources.html", context)


@require_http_methods(["GET", "POST"])
@sensitive_post_parameters("secret")
@sensitive_variables("credential")
@allowed("tool.manage")
def source_new(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Connect a source: an OpenAPI document, an MCP server or a plug-in of this installation."""
    kinds = _kinds()
    kind = request.GET.get("kind", "")
    if kind not in kinds:
        kind = next(iter(kinds))
    form = SourceForm(request.POST or None, request.FILES or None, kind=kind, is_new=True)
    credential = CredentialForm(request.POST or None, use_required_attribute=False)
    has_secret = bool(request.POST.get("secret"))
    if request.method == "POST" and form.is_valid() and (not has_secret or credential.is_valid()):
        try:
            row = _connected(request, form, credential)
        except (Invalid, SourceError) as error:
            form.refuse(error)
        else:
            return redirect("tools:source", tenant_slug, row.pk)
    context = {"tab": "sources", "kind": kind, "kinds": kinds, "form": form, "credential": credential}
    status = 422 if request.method == "POST" else 200
    return render(request, "tools/source_new.html", context, status=status)


@require_GET
@allowed("tool.manage")
def source(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show a source; while it is read, htmx asks for it again."""
    row = source_get(actor=request.actor, pk=pk)
    name = "tools/_source.html" if request.htmx else "tools/source.html"
    return render(request, name, _page(request, row))


@require_http_methods(["GET", "POST"])
@allowed("tool.manage")
def source_edit(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Change a source; it is read again if its document or address changed."""
    row = source_get(actor=request.actor, pk=pk)
    form = SourceForm(
        request.POST or None,
        request.FILES or None,
        kind=row.kind,
        is_new=False,
        initial=SourceForm.initial_of(row),
    )
    if request.method == "POST" and form.is_valid():
        try:
            services.source_update(tenant=request.tenant, actor=request.actor, pk=pk, **form.values())
        except (Invalid, SourceError) as error:
            form.refuse(error)
        else:
            messages.success(request, _("Saved."))
            return redirect("tools:source", tenant_slug, pk)
    status = 422 if request.method == "POST" else 200
    context = {"tab": "sources", "source": row, "form": form}
    return render(request, "tools/source_edit.html", context, status=status)


@require_POST
@allowed("tool.manage")
def source_act(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Read a source again, switch it on or off, or remove it with its tools."""
    row, do = source_get(actor=request.actor, pk=pk), request.POST.get("do")
    who: dict[str, Any] = {"tenant": request.tenant, "actor": request.actor, "pk": pk}
    if do == "refresh":
        services.source_refresh(**who)
    elif do in ("on", "off"):
        services.source_update(**who, is_enabled=do == "on")
        told = _("%(source)s is now on.") if do == "on" else _("%(source)s is now off.")
        messages.success(request, told % {"source": row})
    elif do == "delete":
        if request.POST.get("confirm", "").strip() != row.name:
            messages.error(request, _("Nothing was removed: the name you typed doesn't match."))
            return redirect("tools:source", tenant_slug, pk)
        services.source_delete(**who)
        messages.success(request, _("“%(source)s” and its tools are removed.") % {"source": row})
        return redirect("tools:sources", tenant_slug)
    else:
        raise Invalid("invalid", _("Unknown action."))
    return redirect("tools:source", tenant_slug, pk)


@require_POST
@sensitive_post_parameters("secret")
@allowed("tool.manage")
def source_credential(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Store or forget a credential of a source."""
    row = source_get(actor=request.actor, pk=pk)
    who: dict[str, Any] = {"tenant": request.tenant, "actor": request.actor}
    forget = request.POST.get("forget", "")
    if forget:
        own = credential_list(actor=request.actor, source=pk)
        pks = [c.pk for c in own if str(c.pk) == forget]
        credentials.credential_forget(**who, pk=pks[0] if pks else 0)
        messages.success(request, _("Credential removed."))
        return redirect("tools:source", tenant_slug, pk)
    form = CredentialForm(request.POST)
    if form.is_valid():
        try:
            credentials.credential_set(**who, source=pk, **form.cleaned_data)
        except Invalid as error:
            _refuse(form, error)
        else:
            messages.success(request, _("Stored. It is encrypted and not shown again."))
            return redirect("tools:source", tenant_slug, pk)
    context = _page(request, row) | {"credential": form}
    return render(request, "tools/source.html", context, status=422)


@require_POST
@allowed("tool.manage")
def versions_decide(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Accept or reject versions that wait, or bring an earlier one back."""
    row = source_get(actor=request.actor, pk=pk)
    who: dict[str, Any] = {"tenant": request.tenant, "actor": request.actor}
    do = request.POST.get("do")
    chosen = {v for v in request.POST.getlist("version") if v.isascii() and v.isdecimal() and len(v) < 19}
    if do in ("accept-all", "reject-all"):
        waiting = version_list(actor=request.actor, source=pk, state=ToolVersion.State.WAITING)
        pks = list(waiting.values_list("pk", flat=True))
    else:
        own = version_list(actor=request.actor, source=pk).filter(pk__in=[int(v) for v in chosen])
        pks = list(own.values_list("pk", flat=True))
    if not pks:
        messages.error(request, _("Choose at least one version."))
        return redirect("tools:source", tenant_slug, pk)
    try:
        if do in ("accept", "accept-all", "force"):
            versions.version_accept(**who, pks=pks, force=do == "force")
            said = ngettext(
                "%(source)s: %(count)s version accepted.",
                "%(source)s: %(count)s versions accepted.",
                len(pks),
            )
        elif do in ("reject", "reject-all"):
            versions.version_reject(**who, pks=pks)
            said = ngettext(
                "%(source)s: %(count)s version rejected.",
                "%(source)s: %(count)s versions rejected.",
                len(pks),
            )
        else:
            raise Invalid("invalid", _("Accept or reject."))
    except Conflict as error:
        messages.error(request, error.message)
        if len(pks) == 1:
            return redirect("tools:version", tenant_slug, pks[0])
    else:
        messages.success(request, said % {"source": row, "count": len(pks)})
    return redirect("tools:source", tenant_slug, pk)


@require_GET
@allowed("tool.manage")
def version(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show what a version changes."""
    row = version_get(actor=request.actor, pk=pk)
    diff = version_changes(actor=request.actor, pk=pk)
    context = {
        "tab": "sources",
        "version": row,
        "diff": diff,
        "fields": [
            {
                "name": f.field.replace("_", " "),
                "old": pretty(f.old),
                "new": pretty(f.new),
                "is_risk": f.is_risk,
            }
            for f in diff.fields
        ],
        "tests": list(contract_test_list(actor=request.actor, tool_name=row.tool_name)),
    }
    return render(request, "tools/version.html", context)


def _connected(request: TenantRequest, form: SourceForm, credential: CredentialForm) -> ToolSource:
    """Make the source with its first credential in one step, so that it is read with that."""
    who: dict[str, Any] = {"tenant": request.tenant, "actor": request.actor}
    values = form.values()
    with transaction.atomic():
        row = services.source_create(**who, kind=form.kind, accept_all="accept_all" in request.POST, **values)
        if credential.is_bound and credential.is_valid():
            credentials.credential_set(**who, source=row.pk, **credential.cleaned_data)
    return row


def _page(request: TenantRequest, row: ToolSource) -> dict[str, Any]:
    actor = request.actor
    waiting = version_list(actor=actor, source=row.pk, state=ToolVersion.State.WAITING)
    current = version_list(actor=actor, source=row.pk, state=ToolVersion.State.CURRENT)
    return {
        "tab": "sources",
        "source": row,
        "is_reading": bool(_reading(request, [row])),
        "waiting": list(waiting[:VERSIONS_SHOWN]),
        "current": list(current[:VERSIONS_SHOWN]),
        "credentials": list(credential_list(actor=actor, source=row.pk)),
        "credential": CredentialForm(),
        "tests": list(contract_test_list(actor=actor, source=row.pk)),
        "shown": VERSIONS_SHOWN,
    }


def _reading(request: TenantRequest, rows: list[ToolSource]) -> set[int]:
    """Return which sources are being read at this moment."""
    keys = {f"source:{row.pk}": row.pk for row in rows}
    active = Job.objects.visible_to(request.actor).filter(
        kind=JOB_KIND, dedupe_key__in=keys, status__in=ACTIVE
    )
    return {keys[key] for key in active.values_list("dedupe_key", flat=True)}


def _kinds() -> dict[str, str]:
    """Return the kinds of sources that this installation has, in words."""
    found = {}
    for value, label in ToolSource.Kind.choices:
        try:
            kind_get(value)
        except SourceError:
            continue
        found[value] = str(label)
    return found


def _refuse(form: Any, error: DomainError) -> None:
    for name, said in error.data.get("fields", {"": error.message}).items():
        form.add_error(name if name in form.fields else None, said)
