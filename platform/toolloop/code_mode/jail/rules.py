"""What programs may name: modules, and no way from a value into the interpreter's inside.

These rules are the outer of two walls. They give a program that strays a clear refusal before anything ran; what holds against
a hostile one is the process it runs in (``confine.py``). Shared by host and worker; imports the standard library only.
"""

from __future__ import annotations

import ast
import string
from collections.abc import Iterator
from typing import Any

MODULES = frozenset(
    """
        __future__ abc array asyncio base64 binascii bisect calendar cmath collections collections.abc
        colorsys contextlib contextvars copy csv dataclasses datetime decimal difflib enum fractions functools
        graphlib hashlib heapq hmac html io ipaddress itertools json keyword math numbers operator os os.path
        pathlib posixpath pprint random re reprlib shlex statistics string struct sys textwrap time tomllib
        types typing unicodedata urllib urllib.parse uuid zlib
    """.split()
)
_PURE_PATH = frozenset(
    {
        "altsep",
        "basename",
        "commonpath",
        "commonprefix",
        "curdir",
        "dirname",
        "extsep",
        "isabs",
        "join",
        "normcase",
        "normpath",
        "pardir",
        "pathsep",
        "sep",
        "split",
        "splitdrive",
        "splitext",
    }
)
# Of these modules only these names.
ONLY: dict[str, frozenset[str]] = {
    "os": frozenset(
        {
            "PathLike",
            "altsep",
            "curdir",
            "extsep",
            "fsdecode",
            "fsencode",
            "fspath",
            "linesep",
            "name",
            "pardir",
            "path",
            "pathsep",
            "sep",
        }
    ),
    "os.path": _PURE_PATH,
    "posixpath": _PURE_PATH,
    "sys": frozenset(
        """
            byteorder exc_info float_info float_repr_style getrecursionlimit getsizeof hash_info hexversion
            implementation int_info intern maxsize maxunicode platform stderr stdout version version_info
        """.split()
    ),
    "urllib": frozenset({"parse"}),
}
# Of these modules all names but these.
NOT: dict[str, frozenset[str]] = {
    "asyncio": frozenset(
        {
            "AbstractEventLoopPolicy",
            "DefaultEventLoopPolicy",
            "SelectorEventLoop",
            "ThreadedChildWatcher",
            "create_subprocess_exec",
            "create_subprocess_shell",
            "get_child_watcher",
            "get_event_loop_policy",
            "open_connection",
            "open_unix_connection",
            "run_coroutine_threadsafe",
            "set_child_watcher",
            "set_event_loop_policy",
            "start_server",
            "start_unix_server",
            "to_thread",
        }
    ),
    "hashlib": frozenset({"file_digest"}),
    "io": frozenset({"FileIO", "OpenWrapper", "open", "open_code"}),
    "random": frozenset({"SystemRandom"}),
    "string": frozenset({"Formatter"}),
    "time": frozenset(
        {"clock_getres", "clock_settime", "clock_settime_ns", "pthread_getcpuclockid", "tzset"}
    ),
    "types": frozenset({"CodeType", "FrameType", "TracebackType"}),
    "uuid": frozenset({"getnode", "uuid1"}),
}
# Built-in names that cannot work here, and what to do instead.
BUILTINS: dict[str, str] = {
    "open": "There are no files here; use the tools.",
    "input": "Nobody can answer; take the values from tools.",
    "exit": "End the program by letting it run to its end, or raise an error.",
    "quit": "End the program by letting it run to its end, or raise an error.",
    "breakpoint": "Print the values instead.",
    "help": "Read the signatures instead.",
    "globals": "Keep the values in a dict.",
    "compile": "Write the code directly.",
    "copyright": "Do without it.",
    "credits": "Do without it.",
    "license": "Do without it.",
    "__file__": "There are no files here.",
    "__import__": "Use an import statement.",
    "__builtins__": "Call the built-in functions by their names.",
    "__loader__": "Do without it.",
    "__spec__": "Do without it.",
    "__build_class__": "Write a class statement.",
}
# Attributes that lead from a value to code, frames, other classes or the names of a module.
INSIDE = frozenset(
    """
        __base__ __bases__ __builtins__ __closure__ __code__ __defaults__ __func__ __getattribute__
        __globals__ __import__ __kwdefaults__ __loader__ __mro__ __reduce__ __reduce_ex__ __self__ __spec__
        __subclasses__ __subclasshook__ __traceback__ __weakref__ mro tb_frame tb_next tb_lasti f_back
        f_builtins f_code f_globals f_locals f_trace gi_code gi_frame gi_yieldfrom cr_await cr_code cr_frame
        cr_origin ag_await ag_code ag_frame co_code co_consts
    """.split()
)
# Methods of paths that reach for a file; refused where a program imports pathlib.
FILES = frozenset(
    """
        absolute chmod cwd exists expanduser glob hardlink_to home is_dir is_file is_mount is_symlink iterdir
        lchmod lstat mkdir read_bytes read_text readlink rename resolve rglob rmdir samefile stat symlink_to
        touch unlink walk write_bytes write_text
    """.split()
)
# Methods of event loops that need more than the host; refused where a program imports asyncio.
OUTSIDE = frozenset(
    """
        add_reader add_signal_handler add_writer connect_accepted_socket connect_read_pipe connect_write_pipe
        create_connection create_datagram_endpoint create_server create_unix_connection create_unix_server
        getaddrinfo getnameinfo run_in_executor set_default_executor sock_connect subprocess_exec
        subprocess_shell
    """.split()
)
# What the streams of a program have.
STREAM = frozenset({"closed", "encoding", "flush", "isatty", "name", "writable", "write", "writelines"})
# A variable of the rewritten program (see ``rewritten``).
VALUE, TEXT = "_gw_value", "_gw_text"


def inside(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield the places of a program that reach inside the interpreter, with what they name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            if node.attr in INSIDE or node.attr.startswith("_gw_"):
                yield node, node.attr
            elif node.attr in ("format", "format_map") and _is_name(node.value, "str"):
                yield node, f"str.{node.attr}"
        elif isinstance(node, ast.MatchClass):
            for name in node.kwd_attrs:
                if name in INSIDE:
                    yield node, name
        elif isinstance(node, ast.Name):
            if node.id.startswith("_gw_"):
                yield node, node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "__" in node.value:
            name = field_inside(node.value)
            if name:
                yield node, name


def imports_outside(tree: ast.AST) -> Iterator[str]:
    """Yield what a program imports and may not, without a look at the modules themselves."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name not in MODULES)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            if module not in MODULES:
                yield module
                continue
            only, without = ONLY.get(module), NOT.get(module, frozenset())
            for alias in node.names:
                name = alias.name
                if name in without or name.startswith("_") or (only is not None and name not in only):
                    yield f"{module}.{name}"


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def field_inside(text: str) -> str:
    """Return what a format string would reach inside the interpreter; "" for nothing."""
    try:
        for _, name, spec, _ in string.Formatter().parse(text):
            for part in (name or "").replace("[", ".").replace("]", ".").split("."):
                if part in INSIDE:
                    return part
            if spec and (found := field_inside(spec)):
                return found
    except ValueError:
        return ""  # No format string: format() will say so.
    return ""


def _spec(function: ast.Lambda) -> ast.expr:
    """Return ``lambda: tool(1, b=2)`` as a call that ``parallel`` can make; any other function as it is."""
    call, given = function.body, function.args
    has_parameters = given.posonlyargs or given.args or given.vararg or given.kwonlyargs or given.kwarg
    if has_parameters or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return function
    names = [ast.Constant(keyword.arg) if keyword.arg else None for keyword in call.keywords]
    spec = ast.Dict(
        [ast.Constant("tool"), ast.Constant("args"), ast.Constant("kwargs")],
        [
            call.func,
            ast.List(call.args, ast.Load()),
            ast.Dict(list(names), [keyword.value for keyword in call.keywords]),
        ],
    )
    return ast.fix_missing_locations(ast.copy_location(spec, function))


class _Rewriter(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if _is_name(node.func, "parallel"):
            node.args = [_spec(arg) if isinstance(arg, ast.Lambda) else arg for arg in node.args]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        if node.attr in ("format", "format_map") and isinstance(node.ctx, ast.Load):
            checked = ast.Call(ast.Name(TEXT, ast.Load()), [node.value], [])
            node.value = ast.copy_location(checked, node.value)
            ast.copy_location(checked.func, checked)
        return node


def guarded(tree: Any) -> Any:
    """Return a tree that checks texts before it formats them."""
    return _Rewriter().visit(tree)


def rewritten(tree: ast.Module) -> ast.Module:
    """Return a program that checks texts before it formats them, and keeps the value of its last expression.

    All else stays what it is, also every line number.
    """
    new: ast.Module = guarded(tree)
    if new.body and isinstance(new.body[-1], ast.Expr):
        last = new.body[-1]
        kept = ast.Assign([ast.Name(VALUE, ast.Store())], last.value)
        new.body[-1] = ast.copy_location(kept, last)
        ast.copy_location(kept.targets[0], last)
    return new
