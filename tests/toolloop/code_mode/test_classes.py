"""Properties, iterators and ISO weeks in programs: as in CPython where that is safe, refused with advice where it is not."""

from __future__ import annotations

import asyncio

import pytest

from tests.toolloop.code_mode.support import BACKENDS, run_case
from tests.toolloop.code_mode.test_programs import _cpython
from toolloop.code_mode.backend import SandboxBackend
from toolloop.code_mode.driver import MontyBackend

CART = """\
class Cart:
    def __init__(self, user_id):
        self.items = list_orders(user_id)
        self.user_id = user_id

    @property
    def total(self):
        return round(sum(item['total'] for item in self.items), 2)

    @property  # asks again each time
    def owner(self):
        return get_user(self.user_id)['name']

    def __repr__(self):
        return f'Cart({self.total})'

"""
PROGRAMS = {
    "property": CART + "cart = Cart(1)\nprint(cart.total, cart, f'{cart.total:.1f}')\n{'total': cart.total}",
    "property_with_a_tool": CART
    + "print([Cart(i).owner for i in (1, 2)], sorted([Cart(2), Cart(1)], key=lambda c: c.owner))",
    "property_of_a_dataclass": """\
from dataclasses import dataclass
@dataclass
class Box:
    w: float
    h: float
    @property
    def area(self):
        return self.w * self.h
    def twice(self): return self.area * 2
boxes = [Box(1, 2), Box(3, 4)]
print(sum(b.area for b in boxes), max(boxes, key=lambda b: b.area), boxes[0].twice(), boxes[1].area > 5 and 'big')
""",
    "property_in_two_classes": """\
class A:
    @property
    def kind(self): return 'a'
class B:
    @property
    def kind(self): return 'b'
print([thing.kind.upper() for thing in (A(), B())])
""",
    "next_of_a_generator": """\
users = [get_user(i) for i in (1, 2, 3)]
print(next((u['name'] for u in users if u['id'] == 2), None), next((u for u in users if u['id'] > 9), 'none'))
names = (u['name'] for u in users)
print(next(names), list(names))
try:
    next(u for u in users if u['id'] > 9)
except StopIteration:
    print('no user')
def first(xs): return (x for x in xs if x)
print(next(first([0, 3, 4])), sum(x * x for x in range(4)), ','.join(str(x) for x in (1, 2)))
for k, v in ((u['id'], u['name']) for u in users): print(k, v)
print(next((k for k, v in {'a': 1, 'b': 2}.items() if v == 2), None))
""",
    "iso_week": """\
from datetime import date, datetime, timedelta
days = [date(2024, 12, 30), date(2021, 1, 3), date(2020, 12, 31), datetime(2023, 6, 15, 12)]
for day in days:
    year, week, weekday = day.isocalendar()
    print(f'{year}-W{week:02d}-{weekday}', day.isocalendar()[1], day.isocalendar().week)
print(sorted({(date(2024, 1, 1) + timedelta(days=n)).isocalendar()[1] for n in range(0, 366, 7)}))
""",
}
# What could mean something else, or would be reached by its name as a text, is not rewritten.
REFUSED = {
    "setter": "class A:\n    @property\n    def x(self): return 1\n    @x.setter\n    def x(self, v): pass\nprint(A().x)",
    "field": "class B:\n    def __init__(self): self.x = 1\nclass A:\n    @property\n    def x(self): return 1\nprint(A().x)",
    "method": "class B:\n    def x(self): return 1\nclass A:\n    @property\n    def x(self): return 1\nprint(A().x)",
    "called": "class A:\n    @property\n    def total(self): return 1\nfrom collections import Counter\nprint(Counter('a').total())",
    "getattr": "class A:\n    @property\n    def x(self): return 1\nprint(getattr(A(), 'x'))",
    "format": "class A:\n    @property\n    def x(self): return 1\nprint('{a.x}'.format(a=A()))",
    "pattern": "class A:\n    @property\n    def x(self): return 1\nmatch A():\n    case A(x=1): print(1)",
    "namedtuple": "from collections import namedtuple\nP = namedtuple('P', 'x y')\nclass A:\n    @property\n    def x(self): return 1\nprint(P(1, 2).x)",
    "taken": "class A:\n    @property\n    def day(self): return 1\nprint(A().day)",
    "static": "class A:\n    @staticmethod\n    def f(x): return x\nprint(A.f(1))",
}


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
@pytest.mark.parametrize("name", PROGRAMS)
async def test_output_is_cpythons_when_classes_have_properties(name: str, backend: SandboxBackend) -> None:
    code = PROGRAMS[name]
    want = await asyncio.to_thread(_cpython, code)
    result = await run_case(code, backend=backend)
    assert result.success, result.to_text()
    assert (result.output, result.value) == want


@pytest.mark.parametrize("name", REFUSED)
async def test_program_is_refused_before_any_call_when_a_property_is_in_doubt(name: str) -> None:
    result = await run_case("get_user(1)\n" + REFUSED[name], backend=MontyBackend())
    assert (result.ending, result.calls) == ("UNSUPPORTED_SYNTAX", ())
    assert "call it with ()" in result.advice


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
async def test_line_of_an_error_stays_when_a_decorator_is_dropped(backend: SandboxBackend) -> None:
    code = "class A:\n    @property\n    def x(self):\n        return 1 / 0\nprint('a')\nA().x"
    result = await run_case(code, backend=backend)
    assert (result.ending, result.line) == ("RUNTIME_ERROR", 4)
    assert result.source_line.strip() == "return 1 / 0"
