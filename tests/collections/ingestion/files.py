"""Makes small documents and finds the real ones."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from reportlab.lib.pagesizes import letter
from reportlab.pdfgen.canvas import Canvas

from tests.collections.ingestion.scans import PAGE

ROOT = Path(__file__).resolve().parents[3]


def shared_file(*parts: str) -> Path:
    """Give a real document, or skip the test when the documents are not on this machine."""
    base = Path(os.environ.get("GROUNDWORK_SHARED_DATA", ROOT.parent / "shared" / "data"))
    path = base.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"real documents are not here (GROUNDWORK_SHARED_DATA): {'/'.join(parts)}")
    return path


def make_pdf(path: Path, pages: list[list[str]], *, size: float = 11, **options: object) -> Path:
    """Write a PDF with one line of text per string; a string that starts with ``# `` is set large and bold."""
    canvas = Canvas(str(path), pagesize=letter, **options)
    for lines in pages:
        y = 740.0
        for line in lines:
            if line.startswith("# "):
                canvas.setFont("Helvetica-Bold", size * 1.6)
                line = line[2:]
            else:
                canvas.setFont("Helvetica", size)
            canvas.drawString(72, y, line)
            y -= size * 1.5
        canvas.showPage()
    canvas.save()
    return path


def make_image_pdf(path: Path, pages: int = 2) -> Path:
    """Write a PDF with drawings and no text; its pages are small, for text recognition looks at every pixel."""
    canvas = Canvas(str(path), pagesize=PAGE)
    for _ in range(pages):
        canvas.rect(50, 50, 120, 160, fill=1)
        canvas.showPage()
    canvas.save()
    return path
