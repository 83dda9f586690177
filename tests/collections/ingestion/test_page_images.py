from __future__ import annotations

from io import BytesIO

import pytest
from PIL import Image, ImageChops

from apps.collections.ingestion.extraction import document_extract
from apps.collections.ingestion.page_images import page_text_boxes, render_page_image
from apps.collections.ingestion.types import ReadFailure
from tests.collections.ingestion.drawn_pages import Drawn, drawn_pdf, width_of
from tests.collections.ingestion.files import make_pdf, shared_file


@pytest.fixture
def lamp_pdf(tmp_path):
    return make_pdf(
        tmp_path / "a.pdf", [["First line of words."], ["Second page.", "Lamps 8539.50.00 here."]]
    )


@pytest.mark.parametrize("image_format", ["webp", "png"])
def test_page_is_drawn_at_scale(lamp_pdf, image_format):
    drawn = render_page_image(lamp_pdf, 1, 1.5, image_format=image_format)
    image = Image.open(BytesIO(drawn.data))
    assert image.size == (918, 1188) == (drawn.width, drawn.height)
    assert image.format == image_format.upper()
    white = Image.new("RGB", image.size, "white")
    assert ImageChops.difference(image.convert("RGB"), white).getbbox() is not None


def test_scale_is_held_when_it_asks_for_too_much(lamp_pdf):
    assert render_page_image(lamp_pdf, 1, 1000.0).width == 612 * 4


def test_box_covers_the_ink_of_the_passage(lamp_pdf):
    text = document_extract(lamp_pdf, name="a.pdf").pages[1].text
    start = text.index("8539")
    [box] = page_text_boxes(lamp_pdf, 2, start, start + len("8539.50.00"))
    drawn = render_page_image(lamp_pdf, 2, 2.0, image_format="png")
    image = Image.open(BytesIO(drawn.data)).convert("L")
    left, top = box.left * image.width, box.top * image.height
    cut = image.crop(
        (int(left), int(top), int(left + box.width * image.width), int(top + box.height * image.height))
    )
    assert min(cut.tobytes()) < 80  # there is ink
    line_ink = ImageChops.invert(image.crop((0, int(top), image.width, int(top + box.height * image.height))))
    ink = line_ink.point([0] * 101 + [255] * 155).getbbox()
    assert ink is not None
    # "Lamps " stands left of the box, so the line's first ink must lie outside of it.
    assert ink[0] < left - 20
    assert 0.08 < box.width < 0.13


def test_boxes_are_one_per_line_when_the_passage_spans_lines(lamp_pdf):
    text = document_extract(lamp_pdf, name="a.pdf").pages[1].text
    boxes = page_text_boxes(lamp_pdf, 2, 0, len(text))
    assert len(boxes) == 2
    assert boxes[0].top < boxes[1].top
    assert all(0 <= v <= 1 for b in boxes for v in (b.left, b.top, b.left + b.width, b.top + b.height))


def test_no_boxes_come_when_the_range_is_empty_or_outside(lamp_pdf):
    assert page_text_boxes(lamp_pdf, 2, 5, 5) == []
    assert page_text_boxes(lamp_pdf, 2, 9_000, 9_100) == []


def test_failure_is_typed_when_the_page_does_not_exist(lamp_pdf):
    with pytest.raises(ReadFailure) as caught:
        render_page_image(lamp_pdf, 3)
    assert "has 2" in caught.value.message


def test_boxes_lie_in_the_right_column_when_a_real_page_has_three():
    path = shared_file("trade-us", "2025-15819.pdf")
    text = document_extract(path, name=path.name).pages[0].text
    start = text.index("Bryce Hoffmann")
    boxes = page_text_boxes(path, 1, start, text.index("SUPPLEMENTARY"))
    assert len(boxes) == 3
    assert all(0.07 < b.left < 0.08 and b.left + b.width < 0.34 for b in boxes)


def test_offsets_hold_when_hyphens_were_resolved_before_them():
    path = shared_file("trade-us", "2025-23316.pdf")
    page = document_extract(path, name=path.name).pages[1]
    start = page.text.rindex("8", 0, len(page.text) - 20)
    [box] = page_text_boxes(path, page.number, start, start + 1)
    assert box.width < 0.02


def test_line_from_right_to_left_has_one_mark_and_the_figure_in_it(tmp_path):
    seen = "לש 0.05 םכסה"  # as it stands on the page, from left to right
    path = drawn_pdf(tmp_path / "a.pdf", [Drawn(seen, 300, 700), Drawn(seen, 300, 680)])
    text = document_extract(path, name="a.pdf").pages[0].text
    assert text.startswith("הסכם 0.05 של\n")
    one, two = page_text_boxes(path, 1, 0, len(text.rstrip()))
    for box in (one, two):
        assert (box.left, box.width) == pytest.approx((300 / 612, width_of(seen) / 612), abs=0.002)
    assert one.top + one.height < two.top
