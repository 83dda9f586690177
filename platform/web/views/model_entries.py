"""What the page Settings, Models says and does about single models: list, state, hide, forget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.utils.translation import gettext as _

from basics.errors import DomainError, Missing
from basics.texts import number_told
from runs.providers import EXTRACTIVE, catalog_for, models_and_catalog
from tenancy import services
from tenancy.models import ModelEntry
from tenancy.selectors import model_entry_list
from tenancy.services.model_entries import CAPABILITIES
from toolloop.errors import ConfigurationError
from toolloop.models import ModelInfo
from web.forms import ModelEntryForm, add_refusal
from web.requests import TenantRequest
from web.views.members import posted_id


@dataclass(frozen=True, slots=True)
class ModelShown:
    """A line of the table of models; ``entry`` is what the workspace states about it, None for nothing."""

    info: ModelInfo
    entry: ModelEntry | None
    is_offered: bool

    @property
    def capabilities(self) -> list[str]:
        """What it can do, in words."""
        return [str(CAPABILITIES[name]) for name in self.info.capabilities]

    @property
    def price(self) -> str:
        """The price of a short prompt, "" when unknown."""
        if not self.info.prices:
            return ""
        first = self.info.prices[0]
        return " / ".join(number_told(price, None, "$") for price in (first.input, first.output))


def model_lines(request: TenantRequest) -> list[ModelShown]:
    """Return the models the workspace can use, then those it hides or has no key for."""
    entries = {row.name: row for row in model_entry_list(actor=request.actor)}
    offered, catalog = models_and_catalog(request.tenant)
    lines = [ModelShown(info, entries.pop(info.id, None), True) for info in offered if info.id != EXTRACTIVE]
    for name, entry in entries.items():
        try:
            lines.append(ModelShown(catalog.get_model_info(name), entry, False))
        except ConfigurationError:
            continue  # Its endpoint has taken the name; the log of ``runs.providers`` says so.
    return lines


def model_form(request: TenantRequest) -> ModelEntryForm:
    """Return the form for one more model, or for the one that ``?model=`` names."""
    name = request.GET.get("model", "")[:120]
    if not name:
        return ModelEntryForm(prefix="model")
    entry = model_entry_list(actor=request.actor).filter(name=name).first()
    initial = {"name": name} if entry is None else ModelEntryForm.initial_of(entry)
    return ModelEntryForm(prefix="model", initial=initial)


def model_save(request: TenantRequest) -> ModelEntryForm | None:
    """Store what the form states; return the form when it was refused.

    Raises:
        Denied: the person may not.
    """
    form = ModelEntryForm(request.POST, prefix="model")
    if not form.is_valid():
        return form
    data: dict[str, Any] = form.cleaned_data
    try:
        entry = services.model_entry_set(
            tenant=request.tenant,
            actor=request.actor,
            name=_written(request, data["name"]),
            label=data["label"],
            is_enabled=data["is_enabled"],
            context_window=data["context_window"],
            max_output_tokens=data["max_output_tokens"],
            prices=data["prices"],
            capabilities=form.capabilities(),
        )
    except ConfigurationError as error:
        form.add_error("name", error.message)
        return form
    except DomainError as error:
        if error.status == 403:
            raise
        add_refusal(form, error)
        return form
    messages.success(request, _("Saved: %(model)s.") % {"model": entry})
    return None


def model_switch(request: TenantRequest, *, is_enabled: bool) -> None:
    """Hide a model or offer it again.

    Raises:
        Invalid: the name posted means no model.
    """
    entry = services.model_entry_switch(
        tenant=request.tenant, actor=request.actor, name=request.POST.get("model", ""), is_enabled=is_enabled
    )
    told = _("%(model)s is shown again.") if is_enabled else _("%(model)s is now hidden.")
    messages.success(request, told % {"model": entry})


def model_forget(request: TenantRequest) -> None:
    """Forget what was stated about a model.

    Raises:
        Missing: there is no such entry here.
    """
    rows = model_entry_list(actor=request.actor)
    entry = rows.filter(pk=posted_id(request, "entry")).first()
    if entry is None:
        raise Missing("model")
    services.model_entry_delete(tenant=request.tenant, actor=request.actor, name=entry.name)
    messages.success(request, _("%(model)s was reset.") % {"model": entry})


def _written(request: TenantRequest, name: str) -> str:
    """Return the one written form of a name: aliases and bare names may be typed."""
    return catalog_for(request.tenant).route(name).id
