"""The wire between the pipeline and its reader child: a length, a JSON header, then raw bytes."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any

from apps.collections.ingestion.code.types import structure_from_json, structure_to_json
from apps.collections.ingestion.ocr.types import scan_from_json, scan_to_json
from apps.collections.ingestion.types import Heading, JunkReason, PageMarks, PageText, Region

_LENGTHS = struct.Struct(">II")
MAX_HEADER = 256 * 1024 * 1024
_REGION_FIELDS = 10
MAX_BLOB = 256 * 1024 * 1024


def encode_frame(header: Mapping[str, Any], blob: bytes = b"") -> bytes:
    """Pack one frame."""
    body = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    return _LENGTHS.pack(len(body), len(blob)) + body + blob


class FrameBuffer:
    """Collects bytes and gives back whole frames."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> list[tuple[dict[str, Any], bytes]]:
        """Add bytes and return the frames complete by now.

        Raises:
            ValueError: the stream is not made of frames.
        """
        self._data += data
        frames: list[tuple[dict[str, Any], bytes]] = []
        position = 0
        while len(self._data) - position >= _LENGTHS.size:
            header_size, blob_size = _LENGTHS.unpack_from(self._data, position)
            if header_size > MAX_HEADER or blob_size > MAX_BLOB:
                raise ValueError("A frame of the reader process is too large.")
            start = position + _LENGTHS.size
            end = start + header_size + blob_size
            if len(self._data) < end:
                break
            header = json.loads(bytes(self._data[start : start + header_size]))
            if not isinstance(header, dict):
                raise ValueError("A frame of the reader process has no object as header.")
            frames.append((header, bytes(self._data[start + header_size : end])))
            position = end
        del self._data[:position]
        return frames


def page_to_json(page: PageText) -> dict[str, Any]:
    """Pack a page for the wire."""
    return {
        "number": page.number,
        "text": page.text,
        "width": page.width,
        "height": page.height,
        "headings": [[h.title, h.level, h.char_start, h.char_end] for h in page.headings],
        "regions": [
            [
                r.kind,
                r.char_start,
                r.char_end,
                list(r.row_starts),
                r.body_start,
                r.header,
                list(r.rows),
                r.columns,
                r.caption,
                r.delimiter,
            ]
            for r in page.regions
        ],
        "junk": page.junk,
        "code": structure_to_json(page.code) if page.code is not None else None,
        "scan": scan_to_json(page.scan) if page.scan is not None else None,
        "marks": marks_to_json(page.marks) if page.marks is not None else None,
    }


def marks_to_json(marks: PageMarks) -> dict[str, Any]:
    """Pack what a page's look says about its lines; ``PageMarks`` has the meaning of the names."""
    return {
        "begins": list(marks.begins),
        "goes_on": list(marks.goes_on),
        "raised": [list(span) for span in marks.raised],
    }


def marks_from_json(data: Mapping[str, Any]) -> PageMarks:
    """Unpack what ``marks_to_json`` made."""
    return PageMarks(
        tuple(data["begins"]), tuple(data["goes_on"]), tuple((low, high) for low, high in data["raised"])
    )


def page_from_json(data: Mapping[str, Any]) -> PageText:
    """Unpack a page from the wire."""
    return PageText(
        number=int(data["number"]),
        text=str(data["text"]),
        width=float(data["width"]),
        height=float(data["height"]),
        headings=tuple(Heading(*item) for item in data["headings"]),
        regions=tuple(
            Region(kind, start, end, tuple(starts), body, header, tuple(rows), columns, caption, mark)
            for kind, start, end, starts, body, header, rows, columns, caption, mark in (
                # Pages stored before tables had cells end at the header.
                (*item, (), 0, "", "")[:_REGION_FIELDS]
                for item in data["regions"]
            )
        ),
        junk=JunkReason(data["junk"]) if data["junk"] else None,
        code=structure_from_json(data["code"]) if data.get("code") else None,
        scan=scan_from_json(data["scan"]) if data.get("scan") else None,
        marks=marks_from_json(data["marks"]) if data.get("marks") else None,
    )
