"""Answers that have a form: the forms there are, and such an answer as text that people read. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic_core import from_json

from apps.conversations.citations.markers import Numbering, answer_number, markers_number, numbering
from toolloop.json_reading import clean_json, extract_json
from toolloop.output import Output, output_of

if TYPE_CHECKING:
    from apps.conversations.models import AssistantVersion

SCHEMA_VERSION = "1.0"
CONFIDENCES = ("high", "medium", "low")
MAX_FOLLOW_UPS = 4
STRUCTURED: Mapping[str, Any] = {
    "title": "answer",
    "type": "object",
    "properties": {
        "schema_version": {"type": "string", "enum": [SCHEMA_VERSION]},
        "answer": {
            "type": "string",
            "description": "The answer in Markdown, with a marker such as [c123] behind each statement.",
        },
        "citations": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Ids of the passages the answer rests on, such as c123.",
        },
        "confidence": {
            "type": "string",
            "enum": list(CONFIDENCES),
            "description": "How well the passages support the answer.",
        },
        "follow_up_questions": {
            "type": "array",
            "items": {"type": "string"},
            "maxItems": 3,
            "description": "What the user may want to ask next, as they would ask it.",
        },
    },
    "required": ["schema_version", "answer", "citations", "confidence", "follow_up_questions"],
    "additionalProperties": False,
}
CITING = (
    "Your answer is a JSON object. Put the markers of passages, such as [c123], into its texts, right behind what they "
    "support; where a field asks for the id of a passage, write it without brackets."
)
"""What the model of an answer with a form reads about citing."""

_BESIDE = frozenset({"schema_version", "follow_up_questions"})  # Shown otherwise, or not at all.
_LEAD = ("answer", "summary")
_ID = re.compile(r"[cC]\d{1,18}")
_CODE = re.compile(r"(?=[^\s]*\d)[A-Za-z0-9][\w./%-]{0,39}")
_SHORT_WORDS = frozenset({"hts", "hs", "id", "ids", "url", "usd", "eu", "us", "api", "vat", "fda"})
_CELL_MOST, _COLUMNS_MOST = 200, 6
_ID_KEYS = ("id", "chunk_id", "chunk", "passage", "passage_id", "source")


def form_of(version: AssistantVersion | None) -> Output | None:
    """Return the form that an assistant's answers have, None for text.

    An answer that does not have it in the end is shown as text, so it is no failure of the run. A mode asks for the form in
    the turn that answers.
    """
    if version is None or version.output == "text":
        return None
    if version.output == "schema":
        form = output_of(version.output_schema or {}, version.output_name)
    else:
        form = output_of(STRUCTURED)
    return replace(form, is_required=False, asked_by_provider=version.mode in ("quick", "planned"))


def is_formed(output: str | None) -> bool:
    """Tell whether an output of ``Output`` is other than text."""
    return output not in (None, "", "text")


def shown_text(answer: str, formed: bool) -> str:
    """Return an answer as Markdown, markers as the model wrote them; also while it is being written.

    Args:
        formed: it was asked for in a form. What is no JSON object is then shown as it stands.
    """
    if not formed:
        return answer
    value = value_of(answer)
    if value is not None:
        return markdown_of(value)
    return "" if answer.lstrip().startswith(("{", "```")) else answer


def value_of(answer: str) -> dict[str, Any] | None:
    """Return the object in an answer, as far as it is written; None when there is none."""
    body = clean_json(answer)
    if not body.startswith("{"):
        return None
    try:
        value = from_json(body, allow_partial="trailing-strings")
    except ValueError:
        try:
            value = extract_json(answer)
        except ValueError:
            return None
    return value if isinstance(value, dict) else None


def markdown_of(value: Mapping[str, Any]) -> str:
    """Return an answer's fields as headings, lists, code and tables, the answer proper first."""
    parts: list[str] = []
    lead = next((key for key in _LEAD if isinstance(value.get(key), str)), "")
    if lead and value[lead].strip():
        parts.append(value[lead].strip())
    for key, item in value.items():
        if key == lead or key in _BESIDE or (key == "confidence" and confidence_of(value)):
            continue
        body = _cited(item) if key == "citations" else _body(item)
        if body:
            parts.append(f"## {label_of(key)}\n\n{body}")
    return "\n\n".join(parts)


def confidence_of(value: Mapping[str, Any]) -> str:
    """Return how sure an answer says it is, in a word; "" when it does not."""
    said = value.get("confidence")
    if isinstance(said, str) and said.strip().lower() in CONFIDENCES:
        return said.strip().lower()
    if isinstance(said, int | float) and not isinstance(said, bool) and 0 <= said <= 1:
        return "high" if said >= 0.75 else "medium" if said >= 0.4 else "low"
    return ""


def follow_ups_of(value: Mapping[str, Any]) -> list[str]:
    """Return the questions an answer proposes, without markers."""
    found = value.get("follow_up_questions")
    if not isinstance(found, list):
        return []
    texts = (answer_number(text, {}).text.strip() for text in found if isinstance(text, str))
    return [text[:300] for text in texts if text][:MAX_FOLLOW_UPS]


def value_cited(value: Any, numbers: Mapping[int, Sequence[int]]) -> Any:
    """Return an answer's value with its markers as ``[1]``, those that name no source left out.

    Args:
        numbers: of the sources, by chunk id, for each of its markers in turn.
    """
    return _value_cited(value, numbering(numbers))


def _value_cited(value: Any, find: Numbering) -> Any:
    if isinstance(value, dict):
        return {key: _value_cited(item, find) for key, item in value.items()}
    if isinstance(value, list):
        items = [_value_cited(item, find) for item in value]
        return [kept for kept, item in zip(items, value, strict=True) if kept != "" or item == ""]
    if not isinstance(value, str):
        return value
    text = f"[{value}]" if _ID.fullmatch(value) else value
    return markers_number(text, find).text


def label_of(key: str) -> str:
    """Return the name of a field as a heading: ``hts_codes`` becomes "HTS codes"."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", key).replace("_", " ").replace("-", " ").split()
    told = [word.upper() if word.lower() in _SHORT_WORDS else word.lower() for word in words]
    text = " ".join(told)
    return _inline(text[:1].upper() + text[1:])


def _body(item: Any) -> str:
    if isinstance(item, Mapping):
        return _pairs(item)
    if not isinstance(item, list):
        return _scalar(item)
    items = [entry for entry in item if not _is_empty(entry)]
    if items and all(isinstance(entry, Mapping) for entry in items):
        return _table(items) or "\n\n".join(_pairs(entry) for entry in items)
    texts = [_scalar(entry) for entry in items]
    if texts and all(text.startswith("`") for text in texts):
        return " ".join(texts)
    return "\n".join(f"- {text}" for text in texts)


def _pairs(item: Mapping[str, Any]) -> str:
    return "\n".join(
        f"- **{label_of(str(key))}:** {_scalar(value)}" for key, value in item.items() if not _is_empty(value)
    )


def _table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return objects as a table, "" when it would be too wide to read."""
    keys = list(dict.fromkeys(str(key) for row in rows for key in row))
    cells = [[_cell(row.get(key)) for key in keys] for row in rows]
    if len(keys) > _COLUMNS_MOST or any(len(c) > _CELL_MOST for row in cells for c in row):
        return ""
    lines = [[_cell_safe(label_of(key)) for key in keys], ["---"] * len(keys), *cells]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: Any) -> str:
    return "" if _is_empty(value) else _cell_safe(_scalar(value))


def _cell_safe(text: str) -> str:
    return re.sub(r"\s*\n\s*", " ", text).replace("|", "\\|")


def _scalar(value: Any) -> str:
    """Return a value in one line: markers for ids of passages, code for codes."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        text = value.strip()
        if _ID.fullmatch(text):
            return f"[{text}]"
        return f"`{text}`" if _CODE.fullmatch(text) else text
    if isinstance(value, Mapping):
        inner = ((label_of(str(k)), _scalar(v)) for k, v in value.items() if not _is_empty(v))
        return "; ".join(f"{key}: {text}" for key, text in inner)
    if isinstance(value, list):
        return _joined(_scalar(entry) for entry in value if not _is_empty(entry))
    return "" if value is None else f"{value}"


def _joined(texts: Iterable[str]) -> str:
    return ", ".join(text for text in texts if text)


def _cited(item: Any) -> str:
    """Return a list of passages as their markers: what they say is beside the answer, word for word."""
    if not isinstance(item, list):
        return _body(item)
    ids = []
    for entry in item:
        if isinstance(entry, Mapping):
            entry = next((entry[key] for key in _ID_KEYS if key in entry), "")
        if isinstance(entry, int) and not isinstance(entry, bool):
            entry = f"c{entry}"
        if isinstance(entry, str) and _ID.fullmatch(entry.strip().strip("[]")):
            ids.append(entry.strip().strip("[]"))
    return " ".join(f"[{name}]" for name in dict.fromkeys(ids)) if ids else _body(item)


def _inline(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|#])", r"\\\1", text)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | Mapping) and not value)
