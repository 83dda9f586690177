"""The form of a rule, with a small builder of conditions on arguments. It parses and shows; the services decide."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from django import forms
from django.http import QueryDict
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from apps.tools.models import ToolGrant, Toolkit
from apps.tools.permissions.services import MAX_APPROVAL_HOURS
from apps.tools.permissions.subjects import Subjects, subject_parse
from basics.errors import DomainError
from runs.approvals.deciders import role_label
from tenancy.models import Role

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

# Kinds of conditions in the order of the builder: what a person reads, and what the value is.
KINDS: Mapping[str, tuple[StrOrPromise, str]] = {
    "path_under": (gettext_lazy("is a path under"), "text"),
    "select_only": (gettext_lazy("is one SQL statement that only reads"), "none"),
    "at_most": (gettext_lazy("is at most"), "number"),
    "below": (gettext_lazy("is below"), "number"),
    "at_least": (gettext_lazy("is at least"), "number"),
    "above": (gettext_lazy("is above"), "number"),
    "equals": (gettext_lazy("is"), "json"),
    "not_equals": (gettext_lazy("is not"), "json"),
    "in": (gettext_lazy("is one of (separate with commas)"), "list"),
    "not_in": (gettext_lazy("is none of (separate with commas)"), "list"),
    "matches": (gettext_lazy("matches the expression"), "text"),
    "schema": (gettext_lazy("all arguments fit the JSON Schema"), "schema"),
}
MAX_ROWS = 20
_SHOWN_AT = {"toolkit": "target", "subject_kind": "subject", "approver_kind": "approver"}


class GrantForm(forms.Form):
    """Who may call what."""

    effect = forms.ChoiceField(
        label=gettext_lazy("Effect"),
        choices=[
            ("allow", pgettext_lazy("effect", "Allow")),
            ("ask", gettext_lazy("Ask: each call needs approval")),
            ("deny", pgettext_lazy("effect", "Deny")),
        ],
        widget=forms.RadioSelect,
        initial="allow",
    )
    target_kind = forms.ChoiceField(
        label=gettext_lazy("Of what"),
        choices=[
            ("tool", gettext_lazy("a tool")),
            ("group", gettext_lazy("a group of tools")),
            ("pattern", gettext_lazy("tools whose names match")),
            ("toolkit", gettext_lazy("a toolkit")),
        ],
    )
    target = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=120,
        help_text=gettext_lazy("In a pattern, * matches any text."),
        widget=forms.TextInput(attrs={"list": "targets", "autocomplete": "off"}),
    )
    calls = forms.ChoiceField(
        label=gettext_lazy("Which of them"),
        choices=[
            ("any", gettext_lazy("all")),
            ("read_only", gettext_lazy("those that only read data")),
            ("side_effects", gettext_lazy("those that change data")),
        ],
    )
    subject = forms.ChoiceField(label=gettext_lazy("For whom"))
    collection = forms.ChoiceField(
        label=gettext_lazy("About which collection"),
        required=False,
        help_text=gettext_lazy("The rule then doesn't apply to other collections."),
    )
    expires_at = forms.DateTimeField(
        label=gettext_lazy("Ends"),
        required=False,
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
        help_text=gettext_lazy("In your time zone. Empty: no end."),
    )
    approver = forms.ChoiceField(
        label=gettext_lazy("Who approves"),
        required=False,
        help_text=gettext_lazy("Only for rules that ask. “Someone else” never includes the requester."),
    )
    approval_hours = forms.IntegerField(
        label=gettext_lazy("Hours a call can wait"),
        required=False,
        min_value=1,
        max_value=MAX_APPROVAL_HOURS,
        help_text=gettext_lazy("The call is then rejected. Empty: the server's setting."),
    )
    needs_reason = forms.BooleanField(label=gettext_lazy("Rejecting requires a reason"), required=False)
    note = forms.CharField(
        label=gettext_lazy("Note"),
        required=False,
        max_length=200,
        help_text=gettext_lazy("Reason shown when this rule decides."),
    )

    def __init__(
        self, *args: Any, subjects: Subjects, collections: Sequence[tuple[int, str]], **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.fields["subject"].choices = [  # type: ignore[attr-defined]
            (words, list(group.items())) for _code, words, group in subjects.groups()
        ]
        self.fields["approver"].choices = [  # type: ignore[attr-defined]
            ("self:", _("the requester")),
            *(
                (f"role:{role}", _("someone else: %(role)s") % {"role": role_label(role)})
                for role in Role.values
            ),
            *(
                (f"member:{pk}", _("someone else: %(name)s") % {"name": name})
                for pk, name in subjects.names.members.items()
            ),
        ]
        self.fields["collection"].choices = [("", _("any")), *((str(pk), name) for pk, name in collections)]  # type: ignore[attr-defined]

    def terms(self, toolkits: Mapping[str, int]) -> dict[str, Any]:
        """Return what ``grant_create`` takes, but for the conditions.

        Args:
            toolkits: id by name.
        """
        data = self.cleaned_data
        kind, subject = subject_parse(data["subject"])
        is_kit = data["target_kind"] == ToolGrant.Target.TOOLKIT
        return {
            "effect": data["effect"],
            "target_kind": data["target_kind"],
            "target": "" if is_kit else data["target"],
            "toolkit": toolkits.get(data["target"], 0) if is_kit else None,
            "calls": data["calls"],
            "subject_kind": kind,
            "subject": subject,
            "collection": int(data["collection"]) if data["collection"] else None,
            "expires_at": data["expires_at"],
            "note": data["note"],
        } | (self._approval() if data["effect"] == ToolGrant.Effect.ASK else {})

    def _approval(self) -> dict[str, Any]:
        data = self.cleaned_data
        kind, _, approver = (data["approver"] or "self:").partition(":")
        return {
            "approver_kind": kind,
            "approver": approver,
            "approval_hours": data["approval_hours"],
            "needs_reason": data["needs_reason"],
        }

    def refuse(self, error: DomainError) -> None:
        """Show what a service refused at the fields that it names."""
        fields = error.data.get("fields", {})
        for name, messages in fields.items():
            shown = _SHOWN_AT.get(name, name)
            self.add_error(shown if shown in self.fields else None, messages)
        if not fields:
            self.add_error(None, error.message)

    @staticmethod
    def initial_of(grant: ToolGrant) -> dict[str, Any]:
        """Return what the form shows of a grant."""
        names = ("effect", "target_kind", "calls", "expires_at", "note", "approval_hours", "needs_reason")
        kit: Toolkit | None = grant.toolkit
        return {name: getattr(grant, name) for name in names} | {
            "target": kit.name if kit is not None else grant.target,
            "subject": f"{grant.subject_kind}:{grant.subject}",
            "collection": str(grant.collection_id or ""),
            "approver": f"{grant.approver_kind}:{grant.approver}",
        }


class ConditionRows:
    """The builder's rows: kind, argument and value as text, and what is wrong with each.

    Args:
        rows: (kind, argument, value).
    """

    def __init__(self, rows: Sequence[tuple[str, str, str]] = ()) -> None:
        self.rows = [*rows][:MAX_ROWS]
        self.problems: dict[int, str] = {}

    @classmethod
    def posted(cls, data: QueryDict) -> ConditionRows:
        """Return the rows of a form."""
        lists = (data.getlist(f"condition_{part}") for part in ("kind", "argument", "value"))
        return cls([row for row in zip(*lists, strict=False) if any(row)])

    @classmethod
    def of(cls, conditions: Any) -> ConditionRows:
        """Return the rows that show stored conditions."""
        rows = []
        for condition in conditions if isinstance(conditions, list) else []:
            if isinstance(condition, dict) and condition.get("kind") in KINDS:
                kind = condition["kind"]
                value = condition.get("schema" if kind == "schema" else "value")
                rows.append((kind, str(condition.get("argument", "")), _text(kind, value)))
        return cls(rows)

    def conditions(self) -> list[dict[str, Any]]:
        """Return the conditions as a grant stores them; what cannot be read is left out and noted in ``problems``."""
        found: list[dict[str, Any]] = []
        for index, (kind, argument, text) in enumerate(self.rows):
            if kind not in KINDS:
                self.problems[index] = _("Choose how to compare the argument.")
                continue
            if kind != "schema" and not argument.strip():
                self.problems[index] = _("Name the argument, for example path or filter.amount.")
                continue
            try:
                found.append(_condition(kind, argument.strip(), text.strip()))
            except ValueError as error:
                self.problems[index] = str(error)
        return found

    def shown(self, extra: int = 0) -> list[dict[str, Any]]:
        """Return the rows for a template, with so many empty ones after them."""
        rows = [*self.rows, *[("", "", "")] * extra][:MAX_ROWS]
        return [
            {"kind": kind, "argument": argument, "value": value, "problem": self.problems.get(i, "")}
            for i, (kind, argument, value) in enumerate(rows)
        ]


def _condition(kind: str, argument: str, text: str) -> dict[str, Any]:
    form = KINDS[kind][1]
    if form == "schema":
        try:
            return {"kind": "schema", "schema": json.loads(text)}
        except (ValueError, RecursionError) as error:
            raise ValueError(_("Write the schema as JSON.")) from error
    if form == "none":
        return {"kind": kind, "argument": argument}
    value: Any = text
    if form == "number":
        value = _number(text)
    elif form == "json":
        value = _json(text)
    elif form == "list":
        value = [_json(part.strip()) for part in text.split(",") if part.strip()]
    return {"kind": kind, "argument": argument, "value": value}


def _number(text: str) -> float | int:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise ValueError(_("Give a number, for example 100 or 0.5."))
    return value


def _json(text: str) -> Any:
    """Return a number, true, false or null as such; anything else is text, also without quotes."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, dict | list) else value


def _text(kind: str, value: Any) -> str:
    if kind == "select_only":
        return ""
    if isinstance(value, list) and kind != "schema":
        return ", ".join(v if isinstance(v, str) else json.dumps(v) for v in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
