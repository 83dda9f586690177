"""What a model reads about code mode: its tools as functions, the rules of the environment; and its code out of its reply."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Mapping
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

from toolloop.code_mode.binding import python_names
from toolloop.code_mode.jail import check
from toolloop.code_mode.names import PARALLEL, importable
from toolloop.tools.context import ToolDefinitionError
from toolloop.tools.schema import signature_read
from toolloop.tools.tool import Tool
from toolloop.tools.toolset import Toolset

PREAMBLE = (
    "You solve tasks by writing one Python program that calls the functions below. They are already defined: call them "
    "directly, do not import or define them."
)
POSTAMBLE = (
    "Reply with one complete program in a ```python block. You then read its output and may write another one. A reply "
    "without a code block is your final answer."
)
BESIDE = (
    "Every other tool that you have now is a function of the same name (with _ for -) that takes the tool's parameters by "
    "name and returns the tool's result: the value where the result is JSON, else text."
)
_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "array": "list",
    "object": "dict",
}
_FENCE = re.compile(
    r"^[ \t]*(```+|~~~+)[ \t]*([^\s`~]*)[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE
)
_PYTHON = {"python", "py", "python3", "tool_code"}


def environment(sandbox: str) -> str:
    """Return the paragraph about the environment.

    Args:
        sandbox: name of the backend that runs the programs.
    """
    return f"{_whole_python() if sandbox == 'cpython' else _small_python()}{_CALLS}"


_CALLS = (
    f"Independent calls run at the same time with {PARALLEL}((function, arg, ...), (function, arg, ...)), which returns "
    "the list of results. A failing call raises an exception that you can catch. "
    "Always print() what you need to see, or end the program with an expression."
)


def _whole_python() -> str:
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return (
        f"The environment is Python {version} without files, network, processes, threads or environment variables. "
        f"Importable modules: {', '.join(check.importable())}. "
        "Functions can be called wherever Python calls one. "
    )


def _small_python() -> str:
    return (
        "The environment is a small Python interpreter without files, network, processes or environment variables. "
        f"Importable modules: {', '.join(importable())}. "
        "Not available: class inheritance (so no own exceptions and no Enum), decorated methods but a plain @property, "
        "yield, async with, user-defined __bool__ and __len__. Generator expressions are computed whole. "
        "Call functions directly, in loops or in comprehensions; not inside __repr__, __eq__ or other special methods. "
    )


def functions_text(
    toolset: Toolset, *, chaining: bool, return_schemas: Mapping[str, Mapping[str, Any]]
) -> str:
    """Return all tools as Python signatures with docstrings.

    Args:
        toolset: the tools.
        chaining: show the shape of results where it is known.
        return_schemas: JSON Schema of the result by tool name, before what type hints say.
    """
    parts = []
    for python, name in python_names(toolset).items():
        tool = toolset.get(name)
        if tool is not None:
            shape = return_shape(tool, return_schemas.get(name)) if chaining else ""
            parts.append(function_text(tool, python, shape))
    return "\n\n".join(parts)


def function_text(tool: Tool, python: str, shape: str = "") -> str:
    """Return one tool as a Python signature with its docstring."""
    schema = tool.parameters
    required = set(schema.get("required", ()))
    given: list[str] = []
    notes: list[str] = []
    for name, part in schema.get("properties", {}).items():
        text = f"{name}: {type_text(part, schema)}"
        if name not in required:
            text += f" = {part['default']!r}" if "default" in part else " = ..."
        given.append(text)
        if part.get("description"):
            notes.append(f"        {name}: {part['description']}")
    lines = [f"def {python}({', '.join(given)}) -> {_return_text(tool)}:"]
    description = tool.description.strip().replace('"""', "'''").replace("\n", "\n    ")
    lines.append(f'    """{description}')
    if notes:
        lines += ["", "    Args:", *notes]
    if tool.needs_approval or tool.external:
        lines += ["", "    Somebody must approve or answer this call; the program waits for it."]
    lines.append('    """' if len(lines) > 2 else "")
    if lines[-1] == "":
        lines.pop()
        lines[-1] += '"""'
    if shape:
        lines.append(f"    # Returns: {shape}")
    return "\n".join(lines)


def type_text(schema: Any, root: Mapping[str, Any], depth: int = 0) -> str:
    """Return a JSON Schema as a Python type, shortened below the third level."""
    if not isinstance(schema, Mapping) or depth > 3:
        return "Any"
    if "$ref" in schema:
        return type_text(_resolved(schema["$ref"], root), root, depth + 1)
    if "enum" in schema:
        return f"Literal[{', '.join(repr(value) for value in schema['enum'])}]"
    if "const" in schema:
        return f"Literal[{schema['const']!r}]"
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            texts = dict.fromkeys(type_text(part, root, depth) for part in schema[keyword])
            return " | ".join(texts)
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(_TYPES.get(one, "Any") for one in kind)
    if kind == "array" and "items" in schema:
        return f"list[{type_text(schema['items'], root, depth + 1)}]"
    if kind == "object" and isinstance(schema.get("additionalProperties"), Mapping):
        return f"dict[str, {type_text(schema['additionalProperties'], root, depth + 1)}]"
    return _TYPES.get(str(kind), "Any")


def shape_text(schema: Any, root: Mapping[str, Any], depth: int = 0) -> str:
    """Return a JSON Schema with its keys: ``{city: str, days: [{high: float}]}``."""
    if not isinstance(schema, Mapping) or depth > 4:
        return "Any"
    if "$ref" in schema:
        return shape_text(_resolved(schema["$ref"], root), root, depth + 1)
    if schema.get("properties"):
        required = set(schema.get("required", schema["properties"]))
        parts = [
            f"{name}{'' if name in required else '?'}: {shape_text(part, root, depth + 1)}"
            for name, part in schema["properties"].items()
        ]
        return "{" + ", ".join(parts) + "}"
    if schema.get("type") == "array" and "items" in schema:
        return f"[{shape_text(schema['items'], root, depth + 1)}]"
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            texts = dict.fromkeys(shape_text(part, root, depth + 1) for part in schema[keyword])
            return " | ".join(texts)
    return type_text(schema, root)


def return_shape(tool: Tool, explicit: Mapping[str, Any] | None = None) -> str:
    """Return the shape of a tool's result, from a schema or from its type hint; "" where neither says one."""
    if explicit is not None:
        return shape_text(explicit, explicit)
    hint = _return_hint(tool)
    args = get_args(hint) if get_origin(hint) in (list, tuple) else (hint,)
    if not any(_has_keys(arg) for arg in args):
        return ""
    schema = _hint_schema(hint)
    return "" if schema is None else shape_text(schema["properties"]["value"], schema)


def _has_keys(hint: Any) -> bool:
    if is_typeddict(hint):
        return True
    pydantic = sys.modules.get("pydantic")
    return pydantic is not None and isinstance(hint, type) and issubclass(hint, pydantic.BaseModel)


def _return_hint(tool: Tool) -> Any:
    try:
        return get_type_hints(tool.function, include_extras=True).get("return", Any)
    except (NameError, TypeError, AttributeError):
        return Any


def _return_text(tool: Tool) -> str:
    schema = _hint_schema(_return_hint(tool))
    return "Any" if schema is None else type_text(schema["properties"]["value"], schema)


def _hint_schema(hint: Any) -> dict[str, Any] | None:
    def probe(value: Any) -> None: ...

    probe.__annotations__ = {"value": hint}
    try:
        return signature_read(probe).parameters
    except ToolDefinitionError:
        return None


def _resolved(ref: str, root: Mapping[str, Any]) -> Any:
    node: Any = root
    for part in ref.removeprefix("#/").split("/"):
        node = node.get(part, {}) if isinstance(node, Mapping) else {}
    return node


def code_extract(text: str) -> str | None:
    """Return the program in a model's reply: the last complete fenced Python block; None when there is none.

    ``python``, ``py`` and other spellings count, with backticks or tildes; a block without a language counts when no
    block says it is Python.
    """
    blocks = [(found[2].lower(), found[3]) for found in _FENCE.finditer(text)]
    named = [code for language, code in blocks if language in _PYTHON]
    bare = [code for language, code in blocks if not language]
    chosen = named or bare
    return _dedented(chosen[-1]) if chosen else None


def _dedented(code: str) -> str:
    return textwrap.dedent(code).strip("\n")


def schema_render(tool: Tool, form: str) -> dict[str, Any]:
    """Return a tool as a provider's API wants it.

    Args:
        tool: the tool.
        form: "openai" (Responses), "compatible" or "mistral" (Chat Completions), "anthropic", "google" or "gemini",
            "xai", "raw".

    Raises:
        ValueError: unknown form.
    """
    plain = {"name": tool.name, "description": tool.description}
    if form in ("openai", "xai"):
        # Left out, the Responses API takes a schema for strict.
        return {"type": "function", **plain, "parameters": dict(tool.parameters), "strict": False}
    if form in ("compatible", "mistral", "openai-chat"):
        return {"type": "function", "function": {**plain, "parameters": dict(tool.parameters)}}
    if form == "anthropic":
        return {**plain, "input_schema": dict(tool.parameters)}
    if form in ("google", "gemini"):
        return {**plain, "parametersJsonSchema": dict(tool.parameters)}
    if form == "raw":
        return {**plain, "parameters": dict(tool.parameters)}
    raise ValueError(
        f"unknown form {form!r}: openai, xai, compatible, mistral, anthropic, google, gemini or raw"
    )


def feedback_text(result_text: str) -> str:
    """Return the message that tells a model in prompt mode what its program did."""
    return f"<execution_result>\n{result_text}\n</execution_result>"
