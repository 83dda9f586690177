"""Contract tests of a tool: written, run, removed."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods

from apps.tools.sources import contract_tests
from apps.tools.sources.forms import ContractTestForm
from apps.tools.sources.selectors import contract_test_get, version_list
from basics.errors import Conflict, Invalid, Missing
from web.requests import TenantRequest, allowed


@require_http_methods(["GET", "POST"])
@allowed("tool.manage")
def test_new(request: TenantRequest, tenant_slug: str, name: str) -> HttpResponse:
    """Attach a test to a tool."""
    if not version_list(actor=request.actor, tool_name=name).exists():
        raise Missing("tool")
    return _form(request, name, {}, None)


@require_http_methods(["GET", "POST"])
@allowed("tool.manage")
def test(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Change a test, run it, or remove it."""
    row = contract_test_get(actor=request.actor, pk=pk)
    who: dict[str, Any] = {"tenant": request.tenant, "actor": request.actor, "pk": pk}
    do = request.POST.get("do")
    if do == "delete":
        contract_tests.contract_test_delete(**who)
        messages.success(request, _("The test “%(name)s” is removed.") % {"name": row.name})
        return redirect("tools:tool", tenant_slug, row.tool_name)
    if do == "run":
        try:
            ran = contract_tests.contract_test_run(**who)
        except Conflict as error:
            messages.error(request, error.message)
        else:
            if ran.last_problem:
                messages.error(
                    request,
                    _("“%(name)s” failed: %(problem)s") % {"name": row.name, "problem": ran.last_problem},
                )
            else:
                messages.success(request, _("“%(name)s” passed.") % {"name": row.name})
        return redirect("tools:contract-test", tenant_slug, pk)
    return _form(request, row.tool_name, ContractTestForm.initial_of(row), row)


def _form(request: TenantRequest, tool_name: str, initial: dict[str, Any], row: Any) -> HttpResponse:
    form = ContractTestForm(request.POST or None, initial=initial)
    if row is not None:
        form.fields["name"].disabled = True  # another name is another test
    if request.method == "POST" and form.is_valid():
        try:
            saved = contract_tests.contract_test_set(
                tenant=request.tenant, actor=request.actor, tool_name=tool_name, **form.values()
            )
        except Invalid as error:
            for field, said in error.data.get("fields", {"": error.message}).items():
                form.add_error(field if field in form.fields else None, said)
        else:
            messages.success(request, _("Saved."))
            return redirect("tools:contract-test", request.tenant.slug, saved.pk)
    status = 422 if request.method == "POST" else 200
    context = {"tab": "sources", "form": form, "test": row, "tool_name": tool_name}
    return render(request, "tools/contract_test.html", context, status=status)
