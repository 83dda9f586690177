"""Who may call what, in the admin: rules one by one, and as a matrix."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path, reverse
from django.utils.html import format_html

from apps.tools.admin.base import HistoryAdmin
from apps.tools.admin.catalog import ALL, TOOL_NAME
from apps.tools.admin.matrix import matrix_page
from apps.tools.models import ToolGrant
from apps.tools.permissions.reach import grant_warnings
from apps.tools.permissions.services import grant_create, grant_delete, grant_terms, grants_change
from apps.tools.permissions.subjects import Subjects, subject_parse, subjects_read
from apps.tools.policy.sentences import grant_sentence
from tenancy.actors import Actor
from tenancy.admin_scope import admin_actor, page_tenant
from tenancy.models import Role, Tenant
from tenancy.scope import tenant_scope

SYMBOLS = {"allow": "✓", "ask": "?", "deny": "✕"}
ARGUMENTS_HELP = (
    "Conditions on the call's arguments as JSON; all must hold. For example "
    '[{"kind": "at_most", "argument": "amount", "value": 100}, '
    '{"kind": "path_under", "argument": "path", "value": "/public"}, '
    '{"kind": "select_only", "argument": "statement"}]'
)


class GrantForm(forms.ModelForm):  # type: ignore[type-arg]
    """One rule; whom it is about is one choice instead of a kind and an id."""

    subjects: Subjects
    who = forms.ChoiceField(label="Applies to")
    decides = forms.ChoiceField(
        label="Who decides",
        required=False,
        help_text="For calls that ask. A role means anyone else with this role or a higher one.",
    )

    class Meta:
        model = ToolGrant
        fields = (
            "tenant",
            "effect",
            "target_kind",
            "target",
            "toolkit",
            "calls",
            "collection",
            "arguments",
            "expires_at",
            "note",
            "approval_hours",
            "needs_reason",
        )
        widgets = {
            "target": TOOL_NAME,
            "arguments": forms.Textarea(attrs={"rows": 4, "class": "vLargeTextField"}),
        }
        labels = {"target_kind": "Of what", "target": "Name", "calls": "Which of them", "expires_at": "Ends"}
        help_texts = {
            "target": "Of the tool or group; in a pattern, * matches any text. Leave empty for a toolkit.",
            "toolkit": "Only if the rule is for a toolkit.",
            "collection": "The rule doesn't apply to other collections. Empty: all.",
            "arguments": ARGUMENTS_HELP,
            "note": "Reason shown when this rule decides.",
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "who" not in self.fields:  # the page is shown to be read
            return
        now = f"{self.instance.subject_kind}:{self.instance.subject}"
        groups = [(label, list(group.items())) for label, group in self.subjects.choices.items()]
        if self.instance.pk and not any(now in dict(choices) for _, choices in groups):
            groups.append(("No longer there", [(now, self.instance.subject)]))
        self.fields["who"].choices = groups  # type: ignore[attr-defined]
        self.initial["who"] = now if self.instance.pk else "everyone:"
        decides = f"{self.instance.approver_kind}:{self.instance.approver}"
        people = self.subjects.choices["Members"]
        self.fields["decides"].choices = [  # type: ignore[attr-defined]
            ("self:", "The requester"),
            ("Roles", [(f"role:{value}", label) for value, label in Role.choices]),
            ("Members", list(people.items())),
        ]
        if decides.startswith("member:") and decides not in people:
            self.fields["decides"].choices.append((decides, "a former member"))  # type: ignore[attr-defined]
        self.initial["decides"] = decides


@admin.register(ToolGrant)
class ToolGrantAdmin(HistoryAdmin):
    """Rules: deny wins, then ask, then allow; what nobody granted is denied. A rule that is changed is a new rule."""

    owner_may = ALL
    by_name = False
    form = GrantForm
    list_display = ("says", "effect_shown", "expires_at", "note", "warning_shown")
    list_filter = (
        "effect",
        "target_kind",
        "subject_kind",
        "calls",
        ("collection", admin.RelatedOnlyFieldListFilter),
        ("expires_at", admin.EmptyFieldListFilter),
    )
    list_select_related = ("toolkit", "collection")
    search_fields = ("target", "note", "toolkit__name", "collection__name")
    ordering = ("pk",)
    autocomplete_fields = ("collection", "toolkit")
    readonly_fields = ("says", "created_at")

    def get_urls(self) -> list[Any]:
        view = self.admin_site.admin_view(self.matrix_view)
        return [path("matrix/", view, name="tools_matrix"), *super().get_urls()]

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        own = [
            "tenant",
            "effect",
            "target_kind",
            "target",
            "toolkit",
            "calls",
            "who",
            "collection",
            "arguments",
            "expires_at",
            "note",
            "decides",
            "approval_hours",
            "needs_reason",
        ]
        return ["says", *own, "created_at"] if obj is not None else own

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        tenant = obj.tenant if obj is not None else page_tenant(request)
        made: Any = super().get_form(request, obj, change=change, **kwargs)
        if tenant is not None:
            made.subjects = self._subjects(request, tenant.pk)
        return made

    def get_object(self, request: HttpRequest, object_id: str, from_field: str | None = None) -> Any:
        row = super().get_object(request, object_id, from_field)
        row.sentence = grant_sentence(row, self._subjects(request, row.tenant_id).names)
        return row

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        listed = super().get_changelist_instance(request)
        by_tenant: dict[int, list[ToolGrant]] = {}
        for row in listed.result_list:
            by_tenant.setdefault(row.tenant_id, []).append(row)
        warned: dict[int, str] = {}
        for tenant_id, rows in by_tenant.items():
            warned |= self._warnings(request, tenant_id, rows)
        for row in listed.result_list:
            row.warning = warned.get(row.pk, "")
            row.sentence = grant_sentence(row, self._subjects(request, row.tenant_id).names)
        return listed

    @staticmethod
    def _warnings(request: Any, tenant_id: int, rows: list[ToolGrant]) -> dict[int, str]:
        with tenant_scope(tenant_id):
            return grant_warnings(actor=admin_actor(request, tenant_id), grants=rows)

    @admin.display(description="no matches")
    def warning_shown(self, row: Any) -> str:
        return str(row.warning)

    @admin.display(description="what it says")
    def says(self, row: Any) -> str:
        return str(row.sentence)

    @admin.display(description="effect", ordering="effect")
    def effect_shown(self, row: ToolGrant) -> str:
        return format_html('<span class="effect {0}">{1} {0}</span>', row.effect, SYMBOLS.get(row.effect, ""))

    def _subjects(self, request: Any, tenant_id: int) -> Subjects:
        """Return the people and keys of a workspace, read once for a request."""
        kept: dict[int, Subjects] = request.__dict__.setdefault("_tool_subjects", {})
        if tenant_id not in kept:
            with tenant_scope(tenant_id):
                kept[tenant_id] = subjects_read(actor=admin_actor(request, tenant_id))
        return kept[tenant_id]

    def write(self, request: HttpRequest, tenant: Tenant, row: Any, values: dict[str, Any]) -> ToolGrant:
        actor = admin_actor(request, tenant.pk)
        stated = {field: values[field] for field in grant_terms(ToolGrant()) if field in values}
        stated["subject_kind"], stated["subject"] = subject_parse(values["who"])
        stated["approver_kind"], _, stated["approver"] = (values["decides"] or "self:").partition(":")
        for field in ("toolkit", "collection"):
            stated[field] = stated[field].pk if stated[field] is not None else None
        if stated["arguments"] is None:
            stated["arguments"] = []
        if row is None:
            made = grant_create(tenant=tenant, actor=actor, **stated)
            self._warn(request, made)
            return made
        if stated == grant_terms(row):
            return row  # type: ignore[no-any-return]
        done = grants_change(
            tenant=tenant, actor=actor, remove=[row.pk], add=[{**stated, "replaces": row.pk}]
        )
        self._warn(request, done.added[0])
        return done.added[0]

    def _warn(self, request: HttpRequest, row: ToolGrant) -> None:
        for warning in self._warnings(request, row.tenant_id, [row]).values():
            self.message_user(request, warning, messages.WARNING)

    def remove(self, tenant: Tenant, actor: Actor, pk: int) -> None:
        grant_delete(tenant=tenant, actor=actor, pk=pk)

    def response_change(self, request: HttpRequest, obj: Any) -> Any:
        """Go on with the rule that took the place of the one that was open."""
        if "_continue" not in request.POST:
            return super().response_change(request, obj)
        self.message_user(request, "The rule was changed.")
        return HttpResponseRedirect(reverse("admin:tools_toolgrant_change", args=[obj.pk]))

    def matrix_view(self, request: HttpRequest) -> HttpResponse:
        """Show tools by callers, and set what a cell or many cells say."""
        tenant = page_tenant(request)
        if tenant is None:
            return self.own_page(
                request, "admin/choose_workspace.html", "Permissions", tenants=Tenant.objects.order_by("name")
            )
        return matrix_page(self, request, tenant, self._subjects(request, tenant.pk))
