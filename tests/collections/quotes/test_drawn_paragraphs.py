"""What a page's white space, sizes and weight part is quoted apart, in every script; what they don't part stays whole."""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from apps.collections.ingestion.frames import page_from_json, page_to_json
from apps.collections.ingestion.readers.pdf import PdfReader
from apps.collections.ingestion.types import PageText, ReaderLimits
from apps.collections.models import Chunk, Collection
from apps.collections.quotes.parts import PagePart, quotable_from_text, quotable_of
from apps.collections.quotes.selectors import quotables_read
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import ingest
from tests.collections.ingestion.drawn_pages import Drawn, drawn_pdf, width_of

LEADING, GAP = 13.0, 18.0
# Lines of Thai paragraphs without a mark at their end, the last line as full as the others.
THAI = (
    ("กรมศุลกากรถือว่าโคมไฟที่ไม่มีหลอด", "เป็นสินค้าสำเร็จรูปเมื่อขั้วหลอดยึด", "กับฐานแล้วตามที่กำหนดไว้ในระเบียบ"),
    ("ผู้นำเข้าจะได้รับแจ้งภายในสองวันทำ", "การและมีสิทธิอยู่ด้วยเมื่อเปิดลังแล้ว"),
    ("ตัวอย่างจะถูกส่งไปยังห้องปฏิบัติกา", "รซึ่งรายงานส่วนผสมของโลหะและราคา"),
)
CHINESE = (
    ("本办法适用于税号所列的各类灯具及其", "零件以及与其一并报验的全部包装材料"),
    ("进口商应当在货物到港前三个工作日内", "通过电子系统提交申报单和全部附件表"),
)
LATIN = (
    ("The Department keeps one list of firms and", "their shares in Room 2624 of its building"),
    ("Officers at the port open one crate in two", "hundred and compare it with the list above"),
)


def read(path: Path) -> list[PageText]:
    return list(PdfReader().read(path, ReaderLimits()).pages)


def quoted(path: Path) -> list[str]:
    """Return what may be quoted of a PDF, as the pages come out of its reader and over the wire."""
    parts, at = [], 0
    for read_page in read(path):
        page = page_from_json(page_to_json(read_page))
        assert page == read_page
        parts.append(
            PagePart(
                page.number,
                at,
                page.text,
                tuple((at + h.char_start, at + h.char_end) for h in page.headings),
                marks=page.marks and page.marks.moved(at),
            )
        )
        at += len(page.text)
    made = quotable_of(parts, 0, at)
    return [made.said(u.start, u.end, u.kind) for u in made.units]


def stacked(*paragraphs: tuple[str, ...], gap: float = GAP, leading: float = LEADING) -> list[Drawn]:
    """Set paragraphs below each other; ``gap`` is from a paragraph's last line to the next one's first."""
    drawn, y = [], 740.0
    for lines in paragraphs:
        for line in lines:
            drawn.append(Drawn(line, 72, y))
            y -= leading
        y -= gap - leading
    return drawn


@pytest.mark.parametrize(
    ("paragraphs", "blank"), [(THAI, ""), (CHINESE, ""), (LATIN, " ")], ids=["th", "zh", "en"]
)
def test_a_gap_parts_paragraphs_whose_lines_are_full_and_have_no_mark(
    tmp_path: Path, paragraphs: tuple[tuple[str, ...], ...], blank: str
) -> None:
    path = drawn_pdf(tmp_path / "a.pdf", stacked(*paragraphs))
    assert quoted(path) == [blank.join(lines) for lines in paragraphs]
    [page] = read(path)
    # The text, and so the chunks, are what they are without the marks.
    assert page.text.strip() == "\n".join("\n".join(lines) for lines in paragraphs)


def test_wide_lines_are_no_paragraphs(tmp_path: Path) -> None:
    said = tuple("本办法适用于税号所列的各类灯具及其" for _ in range(6))
    drawn = stacked(said, leading=24.0)
    assert quoted(drawn_pdf(tmp_path / "a.pdf", drawn)) == ["".join(said)]
    # An address of close lines above them doesn't make them paragraphs either.
    close = [Drawn(f"第{n}层办公楼", 72, 802 - 12 * n) for n in range(1, 4)]
    made = quoted(drawn_pdf(tmp_path / "b.pdf", [*close, *drawn]))
    assert made[-1] == "".join(said)


def test_short_lines_of_thai_go_on_where_paragraphs_have_gaps(tmp_path: Path) -> None:
    entry = ("(ข) รายละเอียดของโคมไฟ", "รวมทั้งน้ำหนัก กำลังไฟ และวัสดุ")
    assert quoted(drawn_pdf(tmp_path / "a.pdf", stacked(*THAI, entry, ("(ค) รหัสสินค้าสิบหลัก",)))) == [
        *("".join(lines) for lines in THAI),
        "".join(entry),
        "(ค) รหัสสินค้าสิบหลัก",
    ]


def test_a_first_line_that_is_set_in_begins_a_paragraph(tmp_path: Path) -> None:
    # No gap, no mark, and the last lines are full: only the first lines stand further right.
    drawn = [
        Drawn(line, 72 + (20 if place == 0 else 0), y)
        for (place, line), y in zip(
            [(place, line) for lines in THAI for place, line in enumerate(lines)],
            count(740, -LEADING),
            strict=False,
        )
    ]
    assert quoted(drawn_pdf(tmp_path / "a.pdf", drawn)) == ["".join(lines) for lines in THAI]


def test_a_raised_number_ends_a_chinese_and_a_japanese_sentence(tmp_path: Path) -> None:
    for one, two in (
        ("哪些企业可以申请豁免？", "凡年进口量低于一万件的企业，均可提出。"),
        ("どの企業が免除を申請できるのか？", "年間の輸入量が少ない企業は申請できる。"),
    ):
        wide = width_of(one)
        pieces = [
            Drawn(one, 72, 700),
            Drawn("1", 72 + wide, 704, 6),
            Drawn(two, 72 + wide + 3, 700),
            Drawn("最後の行である。", 72, 687),
        ]
        assert quoted(drawn_pdf(tmp_path / "a.pdf", pieces))[:2] == [f"{one}1", two]
        # A number on the line is part of what follows.
        pieces[1:3] = [Drawn(f"1{two}", 72 + wide, 700)]
        assert quoted(drawn_pdf(tmp_path / "b.pdf", pieces))[:2] == [one, f"1{two}"]


def test_a_raised_number_ends_a_latin_sentence_whatever_follows(tmp_path: Path) -> None:
    one, two = "The lamps are free of duty.", " iPhones pay two percent of their value."
    wide = width_of(one)
    pieces = [Drawn(one, 72, 700), Drawn("12", 72 + wide, 704, 6), Drawn(two, 72 + wide + 6, 700)]
    [page] = read(drawn_pdf(tmp_path / "a.pdf", pieces))
    assert page.marks is not None
    assert [page.text[low:high] for low, high in page.marks.raised] == ["12"]
    plain = [Drawn("Paragraph 12 says 3 percent of 4 lamps.", 72, 700)]
    assert read(drawn_pdf(tmp_path / "b.pdf", plain))[0].marks is None


def test_lines_of_arabic_are_whole_where_a_raised_number_cuts_them(tmp_path: Path) -> None:
    before, behind = "من يحق له أن يطلب الإعفاء؟", "يحق لكل شركة أن تقدم طلبا."
    right = 500.0
    middle = right - width_of(before)
    left = middle - 4 - width_of(" " + behind)
    # As browsers draw it: the piece on the left first, letters from left to right.
    pieces = [
        Drawn((" " + behind)[::-1], left, 700),
        Drawn("1", middle - 3.5, 704, 7),
        Drawn(before[::-1], middle, 700),
    ]
    path = drawn_pdf(tmp_path / "a.pdf", pieces)
    [page] = read(path)
    assert page.text.strip() == f"{before}1 {behind}"
    assert quoted(path) == [f"{before}1", behind]


@pytest.mark.parametrize(
    ("title", "lines"),
    [
        (
            "ما يجب أن يتضمنه الطلب المقدم من الشركة",
            ("يجب أن يتضمن الطلب ما يلي من البيانات كلها", "حتى ينظر فيه."),
        ),
        ("申请书应当包括的全部内容和附件", ("申请书由进口商填写并在到港以前提交", "给主管部门。")),
        ("การตรวจที่ท่าเรือและคลังสินค้า", ("เจ้าหน้าที่เปิดตรวจหนึ่งลังจากทุกสอง", "ร้อยลังและบันทึกน้ำหนักไว้")),
        (
            "Checks at the port and in the Store",
            ("Officers at the port open one crate in two", "hundred and weigh it."),
        ),
    ],
    ids=["ar", "zh", "th", "en"],
)
def test_a_bold_heading_without_a_gap_is_not_joined_with_what_follows(
    tmp_path: Path, title: str, lines: tuple[str, ...]
) -> None:
    is_rtl = title[0] > "\u05ff" and title[0] < "\u0700"
    drawn = []
    for place, line in enumerate((title, *lines)):
        x = 500 - width_of(line) if is_rtl else 72
        drawn.append(Drawn(line[::-1] if is_rtl else line, x, 700 - LEADING * place, is_bold=place == 0))
    found = quoted(drawn_pdf(tmp_path / "a.pdf", drawn))
    assert found[0] == title
    assert len(found) == 2


def test_a_larger_heading_is_not_joined_with_what_follows(tmp_path: Path) -> None:
    # Too many of them for headings, and without a mark: only the size tells.
    drawn, y = [], 740.0
    for number in range(14):
        drawn += [
            Drawn(f"第{number}条灯具申报", 72, y, 12),
            Drawn("进口商应当在货物到港前提交申报单", 72, y - 15),
        ]
        y -= 30
    found = quoted(drawn_pdf(tmp_path / "a.pdf", drawn))
    assert found[:2] == ["第0条灯具申报", "进口商应当在货物到港前提交申报单"]
    assert len(found) == 28


def test_the_last_entry_of_a_japanese_list_ends_where_lines_are_set_out_again(tmp_path: Path) -> None:
    entries = [
        "（1）輸入者の名称、住所および電話番号",
        "（2）照明器具の重量、定格電力と材質",
        "（3）国内に同種の製品がない旨の説明",
    ]
    body = ("書類に不備があるときは、理由を付して返却", "する。主務官庁は、六十日以内に決定する。")
    drawn = [Drawn(line, 84, 700 - LEADING * n) for n, line in enumerate(entries)]
    for gap in (LEADING, GAP):
        y = 700 - LEADING * (len(entries) - 1) - gap
        path = drawn_pdf(
            tmp_path / "a.pdf", [*drawn, *(Drawn(t, 72, y - LEADING * n) for n, t in enumerate(body))]
        )
        assert quoted(path) == [
            *entries,
            "書類に不備があるときは、理由を付して返却する。",
            "主務官庁は、六十日以内に決定する。",
        ]


@pytest.mark.parametrize("mark", ["・", "●", "※", "①", "１．", "ア．", "（ア）"])
def test_entries_of_japanese_lists_end_at_the_next_one(tmp_path: Path, mark: str) -> None:
    # All lines are equally long: only the marks tell.
    nexts = {"①": "②", "１．": "２．", "ア．": "イ．", "（ア）": "（イ）"}
    entries = (f"{mark}輸入者の名称と住所", f"{nexts.get(mark, mark)}照明器具の重量材質")
    assert quoted(drawn_pdf(tmp_path / "a.pdf", stacked(entries))) == [
        entry.lstrip("●・") for entry in entries
    ]


def test_a_quotation_at_a_lines_end_belongs_to_its_sentence(tmp_path: Path) -> None:
    lines = ("税関は「ソケットがあれば完成品とみなす。」", "と説明している。この規則は五年間効力を有する。")
    assert quoted(drawn_pdf(tmp_path / "a.pdf", stacked(lines)))[0] == f"{lines[0]}と説明している。"


def test_what_a_figure_parts_in_mid_sentence_stays_whole_in_latin(tmp_path: Path) -> None:
    one = ("The Department keeps one list of all firms", "and of their shares in the room at which the")
    two = ("public may read it on working days. Copies", "cost a quarter of a dollar for each page.")
    path = drawn_pdf(tmp_path / "a.pdf", stacked(one, two, gap=40))
    assert (
        quoted(path)[0]
        == "The Department keeps one list of all firms and of their shares in the room at which the public may read it on working days."
    )


def test_an_abbreviation_at_a_lines_end_begins_no_list(tmp_path: Path) -> None:
    lines = ("Its ruling relied on section 3 and on Pub.", "L. 117-58, which shows the trend of imports.")
    assert quoted(drawn_pdf(tmp_path / "a.pdf", stacked(lines))) == [" ".join(lines)]


@pytest.mark.django_db
def test_marks_are_kept_with_the_page_and_used_for_quotes(
    cast: Cast, collection: Collection, tmp_path: Path
) -> None:
    path = drawn_pdf(tmp_path / "a.pdf", stacked(*THAI))
    with tenant_scope(cast.tenant.pk):
        document = ingest(cast, collection, "a.pdf", path.read_bytes())
        chunk = Chunk.objects.filter(document=document).order_by("-index")[0]
        kept = quotables_read(cast.tenant.pk, [chunk.pk])[chunk.pk]
    made = quotable_from_text(kept, chunk.char_start, chunk.text)
    assert made is not None
    said = [made.said(u.start, u.end) for u in made.units]
    assert said == ["".join(lines) for lines in THAI]
