"""Forms of collections. They parse and show; the services decide."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.humanize.templatetags.humanize import intcomma
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy

from apps.collections.collection.services import CHUNK_SIZES, MAX_VERSIONS
from apps.collections.display.forms import RefusableForm
from apps.collections.ingestion.lexical import LANGUAGES
from apps.collections.models import Collection, LinkOrigin, RerankerChoice
from web.widgets import Textarea

LANGUAGE_NAMES = {
    "simple": pgettext_lazy("search without a language", "Simple"),
    "arabic": gettext_lazy("Arabic"),
    "czech": gettext_lazy("Czech"),
    "danish": gettext_lazy("Danish"),
    "dutch": gettext_lazy("Dutch"),
    "english": gettext_lazy("English"),
    "finnish": gettext_lazy("Finnish"),
    "french": gettext_lazy("French"),
    "german": gettext_lazy("German"),
    "greek": gettext_lazy("Greek"),
    "hindi": gettext_lazy("Hindi"),
    "hungarian": gettext_lazy("Hungarian"),
    "indonesian": gettext_lazy("Indonesian"),
    "italian": gettext_lazy("Italian"),
    "norwegian": gettext_lazy("Norwegian"),
    "persian": gettext_lazy("Persian"),
    "polish": gettext_lazy("Polish"),
    "portuguese": gettext_lazy("Portuguese"),
    "romanian": gettext_lazy("Romanian"),
    "russian": gettext_lazy("Russian"),
    "spanish": gettext_lazy("Spanish"),
    "swedish": gettext_lazy("Swedish"),
    "turkish": gettext_lazy("Turkish"),
}
"""How a page names each of ``LANGUAGES``."""


class CollectionForm(RefusableForm):
    """Name and chunking of a collection."""

    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=120,
        widget=forms.TextInput(attrs={"autocomplete": "off", "autofocus": True}),
    )
    description = forms.CharField(
        label=gettext_lazy("Description"),
        required=False,
        max_length=2000,
        widget=Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy("What belongs in it. People see it in lists."),
    )
    chunk_size = forms.IntegerField(
        label=gettext_lazy("Passage size"),
        required=False,
        initial=1200,
        min_value=CHUNK_SIZES[0],
        max_value=CHUNK_SIZES[1],
        help_text=gettext_lazy("Maximum characters per passage. Applies to new documents only."),
    )
    chunk_overlap = forms.IntegerField(
        label=gettext_lazy("Passage overlap"),
        required=False,
        initial=200,
        min_value=0,
        help_text=gettext_lazy("Characters that neighbouring passages share."),
    )

    language = forms.ChoiceField(
        label=gettext_lazy("Language"),
        required=False,
        choices=[(name, LANGUAGE_NAMES[name]) for name in LANGUAGES],
        initial="english",
        help_text=gettext_lazy(
            "Language of the documents, for better search; “Simple” searches words as they are. Changing it re-indexes every document."
        ),
    )
    links_by = forms.ChoiceField(
        label=gettext_lazy("Key points and links"),
        required=False,
        choices=[
            (LinkOrigin.RULE, gettext_lazy("By rules, free of charge")),
            (LinkOrigin.MODEL, gettext_lazy("By a model")),
        ],
        initial=LinkOrigin.RULE,
        help_text=gettext_lazy(
            "How summaries and cross-references of passages are made. Applies to documents read from now on."
        ),
    )
    links_model = forms.CharField(
        label=gettext_lazy("Model"),
        required=False,
        max_length=120,
        help_text=gettext_lazy("For key points and links by a model; as listed under Settings, Models."),
    )
    reranker = forms.ChoiceField(
        label=gettext_lazy("Reranking"),
        required=False,
        choices=RerankerChoice.choices,
        initial=RerankerChoice.DEFAULT,
        help_text=gettext_lazy("Model that reorders the best passages of each search."),
    )
    reranker_model = forms.CharField(
        label=gettext_lazy("Reranking model"),
        required=False,
        max_length=120,
        help_text=gettext_lazy("If a language model reranks; each search then costs one request."),
    )
    keep_versions = forms.IntegerField(
        label=gettext_lazy("Earlier versions"),
        required=False,
        initial=10,
        min_value=0,
        max_value=MAX_VERSIONS,
        help_text=gettext_lazy("How many to keep of each document; older ones are removed."),
    )

    def basics(self) -> list[forms.BoundField]:
        """Return what a new collection needs; the rest have defaults."""
        return [self["name"]]

    def advanced(self) -> list[forms.BoundField]:
        """Return the fields that most people leave as they are."""
        return [field for field in self.visible_fields() if field.name != "name"]

    def defaults(self) -> str:
        """Return in a line what applies when nobody opens the advanced fields."""
        initial = {name: field.initial for name, field in self.fields.items()}
        return _(
            "%(language)s · passages of up to %(size)s characters · no model costs · %(versions)s earlier versions"
        ) % {
            "language": LANGUAGE_NAMES[initial["language"]],
            "size": intcomma(initial["chunk_size"]),
            "versions": initial["keep_versions"],
        }

    def has_advanced_errors(self) -> bool:
        """Tell whether the fields that are folded away have to be shown."""
        return any(field.errors for field in self.advanced())

    def clean(self) -> dict[str, Any]:
        """Refuse an overlap of half a chunk and more, and leave out what was not sent."""
        data = super().clean() or {}
        for name, field in self.fields.items():
            if name in ("name", "description"):
                continue
            if name not in self.data:
                data.pop(name, None)  # not asked for: it stays as it is
            elif data.get(name) in (None, "") and name not in self.errors and not name.endswith("_model"):
                is_number = isinstance(field, forms.IntegerField)
                self.add_error(name, _("Enter a number.") if is_number else _("Choose one."))
        size, overlap = data.get("chunk_size"), data.get("chunk_overlap")
        if size is not None and overlap is not None and overlap >= size / 2:
            self.add_error("chunk_overlap", _("It must be less than half of the passage size."))
        return data

    @classmethod
    def of(cls, collection: Collection) -> CollectionForm:
        """Return the form as a collection fills it."""
        return cls(initial={name: getattr(collection, name) for name in cls.base_fields})
