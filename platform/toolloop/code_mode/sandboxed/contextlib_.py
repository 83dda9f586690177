"""``contextlib`` for programs."""

from typing import Any


class suppress:
    def __init__(self, *kinds: Any) -> None:
        self._kinds = kinds

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        return error is not None and isinstance(error, self._kinds)


class nullcontext:
    def __init__(self, enter_result: Any = None) -> None:
        self._result = enter_result

    def __enter__(self) -> Any:
        return self._result

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        return None


class closing:
    def __init__(self, thing: Any) -> None:
        self._thing = thing

    def __enter__(self) -> Any:
        return self._thing

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._thing.close()
