"""Pages of one document beside its viewer: description, versions, access, figures; and actions on many at once."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from apps.collections.chunks.statistics import chunk_statistics
from apps.collections.display import selectors
from apps.collections.display.page_parts import clean, section
from apps.collections.display.waiting import waiting_note
from apps.collections.documents import access as documents_access
from apps.collections.documents import services, summaries, type_rules, versions
from apps.collections.models import Document
from basics.errors import DomainError
from tenancy.models import Role
from tenancy.selectors import member_list
from web.requests import TenantRequest, allowed

BULK_MOST = 500


@require_GET
@allowed("collection.read")
def about(request: TenantRequest, tenant_slug: str, pk: int, doc_pk: int) -> HttpResponse:
    """Show what is known of a document: description, versions, who may see it, and the counts of its chunks."""
    document = selectors.document_get(actor=request.actor, pk=doc_pk, collection_pk=pk)
    waiting_note([document])
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    entries = selectors.document_access_list(actor=request.actor, document=document)
    may_limit = request.actor.can("collection.delete")
    context = section(request, collection, "documents") | {
        "document": document,
        "versions": selectors.document_versions(actor=request.actor, document=document),
        "entries": entries,
        "roles": Role.choices,
        "roles_chosen": [e.role for e in entries if e.role],
        "users_chosen": [e.user_id for e in entries if e.user_id],
        "members": list(member_list(actor=request.actor)) if may_limit else [],
        "may_limit": may_limit,
        "facets": selectors.document_facets(actor=request.actor, collection=collection),
        "attributes": json.dumps(document.attributes, indent=1, ensure_ascii=False),
        "figures": chunk_statistics(actor=request.actor, collection=collection, document=document),
        "ledger": selectors.document_ledger(actor=request.actor, document=document),
    }
    return render(request, "collections/document_about.html", context)


def _act(
    request: TenantRequest,
    tenant_slug: str,
    document: Document,
    service: Callable[..., Any],
    done: str,
    **more: Any,
) -> HttpResponse:
    """Let a service do something to a document, and say what came of it."""
    try:
        service(tenant=request.tenant, actor=request.actor, document=document, **more)
    except DomainError as error:
        told = [" ".join(texts) for texts in (error.data.get("fields") or {}).values()]
        messages.error(
            request, " ".join([_("Nothing was changed: %(message)s") % {"message": error.message}, *told])
        )
    else:
        messages.success(request, done)
    return redirect("collections:document-about", tenant_slug, document.collection_id, document.pk)


@require_POST
@allowed("document.write")
def describe(request: TenantRequest, tenant_slug: str, pk: int, doc_pk: int) -> HttpResponse:
    """Set type, tags, date and the team's own metadata."""
    document = selectors.document_get(actor=request.actor, pk=doc_pk, collection_pk=pk)
    try:
        attributes = json.loads(request.POST.get("attributes", "").strip() or "{}")
        dated = request.POST.get("dated", "").strip()
        values = {
            "tags": [t for tag in request.POST.get("tags", "").split(",") if (t := tag.strip())],
            "dated": date.fromisoformat(dated) if dated else None,
            "attributes": attributes,
        }
    except (ValueError, RecursionError):
        messages.error(
            request,
            _(
                "Nothing was changed. The date must look like 2026-11-20, and the metadata must be a JSON "
                "object."
            ),
        )
        return redirect("collections:document-about", tenant_slug, pk, doc_pk)
    kind = clean(request.POST.get("document_type", ""))
    if kind != document.document_type:
        values["document_type"] = kind
    done = _("Description saved.")
    return _act(request, tenant_slug, document, type_rules.document_describe, done, **values)


@require_POST
@allowed("collection.delete")
def access(request: TenantRequest, tenant_slug: str, pk: int, doc_pk: int) -> HttpResponse:
    """Limit a document to roles and members, or open it to the workspace."""
    document = selectors.document_get(actor=request.actor, pk=doc_pk, collection_pk=pk)
    is_restricted = request.POST.get("is_restricted") == "true"
    users = [int(u) for u in request.POST.getlist("users") if u.isdecimal() and len(u) < 10]
    return _act(
        request,
        tenant_slug,
        document,
        documents_access.document_access_set,
        _("Only the people you named can see it now.")
        if is_restricted
        else _("The whole workspace can see it now."),
        is_restricted=is_restricted,
        roles=request.POST.getlist("roles") if is_restricted else (),
        users=users if is_restricted else (),
    )


@require_POST
@allowed("document.write")
def restore(request: TenantRequest, tenant_slug: str, pk: int, doc_pk: int) -> HttpResponse:
    """Make an earlier version the current one."""
    document = selectors.document_get(actor=request.actor, pk=doc_pk, collection_pk=pk)
    done = _("Version %(version)s is being read again and becomes the current one when it is ready.") % {
        "version": document.version
    }
    return _act(request, tenant_slug, document, versions.document_restore, done)


@require_POST
@allowed("document.write")
def reindex(request: TenantRequest, tenant_slug: str, pk: int, doc_pk: int) -> HttpResponse:
    """Read a document again."""
    document = selectors.document_get(actor=request.actor, pk=doc_pk, collection_pk=pk)
    done = _(
        "The document is being read again. The current version stays searchable until the new one is ready."
    )
    return _act(request, tenant_slug, document, versions.document_reindex, done)


@require_POST
@allowed("document.write")
def summarise(request: TenantRequest, tenant_slug: str, pk: int, doc_pk: int) -> HttpResponse:
    """Make a document's key points and links again."""
    document = selectors.document_get(actor=request.actor, pk=doc_pk, collection_pk=pk)
    done = _("Key points and links are being created again. Text, search and citations stay as they are.")
    return _act(request, tenant_slug, document, summaries.document_summarise_again, done)


@require_POST
@allowed("document.write")
def move(request: TenantRequest, tenant_slug: str, pk: int, doc_pk: int) -> HttpResponse:
    """Give a document another path."""
    document = selectors.document_get(actor=request.actor, pk=doc_pk, collection_pk=pk)
    done = _("Moved, with all its versions.")
    path = request.POST.get("path", "")
    return _act(request, tenant_slug, document, versions.document_move, done, path=path)


@require_POST
@allowed("document.write")
def bulk(request: TenantRequest, tenant_slug: str, pk: int) -> HttpResponse:
    """Do one thing to each chosen document; each stands for itself, and what was refused is said."""
    collection = selectors.collection_get(actor=request.actor, pk=pk)
    chosen = {int(d) for d in request.POST.getlist("documents") if d.isdecimal() and len(d) < 19}
    rows = Document.objects.visible_to(request.actor).filter(collection=collection)
    documents = list(rows.filter(pk__in=sorted(chosen)[:BULK_MOST]).order_by("pk"))
    tag = clean(request.POST.get("tag", ""))
    common: dict[str, Any] = {"tenant": request.tenant, "actor": request.actor}
    actions: dict[str, Callable[[Document], Any]] = {
        "delete": lambda d: services.document_delete(**common, document=d),
        "reindex": lambda d: versions.document_reindex(**common, document=d),
        "retry": lambda d: services.document_retry(**common, document=d),
        "tag": lambda d: type_rules.document_describe(**common, document=d, tags=[*d.tags, tag]),
        "untag": lambda d: type_rules.document_describe(
            **common, document=d, tags=[t for t in d.tags if t != tag]
        ),
    }
    name = request.POST.get("action", "")
    act = actions.get(name)
    if act is None or not documents:
        messages.error(request, _("Nothing was done. Choose documents and an action."))
        return redirect("collections:detail", tenant_slug, pk)
    done, refused = 0, []
    for document in documents:
        try:
            act(document)
            done += 1
        except DomainError as error:
            refused.append(f"{document.name}: {error.message}")
    if done:
        messages.success(request, _bulk_told(name, done, tag))
    if refused:
        more = [_("And %(count)s more.") % {"count": len(refused) - 3}] if len(refused) > 3 else []
        messages.error(request, " ".join([*refused[:3], *more]))
    return redirect("collections:detail", tenant_slug, pk)


def _bulk_told(action: str, count: int, tag: str) -> str:
    """Say how many documents an action was done to."""
    texts = {
        "delete": ngettext("%(count)s document deleted.", "%(count)s documents deleted.", count),
        "reindex": ngettext(
            "%(count)s document to be read again.", "%(count)s documents to be read again.", count
        ),
        "retry": ngettext("%(count)s document queued again.", "%(count)s documents queued again.", count),
        "tag": ngettext(
            "%(count)s document tagged “%(tag)s”.", "%(count)s documents tagged “%(tag)s”.", count
        ),
        "untag": ngettext(
            "%(count)s document without “%(tag)s”.", "%(count)s documents without “%(tag)s”.", count
        ),
    }
    return texts[action] % {"count": count, "tag": tag}
