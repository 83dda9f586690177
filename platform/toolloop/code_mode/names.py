"""What the interpreter offers under which name: tables that lint, lowering and prompts share."""

from __future__ import annotations

# Modules of the interpreter itself.
NATIVE_MODULES = frozenset({
    "asyncio", "base64", "binascii", "bisect", "collections", "copy", "csv", "dataclasses", "datetime", "decimal",
    "functools", "hashlib", "itertools", "json", "math", "os", "os.path", "pathlib", "posixpath", "random", "re", "sys",
    "time", "tomllib", "typing", "unicodedata", "__future__",
})  # fmt: skip
# Modules that ``sandboxed/`` brings along, by the file that holds them.
BROUGHT_MODULES = {
    "calendar": "calendar_", "contextlib": "contextlib_", "heapq": "heapq_", "html": "html_", "io": "io_",
    "operator": "operator_", "pprint": "pprint_", "statistics": "statistics_", "string": "string_",
    "textwrap": "textwrap_", "types": "types_", "urllib.parse": "urllib_parse_",
}  # fmt: skip
# Names that an interpreter's module lacks, and what of ``sandboxed/core_.py`` stands in for them.
PATCHES: dict[tuple[str, str], str] = {
    ("re", "subn"): "subn_",
    ("functools", "wraps"): "wraps_",
    ("functools", "cached_property"): "",
    ("dataclasses", "asdict"): "asdict_",
    ("dataclasses", "astuple"): "astuple_",
    ("dataclasses", "fields"): "fields_",
    ("dataclasses", "replace"): "replace_",
    ("collections", "OrderedDict"): "ordered_",
    ("asyncio", "create_task"): "create_task_",
    ("asyncio", "ensure_future"): "create_task_",
    ("typing", "cast"): "cast_",
    ("typing", "NewType"): "new_type_",
    ("str", "maketrans"): "maketrans_",
}
# The same, but only for the calls that need it.
CALL_PATCHES: dict[tuple[str, str], str] = {
    ("json", "dumps"): "dumps_",
    ("re", "sub"): "sub_",
    ("asyncio", "gather"): "gather_",
    ("functools", "reduce"): "reduce_",
}
MISSING_BUILTINS: dict[str, str] = {
    "vars": "keep the values in a dict",
    "dir": "read the signatures instead",
    "globals": "keep the values in a dict",
    "bytearray": "use bytes or a list of integers",
    "memoryview": "use bytes",
    "super": "classes cannot inherit here",
    "delattr": "set the attribute to None",
    "ascii": "use repr()",
    "compile": "write the code directly",
    "input": "nobody can answer; take the values from tools",
    "__import__": "use an import statement",
    "exit": "end the program by letting it run to its end, or raise an error",
    "quit": "end the program by letting it run to its end, or raise an error",
    "breakpoint": "print the values instead",
    "staticmethod": "use a plain function outside the class",
    "classmethod": "use a plain function outside the class",
    "property": "use a plain method and call it",
}
# Method names that are hardly ever data: an attribute of that name used as a value is a bound method.
METHOD_NAMES = frozenset({
    "append", "appendleft", "capitalize", "casefold", "endswith", "extend", "isalnum", "isalpha", "isdigit", "islower",
    "isspace", "isupper", "lower", "lstrip", "rstrip", "setdefault", "splitlines", "startswith", "strip", "swapcase",
    "upper", "zfill", "most_common", "popleft",
})  # fmt: skip
# Further names that are methods of built-in types, for places where a function is expected.
MORE_METHOD_NAMES = frozenset({
    "add", "clear", "copy", "count", "decode", "difference", "discard", "encode", "find", "findall", "format",
    "fullmatch", "get", "group", "index", "insert", "intersection", "isoformat", "items", "join", "keys", "ljust",
    "match", "partition", "pop", "remove", "replace", "rfind", "rjust", "search", "sort", "split", "strftime", "sub",
    "symmetric_difference", "title", "total", "union", "update", "values", "weekday", "date", "time", "year", "month",
    "issubset", "issuperset", "elements", "center", "is_integer", "bit_length", "hex", "timestamp", "groups",
    "groupdict", "start", "end", "span", "removeprefix", "removesuffix", "rsplit", "rpartition", "reverse", "popitem",
})  # fmt: skip
BUILTIN_TYPES = frozenset(
    {"str", "list", "dict", "set", "tuple", "bytes", "int", "float", "frozenset"}
)
# Special methods in which the interpreter can wait for a tool; in all others it cannot.
WAITING_SPECIALS = frozenset({"__init__", "__call__", "__enter__", "__exit__"})
PARALLEL = "parallel"
PREFIX = "_gw_"


def importable() -> list[str]:
    """Return the modules a program may import, sorted, as a model should see them."""
    hidden = {"__future__", "posixpath", "binascii"}
    return sorted((NATIVE_MODULES | set(BROUGHT_MODULES) | {"collections.abc"}) - hidden)


def is_importable(module: str) -> bool:
    """Tell whether a module, or a package on the way to one, can be imported."""
    return (
        module in NATIVE_MODULES
        or module in ("collections.abc", "urllib")
        or module in BROUGHT_MODULES
    )
