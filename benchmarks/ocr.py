"""Text recognition measured: pages of PDFs with a text layer are drawn as images, spoiled, read, and compared with that layer.

Run: python benchmarks/ocr.py [FILE.pdf ...] [--pages 2] [--each 2] [--dpi 150,300] [--ways clean,noisy,...]

Without files it takes the PDFs of the shared data and writes `results/ocr.json`. Each page is read in some of the ways at
some of the resolutions, in turn, so that all of them are met by many pages in bounded time; --each 0 reads every page in all.
Token recall counts words of the layer that were read (case ignored); identifiers are those that the product itself finds;
pairs are words that stand next to each other in the layer and in what was read, so they fall where lines are put in a
wrong order. Bars: recall .95 of clean pages (also turned and skewed) and .85 of noisy ones, .97 of the identifiers.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import sys
import tempfile
import time
import unicodedata
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from _common import ROOT, shared_data, write_result

sys.path[:0] = [str(ROOT), str(ROOT / "platform")]

import numpy as np  # noqa: E402
import pypdfium2  # noqa: E402
from PIL import Image, ImageFilter  # noqa: E402

from apps.collections.ingestion.identifiers import facts  # noqa: E402
from apps.collections.ingestion.media_types import PNG  # noqa: E402
from apps.collections.ingestion.ocr.pages import page_recognise  # noqa: E402
from apps.collections.ingestion.ocr.rapid import RapidEngine  # noqa: E402

_WORD = re.compile(r"[^\W_]+")
_LEAST_WORDS = 120
_LATIN = 0.8  # of a page's letters
_COUNTS = ("words", "hit", "identifiers", "kept", "pairs", "pairs_hit")
_RECALL, _NOISY_RECALL, _IDENTIFIERS = 0.95, 0.85, 0.97
_CONTRAST = 40  # of 255, of a letter's box


def _noisy(picture: Image.Image) -> Image.Image:
    """Blur, grain and a grey ground, as of a copy of a copy."""
    grain = np.random.default_rng(7)
    grey = np.asarray(picture.convert("L").filter(ImageFilter.GaussianBlur(0.7)), dtype=np.float32)
    grey = grey * 0.8 + 30 + grain.normal(0, 18, grey.shape)
    specks = grain.random(grey.shape) < 0.002
    grey[specks] = 0
    return Image.fromarray(grey.clip(0, 255).astype(np.uint8))


WAYS: dict[str, Callable[[Image.Image], Image.Image]] = {
    "clean": lambda p: p,
    "rotated": lambda p: p.rotate(90, expand=True),
    "upside-down": lambda p: p.rotate(180),
    "rotated-270": lambda p: p.rotate(270, expand=True),
    "skewed": lambda p: p.rotate(2, fillcolor="white", resample=Image.Resampling.BICUBIC),
    "noisy": _noisy,
    "skewed-noisy": lambda p: _noisy(p.rotate(-1.5, fillcolor="white", resample=Image.Resampling.BICUBIC)),
}


def main() -> int:
    """Measure, print a line for each reading and the mean of each way, and write the result."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--pages", type=int, default=2, help="pages of each file")
    parser.add_argument("--dpi", default="150,300")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument(
        "--each", type=int, default=2, help="so many of dpi and way for a page, in turn; 0: all"
    )
    parser.add_argument("--show", action="store_true", help="print the words that were missed")
    args = parser.parse_args()
    files = args.files or sorted(shared_data().glob("*/*.pdf"))
    if not files:
        print(f"No PDFs under {shared_data()}; set GROUNDWORK_SHARED_DATA.")
        return 2
    engine = RapidEngine()
    # Neighbours in this list differ in the way, so that a page is not read twice in the same one.
    combinations = [(int(dpi), way) for dpi in args.dpi.split(",") for way in args.ways.split(",")]
    turn = itertools.cycle(combinations)
    readings: list[dict[str, Any]] = []
    for file in files:
        document = pypdfium2.PdfDocument(file)
        for number in _pages(document, args.pages):
            page = document[number]
            truth = _visible_text(page)
            for dpi, way in [next(turn) for _ in range(args.each)] if args.each else combinations:
                drawn = page.render(scale=dpi / 72).to_pil().convert("RGB")
                began = time.process_time()
                text = _read(WAYS[way](drawn), engine)
                spent = round(time.process_time() - began, 1)
                found = _compare(truth, text, show=args.show)
                place = {"file": file.name, "page": number + 1, "dpi": dpi, "way": way}
                readings.append({**place, **found, "cpu_s": spent})
                print(readings[-1], flush=True)
    ways = _summary(readings)
    passed = all(
        row["token_recall"] >= row["bar"] and row["identifiers_kept"] >= _IDENTIFIERS for row in ways
    )
    for row in ways:
        print(row)
    print("bars met" if passed else "BARS MISSED")
    if not args.files:
        pages = len({(one["file"], one["page"]) for one in readings})
        told = {"files": len(files), "pages": pages, "passed": passed, "ways": ways, "readings": readings}
        write_result("ocr", told)
    return 0 if passed else 1


def _summary(readings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sum up each way at each resolution: shares of all words, identifiers and pairs of its pages."""
    rows = []
    for way, dpi in itertools.product(WAYS, sorted({one["dpi"] for one in readings})):
        group = [one for one in readings if (one["way"], one["dpi"]) == (way, dpi)]
        if not group:
            continue
        total = {name: sum(one[name] for one in group) for name in _COUNTS}
        rows.append(
            {
                "way": way,
                "dpi": dpi,
                "pages": len(group),
                "token_recall": round(total["hit"] / max(1, total["words"]), 4),
                "worst_page": round(min(one["hit"] / max(1, one["words"]) for one in group), 4),
                "bar": _NOISY_RECALL if "noisy" in way else _RECALL,
                # Of no identifier none is lost.
                "identifiers_kept": round(total["kept"] / total["identifiers"], 4)
                if total["identifiers"]
                else 1.0,
                "pairs_in_order": round(total["pairs_hit"] / max(1, total["pairs"]), 4),
                "cpu_s_a_page": round(sum(one["cpu_s"] for one in group) / len(group), 1),
            }
        )
    return rows


def _pages(document: pypdfium2.PdfDocument, wanted: int) -> list[int]:
    """Choose pages with much text in Latin letters, spread over the file, the same in every run."""
    numbers = list(range(len(document)))
    random.Random(11).shuffle(numbers)
    chosen = []
    for number in numbers:
        if len(chosen) == wanted:
            break
        text = document[number].get_textpage().get_text_range()
        letters = [ch for ch in text if ch.isalpha()]
        # Other scripts are read by Tesseract, where that is installed.
        is_latin = sum(ch < "\u0250" for ch in letters) > len(letters) * _LATIN
        if is_latin and len(_WORD.findall(text)) >= _LEAST_WORDS:
            chosen.append(number)
    return sorted(chosen)


def _visible_text(page: pypdfium2.PdfPage) -> str:
    """Return the layer's text without letters that nobody sees: off the page, transparent, white on white."""
    textpage = page.get_textpage()
    text: str = textpage.get_text_range(errors="ignore")
    scale = 2.0
    grey = np.asarray(page.render(scale=scale).to_pil().convert("L"), dtype=np.int16)
    height = page.get_height()
    shown = []
    for place, letter in enumerate(text):
        if not letter.isalnum() or textpage.count_chars() != len(text):
            shown.append(letter)
            continue
        left, bottom, right, top = (round(v * scale) for v in textpage.get_charbox(place, loose=True))
        ink = grey[
            max(0, round(height * scale) - top) : max(0, round(height * scale) - bottom),
            max(0, left) : max(0, right),
        ]
        shown.append(letter if ink.size and ink.max() - ink.min() > _CONTRAST else " ")
    return "".join(shown)


def _read(picture: Image.Image, engine: RapidEngine) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "page.png"
        picture.save(path, compress_level=1)
        text, scan = page_recognise(path, PNG, 1, engine)
    if scan.state != "read":
        raise SystemExit(scan.problem)
    return text


def _compare(truth: str, text: str, *, show: bool) -> dict[str, int]:
    truth, text = _plain(truth), _plain(text)
    said, read = (_WORD.findall(t) for t in (truth, text))
    wanted, got = Counter(said), Counter(read)
    pairs, read_pairs = Counter(itertools.pairwise(said)), Counter(itertools.pairwise(read))
    known = facts(truth)
    joined = re.sub(r"\s+", "", text)
    missed = sorted(one for one in known if not _occurs(one, text, joined))
    if show:
        print("  missed:", list((wanted - got).elements())[:60], missed)
        print("  made:  ", list((got - wanted).elements())[:60])
    return {
        "words": wanted.total(),
        "hit": (wanted & got).total(),
        "identifiers": len(known),
        "kept": len(known) - len(missed),
        "pairs": pairs.total(),
        "pairs_hit": (pairs & read_pairs).total(),
    }


def _plain(text: str) -> str:
    """Write signs that say the same in one way, and join words that a line's end has cut."""
    text = unicodedata.normalize(
        "NFKC", text.replace("\ufffe\r\n", "").replace("\ufffe\n", "").replace("\ufffe", "")
    )
    return re.sub(r"[‐‑‒–—−]", "-", text).replace("’", "'").lower()


def _occurs(one: str, text: str, joined: str) -> bool:
    """Tell whether an identifier stands in the text, not as a part of another; a line may end inside a long one."""
    edges = rf"(?<![^\W_]){re.escape(one)}(?![^\W_])"
    return bool(re.search(edges, text)) or (len(one) > 12 and re.sub(r"\s+", "", one) in joined)


if __name__ == "__main__":
    sys.exit(main())
