"""One tool: what it is, who may call it and why, and a form to try a call of it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from typing import Any

from django.http import HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from apps.collections.models import Collection
from apps.tools.calls.services import MAX_ARGUMENTS, calls_execute
from apps.tools.catalog.selectors import Listed, catalog_get
from apps.tools.limits.selectors import tool_limits
from apps.tools.models import ToolVersion
from apps.tools.permissions.dry_run import call_try
from apps.tools.permissions.matrix import permission_matrix
from apps.tools.permissions.subjects import subjects_read
from apps.tools.playground.results import result_view
from apps.tools.playground.schema_form import SchemaForm, items_resized
from apps.tools.policy.sentences import grant_sentence
from apps.tools.sources.selectors import contract_test_list, version_list
from apps.tools.toolset.selectors import grant_list
from basics.errors import Invalid
from basics.texts import number_told
from runs.call_log import CallChoice, call_log
from tenancy.models import AuditEvent
from toolloop.messages import ToolCall
from web.requests import TenantRequest, allowed

_RECENT = 10


@require_GET
@allowed("tool.run")
def tool(request: TenantRequest, tenant_slug: str, name: str) -> HttpResponse:
    """Show one tool."""
    listed = catalog_get(actor=request.actor, name=name)
    form = SchemaForm(listed.tool.parameters, value=_example(listed))
    context = _page(request, listed) | _try_context(request, listed, form, {})
    return render(request, "tools/tool.html", context)


@require_POST
@allowed("tool.run")
def tool_try(request: TenantRequest, tenant_slug: str, name: str) -> HttpResponse:
    """Check a call against the policy, run it, or only redraw its form; answers htmx with the form and the outcome."""
    listed = catalog_get(actor=request.actor, name=name)
    sent = {key: str(value) for key, value in request.POST.items()}
    if sum(map(len, sent.values())) > MAX_ARGUMENTS:
        raise Invalid(
            "invalid", _("Arguments have at most %(most)s characters.") % {"most": number_told(MAX_ARGUMENTS)}
        )
    do, _colon, rest = sent.get("do", "").partition(":")
    outcome: dict[str, Any] = {}
    json_text = sent.get("json") if sent.get("mode") == "json" else None
    if do in ("add", "remove"):
        pointer, _colon, index = rest.partition(":")
        position = int(index) if index.isascii() and index.isdecimal() and len(index) < 4 else None
        if do == "remove" and position is None:
            raise Invalid("invalid", _("Choose which item to remove."))
        sent = items_resized(sent, pointer, position if do == "remove" else None)
    form, json_error = _arguments(listed, sent, json_text)
    is_json = (json_text is not None and do != "form") or do == "json"
    if json_text is not None and json_error:
        is_json = True
    elif do in ("check", "run"):
        is_fit = form.is_valid()
        if is_json and not is_fit:
            json_error = " ".join(
                [*form.problems, *(f"{f.at}: {e}" for f in form.field.walk() for e in f.errors)]
            )
        if is_fit:
            outcome = (_checked if do == "check" else _ran)(request, listed, form.arguments, sent)
    context = _try_context(request, listed, form, sent) | outcome
    context |= {"is_json": is_json, "json_error": json_error}
    if is_json:
        context["json_text"] = json_text if json_text is not None else _pretty(form.arguments)
    if request.htmx:
        return render(request, "tools/_try.html", context)
    return render(request, "tools/tool.html", _page(request, listed) | context)


def _arguments(listed: Listed, sent: Mapping[str, str], json_text: str | None) -> tuple[SchemaForm, str]:
    """Return the form of what was sent, and what is wrong with it as JSON, where it came as that."""
    schema = listed.tool.parameters
    if json_text is None:
        return SchemaForm(schema, sent=sent), ""
    try:
        value = json.loads(json_text or "{}")
    except (ValueError, RecursionError) as error:
        return SchemaForm(schema), _("This isn't valid JSON: %(error)s.") % {"error": error}
    if not isinstance(value, dict):
        return SchemaForm(schema), _("Arguments must be one JSON object.")
    form = SchemaForm(schema, value=value)
    form.replace(value)
    return form, ""


def _checked(
    request: TenantRequest, listed: Listed, arguments: dict[str, Any], sent: Mapping[str, str]
) -> dict[str, Any]:
    tried = call_try(
        actor=request.actor,
        tool=listed.name,
        arguments=arguments,
        collections=_collections(sent),
        subject=sent.get("subject", ""),
    )
    return {"tried": tried}


def _ran(
    request: TenantRequest, listed: Listed, arguments: dict[str, Any], sent: Mapping[str, str]
) -> dict[str, Any]:
    raw = json.dumps(arguments, ensure_ascii=False)
    done = calls_execute(
        tenant=request.tenant,
        actor=request.actor,
        calls=[ToolCall(f"try-{uuid.uuid4().hex[:12]}", listed.name, arguments, raw)],
        collections=_collections(sent),
    )
    result = done.results[0]
    if result is None:
        return {"waiting": done.waiting}
    payload = "" if result.payload is None else _pretty(result.payload)
    return {"ran": done.run, "result": result, "view": result_view(result.content), "payload": payload}


def _collections(sent: Mapping[str, str]) -> list[int] | None:
    text = sent.get("collection", "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise Invalid("invalid", _("Identify the collection by its id."))
    return [int(text)]


def _example(listed: Listed) -> dict[str, Any]:
    examples = listed.tool.parameters.get("examples")
    found = examples[0] if isinstance(examples, list) and examples else {}
    return found if isinstance(found, dict) else {}


def _pretty(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _try_context(
    request: TenantRequest, listed: Listed, form: SchemaForm, sent: Mapping[str, str]
) -> dict[str, Any]:
    actor = request.actor
    rows = Collection.objects.visible_to(actor).order_by("name").values_list("pk", "name")
    return {
        "listed": listed,
        "form": form,
        "sent": sent,
        "collections": list(rows) if actor.can("collection.read") else [],
        "subjects": subjects_read(actor=actor) if actor.can("tool.manage") else None,
    }


def _page(request: TenantRequest, listed: Listed) -> dict[str, Any]:
    """Return what the page says about a tool beside the form."""
    actor, name = request.actor, listed.name
    calls = call_log(actor=actor, choice=CallChoice(tool=name)).select_related("run__user")
    context = {
        "tab": "catalog",
        "schema": SchemaForm(listed.tool.parameters).field,
        "raw_schema": _pretty(dict(listed.tool.parameters)),
        "calls": list(calls[:_RECENT]),
    }
    if not actor.can("tool.manage"):
        return context
    names = subjects_read(actor=actor).names
    matrix = permission_matrix(actor=actor, groups={}, tools=[listed.facts])
    about = {c.rule.pk for row in matrix.rows for c in row.cells if c.rule is not None}
    versions = version_list(actor=actor, tool_name=name)
    changes = AuditEvent.objects.visible_to(actor).filter(action__startswith="tool_entry.", object_name=name)
    return context | {
        "who": [
            (c, grant_sentence(c.rule, names) if c.rule else "") for row in matrix.rows for c in row.cells
        ],
        "grants": [
            (g, grant_sentence(g, names))
            for g in grant_list(actor=actor)
            if g.pk in about or (g.target_kind == "tool" and g.target == name)
        ],
        "limits": tool_limits(actor=actor, name=name, group=listed.facts.group),
        "versions": list(versions[:_RECENT]),
        "waiting": versions.filter(state=ToolVersion.State.WAITING).first(),
        "tests": list(contract_test_list(actor=actor, tool_name=name)),
        "changes": list(changes.order_by("-pk")[:_RECENT]),
    }
