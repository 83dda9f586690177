"""What was read of a picture before, kept in a file: a document that is read again costs no recognition of the same pages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from apps.collections.ingestion.ocr.types import Scan, scan_from_json, scan_to_json

_FORMAT = "3"  # raise it when the same picture would be read otherwise: kept results no longer count


def picture_digest(picture: Any, layer: str, engine: str) -> str:
    """Return the SHA-256 of a picture, of what its page says in text, and of what reads it, in hex.

    Args:
        picture: height × width × 3, bytes.
        layer: the page's own text.
        engine: its name, with its languages.
    """
    heads = json.dumps([_FORMAT, engine, layer, list(picture.shape)]).encode()
    digest = hashlib.sha256(heads)
    digest.update(picture.tobytes())
    return digest.hexdigest()


def known_result(folders: Iterable[Path], digest: str) -> tuple[str, Scan] | None:
    """Find the text and scan of a picture that was read before; a file that says something else counts as none."""
    for folder in folders:
        try:
            kept = json.loads((folder / known_name(digest)).read_bytes())
            scan = scan_from_json(kept["scan"])
            text = str(kept["text"])
        except (OSError, ValueError, KeyError, TypeError):
            continue
        if scan.state == "read" and scan.digest == digest:
            return text, scan
    return None


def known_bytes(text: str, scan: Scan) -> bytes:
    """Pack a result for ``known_result``."""
    return json.dumps({"text": text, "scan": scan_to_json(scan)}).encode()


def known_name(digest: str) -> str:
    """Name the file of a result."""
    return f"scan.{digest}.json"
