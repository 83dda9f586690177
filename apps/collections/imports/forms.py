"""The form that starts an import. It parses and shows; the service decides."""

from __future__ import annotations

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy, pgettext_lazy

from apps.collections.imports.services import SOURCES, ImportOptions
from basics.errors import DomainError
from web.widgets import Textarea


class ImportForm(forms.Form):
    """Where from, and how."""

    source = forms.ChoiceField(
        label=pgettext_lazy("source of documents", "Source"),
        choices=[(s.value, s.label) for s in SOURCES],
        initial="archive",
    )
    file = forms.FileField(
        required=False,
        label=pgettext_lazy("source of documents", "Archive"),
        help_text=gettext_lazy(
            "ZIP or TAR (.tar.gz, .tar.bz2, .tar.xz) with documents, with a git repository, or with a Chroma folder."
        ),
    )
    urls = forms.CharField(
        required=False,
        label=gettext_lazy("Web pages"),
        widget=Textarea(attrs={"rows": 3, "placeholder": "https://example.org/guide"}),
        help_text=gettext_lazy("One address per line."),
    )
    path = forms.CharField(
        required=False,
        max_length=1000,
        label=gettext_lazy("Path on the server"),
        help_text=gettext_lazy(
            "A folder, repository or Chroma folder inside a folder the operator has opened."
        ),
    )
    into = forms.CharField(
        required=False,
        max_length=500,
        label=gettext_lazy("Into folder"),
        help_text=gettext_lazy(
            "Empty: a folder named after the source. A single slash: the top of the collection."
        ),
    )
    ref = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("Revision"),
        help_text=gettext_lazy("Branch, tag or commit of a repository."),
    )
    include = forms.CharField(
        required=False,
        widget=Textarea(attrs={"rows": 2}),
        label=gettext_lazy("Only these files"),
        help_text=gettext_lazy("Patterns as in .gitignore, one per line, for example docs/**/*.md."),
    )
    exclude = forms.CharField(
        required=False, widget=Textarea(attrs={"rows": 2}), label=gettext_lazy("Exclude these files")
    )
    with_hidden = forms.BooleanField(
        required=False,
        label=gettext_lazy("Include hidden files"),
        help_text=gettext_lazy("Files and folders whose names begin with a dot."),
    )
    with_unsearchable = forms.BooleanField(
        required=False,
        label=gettext_lazy("Include files without text"),
        help_text=gettext_lazy(
            "Images are read by text recognition. Programs, empty files and the like appear under Files only."
        ),
    )
    sync = forms.BooleanField(
        required=False,
        label=gettext_lazy("Remove deleted documents"),
        help_text=gettext_lazy(
            "Deletes documents from earlier imports of this source that it no longer contains."
        ),
    )
    chroma_collection = forms.CharField(
        required=False, max_length=200, label=gettext_lazy("Chroma collection")
    )
    source_key = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("Chroma field with the source file"),
        help_text=gettext_lazy("Empty: source, file_path and similar names are tried."),
    )
    vectors_model = forms.CharField(
        required=False,
        max_length=200,
        label=gettext_lazy("Model of the Chroma vectors"),
        help_text=gettext_lazy(
            "Keeps the imported vectors. It must be the collection's own model; leave it empty to embed the passages again."
        ),
    )

    def options(self) -> ImportOptions:
        """Return what was filled in."""
        data = self.cleaned_data
        return ImportOptions(
            path=data["path"].strip(),
            urls=_lines(data["urls"]),
            into=data["into"] or None,
            ref=data["ref"].strip(),
            include=_lines(data["include"]),
            exclude=_lines(data["exclude"]),
            with_hidden=data["with_hidden"],
            with_unsearchable=data["with_unsearchable"],
            sync=data["sync"],
            chroma_collection=data["chroma_collection"].strip(),
            source_key=data["source_key"].strip(),
            vectors_model=data["vectors_model"].strip(),
        )

    def file_given(self) -> dict[str, Any]:
        """Return name and pieces of the uploaded archive, nothing when there is none."""
        file = self.cleaned_data.get("file")
        return {"name": file.name or "", "chunks": file.chunks()} if file else {}

    def refuse(self, error: DomainError) -> None:
        """Show what the service refused, at the fields it names or above the form."""
        fields = {n: t for n, t in (error.data.get("fields") or {}).items() if n in self.fields}
        for name, texts in fields.items():
            self.add_error(name, list(texts))
        if not fields:
            self.add_error(None, error.message)


def _lines(text: str) -> tuple[str, ...]:
    return tuple(line.strip() for line in text.splitlines() if line.strip())
