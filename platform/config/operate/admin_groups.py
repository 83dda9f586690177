"""How the admin's index is laid out: by what an operator does, in the words of the portal, with what needs a person on top."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from django.urls import reverse
from django.utils import timezone
from django.utils.text import capfirst

from apps.collections.models import Document, DocumentStatus
from apps.tools.models import ToolVersion
from audit.models import AuditStream
from jobs.models import Job, JobStatus
from runs.models import DecisionStatus, PendingDecision
from webhooks.models import Webhook

FAILED_DAYS = 7

GROUPS: Final[tuple[tuple[str, str, tuple[str, ...]], ...]] = (
    ("people", "People and workspaces", ("tenancy", "sso", "erasure", "account", "mfa", "notices")),
    ("work", "Background work", ("jobs", "batches")),
    ("money", "Money", ("budgets",)),
    ("safety", "Audit and what goes out", ("audit", "webhooks")),
    ("documents", "Collections and documents", ("collections",)),
    ("answers", "Answers and runs", ("conversations", "runs")),
    ("tools", "Tools", ("tools",)),
    ("quality", "Datasets and evaluations", ("datasets", "evaluations")),
)
"""Key, heading and apps of each group, in the order of the page."""
MOVED: Final = {
    "tenancy.auditevent": "safety",
    "tenancy.apikey": "safety",
    "tenancy.outgoinghost": "safety",
    "tenancy.providercredential": "safety",
    "runs.usagerecord": "money",
    "runs.chunkread": "safety",
}
"""Models that belong to another group than the rest of their app."""
NAMES: Final = {
    "tenancy.user": "People",
    "tenancy.membership": "Members",
    "tenancy.invite": "Invitations",
    "tenancy.apikey": "API keys",
    "tenancy.modelentry": "Models",
    "tenancy.ratelimit": "Request limits",
    "tenancy.auditevent": "Audit log",
    "mfa.authenticator": "Second factors",
    "audit.contentread": "Reads",
    "runs.chunkread": "Passages in answers",
    "runs.pendingdecision": "Approvals",
    "notices.notice": "Notifications",
    "notices.noticesetting": "Choices about notifications",
    "runs.runretention": "Retention rules",
    "erasure.retentionrule": "Retention by kind",
    "runs.runstep": "Steps of runs",
    "runs.runevent": "Events of runs",
    "runs.usagerecord": "Usage of models",
    "budgets.budgetspend": "Spending",
    "budgets.budgethold": "Reserved money",
    "collections.page": "Pages of documents",
    "collections.spaceswap": "Changes of embedding model",
    "collections.searchcase": "Saved questions",
    "conversations.turn": "Questions and answers",
    "conversations.feedback": "Feedback",
    "conversations.conversationshare": "Shared conversations",
    "tools.toolentry": "Settings of tools",
    "tools.toolgrant": "Rules",
    "tools.toollimit": "Limits of tools",
    "tools.toolsource": "Sources of tools",
    "tools.toolversion": "Versions of tools",
    "tools.collectiontoolkit": "Toolkits of collections",
    "datasets.datasetrow": "Rows",
    "datasets.acceptance": "Accepted findings",
}
"""Names where the portal has another word than the model."""


@dataclass(frozen=True, slots=True)
class Needs:
    """Something that waits for a person: what, how many, and the list that shows them."""

    text: str
    count: int
    url: str


def name_of(opts: Any) -> str:
    """Return what the admin calls a model's list, of its ``_meta``."""
    return NAMES.get(opts.label_lower) or str(capfirst(opts.verbose_name_plural))


def group_of(opts: Any) -> dict[str, str]:
    """Return name and address of the group that a model is in, of its ``_meta``; its app's where no group has it."""
    place = {app: key for key, _, apps in GROUPS for app in apps}
    key = MOVED.get(opts.label_lower, place.get(opts.app_label, ""))
    name = next((name for one, name, _ in GROUPS if one == key), str(opts.app_config.verbose_name))
    return {"name": name, "url": f"{reverse('admin:index')}#group-{key}"}


def groups_of(app_list: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return Django's list of apps as groups; an app that no group names comes last, as it is."""
    heading = {key: name for key, name, _ in GROUPS}
    place = {app: key for key, _, apps in GROUPS for app in apps}
    found: dict[str, list[dict[str, Any]]] = {key: [] for key in heading}
    others = []
    index = reverse("admin:index")
    for app in app_list:
        label = app["app_label"]
        if label not in place:
            others.append(app)
            continue
        for model in app["models"]:
            name = f"{label}.{model['object_name'].lower()}"
            named = {**model, "name": NAMES.get(name, model["name"])}
            found[MOVED.get(name, place[label])].append(named)
    return [
        {
            "name": heading[key],
            "app_label": key,
            "app_url": f"{index}#group-{key}",
            "has_module_perms": True,
            "models": sorted(models, key=lambda model: str(model["name"]).lower()),
        }
        for key, models in found.items()
        if models
    ] + others


def needs_now() -> list[Needs]:
    """Return what waits for a person in the workspaces that the request may see; only what there is."""
    since = timezone.now() - timedelta(days=FAILED_DAYS)
    counted = (
        (
            "failed job{} of the last week",
            Job.objects.filter(status=JobStatus.FAILED, retried_at__isnull=True, finished_at__gt=since),
            "jobs_job",
            "status__exact=failed",
        ),
        (
            "document{} that couldn't be read",
            Document.objects.filter(status=DocumentStatus.FAILED),
            "collections_document",
            "status__exact=failed",
        ),
        (
            "tool call{} waiting for approval",
            PendingDecision.objects.filter(status=DecisionStatus.PENDING),
            "runs_pendingdecision",
            "status__exact=pending",
        ),
        (
            "webhook{} switched off because of failures",
            Webhook.objects.filter(is_enabled=False, disabled_at__isnull=False),
            "webhooks_webhook",
            "is_enabled__exact=0",
        ),
        (
            "audit stream{} that isn't accepted",
            AuditStream.objects.filter(is_enabled=True, failures__gt=0),
            "audit_auditstream",
            "is_enabled__exact=1",
        ),
        (
            "tool version{} to accept or reject",
            ToolVersion.objects.filter(state=ToolVersion.State.WAITING),
            "tools_toolversion",
            "state__exact=waiting",
        ),
    )
    needs = []
    for text, rows, name, query in counted:
        count = rows.count()
        if count:
            url = reverse(f"admin:{name}_changelist") + (f"?{query}" if query else "")
            needs.append(Needs(text.format("" if count == 1 else "s"), count, url))
    return needs
