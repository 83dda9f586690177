"""What is known of a page whose text stands in a picture: plain values with a JSON form, kept in the page's layout."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from basics.texts import Told, kept


@dataclass(frozen=True, slots=True)
class ScanWord:
    """A recognised word: its offsets in the page's text, and its box as fractions of the page as it is shown."""

    char_start: int
    char_end: int
    left: float
    top: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Scan:
    """How a page's picture was read.

    Attributes:
        state: ``wanted`` waits for recognition; ``read`` has been through it; ``failed`` could not be, see ``problem``.
        words: recognised words in reading order.
        engine: what read it (``PP-OCRv6``, ``tesseract deu``).
        confidence: mean over the words, 0 to 1.
        layer_chars: characters at the start of the page's text that are the PDF's own, not recognised.
        problem: why the page, or where it has text of its own what its images show, was not read; "" if it was.
        digest: of the picture and of what read it, hex; "" where that is not known.
    """

    state: Literal["wanted", "read", "failed"]
    words: tuple[ScanWord, ...] = ()
    engine: str = ""
    confidence: float = 0.0
    layer_chars: int = 0
    problem: str = ""
    digest: str = ""


def scan_to_json(scan: Scan) -> dict[str, Any]:
    """Pack what is known of a scanned page."""
    return {
        "state": scan.state,
        "engine": scan.engine,
        "confidence": round(scan.confidence, 3),
        "layer_chars": scan.layer_chars,
        "problem": kept(scan.problem),
        "digest": scan.digest,
        "words": [[w.char_start, w.char_end, w.left, w.top, w.width, w.height] for w in scan.words],
    }


def scan_from_json(data: Mapping[str, Any]) -> Scan:
    """Unpack it."""
    return Scan(
        state=data["state"],
        words=tuple(ScanWord(*word) for word in data["words"]),
        engine=str(data["engine"]),
        confidence=float(data["confidence"]),
        layer_chars=int(data["layer_chars"]),
        problem=Told.of(data["problem"]),
        digest=str(data.get("digest", "")),
    )
