"""The text in a file's bytes: which encoding, which line ends, or no text at all."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from charset_normalizer import from_bytes

from basics.errors import Invalid

_SAMPLE = 100_000
# Encodings that files of our time still come in; among all there are, rare ones look likelier than they are.
_OLD = ["cp1252", "cp1250", "cp1251", "koi8_r", "shift_jis", "euc_jp", "gb18030", "big5", "euc_kr"]
_BOMS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16: its mark begins with that one's
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


# Forms of host names and of Python's own literals: no file is kept in them, and some take time beyond all measure.
_NO_FILES = frozenset(
    {
        "idna",
        "punycode",
        "undefined",
        "unicode_escape",
        "raw_unicode_escape",
        "unicode-escape",
        "raw-unicode-escape",
    }
)


@dataclass(frozen=True, slots=True)
class FileText:
    """A file as text.

    Attributes:
        text: with "\\n" as the only line end.
        encoding: Python's name of it.
        bom: the bytes before the text.
        newline: the line end that most lines have.
        is_mixed: whether the file has several kinds of line ends.
    """

    text: str
    encoding: str
    bom: bytes = b""
    newline: str = "\n"
    is_mixed: bool = False

    @property
    def lines(self) -> list[str]:
        """Give the lines without their ends; the part after the last line end only if there is one."""
        lines = self.text.split("\n")
        return lines[:-1] if lines[-1] == "" else lines

    def encoded(self, text: str) -> bytes:
        """Return another text as bytes in the form this one had.

        Raises:
            UnicodeEncodeError: the encoding has no such character.
        """
        return self.bom + text.replace("\n", self.newline).encode(self.encoding)


def encoding_named(name: str) -> str:
    """Return Python's name of a text encoding.

    Raises:
        Invalid: ``encoding_unknown``, there is no such encoding, or it is none of text.
    """
    try:
        "".encode(name)  # unlike a look-up, this refuses what turns bytes into bytes (zip, hex)
        found = codecs.lookup(name).name
    except (LookupError, ValueError):  # ValueError: a NUL in the name
        found = ""
    if not found or found in _NO_FILES:
        raise Invalid(
            "encoding_unknown",
            f"“{name}” isn't a text encoding that is known here. Use utf-8, utf-16, latin-1 or cp1252, for example.",
            data={"field": "encoding"},
        )
    return found


def file_text_in(content: bytes, name: str) -> FileText:
    """Read a file's bytes as text in the encoding that a caller names.

    Raises:
        Invalid: ``encoding_unknown``; ``encoding_wrong``, the bytes are no text in it.
    """
    encoding = encoding_named(name)
    try:
        text = content.decode(encoding)
    except UnicodeError:
        raise Invalid(
            "encoding_wrong",
            f"The file isn't text in {encoding}. Leave the encoding out, and it is recognised.",
            data={"field": "encoding"},
        ) from None
    return _settled(text.removeprefix("\ufeff"), encoding)


def file_text(content: bytes) -> FileText | None:
    """Read a file's bytes as text, None when they are none (a picture, an archive).

    A byte order mark decides; then UTF-8, which other encodings almost never happen to be; then what the bytes look most
    like, with Latin-1 as the last resort.
    """
    for bom, encoding in _BOMS:
        if content.startswith(bom):
            try:
                return _settled(content[len(bom) :].decode(encoding), encoding, bom)
            except UnicodeDecodeError:
                return None
    sample = content[:_SAMPLE]
    if b"\0" in sample or _controls(sample) > len(sample) // 20:
        return None
    try:
        return _settled(content.decode("utf-8"), "utf-8")
    except UnicodeDecodeError:
        pass
    best = from_bytes(sample, cp_isolation=_OLD).best()
    encoding = best.encoding if best is not None else "latin-1"
    try:
        text = content.decode(encoding)
    except (UnicodeDecodeError, LookupError):
        encoding, text = "latin-1", content.decode("latin-1")
    return _settled(text, encoding)


def _controls(sample: bytes) -> int:
    allowed = b"\t\n\r\f\x1b\x08"
    return sum(1 for byte in sample if byte < 32 and byte not in allowed)


def _settled(text: str, encoding: str, bom: bytes = b"") -> FileText:
    windows = text.count("\r\n")
    unix = text.count("\n") - windows
    old = text.count("\r") - windows
    newline = max((unix, "\n"), (windows, "\r\n"), (old, "\r"), key=lambda pair: pair[0])[1]
    is_mixed = sum(1 for count in (windows, unix, old) if count) > 1
    return FileText(text.replace("\r\n", "\n").replace("\r", "\n"), encoding, bom, newline, is_mixed)
