"""``io`` for programs: text in memory."""

from typing import Any


class StringIO:
    def __init__(self, initial_value: Any = "", newline: Any = "\n") -> None:
        self._text = initial_value or ""
        self._at = 0
        self.closed = False

    def __enter__(self) -> Any:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.closed = True

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> str:
        line = self.readline()
        if not line:
            raise StopIteration
        return line

    def readline(self) -> str:
        end = self._text.find("\n", self._at)
        end = len(self._text) if end < 0 else end + 1
        line: str = self._text[self._at : end]
        self._at = end
        return line

    def readlines(self) -> Any:
        lines = self._text[self._at :].splitlines(True)
        self._at = len(self._text)
        return lines

    def read(self, size: Any = -1) -> str:
        end = len(self._text) if size is None or size < 0 else self._at + size
        text: str = self._text[self._at : end]
        self._at = min(end, len(self._text))
        return text

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"string argument expected, got '{type(text).__name__}'")
        if self._at > len(self._text):
            self._text += "\0" * (self._at - len(self._text))
        self._text = self._text[: self._at] + text + self._text[self._at + len(text) :]
        self._at += len(text)
        return len(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def getvalue(self) -> str:
        text: str = self._text
        return text

    def seek(self, offset: int, whence: int = 0) -> int:
        self._at = offset if whence == 0 else len(self._text)
        return self._at

    def tell(self) -> int:
        return self._at

    def truncate(self, size: Any = None) -> int:
        size = self._at if size is None else size
        self._text = self._text[:size]
        return int(size)

    def close(self) -> None:
        self.closed = True

    def flush(self) -> None:
        return None

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True
