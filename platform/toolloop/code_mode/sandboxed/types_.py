"""``types`` for programs."""

from typing import Any


class SimpleNamespace:
    def __init__(self, **values: Any) -> None:
        self._names = list(values)
        for name, value in values.items():
            setattr(self, name, value)

    def __repr__(self) -> str:
        shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in self._names])
        return f"namespace({shown})"
