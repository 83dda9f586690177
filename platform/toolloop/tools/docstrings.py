"""Read a docstring: what the tool does, and one line of description a parameter.

Google style (an ``Args:`` section) and the compact form are read here. The compact form is the description, a line ``---``,
and one line ``<type> <name>: text`` a parameter:

    Look up how many pieces are in stock.
    ---
    str sku: article number
    list[str] sites: where to look

NumPy's style (``Parameters`` underlined) and Sphinx's (``:param name: text``) are read by griffe, which is imported for them
alone: it takes 0.2 s and 10 MB, and of Google style it drops the lines that it cannot read, which here are errors.
"""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field
from typing import Literal

_SECTIONS = {
    "args",
    "arguments",
    "parameters",
    "returns",
    "return",
    "raises",
    "yields",
    "example",
    "examples",
    "note",
    "notes",
    "attributes",
    "see also",
    "warning",
    "warnings",
    "todo",
    "references",
}
_ARGS = {"args", "arguments", "parameters"}
_SHOWN = {"note", "notes", "example", "examples", "warning", "warnings"}
_RULE = "---"
_COMPACT = re.compile(r"<?([^:<>]*[^:<>\s])>?\s+<?\*{0,2}(\w+)>?\s*:\s*(.*)")
_STYLES: tuple[tuple[Literal["numpy", "sphinx"], re.Pattern[str]], ...] = (
    ("numpy", re.compile(r"^Parameters[ \t]*\n-{3,}[ \t]*$", re.MULTILINE)),
    ("sphinx", re.compile(r"^:(?:param|parameter|arg|argument|key|keyword)\s[^:\n]+:", re.MULTILINE)),
)
_ENTRY = re.compile(r"\*{0,2}(\w+)\s*(?:\(([^)]*)\))?\s*:\s*(.*)")


@dataclass(frozen=True, slots=True)
class Documented:
    """One entry of an Args section."""

    type: str
    text: str
    optional: bool


@dataclass(frozen=True, slots=True)
class Docstring:
    """A docstring taken apart.

    Attributes:
        description: for the model.
        parameters: by name.
        has_args: whether parameters are described at all.
        unreadable: lines among the parameters that describe none.
        is_compact: whether it is in the compact form, whose types must all be right.
    """

    description: str = ""
    parameters: dict[str, Documented] = field(default_factory=dict)
    has_args: bool = False
    unreadable: tuple[str, ...] = ()
    is_compact: bool = False


def docstring_read(text: str | None) -> Docstring:
    """Split a docstring.

    Returns:
        The description (everything before the first section, plus notes and examples, which are of use to a model),
        and the Args entries. ``unreadable`` holds lines of the Args section that are no ``name: text`` entry.
    """
    if not text:
        return Docstring()
    cleaned = inspect.cleandoc(text)
    for style, sign in _STYLES:
        if sign.search(cleaned):
            return _griffe_read(cleaned, style)
    lines = cleaned.splitlines()
    if _RULE in (line.strip() for line in lines) and not any(
        line.rstrip().endswith(":") and line.rstrip().removesuffix(":").lower() in _ARGS for line in lines
    ):
        return _compact_read(lines)
    kept: list[str] = []
    entries: list[list[str]] = []
    unreadable: list[str] = []
    section, has_args, indent = "", False, -1
    for line in lines:
        header = line.rstrip().removesuffix(":").lower()
        if line.rstrip().endswith(":") and not line.startswith(" ") and header in _SECTIONS:
            section, indent = header, -1
            has_args = has_args or section in _ARGS
            if section in _SHOWN:
                kept.append(line)
        elif section in _ARGS and (line.startswith(" ") or not line.strip()):
            if not line.strip():
                continue
            depth = len(line) - len(line.lstrip())
            indent = depth if indent < 0 else indent
            if depth > indent and entries:
                entries[-1].append(line.strip())
            elif _ENTRY.fullmatch(line.strip()):
                entries.append([line.strip()])
            else:
                unreadable.append(line.strip())
        else:
            if section and line.strip() and not line.startswith(" "):
                section = ""  # Unindented prose ends a section.
            if not section or section in _SHOWN:
                kept.append(line)
    parameters = {}
    for entry in entries:
        match = _ENTRY.fullmatch(" ".join(entry))
        if match is None:
            unreadable.append(entry[0])
            continue
        name, written, description = match.groups()
        parts = [part.strip() for part in (written or "").split(",")]
        parameters[name] = Documented(
            type=parts[0] if parts[0] != "optional" else "",
            text=description.strip(),
            optional="optional" in parts,
        )
    description = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()
    return Docstring(description, parameters, has_args, tuple(unreadable))


def _griffe_read(text: str, style: Literal["numpy", "sphinx"]) -> Docstring:
    import griffe

    description: list[str] = []
    parameters: dict[str, Documented] = {}
    for section in griffe.Docstring(text).parse(style, warnings=False):
        if isinstance(section, griffe.DocstringSectionText):
            description.append(section.value)
        elif isinstance(section, griffe.DocstringSectionAdmonition):  # notes are of use to a model
            description.append(f"{section.title}:\n{section.value.description}")
        elif isinstance(section, griffe.DocstringSectionParameters):
            for entry in section.value:
                written = "" if entry.annotation is None else str(entry.annotation)
                described = " ".join(entry.description.split())
                parameters[entry.name.lstrip("*")] = Documented(written, described, optional=False)
    return Docstring("\n\n".join(description).strip(), parameters, has_args=True)


def _compact_read(lines: list[str]) -> Docstring:
    rule = next(i for i, line in enumerate(lines) if line.strip() == _RULE)
    entries: list[list[str]] = []
    unreadable: list[str] = []
    for line in lines[rule + 1 :]:
        if not line.strip():
            continue
        if line.startswith(" ") and entries:
            entries[-1].append(line.strip())
        elif _COMPACT.fullmatch(line.strip()):
            entries.append([line.strip()])
        else:
            unreadable.append(line.strip())
    parameters = {}
    for entry in entries:
        match = _COMPACT.fullmatch(" ".join(entry))
        if match is None:
            unreadable.append(entry[0])
            continue
        written, name, description = match.groups()
        parameters[name] = Documented(type=written.strip(), text=description, optional=False)
    description = "\n".join(lines[:rule]).strip()
    return Docstring(description, parameters, True, tuple(unreadable), is_compact=True)
