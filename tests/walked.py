"""One test for many alike rows, where ``pytest.mark.parametrize`` would make a test of each.

A test costs every process of a run its collecting and one of them its fixtures and reports, whatever it asks: several
milliseconds, a hundred times what a line of a table takes. Every row is tried, and named when it fails, whatever the others
did.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest

Check = Callable[..., Any]


def each(names: str, rows: Iterable[Any]) -> Callable[[Check], Check]:
    """Make of a check of one row a test of all of them.

    Only for a check that leaves its fixtures as it found them: all rows share them.

    Args:
        names: of the check's parameters that a row gives, with commas between them.
        rows: a value each, or as many values as there are names.
    """
    given = [name.strip() for name in names.split(",")]
    cases = [dict(zip(given, row if len(given) > 1 else (row,), strict=True)) for row in rows]
    assert cases, f"no rows of {names}"

    def decorate(check: Check) -> Check:
        if inspect.iscoroutinefunction(check):

            async def test(**fixtures: Any) -> None:
                failed: list[BaseException] = []
                for case in cases:
                    with _noting(case, failed):
                        await check(**case, **fixtures)
                _report(failed, len(cases))

        else:

            def test(**fixtures: Any) -> None:  # type: ignore[misc]
                failed: list[BaseException] = []
                for case in cases:
                    with _noting(case, failed):
                        check(**case, **fixtures)
                _report(failed, len(cases))

        parameters = inspect.signature(check).parameters
        walked = wraps(check)(test)
        walked.__signature__ = inspect.Signature([p for name, p in parameters.items() if name not in given])  # type: ignore[attr-defined]
        del walked.__wrapped__  # pytest would read its parameters
        return walked

    return decorate


@contextmanager
def _noting(case: dict[str, Any], failed: list[BaseException]) -> Iterator[None]:
    try:
        yield
    except (Exception, pytest.fail.Exception) as error:  # noqa: BLE001 - told with all others, below
        error.add_note(f"in the row {', '.join(f'{name}={value!r:.200}' for name, value in case.items())}")
        failed.append(error)


def _report(failed: list[BaseException], rows: int) -> None:
    if failed:
        raise BaseExceptionGroup(f"{len(failed)} of {rows} rows", failed)
