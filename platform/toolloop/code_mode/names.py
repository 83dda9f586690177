"""What the interpreter offers under which name: tables that lint, lowering and prompts share."""

from __future__ import annotations

from toolloop.code_mode.native import NATIVE_NAMES

# Modules of the interpreter itself.
NATIVE_MODULES = frozenset(NATIVE_NAMES)
# Modules that ``sandboxed/`` brings along, by the file that holds them.
BROUGHT_MODULES = {
    "calendar": "calendar_",
    "contextlib": "contextlib_",
    "heapq": "heapq_",
    "html": "html_",
    "io": "io_",
    "operator": "operator_",
    "pprint": "pprint_",
    "statistics": "statistics_",
    "string": "string_",
    "textwrap": "textwrap_",
    "types": "types_",
    "urllib.parse": "urllib_parse_",
}
# Names that an interpreter's module lacks, and what of ``sandboxed/core_.py`` stands in for them.
PATCHES: dict[tuple[str, str], str] = {
    ("re", "subn"): "subn_",
    ("functools", "wraps"): "wraps_",
    ("dataclasses", "asdict"): "asdict_",
    ("dataclasses", "astuple"): "astuple_",
    ("dataclasses", "fields"): "fields_",
    ("dataclasses", "replace"): "replace_",
    ("collections", "OrderedDict"): "ordered_",
    ("asyncio", "create_task"): "create_task_",
    ("asyncio", "ensure_future"): "create_task_",
    ("datetime", "UTC"): "utc_",
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
# Exceptions that do not exist, and the nearest that does: what tools raise arrives as that one.
NEAREST_EXCEPTIONS = {
    "IOError": "OSError",
    "EnvironmentError": "OSError",
    "ConnectionError": "OSError",
    "BrokenPipeError": "OSError",
    "ConnectionRefusedError": "OSError",
    "ConnectionResetError": "OSError",
    "InterruptedError": "OSError",
    "UnicodeError": "ValueError",
}
MISSING_BUILTINS |= dict.fromkeys(
    (
        "EOFError",
        "GeneratorExit",
        "Warning",
        "UserWarning",
        "DeprecationWarning",
        "BufferError",
        "SystemError",
        "StopAsyncIteration",
        "ReferenceError",
        "FloatingPointError",
        "ExceptionGroup",
    ),
    "use another built-in exception",
)
# Special methods that would be ignored, or never called.
IGNORED_SPECIALS = {
    "__bool__": "Write a method of another name and call it.",
    "__len__": "Write a method of another name and call it.",
    "__lt__": "Compare and sort with key=lambda x: ... instead.",
    "__le__": "Compare and sort with key=lambda x: ... instead.",
    "__gt__": "Compare and sort with key=lambda x: ... instead.",
    "__ge__": "Compare and sort with key=lambda x: ... instead.",
    "__iadd__": "Write a method of another name and call it.",
    "__getattr__": "Set the attributes in __init__.",
    "__getattribute__": "Set the attributes in __init__.",
    "__setattr__": "Write a method of another name and call it.",
    "__format__": "Write a method that returns the text.",
    "__new__": "Use __init__.",
    "__reversed__": "Use reversed(list(...)).",
}
# Special attributes that exist; reading any other fails.
KNOWN_SPECIAL_ATTRIBUTES = frozenset(
    """
        __class__ __name__ __dataclass_fields__ __call__ __init__ __len__ __iter__ __next__ __contains__
        __getitem__ __setitem__ __delitem__ __add__ __eq__ __enter__ __exit__ __hash__ __repr__ __str__
    """.split()
)
# Method names that are hardly ever data: an attribute of that name used as a value is a bound method.
METHOD_NAMES = frozenset(
    """
        append appendleft capitalize casefold endswith extend isalnum isalpha isdigit islower isspace isupper
        lower lstrip rstrip setdefault splitlines startswith strip swapcase upper zfill most_common popleft
    """.split()
)
# Further names that are methods of built-in types, for places where a function is expected.
MORE_METHOD_NAMES = frozenset(
    """
        add clear copy count decode difference discard encode find findall format fullmatch get group index
        insert intersection isoformat items join keys ljust match partition pop remove replace rfind rjust
        search sort split strftime sub symmetric_difference title total union update values weekday date time
        year month issubset issuperset elements center is_integer bit_length hex timestamp groups groupdict
        start end span removeprefix removesuffix rsplit rpartition reverse popitem
    """.split()
)
BUILTIN_TYPES = frozenset({"str", "list", "dict", "set", "tuple", "bytes", "int", "float", "frozenset"})
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
    return module in NATIVE_MODULES or module in ("collections.abc", "urllib") or module in BROUGHT_MODULES
