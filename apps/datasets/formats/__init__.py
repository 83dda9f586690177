"""Formats that datasets are exported to and imported from, by name."""

from __future__ import annotations

from apps.datasets.formats.anthropic import AnthropicMessages
from apps.datasets.formats.base import Card, Format, RowError, Rows, Validation, validate
from apps.datasets.formats.beir import Beir
from apps.datasets.formats.bfcl import Bfcl
from apps.datasets.formats.bipia import Bipia
from apps.datasets.formats.csv import Csv
from apps.datasets.formats.gemini import GeminiContents
from apps.datasets.formats.huggingface import HuggingFace
from apps.datasets.formats.mtrag import Mtrag
from apps.datasets.formats.openai_chat import OpenAiChat
from apps.datasets.formats.pairs import Alpaca, Jsonl, PreferenceFormat, Promptfoo, Ragas
from apps.datasets.formats.parquet import Parquet
from apps.datasets.formats.sharegpt import ShareGpt
from apps.datasets.formats.squad import Squad
from basics.errors import Invalid
from basics.texts import gettext as _

__all__ = ["FORMATS", "Card", "Format", "RowError", "Rows", "Validation", "format_get", "validate"]

_ALL: tuple[Format, ...] = (
    Jsonl(),
    Csv(),
    Parquet(),
    HuggingFace(),
    OpenAiChat(),
    AnthropicMessages(),
    GeminiContents(),
    ShareGpt(),
    Alpaca(),
    PreferenceFormat(),
    Beir(),
    Ragas(),
    Promptfoo(),
    Squad(),
    Mtrag(),
    Bfcl(),
    Bipia(),
)
FORMATS = {form.name: form for form in _ALL}


def format_get(name: str) -> Format:
    """Return the format of a name. Raises Invalid for one that is unknown."""
    if name not in FORMATS:
        known = ", ".join(FORMATS)
        message = _("There is no format “%(name)s”. Choose one of %(known)s.") % {
            "name": name[:40],
            "known": known,
        }
        raise Invalid("format_unknown", message, data={"fields": {"format": [message]}})
    return FORMATS[name]
