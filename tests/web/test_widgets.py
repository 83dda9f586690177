"""A limit of characters counts what a person sees: the end of a line is one, whatever a browser sends."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from urllib.parse import urlencode

import pytest
from django import forms
from django.http import QueryDict

from apps.conversations.feedback.services import MAX_COMMENT
from apps.conversations.models.memory import MAX_ENTRY
from apps.conversations.rules.forms import InstructionsForm
from apps.conversations.rules.instructions import MAX_INSTRUCTIONS
from apps.conversations.transcript.locks import MAX_TEXT, text_checked, text_plain
from web.decision_form import decision_read
from web.widgets import Textarea

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.rules


def lines(most: int) -> str:
    """Return as many characters, half of them ends of lines."""
    return "a\n" * (most // 2 - 1) + "aa"


def sent(**values: str) -> QueryDict:
    """Return values as a browser sends them."""
    return QueryDict(urlencode({name: value.replace("\n", "\r\n") for name, value in values.items()}))


def forms_of_the_product() -> Iterator[type[forms.BaseForm]]:
    for path in [*ROOT.glob("apps/**/forms.py"), *ROOT.glob("platform/**/forms.py")]:
        parts = path.relative_to(ROOT).with_suffix("").parts
        module = import_module(".".join(parts[1:] if parts[0] == "platform" else parts))
        for found in vars(module).values():
            if isinstance(found, type) and issubclass(found, forms.BaseForm):
                yield found


def test_every_field_of_several_lines_counts_the_end_of_one_as_one_character() -> None:
    several = [
        (form, name, field)
        for form in forms_of_the_product()
        for name, field in getattr(form, "base_fields", {}).items()
        if isinstance(field.widget, forms.Textarea)
    ]
    assert len(several) > 20
    django_s = sorted(
        {f"{f.__module__}.{f.__name__}.{n}" for f, n, x in several if not isinstance(x.widget, Textarea)}
    )
    assert django_s == [], "use web.widgets.Textarea"


def test_as_many_lines_as_fit_are_taken() -> None:
    text = lines(MAX_INSTRUCTIONS)
    form = InstructionsForm(sent(text=text))
    assert form.is_valid(), form.errors
    assert form.cleaned_data["text"] == text
    assert not InstructionsForm(sent(text=f"{text}a")).is_valid()
    for most in (MAX_COMMENT, MAX_ENTRY, MAX_TEXT):
        assert text_plain(lines(most).replace("\n", "\r\n")) == lines(most)
    assert text_checked(lines(MAX_TEXT).replace("\n", "\r\n")) == lines(MAX_TEXT)
    answer = decision_read(sent(decision="answer", answer="yes\nno"))
    assert answer.content == "yes\nno"
