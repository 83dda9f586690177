"""Ask the limited child whether a file breaks its language's grammar."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from apps.collections.files.selectors import file_content
from apps.collections.ingestion.code.programming_languages import BY_SUFFIX
from apps.collections.models import Collection
from apps.collections.tree.limited import run_limited
from apps.collections.tree.text import file_text
from basics.errors import Invalid
from tenancy.actors import Actor

_SYNTAX_S, _SYNTAX_BYTES = 5, 1_500_000_000
_BY_SUFFIX = {".json": "json", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}


@dataclass(frozen=True, slots=True)
class SyntaxCheck:
    """What came of a check; ``problems`` are dicts of line, column and message."""

    path: str
    language: str
    problems: list[dict[str, Any]]


def check_syntax(*, actor: Actor, collection: Collection, path: str) -> SyntaxCheck:
    """Check a source file or a JSON, TOML or YAML file.

    Raises:
        Missing: there is none for the actor.
        Invalid: ``language_unknown``, ``file_binary``.
        DomainError: ``work_too_large`` when the check had to be stopped.
    """
    suffix = PurePosixPath(path).suffix.lower()
    language = BY_SUFFIX[suffix].name if suffix in BY_SUFFIX else _BY_SUFFIX.get(suffix, "")
    stored, content = file_content(actor=actor, collection=collection, path=path)
    if not language:
        known = ", ".join(sorted({*BY_SUFFIX, *_BY_SUFFIX}))
        raise Invalid("language_unknown", f"Only these can be checked: {known}.")
    text = file_text(content)
    if text is None:
        raise Invalid("file_binary", f"“{path}” isn't text.")
    found = run_limited(
        "syntax", {"text": text.text, "language": language}, seconds=_SYNTAX_S, memory_bytes=_SYNTAX_BYTES
    )
    return SyntaxCheck(stored.path, language, found)
