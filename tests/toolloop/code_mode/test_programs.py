"""Programs of the kind models write, compared with CPython; and those that are refused before a tool has run."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import io
import json
from typing import Any

import pytest

from tests.toolloop.code_mode import programs_language, programs_library
from tests.toolloop.code_mode.support import BACKENDS, fixture_module, run_case
from toolloop.code_mode.driver import MontyBackend

PROGRAMS = programs_language.PROGRAMS | programs_library.PROGRAMS
REFUSED = {
    "ordered": """\
from collections import OrderedDict, ChainMap
d=OrderedDict(a=1)
d['b']=2
print(list(d.items()))
""",
    "staticm": """\
class A:
    @staticmethod
    def f(x): return x+1
print(A.f(2))
""",
    "class_oper": """\
class V:
    def __init__(s,x): s.x=x
    def __add__(s,o): return V(s.x+o.x)
    def __repr__(s): return f'V({s.x})'
    def __eq__(s,o): return s.x==o.x
    def __lt__(s,o): return s.x<o.x
print(V(1)+V(2), V(1)==V(1), sorted([V(3),V(1)]), max([V(2),V(5)]))
""",
    "raise_from": """\
try:
    try:
        get_weather('X')
    except ValueError as e:
        raise RuntimeError('outer') from e
except RuntimeError as e:
    print(e, '<-', e.__cause__)
""",
    "async_sem": """\
import asyncio
async def main():
    sem=asyncio.Semaphore(2)
    async with sem:
        print(await get_user(1))
asyncio.run(main())
""",
    "enum_cls": """\
from enum import Enum
class S(Enum):
    A=1
print(S.A.name)
""",
    "exc_cls": """\
class E(Exception): pass
try:
    raise E('x')
except E as e: print(e)
""",
    "gen": """\
def g():
    yield 1
print(list(g()))
""",
    "nt_class": """\
from typing import NamedTuple
class P(NamedTuple):
    x: int
print(P(1))
""",
    "vars_": """\
print(vars())
""",
    "dc_order": """\
from dataclasses import dataclass
@dataclass(order=True)
class A:
    x: int
print(sorted([A(2),A(1)]))
""",
    "yaml_like": """\
cfg=__import__('json').loads(read_file('config.json'))
print(cfg)
""",
    "uuid_": """\
import uuid
print(len(str(uuid.uuid4())))
""",
    "chainmap": """\
from collections import ChainMap
print(ChainMap({'a':1},{'b':2})['b'])
""",
}


def _cpython(code: str) -> tuple[str, Any]:
    """Run a program of ours in this interpreter; return what it prints and the value of its last expression."""
    functions = fixture_module().TOOLS
    awaited = "asyncio" in code
    names: dict[str, Any] = {"__name__": "__main__", "parallel": _parallel}
    names |= {name: _awaited(f) if awaited else f for name, f in functions.items()}
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    value = None
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(tree, "program", "exec"), names)  # noqa: S102 - the programs stand above
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "program", "eval"), names)  # noqa: S307
    return out.getvalue(), json.loads(json.dumps(value))


def _parallel(*specs: Any) -> list[Any]:
    specs = tuple(specs[0]) if len(specs) == 1 and isinstance(specs[0], list) else specs
    return [spec() if callable(spec) else spec[0](*spec[1:]) for spec in specs]


def _awaited(function: Any) -> Any:
    async def wrapped(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapped


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
@pytest.mark.parametrize("name", PROGRAMS)
async def test_output_is_cpythons_when_a_program_is_supported(name, backend):
    code = PROGRAMS[name]
    want = await asyncio.to_thread(_cpython, code)
    result = await run_case(code, awaited="asyncio" in code, backend=backend)
    assert result.success, result.to_text()
    assert (result.output, result.value) == want


@pytest.mark.parametrize("name", REFUSED)
async def test_program_is_refused_with_line_and_advice_when_monty_cannot_run_it(name):
    result = await run_case(REFUSED[name], backend=MontyBackend())
    assert result.ending in ("UNSUPPORTED_SYNTAX", "UNSUPPORTED_IMPORT")
    assert result.line > 0
    assert result.source_line
    assert len(result.advice) > 10
    assert result.calls == ()
