"""Pages of assistants, under /t/<slug>/assistants/. They hold no rules: selectors read, services write."""

from __future__ import annotations

import json
import uuid
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.conversations.assistants import examples, services
from apps.conversations.assistants import selectors as reads
from apps.conversations.assistants.forms import MODES, AssistantForm, initial_of, posted_again
from apps.conversations.assistants.options import VersionSpec
from apps.conversations.models import Assistant, AssistantVersion
from apps.conversations.transcript import selectors
from apps.tools.toolset.selectors import toolkit_choices
from basics.errors import DomainError, Invalid
from web.requests import TenantRequest, allowed

_UNDO = "assistant_undo"


@require_GET
@allowed("assistant.read")
def home(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the assistants."""
    archived = request.GET.get("show") == "archived"
    context = {
        "assistants": list(reads.assistant_list(actor=request.actor, archived=archived)),
        "archived": archived,
        "modes": MODES,
        "can_write": request.actor.can("assistant.write"),
        "examples": [] if archived else _examples(request),
    }
    return render(request, "assistants/list.html", context)


@require_POST
@allowed("tool.manage")
def example(request: TenantRequest, tenant_slug: str, name: str) -> HttpResponse:
    """Add a worked example."""
    made = examples.example_install(tenant=request.tenant, actor=request.actor, name=name)
    messages.success(request, _("“%(name)s” is added and published.") % {"name": made.name})
    return redirect("assistants:detail", tenant_slug, made.pk)


@require_http_methods(["GET", "POST"])
@allowed("assistant.write")
def create(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Make an assistant."""
    return _form(request, None, VersionSpec(mode=_mode(request.GET.get("mode", ""), "tools")))


@require_http_methods(["GET", "POST"])
@allowed("assistant.write")
def edit(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Make the next version, from the newest one or the one that ``?from=`` names."""
    assistant = reads.assistant_get(actor=request.actor, pk=pk)
    versions = reads.version_list(actor=request.actor, assistant=assistant)
    number = version_number(request.GET.get("from", ""))
    base = versions.filter(number=number).first() if number else versions.first()
    return _form(request, assistant, VersionSpec() if base is None else reads.version_spec(base))


@require_GET
@allowed("assistant.read")
def detail(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show an assistant: what it does, a place to try a version, and its versions."""
    assistant = reads.assistant_get(actor=request.actor, pk=pk)
    versions = list(reads.version_list(actor=request.actor, assistant=assistant))
    live = next((v for v in versions if v.pk == assistant.published_id), None)
    shown = live or (versions[0] if versions else None)
    undo = request.session.pop(_UNDO, None)
    context = {
        "assistant": assistant,
        "versions": versions,
        "live": live,
        "shown": shown,
        "facts": reads.version_told(shown) if shown else {},
        "undo": undo if undo and undo.get("assistant") == pk else None,
        "modes": MODES,
        "client_id": uuid.uuid4(),
        "can_write": request.actor.can("assistant.write"),
    }
    return render(request, "assistants/detail.html", context)


@require_GET
@allowed("assistant.read")
def version(request: TenantRequest, tenant_slug: str, pk: int, number: int) -> HttpResponse:
    """Show what a version is, and in what it differs from another one: the one before it, or ``?against=``."""
    assistant = reads.assistant_get(actor=request.actor, pk=pk)
    versions = list(reads.version_list(actor=request.actor, assistant=assistant))
    shown = reads.version_get(actor=request.actor, assistant=assistant, number=number)
    against = version_number(request.GET.get("against", "")) or number - 1
    other = next((v for v in versions if v.number == against), None)
    context = {
        "assistant": assistant,
        "version": shown,
        "versions": [v for v in versions if v.number != number],
        "against": other,
        "changes": reads.version_changes(other, shown) if other else [],
        "facts": reads.version_told(shown),
        "schema": json.dumps(shown.output_schema, ensure_ascii=False, indent=2),
        "can_write": request.actor.can("assistant.write"),
    }
    return render(request, "assistants/version.html", context)


@require_POST
@allowed("assistant.write")
def publish(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Publish the version that is named, or none; the next page offers to undo it."""
    assistant = reads.assistant_get(actor=request.actor, pk=pk)
    before = assistant.published.number if assistant.published else 0
    number = version_number(request.POST.get("version", ""))
    who: dict[str, Any] = {"tenant": request.tenant, "actor": request.actor, "assistant": assistant}
    try:
        if number:
            services.version_publish(**who, number=number)
            said = _("Version %(number)s is published. People get it with their next question.") % {
                "number": number
            }
        else:
            services.version_unpublish(**who)
            said = _("“%(name)s” is no longer published.") % {"name": assistant.name}
    except DomainError as error:
        if error.status in (403, 404):
            raise
        messages.error(request, error.message)
    else:
        if request.POST.get("is_undo"):
            said = _("Undone.")
        else:
            request.session[_UNDO] = {"assistant": pk, "version": before}
        messages.success(request, said)
    return redirect("assistants:detail", tenant_slug, pk)


@require_POST
@allowed("assistant.write")
def rename(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Change name and description."""
    try:
        services.assistant_rename(
            tenant=request.tenant,
            actor=request.actor,
            assistant=reads.assistant_get(actor=request.actor, pk=pk),
            name=request.POST.get("name", ""),
            description=request.POST.get("description", ""),
        )
    except Invalid as error:
        messages.error(request, error.message)
    return redirect("assistants:detail", tenant_slug, pk)


@require_POST
@allowed("assistant.write")
def archive(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Archive an assistant, or restore it with ``do=restore``."""
    restore = request.POST.get("do") == "restore"
    act = services.assistant_restore if restore else services.assistant_archive
    assistant = reads.assistant_get(actor=request.actor, pk=pk)
    try:
        act(tenant=request.tenant, actor=request.actor, assistant=assistant)
    except Invalid as error:
        messages.error(request, error.message)
    else:
        said = (
            _("“%(name)s” is back.")
            if restore
            else _("“%(name)s” is archived: no one can choose it until it is restored.")
        )
        messages.success(request, said % {"name": assistant.name})
    return redirect("assistants:detail", tenant_slug, pk)


def _examples(request: TenantRequest) -> list[dict[str, Any]]:
    """Return the examples that this person can still add."""
    if not (request.actor.can("tool.manage") and request.actor.can("assistant.write")):
        return []
    shown = [{"id": name, **examples.example_read(name)} for name in examples.EXAMPLES]
    taken = reads.slugs_taken(actor=request.actor, slugs=[one["slug"] for one in shown])
    return [one for one in shown if one["slug"] not in taken]


def _form(request: TenantRequest, assistant: Assistant | None, base: VersionSpec) -> HttpResponse:
    is_post = request.method == "POST"
    mode = _mode(request.POST.get("switch") or request.POST.get("mode", ""), base.mode)
    shared: dict[str, Any] = {"mode": mode, "is_new": assistant is None, **_choices(request, assistant)}
    if not is_post:
        form = AssistantForm(initial=initial_of(base), **shared)
    elif "switch" in request.POST:
        form = AssistantForm(initial=posted_again(request.POST), **shared)
        is_post = False
    else:
        form = AssistantForm(request.POST, **shared)
        if form.is_valid():
            done = _save(request, form, assistant)
            if done is not None:
                return done
    context = {"form": form, "assistant": assistant, "mode": mode, "modes": MODES}
    return render(request, "assistants/form.html", context, status=422 if is_post else 200)


def _save(request: TenantRequest, form: AssistantForm, assistant: Assistant | None) -> HttpResponse | None:
    who: dict[str, Any] = {"tenant": request.tenant, "actor": request.actor}
    data = form.cleaned_data
    made: AssistantVersion | None = None
    try:
        if assistant is None:
            assistant = services.assistant_create(
                **who, name=data["name"], description=data["description"], spec=form.spec()
            )
        else:
            made = services.version_create(**who, assistant=assistant, spec=form.spec(), note=data["note"])
    except DomainError as error:
        if error.status == 403:
            raise
        form.refuse(error)
        return None
    number = 1 if made is None else made.number
    messages.success(request, _("Version %(number)s is saved. Try it, then publish it.") % {"number": number})
    return redirect("assistants:detail", request.tenant.slug, assistant.pk)


def _choices(request: TenantRequest, assistant: Assistant | None) -> dict[str, Any]:
    """Return what the form's lists offer."""
    own = None if assistant is None else assistant.pk
    others = reads.assistant_list(actor=request.actor).exclude(pk=own or 0)
    return {
        "models": [(m.id, m.label) for m in selectors.model_list(request.tenant)],
        "collections": [
            (c.pk, c.name) for c in selectors.scope_collections(actor=request.actor, conversation=None)
        ],
        "toolkits": toolkit_choices(actor=request.actor),
        "helpers": [(other.pk, other.name) for other in others],
    }


def _mode(given: str, otherwise: str) -> str:
    return given if given in MODES else otherwise


def version_number(text: str) -> int:
    """Return a version's number, 0 for anything else."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else 0
