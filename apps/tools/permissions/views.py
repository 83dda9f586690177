"""Rules and toolkits: lists and forms. They hold no rules of their own: selectors read, services write."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.collections.models import Collection
from apps.tools.catalog.forms import ToolkitForm
from apps.tools.catalog.selectors import catalog_read
from apps.tools.models import ToolGrant
from apps.tools.permissions.forms import KINDS, ConditionRows, GrantForm
from apps.tools.permissions.matrix_views import undo_token
from apps.tools.permissions.reach import grant_warning, grant_warnings
from apps.tools.permissions.services import GrantsChange, grants_change
from apps.tools.permissions.subjects import Subjects, subjects_read
from apps.tools.policy.sentences import condition_words, conditions_of, grant_sentence, subject_words
from apps.tools.toolkits.services import toolkit_delete, toolkit_set
from apps.tools.toolset.selectors import grant_get, grant_list, toolkit_list
from basics.errors import DomainError, Invalid
from web.forms import add_refusal
from web.requests import TenantRequest, allowed


@require_GET
@allowed("tool.manage")
def grants(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the rules, in the order in which they were made."""
    subjects = subjects_read(actor=request.actor)
    rows = list(grant_list(actor=request.actor))
    warnings = grant_warnings(actor=request.actor, grants=rows)
    context = {
        "tab": "permissions",
        "part": "grants",
        "grants": [_shown(row, subjects) | {"warning": warnings.get(row.pk, "")} for row in rows],
        "undo": request.session.pop("tools_undo", ""),
    }
    return render(request, "tools/grants.html", context)


@require_http_methods(["GET", "POST"])
@allowed("tool.manage")
def grant_new(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Add a rule; the address may name its target and subject."""
    initial = {k: request.GET[k] for k in ("target_kind", "target", "subject") if k in request.GET}
    return _form(request, initial, ConditionRows(), None)


@require_http_methods(["GET", "POST"])
@allowed("tool.manage")
def grant_edit(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Put another rule in the place of one."""
    grant = grant_get(actor=request.actor, pk=pk)
    return _form(request, GrantForm.initial_of(grant), ConditionRows.of(grant.arguments), grant)


@require_POST
@allowed("tool.manage")
def grant_remove(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Take a rule back; the next page offers to give it again."""
    change = grants_change(tenant=request.tenant, actor=request.actor, remove=[pk])
    return _done(request, change, _("Rule %(rule)s removed.") % {"rule": pk})


@require_http_methods(["GET", "POST"])
@allowed("tool.manage")
def toolkits(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the toolkits; POST makes one, or replaces what the one of that name contains."""
    rows = list(toolkit_list(actor=request.actor))
    named = next((kit for kit in rows if kit.name == request.GET.get("name")), None)
    form = ToolkitForm(request.POST or None, initial=ToolkitForm.initial_of(named))
    if request.method == "POST" and form.is_valid():
        try:
            kit = toolkit_set(tenant=request.tenant, actor=request.actor, **form.values())
        except Invalid as error:
            add_refusal(form, error)
        else:
            messages.success(request, _("The toolkit “%(name)s” is saved.") % {"name": kit.name})
            return redirect("tools:toolkits", tenant_slug)
    context = {
        "tab": "permissions",
        "part": "toolkits",
        "toolkits": rows,
        "named": named,
        "form": form,
        "tool_names": [t.name for t in catalog_read(actor=request.actor)],
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "tools/toolkits.html", context, status=status)


@require_POST
@allowed("tool.manage")
def toolkit_remove(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Delete a toolkit that no rule uses."""
    try:
        toolkit_delete(tenant=request.tenant, actor=request.actor, pk=pk)
    except Invalid as error:
        messages.error(request, error.message)
    else:
        messages.success(request, _("Toolkit deleted."))
    return redirect("tools:toolkits", tenant_slug)


def _form(
    request: TenantRequest, initial: dict[str, Any], conditions: ConditionRows, grant: ToolGrant | None
) -> HttpResponse:
    subjects = subjects_read(actor=request.actor)
    rows = Collection.objects.visible_to(request.actor).order_by("name").values_list("pk", "name")
    kits = {kit.name: kit.pk for kit in toolkit_list(actor=request.actor)}
    is_post = request.method == "POST"
    form = GrantForm(
        request.POST if is_post else None, initial=initial, subjects=subjects, collections=list(rows)
    )
    extra = 0
    if is_post:
        conditions = ConditionRows.posted(request.POST)
        if "add_condition" in request.POST:
            form = GrantForm(initial=request.POST.dict(), subjects=subjects, collections=list(rows))
            extra, is_post = 1, False
        else:
            stated = conditions.conditions()
            if form.is_valid() and not conditions.problems:
                terms = form.terms(kits) | {"arguments": stated}
                done = _save(request, form, terms, grant)
                if done is not None:
                    return done
    tools = catalog_read(actor=request.actor)
    groups = sorted({t.group for t in tools} | {t.source for t in tools})
    context = {
        "tab": "permissions",
        "part": "grants",
        "form": form,
        "grant": grant,
        "conditions": conditions.shown(extra),
        "kinds": {kind: words for kind, (words, _) in KINDS.items()},
        "targets": [*(t.name for t in tools), *groups, *kits],
        "arguments": _argument_names(tools, form["target"].value()),
    }
    return render(request, "tools/grant.html", context, status=422 if is_post else 200)


def _save(
    request: TenantRequest, form: GrantForm, terms: dict[str, Any], grant: ToolGrant | None
) -> HttpResponse | None:
    remove = [] if grant is None else [grant.pk]
    if grant is not None:
        terms |= {"replaces": grant.pk}
    try:
        change = grants_change(tenant=request.tenant, actor=request.actor, remove=remove, add=[terms])
    except DomainError as error:
        if error.status == 403:
            raise
        form.refuse(error)
        return None
    if warning := grant_warning(actor=request.actor, grant=change.added[0]):
        messages.warning(request, warning)
    done = _("Rule %(rule)s is saved.") % {"rule": change.added[0].pk}
    return _done(request, change, done)


def _done(request: TenantRequest, change: GrantsChange, said: str) -> HttpResponse:
    messages.success(request, said)
    request.session["tools_undo"] = undo_token(request, change)
    return redirect("tools:grants", request.tenant.slug)


def _shown(row: ToolGrant, subjects: Subjects) -> dict[str, Any]:
    return {
        "row": row,
        "sentence": grant_sentence(row, subjects.names),
        "who": subject_words(row.subject_kind, row.subject, subjects.names),
        "conditions": [condition_words(c) for c in conditions_of(row)],
        "is_over": row.expires_at is not None and row.expires_at <= timezone.now(),
    }


def _argument_names(tools: list[Any], target: Any) -> list[str]:
    """Return the arguments of the tool that a rule is about, for the builder to offer."""
    named = next((t for t in tools if t.name == target), None)
    return list(named.tool.parameters.get("properties", {})) if named is not None else []
