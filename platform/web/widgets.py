"""What forms draw otherwise than Django does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from basics.line_ends import line_ends


class Textarea(forms.Textarea):
    """A field of several lines, whose limit counts the end of a line as the one character that its reader sees."""

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> Any:
        """Return what was sent, None for nothing."""
        value = super().value_from_datadict(data, files, name)
        return line_ends(value) if isinstance(value, str) else value
