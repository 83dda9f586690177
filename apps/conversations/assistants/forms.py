"""The form of an assistant's version. It parses and shows; the services decide."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from django import forms
from django.utils.text import format_lazy
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from apps.conversations.assistants.options import EFFORTS, MAX_STARTERS, OF_MODE, RANGES, Options, VersionSpec
from apps.conversations.assistants.selectors import OPTION_LABELS
from apps.conversations.assistants.spec import MAX_PROMPT
from apps.conversations.models import Output
from basics.errors import DomainError
from web import service_fields
from web.widgets import Textarea

NONE, ALL = "none", "all"
MODES = {
    "tools": (gettext_lazy("Tools"), gettext_lazy("The model searches and calls tools as it sees fit.")),
    "quick": (
        gettext_lazy("Quick"),
        gettext_lazy("One search, then the answer: two model calls, fast and cheap."),
    ),
    "planned": (
        gettext_lazy("Planned"),
        gettext_lazy("A plan first, step by step through its tools, then the answer."),
    ),
    "code": (gettext_lazy("Code"), gettext_lazy("The model writes small programs that call tools.")),
}
"""Modes by value: name and what it is good for."""
_HELP = {
    "top_k": gettext_lazy("How many passages the search returns."),
    "neighbours": gettext_lazy("Before and after each passage."),
    "document_types": gettext_lazy("One per line, as in the documents; empty for any."),
    "filters": gettext_lazy('As in a search, for example {"tags": {"in": ["2026"]}}.'),
    "max_steps": gettext_lazy("Maximum model turns that call tools."),
    "max_replans": gettext_lazy("After a step has failed."),
    "memory_turns": gettext_lazy("How many earlier questions the model sees."),
    "temperature": gettext_lazy("0 to 2; empty leaves it to the model."),
    "effort": gettext_lazy("How much to think, for models with effort levels."),
}


class AssistantForm(forms.Form):
    """What a version is made of, for one mode; a new assistant's name too."""

    name = forms.CharField(
        label=gettext_lazy("Name"), max_length=80, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    description = forms.CharField(
        label=gettext_lazy("Description"),
        required=False,
        max_length=300,
        help_text=gettext_lazy("What it is good for, in a sentence."),
    )
    model = forms.ChoiceField(label=gettext_lazy("Model"), required=False)
    prompt = forms.CharField(
        label=gettext_lazy("Instructions"),
        required=False,
        max_length=MAX_PROMPT,
        widget=Textarea(attrs={"rows": 8}),
        help_text=gettext_lazy(
            "Added to the platform's own rules (search first, cite, say when the documents don't answer)."
        ),
    )
    searches = forms.ChoiceField(
        label=gettext_lazy("Searches"),
        widget=forms.RadioSelect,
        initial=ALL,
        choices=[
            (ALL, gettext_lazy("All collections, including future ones")),
            ("chosen", gettext_lazy("Only these:")),
        ],
    )
    collections = forms.TypedMultipleChoiceField(
        label=gettext_lazy("Collections"),
        required=False,
        coerce=int,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("People never see more through an assistant than they can see themselves."),
    )
    tools = forms.ChoiceField(
        label=gettext_lazy("Tools"),
        required=False,
        help_text=gettext_lazy("Always limited to what the person asking can call."),
    )
    helpers = forms.TypedMultipleChoiceField(
        label=gettext_lazy("Other assistants it can ask"),
        required=False,
        coerce=int,
        widget=forms.CheckboxSelectMultiple,
    )
    output = forms.ChoiceField(label=gettext_lazy("Answer format"), choices=Output.choices)
    output_name = forms.CharField(label=gettext_lazy("Schema name"), required=False, max_length=64)
    output_schema = forms.JSONField(
        label=gettext_lazy("JSON Schema"),
        required=False,
        widget=Textarea(attrs={"rows": 10, "class": "mono", "spellcheck": "false"}),
        help_text=gettext_lazy(
            "Must be of type object; only for the answer format “a JSON Schema of this workspace”."
        ),
    )
    starters = forms.CharField(
        label=gettext_lazy("Starters"),
        required=False,
        widget=Textarea(attrs={"rows": 3}),
        help_text=format_lazy(
            gettext_lazy("Questions offered in a new conversation, one per line, at most {most}."),
            most=MAX_STARTERS,
        ),
    )
    note = forms.CharField(label=gettext_lazy("What changed"), required=False, max_length=200)

    def __init__(
        self,
        *args: Any,
        mode: str,
        is_new: bool,
        models: Sequence[tuple[str, str]],
        collections: Sequence[tuple[int, str]],
        toolkits: Sequence[tuple[int, str]],
        helpers: Sequence[tuple[int, str]],
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.mode = mode
        self._choose("model", [("", _("The workspace's default")), *models])
        self._choose("collections", collections)
        self._choose("helpers", helpers)
        kits = [(str(pk), name) for pk, name in toolkits]
        self._choose("tools", [(ALL, pgettext("tools", "All")), (NONE, pgettext("tools", "None")), *kits])
        self.option_names = [name for name in OPTION_LABELS if name in OF_MODE[mode]]
        for name in self.option_names:
            self.fields[name] = _option_field(name)
        for name in ("name", "description") if not is_new else ("note",):
            del self.fields[name]
        if mode == "quick":
            del self.fields["tools"]
        if mode == "quick" or not helpers:
            del self.fields["helpers"]
        if not collections:
            del self.fields["searches"], self.fields["collections"]

    def _choose(self, name: str, choices: Sequence[tuple[Any, str]]) -> None:
        self.fields[name].choices = choices  # type: ignore[attr-defined]

    @property
    def option_fields(self) -> list[forms.BoundField]:
        """Return the bound fields of the mode's options."""
        return [self[name] for name in self.option_names]

    def spec(self) -> VersionSpec:
        """Return what the checked form says."""
        data = self.cleaned_data
        tools = data.get("tools") or ALL
        is_schema = data["output"] == Output.SCHEMA
        return VersionSpec(
            mode=self.mode,
            model=data["model"],
            prompt=data["prompt"],
            collections=data["collections"] if data.get("searches") == "chosen" else None,
            toolkit=int(tools) if tools.isdecimal() else None,
            has_toolkit=tools != ALL,
            output=data["output"],
            output_name=data["output_name"] if is_schema else "",
            output_schema=data["output_schema"] if is_schema else None,
            options={n: v for n in self.option_names if (v := self._option(n)) is not None},
            starters=data["starters"].splitlines(),
            helpers=data.get("helpers", ()),
        )

    def _option(self, name: str) -> Any:
        value = self.cleaned_data[name]
        if name == "document_types":
            return [text for text in map(str.strip, value.splitlines()) if text]
        if name == "filters":
            return value or {}
        return value

    def refuse(self, error: DomainError) -> None:
        """Show what a service refused at the fields it names, else above the form."""
        named = error.data.get("fields", {})
        if "toolkit" in named:
            named = {**named, "tools": named["toolkit"]}
        shown = {name: texts for name, texts in named.items() if name in self.fields}
        for name in shown:
            self.add_error(name, error.message)
        if not shown:
            self.add_error(None, error.message)


def initial_of(spec: VersionSpec) -> dict[str, Any]:
    """Return what the form shows of a version."""
    tools = ALL
    if spec.has_toolkit:
        tools = NONE if spec.toolkit is None else str(spec.toolkit)
    options = dict(spec.options)
    if "document_types" in options:
        options["document_types"] = "\n".join(options["document_types"])
    initial = {
        **options,
        "model": spec.model,
        "prompt": spec.prompt,
        "searches": ALL if spec.collections is None else "chosen",
        "collections": list(spec.collections or ()),
        "tools": tools,
        "helpers": list(spec.helpers),
        "output": spec.output,
        "output_name": spec.output_name,
        "output_schema": spec.output_schema,
        "starters": "\n".join(spec.starters),
    }
    return {name: value for name, value in initial.items() if value is not None}


def _option_field(name: str) -> forms.Field:
    if name in service_fields.FIELDS:
        return service_fields.FIELDS[name]()
    shared: dict[str, Any] = {
        "label": OPTION_LABELS[name],
        "required": False,
        "help_text": _HELP.get(name, ""),
    }
    if name in RANGES:
        low, high = RANGES[name]
        hint = {"placeholder": str(getattr(Options(), name))}
        return forms.IntegerField(
            min_value=low, max_value=high, widget=forms.NumberInput(attrs=hint), **shared
        )
    if name == "temperature":
        step = forms.NumberInput(attrs={"step": "0.1", "placeholder": _("the model's own")})
        return forms.FloatField(min_value=0, max_value=2, widget=step, **shared)
    if name == "effort":
        return forms.ChoiceField(choices=[("", _("the model's own")), *((e, e) for e in EFFORTS)], **shared)
    if name == "filters":
        return forms.JSONField(widget=Textarea(attrs={"rows": 2, "class": "mono"}), **shared)
    return forms.CharField(max_length=4_000, widget=Textarea(attrs={"rows": 3}), **shared)


def posted_again(post: Any) -> dict[str, Any]:
    """Return what was typed, to show it anew in the form of another mode; nothing is checked yet."""
    typed = {name: post.get(name) for name in post if name not in ("collections", "helpers")}
    for name in ("collections", "helpers"):
        typed[name] = post.getlist(name)
    for name in ("output_schema", "filters"):
        if typed.get(name):
            typed[name] = _json(typed[name])
    return {name: value for name, value in typed.items() if value not in (None, "")}


def _json(text: str) -> Any:
    """Return parsed JSON, or the text as it is: the form says what is wrong with it once it is saved."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return forms.fields.InvalidJSONInput(text)
