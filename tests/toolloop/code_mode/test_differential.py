"""Generated programs do in code mode what they do in CPython: a share of what ``benchmarks/code_mode_differential.py`` compares.

By day 150 of the nightly 400, the same ones each time and of every family.
"""

from __future__ import annotations

import pytest

from benchmarks.code_programs.compare import compare, difference
from benchmarks.code_programs.make import FAMILIES, program_make
from tests.nightly import NIGHTLY
from toolloop.code_mode.jail.zygote import is_possible

PROGRAMS = 400 if NIGHTLY else 150
SEEDS = range(7_000_000, 7_000_000 + PROGRAMS)


@pytest.mark.skipif(not is_possible(), reason="pydantic-monty is another interpreter")
async def test_generated_programs_do_the_same_as_in_cpython():
    compared = await compare(SEEDS)
    shown = "\n".join(f"{d['seed']}: {d['difference']}\n{d['program']}" for d in compared.different[:3])
    assert compared.different == [], shown
    assert compared.same + sum(compared.refused.values()) == PROGRAMS
    assert sum(compared.refused.values()) <= PROGRAMS // 100, compared.refused
    assert compared.calls > PROGRAMS


def test_programs_are_the_same_for_the_same_seed_and_of_every_family():
    made = [program_make(seed) for seed in SEEDS]
    assert made == [program_make(seed) for seed in SEEDS]
    assert {name for _, families in made for name in families.split("+")} == set(FAMILIES)


@pytest.mark.parametrize(
    "other",
    [
        {"events": [["out", "2.68\n"]], "ending": ["end"]},
        {"events": [["out", "2.67\n"], ["call", "rows", {"count": 1}]], "ending": ["end"]},
        {"events": [["call", "rows", {"count": 1}], ["out", "2.67\n"]], "ending": ["end"]},
        {"events": [["out", "2.67\n"]], "ending": ["error", "ValueError", "x", "RUNTIME_ERROR"]},
    ],
)
def test_judge_sees_what_differs(other):
    assert difference({"events": [["out", "2.67\n"]], "ending": ["end"]}, other)
