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
    form.textfield(
        name="applicant", tooltip="Name of the applicant", value="Ada Quill", x=72, y=690, width=200
    )
    form.textfield(name="hts", value="8481.80.30.55", x=72, y=650, width=200)
    form.textfield(name="empty", value="", x=72, y=610, width=200)
    form.checkbox(name="resident", tooltip="Resident", checked=True, x=72, y=570)
    form.checkbox(name="exempt", tooltip="Exempt", checked=False, x=72, y=540)
    form.choice(
        name="port",
        tooltip="Port of entry",
        value="Seattle",
        options=["Boston", "Seattle"],
        x=72,
        y=500,
        width=120,
    )
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


def raw_pdf(path: Path, *bodies: bytes) -> Path:
    """Write objects 1, 2, ... as a PDF; its reader finds them without a table of where they are."""
    parts = [b"%PDF-1.7\n"]
    parts += [b"%d 0 obj\n%b\nendobj\n" % (n, body) for n, body in enumerate(bodies, 1)]
    path.write_bytes(b"".join(parts) + b"trailer\n<< /Root 1 0 R >>\n%%EOF\n")
    return path


def stream(data: bytes) -> bytes:
    return b"<< /Length %d >>\nstream\n%b\nendstream" % (len(data), data)


def xfa_form(path: Path, datasets: bytes) -> Path:
    return raw_pdf(
        path,
        b"<< /Type /Catalog /Pages 2 0 R /NeedsRendering true /AcroForm << /Fields [] /XFA [(template) 6 0 R (datasets) 5 0 R] >> >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R /Resources << /Font << /F << /Type /Font "
        b"/Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        stream(b"BT /F 12 Tf 72 700 Td (Please wait...) Tj ET"),
        stream(datasets),
        stream(b"<template/>"),
    )


DATASETS = (
    b'<xfa:datasets xmlns:xfa="http://www.xfa.org/schema/xfa-data/1.0/"><xfa:data><form1><Applicant>Ada Quill'
    b"</Applicant><Goods><Row><Hts>8481.80.30.55</Hts><Note>two\nlines</Note></Row><Row><Hts>8413.70.20</Hts></Row>"
    b"</Goods><Empty/></form1></xfa:data><dataDescription><secret>no value</secret></dataDescription></xfa:datasets>"
)


def test_values_of_an_xfa_form_are_text_and_its_pages_are_said_to_be_missing(tmp_path: Path) -> None:
    reading = PdfReader().read(xfa_form(tmp_path / "xfa.pdf", DATASETS), ReaderLimits())
    [page] = reading.pages
    lines = page.text.split("\n")
    for said in ("Applicant: Ada Quill", "Hts: 8481.80.30.55", "Hts: 8413.70.20", "Note: two"):
        assert said in lines, page.text
    assert "no value" not in page.text
    assert "Empty" not in page.text
    assert "The values filled in were read" in reading.warnings[0]


@pytest.mark.parametrize(
    "datasets",
    [b"", b"<open>", b"<!DOCTYPE a [<!ENTITY b 'c'>]><a><data><x>&b;</x></data></a>", b"<a>" * 9000],
)
def test_xfa_form_without_readable_values_says_so(tmp_path: Path, datasets: bytes) -> None:
    reading = PdfReader().read(xfa_form(tmp_path / "xfa.pdf", datasets), ReaderLimits())
    [page] = reading.pages
    assert page.text.strip() == "Please wait..."
    assert "Neither its pages nor its values" in reading.warnings[0]


def test_no_kind_of_field_loses_its_value(tmp_path: Path) -> None:
    canvas = Canvas(str(tmp_path / "kinds.pdf"), pagesize=letter)
    form = canvas.acroForm
    form.textfield(
        name="lines", value="12 Mill Lane\nCambridge", fieldFlags="multiline", x=50, y=700, height=60
    )
    form.textfield(name="comb", value="AB12345", fieldFlags="comb", maxlen=10, x=50, y=660)
    form.textfield(name="fixed", value="SN-7", fieldFlags="readOnly", x=50, y=620)
    form.textfield(name="zero", value="0", x=50, y=580)
    form.textfield(name="secret", value="hunter2", fieldFlags="password", x=300, y=580)
    form.listbox(
        name="goods",
        value=["Pumps", "Valves"],
        options=["Pumps", "Valves", "Bolts"],
        fieldFlags="multiSelect",
        x=50,
        y=500,
    )
    canvas.showPage()
    canvas.save()
    [page] = PdfReader().read(tmp_path / "kinds.pdf", ReaderLimits()).pages
    said = (
        "lines: 12 Mill Lane\nCambridge\n",
        "comb: AB12345\n",
        "fixed: SN-7\n",
        "zero: 0\n",
        "secret: (a password)\n",
        "goods: Pumps, Valves\n",
    )
    assert [one for one in said if one not in page.text] == []
    assert "Bolts" not in page.text


def test_label_that_is_printed_beside_a_field_stands_with_its_value(tmp_path: Path) -> None:
    canvas = Canvas(str(tmp_path / "labels.pdf"), pagesize=letter)
    form = canvas.acroForm

    def field(kind: str, **options: object) -> None:
        getattr(form, kind)(**{"name": f"form1[0].f1_{len(names):02}[0]", **options})
        names.append(kind)

    names: list[str] = []
    canvas.drawString(72, 700, "Name of the applicant:")
    field("textfield", value="Ada Quill", x=220, y=695, width=120, height=16)
    canvas.drawString(350, 700, "Port of entry")  # two fields on one line, each with its own label
    field("choice", value="Seattle", options=["Boston", "Seattle"], x=430, y=695, width=100, height=16)
    canvas.drawString(72, 660, "Street and number ................")
    field(
        "textfield",
        value="12 Mill Lane\nCambridge",
        fieldFlags="multiline",
        x=260,
        y=630,
        width=200,
        height=44,
    )
    canvas.setFont("Helvetica-Bold", 9)
    canvas.drawString(72, 610, "Tariff")
    canvas.setFont("Helvetica", 9)
    canvas.drawString(72 + canvas.stringWidth("Tariff ", "Helvetica-Bold", 9), 610, "heading")
    field("textfield", value="8481.80.30.55", x=72, y=590, width=120, height=16)
    canvas.drawString(300, 610, "Amount")
    field("textfield", value="100", x=300, y=590, width=60, height=16)
    field("textfield", value="100", x=300, y=570, width=60, height=16)  # a second row of the same column
    canvas.drawString(72, 570, "Date: ______________ Place: ______________")
    field("textfield", value="2024-03-18", x=100, y=567, width=70, height=14)
    field("textfield", value="Boston", x=205, y=567, width=70, height=14)
    canvas.drawString(72, 540, "Are the goods insured?")
    field("checkbox", checked=True, x=220, y=538, size=12)
    canvas.drawString(238, 540, "insured by the sender")
    field("checkbox", checked=False, x=380, y=538, size=12)
    canvas.drawString(398, 540, "not insured")
    canvas.drawString(72, 500, "Sent by")
    for place, (value, said) in enumerate((("1", "sea"), ("2", "air"))):
        is_on = value == "2"
        form.radio(
            name="mode",
            tooltip="Mode of transport",
            value=value,
            selected=is_on,
            x=220 + 90 * place,
            y=498,
            size=12,
        )
        canvas.drawString(238 + 90 * place, 500, said)
    field(
        "textfield",
        name="remarks",
        value="Nothing is printed beside this.",
        x=72,
        y=200,
        width=300,
        height=16,
    )
    canvas.showPage()
    canvas.save()
    [page] = PdfReader().read(tmp_path / "labels.pdf", ReaderLimits()).pages
    printed, _, filled = page.text.partition("air\n")
    assert "Name of the applicant" in printed
    assert sorted(filled.strip().split("\n")) == sorted(
        [
            "Name of the applicant: Ada Quill",
            "Port of entry: Seattle",
            "Street and number: 12 Mill Lane",
            "Cambridge",
            "Tariff heading: 8481.80.30.55",
            "Date: 2024-03-18",
            "Place: Boston",
            "Amount: 100",
            "Amount: 100",
            "insured by the sender: Yes",
            "Mode of transport: 2 (air)",
            "remarks: Nothing is printed beside this.",
        ]
    )


@pytest.mark.parametrize("form", [b"", b"/AcroForm << /Fields [] >>"])
def test_field_that_the_form_does_not_list_keeps_its_value(tmp_path: Path, form: bytes) -> None:
    path = raw_pdf(
        tmp_path / "loose.pdf",
        b"<< /Type /Catalog /Pages 2 0 R %b >>" % form,
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Annots [4 0 R 5 0 R 6 0 R] >>",
        b"<< /Type /Annot /Subtype /Widget /FT /Tx /T (port) /V (Seattle) /Rect [72 600 200 620] >>",
        b"<< /Type /Annot /Subtype /Widget /FT /Btn /T (exempt) /V /Off /Rect [72 500 90 520] >>",
        b"<< /Type /Annot /Subtype /Widget /FT /Btn /T (resident) /V /Yes /AS /Yes /Rect [72 400 90 420] >>",
    )
    [page] = PdfReader().read(path, ReaderLimits()).pages
    assert page.text.strip().split("\n") == ["port: Seattle", "resident: Yes"]


def test_signed_field_says_that_it_is_signed(tmp_path: Path) -> None:
    field = b"<< /Type /Annot /Subtype /Widget /FT /Sig /T (%b) /Rect [72 %d 200 %d] /P 3 0 R %b >>"
    path = raw_pdf(
        tmp_path / "signed.pdf",
        b"<< /Type /Catalog /Pages 2 0 R /AcroForm << /Fields [4 0 R 5 0 R] /SigFlags 3 >> >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Annots [4 0 R 5 0 R] >>",
        field % (b"Seller", 600, 640, b"/V << /Type /Sig /Filter /Adobe.PPKLite /Name (Ada) >>"),
        field % (b"Buyer", 500, 540, b""),
    )
    [page] = PdfReader().read(path, ReaderLimits()).pages
    assert page.text.strip() == "Seller: signed"


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
    for seen, read in (
        (")أ( اسم المستورد؛", "(أ) اسم المستورد؛"),
        ("وفقا للمادة )5( والمادة ]6[ منه", "وفقا للمادة (5) والمادة [6] منه"),
        ("(أ) اسم (ب) وصف", "(أ) اسم (ب) وصف"),
        ("قال:» نعم« منذ عام ،2019 ثم", "قال: «نعم» منذ عام 2019، ثم"),
        ("بندها) وقال «نعم»", "بندها) وقال «نعم»"),
    ):
        assert reading_order(seen, lambda offset: -float(offset))[0] == read
    plain = "The year (2024) in .NET"
    assert reading_order(plain, float) == (plain, None)


def test_shapes_of_letters_become_letters() -> None:
    raw = "\ufefb \ufedf\ufee0\ufeea and o\ufb03ce"
    assert clean_page(raw).text == "لا لله and office"


def test_line_goes_on_after_a_raised_or_lowered_mark(tmp_path: Path) -> None:
    path = tmp_path / "marks.pdf"
    canvas = Canvas(str(path), pagesize=letter)

    def line(y: float, *parts: tuple[str, float, float]) -> None:
        x = 72.0
        for text, rise, size in parts:
            canvas.setFont("Times-Roman", size)
            canvas.drawString(x, y + rise, text)
            x += canvas.stringWidth(text, "Times-Roman", size)

    line(700, ("The area of 25 m", 0, 11), ("2", 5, 7), (" was measured again.", 0, 11))
    line(
        680,
        ("Costs rose", 0, 11),
        ("1", 5, 6),
        (" while output fell,", 0, 11),
        ("2,3", 5, 6),
        (" as shown", 0, 11),
    )
    line(660, ("the 4", 0, 11), ("th", 8, 6), (" of July", 0, 11))
    line(640, ("1", 5, 6), (" A footnote goes on after its mark.", 0, 9))
    line(620, ("Ends with a mark.", 0, 11), ("12", 5, 6))
    line(600, ("A line of its own.", 0, 11))
    canvas.drawString(330, 612, "A column beside it.")
    canvas.showPage()
    canvas.save()
    [page] = PdfReader().read(path, ReaderLimits()).pages
    assert page.text.strip().split("\n") == [
        "The area of 25 m2 was measured again.",
        "Costs rose1 while output fell,2,3 as shown",
        "the 4th of July",
        "1 A footnote goes on after its mark.",
        "Ends with a mark.12",
        "A line of its own.",
        "A column beside it.",
    ]
    start = page.text.index("measured")
    [[left, _, _, _]] = find_boxes(path, 1, start, start + 8)
    before = canvas.stringWidth("The area of 25 m was ", "Times-Roman", 11) + canvas.stringWidth(
        "2", "Times-Roman", 7
    )
    assert left == pytest.approx((72 + before) / 612, abs=0.01)


def test_titles_with_air_between_their_letters_are_words(tmp_path: Path) -> None:
    path = tmp_path / "spaced.pdf"
    canvas = Canvas(str(path), pagesize=letter)

    def line(y: float, text: str, air: float = 0.0) -> None:
        drawn = canvas.beginText(72, y)
        drawn.setFont("Courier", 12)
        drawn.setCharSpace(air)
        drawn.textOut(text)
        canvas.drawText(drawn)

    line(740, "S U M M A R Y   O F   W O R K")
    line(700, "A B C D are the options of item E F G H here.")
    line(660, "A B C D")
    line(620, "x z w v")
    canvas.showPage()
    canvas.save()
    [page] = PdfReader().read(path, ReaderLimits()).pages
    assert page.text.strip().split("\n") == [
        "SUMMARY OF WORK",
        "A B C D are the options of item E F G H here.",
        "A B C D",
        "x z w v",
    ]
    start = page.text.index("WORK")
    [[left, _, width, _]] = find_boxes(path, 1, start, start + 4)
    assert left == pytest.approx((72 + 22 * 7.2) / 612, abs=0.01)
    assert width == pytest.approx(7 * 7.2 / 612, abs=0.01)
