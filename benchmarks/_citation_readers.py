"""Read documents without the product's code, for what ``_citation_truth.py`` knows of them.

PDF by pdfplumber, XLSX by openpyxl, DOCX by python-docx, CSV by csv, HTML, EPUB and PPTX by lxml, Markdown and plain text by
their lines, Python by its tokens, other code by its lines. Images are read from the PDF that they were drawn from, and
documents that were made here from what they were made of: of a PDF, pdfplumber then only says what stands on which page.
"""

from __future__ import annotations

import csv
import io
import re
import tokenize
import zipfile
from collections.abc import Callable
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from _citation_files import TITLE, Made
from _citation_truth import ITEM, Asked, Block, Truth, letters

_MARKDOWN = re.compile(r"!?\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\([^)\s]*\)|[*_`\\]+")


def truth_of(path: Path, drawn_from: tuple[Path, list[int]] | None = None, made: Made | None = None) -> Truth:
    """Read a document.

    Args:
        drawn_from: of images of pages, the PDF and its page numbers.
        made: of a document that was made here, what it was made of.
    """
    if made is not None:
        return _made(made)
    if drawn_from is not None:
        whole = _pdf(drawn_from[0], set(drawn_from[1]))
        number = {old: new for new, old in enumerate(drawn_from[1], 1)}
        truth = Truth(path.name, "ocr", error=0.12)
        truth.blocks = [Block(number[b.page or 0], b.lines) for b in whole.blocks]
        truth.places = {number[page]: words for page, words in whole.places.items()}
        return truth
    return READERS[path.suffix](path)


def _made(made: Made) -> Truth:
    truth = Truth(made.path.name, f"{made.path.suffix[1:]} {made.language}")
    pages: dict[int, str] = {}
    if made.path.suffix == ".pdf":
        read = _pdf(made.path)
        truth.places = read.places
        # What runs from right to left is read as it is drawn: turned round, digits apart.
        turn = made.language == "ar"
        pages = {b.page or 0: "".join(letters(n[::-1] if turn else n) for n in b.lines) for b in read.blocks}
    at = 1 if pages else None

    def page_of(said: str) -> int | None:
        nonlocal at
        if at is None:
            return None
        wanted = letters(said)[:14]
        if made.language == "ar":
            wanted = max(re.split(r"\d+", wanted), key=len)
        # The page may end in mid-word, or after the first word.
        begun = tuple(wanted[:n] for n in range(4, len(wanted)))
        is_on = (n for n in sorted(pages) if n >= at and (wanted in pages[n] or pages[n].endswith(begun)))
        at = next(is_on, None)
        if at is None:
            raise SystemExit(f"{made.path.name}: no page has {said}")
        return at

    if made.path.suffix == ".html":
        truth.blocks.append(Block(None, [TITLE], known=True, is_heading=True))
    for part in made.parts:
        if part.kind == "table":
            head, *rows = part.rows
            for row in rows:
                said = " | ".join(row)
                # A text may name the code of a row long before the table does.
                begun = f"{row[0]} {row[1].split()[0]}"
                is_known = not pages or any(letters(begun) in page for page in pages.values())
                truth.rows.append(
                    Asked(f"table in {truth.kind}", said, page_of(begun if is_known else row[0]), row, head)
                )
            continue
        for page, run in groupby(((page_of(said), said) for said in part.said), itemgetter(0)):
            said_here = [said for _, said in run]
            if part.kind == "list":
                truth.blocks += [Block(page, [said], known=True) for said in said_here]
            else:
                truth.blocks.append(Block(page, said_here, True, part.kind == "heading"))
    return truth


def _pdf(path: Path, only: set[int] | None = None) -> Truth:
    import pdfplumber

    truth = Truth(path.name, "pdf")
    with pdfplumber.open(path) as pdf:
        for page in pdf.pages:
            if only is not None and page.page_number not in only:
                continue
            text = page.extract_text(use_text_flow=True, x_tolerance=1.5) or ""
            truth.blocks.append(Block(page.page_number, text.split("\n")))
            width, height = float(page.width), float(page.height)
            truth.places[page.page_number] = [
                (said, (char["x0"] + char["x1"]) / 2 / width, (char["top"] + char["bottom"]) / 2 / height)
                for char in page.chars
                if (said := letters(char["text"]))
            ]
            if only is not None:
                continue
            for table in page.find_tables():
                grid = [[" ".join((cell or "").split()) for cell in row] for row in table.extract()]
                _grid(truth, grid, page.page_number, "table in PDF")
            page.close()
    return truth


def _grid(truth: Truth, grid: list[list[str]], page: int | None, kind: str) -> None:
    if len(grid) < 2 or max(map(len, grid)) < 2:
        return
    head = tuple(grid[0])
    for row in grid[1:]:
        truth.rows.append(Asked(kind, " | ".join(row), page, tuple(row), head))


def _docx(path: Path) -> Truth:
    import docx

    truth = Truth(path.name, "docx")
    document = docx.Document(str(path))
    truth.blocks = [Block(None, p.text.split("\n")) for p in document.paragraphs if p.text.strip()]
    for table in document.tables:
        grid = [[" ".join(cell.text.split()) for cell in row.cells] for row in table.rows]
        _grid(truth, grid, None, "table in DOCX")
    return truth


def _xlsx(path: Path) -> Truth:
    import openpyxl

    truth = Truth(path.name, "table")
    for number, sheet in enumerate(openpyxl.load_workbook(path, data_only=True).worksheets, 1):
        grid = [["" if v is None else str(v) for v in row] for row in sheet.iter_rows(values_only=True)]
        for shared in sheet.merged_cells.ranges:
            # What cells share is said in each of them.
            for row, column in shared.cells:
                grid[row - 1][column - 1] = grid[shared.min_row - 1][shared.min_col - 1]
        _grid(truth, [row for row in grid if any(row)], number, "XLSX")
        for row in grid:
            # A sheet may hold tables side by side: a row is what stands without a gap.
            told = " | ".join(cell or "\n" for cell in row).split("\n")
            truth.blocks += [Block(number, [part]) for part in told if letters(part)]
    return truth


def _csv(path: Path) -> Truth:
    truth = Truth(path.name, "table")
    text = path.read_text(encoding="utf-8-sig")
    mark = max(",;\t|", key=text.split("\n", 1)[0].count)
    _grid(truth, list(csv.reader(text.splitlines(keepends=True), delimiter=mark)), None, "CSV")
    return truth


def _html(path: Path) -> Truth:
    from lxml import html

    truth = Truth(path.name, "html")
    root = html.fromstring(path.read_bytes())
    for node in root.iter("script", "style"):
        node.text = ""
    for node in root.iter("p", "li", "dd"):
        if not any(True for _ in node.iter("table", "ul", "p") if _ is not node):
            truth.blocks.append(Block(None, [" ".join(node.text_content().split())]))
    for table in root.iter("table"):
        grid = [
            [" ".join(cell.text_content().split()) for cell in row.iter("td", "th")]
            for row in table.iter("tr")
        ]
        _grid(truth, [row for row in grid if row], None, "table in HTML")
    return truth


def _markdown(path: Path) -> Truth:
    truth = Truth(path.name, "markdown")
    lines: list[str] = []
    table: list[list[str]] = []
    is_code = False
    for line in [*path.read_text(encoding="utf-8").split("\n"), ""]:
        is_code = is_code != line.lstrip().startswith("```")
        if is_code:
            continue
        said = _MARKDOWN.sub(lambda m: m[1] or "", line).strip()
        if line.startswith("|"):
            if not re.fullmatch(r"[|:\-\s]+", line):
                table.append([cell.strip() for cell in said.strip("|").split("|")])
            continue
        if table:
            _grid(truth, table, None, "table in Markdown")
            table = []
        if not said or said.startswith("#") or ITEM.match(line.strip()):
            if lines:
                truth.blocks.append(Block(None, lines))
            lines = [] if not said or said.startswith("#") else [ITEM.sub("", said, count=1)]
        else:
            lines.append(said)
    return truth


def _plain(path: Path) -> Truth:
    """Read plain text: paragraphs between blank lines; a paragraph's first lines are not always its own."""
    truth = Truth(path.name, "plain text")
    for part in re.split(r"\n[ \t]*\n", path.read_text(encoding="utf-8").replace("\f", "\n\n")):
        if letters(part):
            truth.blocks.append(Block(None, part.split("\n")))
    return truth


def _epub(path: Path) -> Truth:
    from lxml import html

    truth = Truth(path.name, "epub")
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if not name.endswith(".xhtml") or name.endswith("toc.xhtml"):
                continue
            for node in html.fromstring(archive.read(name)).iter("p", "li", "dd"):
                for line in node.iter("br"):
                    line.tail = "\n" + (line.tail or "")
                lines = [" ".join(line.split()) for line in node.text_content().split("\n")]
                truth.blocks.append(Block(None, [line for line in lines if line]))
    return truth


def _pptx(path: Path) -> Truth:
    from lxml import etree

    truth = Truth(path.name, "pptx")
    name = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
    with zipfile.ZipFile(path) as archive:
        slides = [m for n in archive.namelist() if (m := re.fullmatch(r"ppt/slides/slide(\d+)\.xml", n))]
        for slide in sorted(slides, key=lambda m: int(m[1])):
            root, page = etree.fromstring(archive.read(slide[0])), int(slide[1])
            for table in root.iter(f"{name}tbl"):
                grid: list[list[str]] = []
                for row in table.iter(f"{name}tr"):
                    cells: list[str] = []
                    for n, cell in enumerate(row.iter(f"{name}tc")):
                        # What cells share is said in each of them, as python-docx says it.
                        said = " ".join("".join(cell.itertext()).split())
                        said = cells[-1] if cell.get("hMerge") == "1" else said
                        cells.append(grid[-1][n] if cell.get("vMerge") == "1" else said)
                    grid.append(cells)
                _grid(truth, grid, page, "table in PPTX")
            for paragraph in root.iter(f"{name}p"):
                said = "".join(node.text or "" for node in paragraph.iter(f"{name}t"))
                if said.strip():
                    truth.blocks.append(Block(page, [said]))
    return truth


def _python(path: Path) -> Truth:
    """Read Python: comments and docstrings are prose, everything else is lines."""
    truth = Truth(path.name, "words in code")
    source = path.read_text(encoding="utf-8")
    prose: dict[int, str] = {}
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and not token.line[: token.start[1]].strip():
            prose[token.start[0]] = token.string.lstrip("#").strip()
        elif token.type == tokenize.STRING and before in _BEFORE_DOCSTRING and token.string.endswith('"""'):
            prose |= enumerate(token.string.strip('"').split("\n"), token.start[0])
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            before = token.type
    _code(truth, source.split("\n"), prose)
    return truth


_BEFORE_DOCSTRING = (tokenize.NEWLINE, tokenize.INDENT, tokenize.ENCODING, tokenize.DEDENT)
_ENTRY = re.compile(r"\s*[\w.]+(?:, [\w.]+)*:\s")  # of what is documented: "size: in bytes."
_COMMENT = re.compile(r"\s*(?://+|/\*+|\*/?(?=\s|$)|--)\s?(.*?)(?:\*/)?\s*\Z")


def _other_code(path: Path) -> Truth:
    """Read code whose comments begin with //, /* or -- and stand on lines of their own."""
    truth = Truth(path.name, "words in code")
    lines = path.read_text(encoding="utf-8").split("\n")
    _code(truth, lines, {n: m[1] for n, line in enumerate(lines, 1) if (m := _COMMENT.match(line))})
    return truth


def _code(truth: Truth, lines: list[str], prose: dict[int, str]) -> None:
    run: list[str] = []
    code: list[str] = []
    for n, line in enumerate([*lines, ""], 1):
        said = prose.get(n)
        if run and (said is None or not letters(said) or _ENTRY.match(said)):
            truth.blocks.append(Block(None, run))
            run = []
        if said is not None and letters(said):
            run.append(said)
        if said is None and letters(line):
            code.append(line)
    truth.blocks.append(Block(None, code, known=True))
    truth.rows += [Asked("code", line.strip(), None) for line in code if len(line.split()) > 3]


READERS: dict[str, Callable[[Path], Truth]] = {
    ".pdf": _pdf,
    ".docx": _docx,
    ".xlsx": _xlsx,
    ".csv": _csv,
    ".html": _html,
    ".md": _markdown,
    ".txt": _plain,
    ".epub": _epub,
    ".pptx": _pptx,
    ".py": _python,
    ".js": _other_code,
    ".sql": _other_code,
}
