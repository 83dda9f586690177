"""Pages of projects, under /t/<slug>/chat/projects/. They hold no rules: selectors read, services write."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST
from django.views.decorators.vary import vary_on_headers

from apps.conversations.display.days import days_grouped
from apps.conversations.models import Project, Sharing
from apps.conversations.projects import selectors, services
from apps.conversations.projects.forms import ProjectForm
from apps.conversations.transcript.selectors import BUSY, live_state, scope_collections
from apps.conversations.turns.undo import undo_keep, undo_take
from basics.errors import DomainError, Invalid
from web.reader_zone import reader_zone
from web.requests import TenantRequest, allowed

PAGE = 30


@require_GET
@allowed("conversation.read")
def index(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List the projects, with a field to create one."""
    context = {
        "projects": list(selectors.project_list(actor=request.actor)),
        "can_write": request.actor.can("conversation.write"),
    }
    return render(request, "projects/list.html", context)


@require_GET
@allowed("conversation.read")
def side(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Return the projects as the side bar lists them."""
    context = {"projects": list(selectors.project_list(actor=request.actor))}
    return render(request, "projects/_side.html", context)


@require_GET
@allowed("conversation.write")
def choices(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Return the projects that a conversation can be moved to, as options; the present one of ``?conversation=`` is chosen."""
    pk = request.GET.get("conversation", "")
    known = int(pk) if pk.isascii() and pk.isdigit() and len(pk) < 19 else 0
    context = {
        "projects": list(selectors.project_list(actor=request.actor)),
        "present": selectors.project_present(actor=request.actor, conversation_pk=known),
    }
    return render(request, "projects/_choices.html", context)


@require_POST
@allowed("conversation.write")
def create(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """Create a project by its name alone."""
    name = request.POST.get("name", "")
    try:
        row = services.project_create(tenant=request.tenant, actor=request.actor, name=name)
    except Invalid as error:
        messages.error(request, error.message)
        return redirect("conversations:projects", tenant_slug)
    return redirect("conversations:project", tenant_slug, row.pk)


@vary_on_headers("HX-Request")
@require_GET
@allowed("conversation.read")
def detail(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show a project with one's own conversations in it; the list alone when it asks for itself."""
    project = selectors.project_get(actor=request.actor, pk=pk)
    archived = request.GET.get("show") == "archived"
    rows = selectors.project_conversations(actor=request.actor, project=project, archived=archived)
    page = Paginator(rows, PAGE).get_page(request.GET.get("page"))
    shown: list[dict[str, Any]] = [{"row": row, "state": live_state(row)} for row in page]
    zone = reader_zone(request)
    context: dict[str, Any] = {
        "project": project,
        "archived": archived,
        "page_obj": page,
        "query": "show=archived" if archived else "",
        "groups": days_grouped(
            shown,
            used_at=lambda line: line["row"].updated_at,
            is_pinned=lambda line: line["row"].is_pinned,
            zone=zone,
        ),
        "zone": zone,
        "is_busy": any(line["state"] in BUSY for line in shown),
        "can_write": request.actor.can("conversation.write"),
    }
    if request.htmx:
        return render(request, "conversations/_convs.html", context)
    projects = list(selectors.project_list(actor=request.actor)) if context["can_write"] else []
    context |= {"projects": projects, "undo": undo_take(request)}
    return render(request, "projects/detail.html", context)


@require_http_methods(["GET", "POST"])
@allowed("conversation.write")
def edit(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Show and change what a project is made of; only those who may change it see the form."""
    project = selectors.project_get(actor=request.actor, pk=pk)
    services.editing_allowed(project)
    form = _form(request, project)
    if request.method == "POST" and form.is_valid():
        try:
            services.project_change(
                tenant=request.tenant, actor=request.actor, project=project, **form.values()
            )
        except DomainError as error:
            if error.status in (403, 404):
                raise
            form.refuse(error)
        else:
            messages.success(request, _("Project saved."))
            return redirect("conversations:project", tenant_slug, pk)
    context = {"project": project, "form": form}
    return render(request, "projects/form.html", context, status=422 if form.errors else 200)


@require_POST
@allowed("conversation.write")
def delete(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Delete a project; ``conversations`` says whether one's own in it are kept."""
    project = selectors.project_get(actor=request.actor, pk=pk)
    deleted = services.project_delete(
        tenant=request.tenant,
        actor=request.actor,
        project=project,
        conversations=request.POST.get("conversations", services.KEEP),
    )
    messages.success(request, _("The project “%(name)s” is deleted.") % {"name": project.name})
    if not deleted:
        return redirect("conversations:projects", tenant_slug)
    undo_keep(request, "delete", deleted)
    return redirect("conversations:list", tenant_slug)


def _form(request: TenantRequest, project: Project) -> ProjectForm:
    initial = {
        "name": project.name,
        "instructions": project.instructions,
        "collections": [part.collection_id for part in project.scope.all()],
        "sharing": project.sharing,
        "members": [part.user_id for part in project.members.all()],
    }
    people = selectors.people_choices(actor=request.actor)
    if project.sharing == Sharing.MEMBERS and not people:
        people = [part.user for part in project.members.all()]
    collections = scope_collections(actor=request.actor, conversation=None)
    form = ProjectForm(
        request.POST or None,
        initial=initial,
        collections=[(row.pk, row.name) for row in collections],
        people=[(person.pk, str(person)) for person in people if person.pk != project.user_id],
    )
    if "collections" in form.fields and not project.searches_all and not initial["collections"]:
        # An empty choice stays what it is, and doesn't mean all here.
        form.fields["collections"].help_text = _("None (the chosen ones were deleted)")
    return form
