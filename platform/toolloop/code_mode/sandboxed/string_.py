"""``string`` for programs: its constants, and ``capwords``."""

from typing import Any

ascii_lowercase = "abcdefghijklmnopqrstuvwxyz"
ascii_uppercase = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ascii_letters = ascii_lowercase + ascii_uppercase
digits = "0123456789"
hexdigits = digits + "abcdef" + "ABCDEF"
octdigits = "01234567"
punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
whitespace = " \t\n\r\v\f"
printable = digits + ascii_letters + punctuation + whitespace


def capwords(text: str, sep: Any = None) -> str:
    words = text.split() if sep is None else text.split(sep)
    return (" " if sep is None else sep).join([word.capitalize() for word in words])


class Template:
    def __init__(self, template: str) -> None:
        self.template = template

    def _fill(self, values: Any, safe: bool) -> str:
        text, out, i = self.template, [], 0
        while i < len(text):
            if text[i] != "$":
                out.append(text[i])
                i += 1
                continue
            if text[i + 1 : i + 2] == "$":
                out.append("$")
                i += 2
                continue
            braced = text[i + 1 : i + 2] == "{"
            start = end = i + 2 if braced else i + 1
            while end < len(text) and (text[end].isalnum() or text[end] == "_"):
                end += 1
            name, stop = text[start:end], end + 1 if braced else end
            if not name or (braced and text[end : end + 1] != "}"):
                if not safe:
                    raise ValueError(f"Invalid placeholder in string at position {i}")
                out.append("$")
                i += 1
            elif name in values:
                out.append(str(values[name]))
                i = stop
            elif safe:
                out.append(text[i:stop])
                i = stop
            else:
                raise KeyError(name)
        return "".join(out)

    def substitute(self, mapping: Any = None, **values: Any) -> str:
        return self._fill({**(mapping or {}), **values}, False)

    def safe_substitute(self, mapping: Any = None, **values: Any) -> str:
        return self._fill({**(mapping or {}), **values}, True)
