"""Libraries that few tests compare with, imported by the first of them.

Every process of a run reads every module of tests: what stands at the top of one is imported by all of them, seconds each
for the larger libraries, and only one process runs the tests.
"""

from __future__ import annotations

import importlib
from typing import Any

_ASKED_OF_EVERYTHING = {"__bases__", "__test__", "__wrapped__", "_mock_name"}
"""What pytest asks of each name in a module, to see whether it is a test: a module has none of it."""


def later(name: str) -> Any:
    """Return what stands for a module, which is imported when something of it is first asked for.

    Args:
        name: full, with dots.
    """
    return _Later(name)


class _Later:
    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        if attribute in _ASKED_OF_EVERYTHING:
            raise AttributeError(attribute)
        return getattr(importlib.import_module(self._name), attribute)
