"""What stands on a PDF page beside its printed text: form values, notes; and text that runs from right to left."""

from __future__ import annotations

from pathlib import Path

import pytest
from reportlab.lib.pagesizes import letter
from reportlab.pdfgen.canvas import Canvas

from apps.collections.ingestion.page_images import find_boxes
from apps.collections.ingestion.readers.pdf import PdfReader
from apps.collections.ingestion.readers.pdf_rtl import reading_order
from apps.collections.ingestion.readers.pdf_text import clean_page
from apps.collections.ingestion.types import ReaderLimits


def filled_form(path: Path) -> Path:
    canvas = Canvas(str(path), pagesize=letter)
    canvas.drawString(72, 740, "Application for a permit")
    form = canvas.acroForm
    form.textfield(name="applicant", tooltip="Name of the applicant", value="Ada Quill", x=72, y=690, width=200)  # fmt: skip
    form.textfield(name="hts", value="8481.80.30.55", x=72, y=650, width=200)
    form.textfield(name="empty", value="", x=72, y=610, width=200)
    form.checkbox(name="resident", tooltip="Resident", checked=True, x=72, y=570)
    form.checkbox(name="exempt", tooltip="Exempt", checked=False, x=72, y=540)
    form.choice(name="port", tooltip="Port of entry", value="Seattle", options=["Boston", "Seattle"], x=72, y=500, width=120)  # fmt: skip
    form.radio(name="mode", tooltip="Mode", value="sea", selected=True, x=72, y=460)
    form.radio(name="mode", tooltip="Mode", value="air", selected=False, x=112, y=460)
    canvas.textAnnotation("Checked against the ledger.", [300, 700, 320, 720], Name="Comment")
    canvas.showPage()
    form.textfield(name="remarks", value="Only a field stands here.", x=72, y=700, width=200)
    canvas.showPage()
    canvas.save()
    return path


def test_values_of_a_form_and_notes_are_text(tmp_path: Path) -> None:
    path = filled_form(tmp_path / "form.pdf")
    first, second = PdfReader().read(path, ReaderLimits()).pages
    lines = first.text.split("\n")
    for said in (
        "Application for a permit",
        "Name of the applicant: Ada Quill",
        "hts: 8481.80.30.55",
        "Port of entry: Seattle",
        "Mode: sea",
        "Note: Checked against the ledger.",
    ):
        assert said in lines, first.text
    assert any(line.startswith("Resident: ") for line in lines)
    assert not any(line.startswith(("Exempt", "empty")) or "air" in line for line in lines)
    assert "Only a field stands here." in second.text

    start = first.text.index("hts: ")
    [[left, top, width, height]] = find_boxes(path, 1, start, start + 12)
    assert left == pytest.approx(72 / 612, abs=0.01)
    assert top == pytest.approx((792 - 650 - 36) / 792, abs=0.05)
    assert width > 0.2
    assert height < 0.1


def placed(text: str, words: dict[str, bool]) -> tuple[str, dict[int, float]]:
    """Write a line as PDFium gives it: words in reading order; ``words`` says which come with their letters reversed."""
    raw, places, x = "", {}, 1000.0
    for token in text.split(" "):
        letters = token[::-1] if words.get(token) else token
        spots = [x - 10 * i for i in range(len(token))]
        for i, _ in enumerate(letters):
            places[len(raw) + i] = spots[::-1][i] if words.get(token) else spots[i]
        raw += letters + " "
        x -= 10 * len(token) + 10
    return raw.rstrip(), places


@pytest.mark.parametrize(
    "text",
    [
        "שלום עולם זהו מסמך בדיקה",
        "مرحبا بالعالم هذه وثيقة اختبار",
        "سلام دنیا این یک سند است",
        "یہ ایک آزمائشی دستاویز ہے",
    ],
)
def test_letters_of_right_to_left_words_are_put_in_reading_order(text: str) -> None:
    words = {word: place % 2 == 0 for place, word in enumerate(text.split())}
    raw, places = placed(text, words)
    assert raw != text
    ordered, order = reading_order(raw, places.get)
    assert ordered == text
    assert order is not None
    assert sorted(order) == list(range(len(raw)))
    assert [raw[i] for i in order] == list(text)
    clean = clean_page(raw, places.get)
    assert clean.text == text
    assert all(raw[clean.raw_offset(i)] == ch for i, ch in enumerate(text))


def test_brackets_and_full_stops_of_right_to_left_lines() -> None:
    seen = "מסמך משנת .2024 על כל אדם) לרבות תאגיד( במדינת"
    ordered, order = reading_order(seen, lambda offset: -float(offset))
    assert ordered == "מסמך משנת 2024. על כל אדם (לרבות תאגיד) במדינת"
    assert order is not None
    assert sorted(order) == list(range(len(seen)))
    plain = "The year (2024) in .NET"
    assert reading_order(plain, float) == (plain, None)


def test_shapes_of_letters_become_letters() -> None:
    raw = "\ufefb \ufedf\ufee0\ufeea and o\ufb03ce"
    assert clean_page(raw).text == "لا لله and office"
