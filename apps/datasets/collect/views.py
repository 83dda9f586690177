"""Pages that make rows of conversations and of feedback. They hold no rules: services read, hide and write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods

from apps.conversations.feedback.selectors import PREFERRED, REASONS, feedback_list
from apps.conversations.transcript.selectors import conversation_get
from apps.datasets.collect import services
from apps.datasets.collect.services import Collected
from apps.datasets.models import Dataset
from apps.datasets.rows import selectors
from apps.datasets.rows.page_values import number, numbers
from apps.datasets.rows.services import RowsAdded
from apps.datasets.versions.diffs import word_diff
from basics.errors import Invalid
from basics.texts import number_told
from runs.providers import model_label
from web.requests import TenantRequest, allowed

PER_PAGE, CHOICES = 25, 200


@require_http_methods(["GET", "POST"])
@allowed("dataset.write")
def from_conversation(request: TenantRequest, tenant_slug: str, conversation_pk: int) -> HttpResponse:
    """Show the answers of one of one's conversations as rows, what is hidden in them, and add those that are chosen."""
    conversation = conversation_get(actor=request.actor, pk=conversation_pk)
    if request.method == "POST":

        def add(dataset: Dataset, chosen: Sequence[int]) -> RowsAdded:
            return services.rows_collect(
                tenant=request.tenant,
                actor=request.actor,
                dataset=dataset,
                conversation=conversation,
                turn_pks=chosen,
            )

        return _added(request, tenant_slug, add) or redirect(request.get_full_path())
    found = services.turns_collect(actor=request.actor, conversation_pk=conversation_pk)
    chosen = numbers(request.GET.getlist("turn"))
    context = _context(request) | {
        "conversation": conversation,
        "lines": [_line(one, one.turn_id, one.turn_id in chosen or not chosen) for one in found],
    }
    return render(request, "datasets/collect_conversation.html", context)


@require_http_methods(["GET", "POST"])
@allowed("dataset.write")
def from_feedback(request: TenantRequest, tenant_slug: str) -> HttpResponse:
    """List judged answers with their reasons as rows, and add those that are chosen."""
    if request.method == "POST":

        def add(dataset: Dataset, chosen: Sequence[int]) -> RowsAdded:
            return services.feedback_rows_collect(
                tenant=request.tenant, actor=request.actor, dataset=dataset, feedback_pks=chosen
            )

        return _added(request, tenant_slug, add) or redirect(request.get_full_path())
    verdict, reason = request.GET.get("verdict", ""), request.GET.get("reason", "")
    verdict = verdict if verdict in REASONS else ""
    reasons = {code: text for v in REASONS if verdict in ("", v) for code, text in REASONS[v].items()}
    rows = feedback_list(actor=request.actor, verdict=verdict)
    if reason in reasons:
        rows = rows.filter(reason=reason)
    if before := number(request.GET.get("before", "")):
        rows = rows.filter(pk__lt=before)
    pks = list(rows.values_list("pk", flat=True)[: PER_PAGE + 1])
    found = services.feedback_collect(actor=request.actor, feedback_pks=pks[:PER_PAGE])
    context = _context(request)
    kept = {"verdict": verdict, "reason": reason, "dataset": context["dataset_pk"]}
    context |= {
        "lines": [_line(one, one.feedback.pk, False) for one in found if one.feedback],
        "verdict": verdict,
        "reason": reason,
        "reasons": reasons,
        "is_filtered": bool(verdict or reason),
        "is_later": bool(before),
        "query": urlencode({k: v for k, v in kept.items() if v}),
        "older": pks[PER_PAGE - 1] if len(pks) > PER_PAGE else None,
    }
    return render(request, "datasets/collect_feedback.html", context)


def _context(request: TenantRequest) -> dict[str, Any]:
    rows = selectors.dataset_list(actor=request.actor)
    return {
        "datasets": list(rows.values_list("pk", "name")[:CHOICES]),
        "dataset_pk": number(request.GET.get("dataset", "")),
    }


def _line(one: Collected, pk: int, is_chosen: bool) -> dict[str, Any]:
    said: Any = one.feedback  # of ``feedback_list``, which adds the other model
    reason = REASONS.get(one.verdict, {}).get(said.reason, "") if said else ""
    if said and said.reason == PREFERRED and said.other_model:
        reason = _("Better than the answer by %(model)s") % {"model": model_label(said.other_model)}
    return {
        "pk": pk,
        "one": one,
        "is_chosen": is_chosen,
        "reason": reason,
        "changes": [(name, list(word_diff(old, new))) for name, old, new in one.changed],
    }


def _added(
    request: TenantRequest, tenant_slug: str, add: Callable[[Dataset, Sequence[int]], RowsAdded]
) -> HttpResponse | None:
    """Add what was chosen and go to the dataset; None when it could not be, with a message that says why."""
    pk = number(request.POST.get("dataset", ""))
    try:
        if not pk:
            raise Invalid("dataset_needed", _("Choose a dataset for the rows."))
        dataset = selectors.dataset_get(actor=request.actor, pk=pk)
        made = add(dataset, numbers(request.POST.getlist("pick")))
    except Invalid as error:
        messages.error(request, error.message)
        return None
    new, known = len(made.created), made.duplicates
    told = [
        ngettext("%(count)s new, waiting for review.", "%(count)s new, waiting for review.", new)
        % {"count": number_told(new)}
    ]
    if known:
        told.append(
            ngettext("%(count)s was already there.", "%(count)s were already there.", known)
            % {"count": number_told(known)}
        )
    messages.success(request, " ".join(told))
    return redirect("datasets:review", tenant_slug, pk)
