"""Text recognition measured: pages of PDFs with a text layer are drawn as images, spoiled, read, and compared with that layer.

    python benchmarks/ocr.py FILE.pdf ... [--pages 4] [--dpi 150,300] [--ways clean,noisy,...] [--each N]

Token recall counts words of the layer that were read (case ignored); identifiers are those that the product itself finds.
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

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[1] / "platform")]

import numpy as np  # noqa: E402
import pypdfium2  # noqa: E402
from PIL import Image, ImageFilter  # noqa: E402

from apps.collections.ingestion.detect import PNG  # noqa: E402
from apps.collections.ingestion.identifiers import facts  # noqa: E402
from apps.collections.ingestion.ocr.pages import page_recognise  # noqa: E402
from apps.collections.ingestion.ocr.rapid import RapidEngine  # noqa: E402

_WORD = re.compile(r"\w+")
_LEAST_WORDS = 120
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
    "skewed": lambda p: p.rotate(2, fillcolor="white", resample=Image.Resampling.BICUBIC),
    "noisy": _noisy,
    "skewed-noisy": lambda p: _noisy(p.rotate(-1.5, fillcolor="white", resample=Image.Resampling.BICUBIC)),
}


def main() -> int:
    """Measure and print a line for each way, and the mean of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--pages", type=int, default=4, help="pages of each file")
    parser.add_argument("--dpi", default="150,300")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument(
        "--each", type=int, default=0, help="so many of dpi and way for a page, in turn; 0: all"
    )
    parser.add_argument("--show", action="store_true", help="print the words that were missed")
    args = parser.parse_args()
    engine = RapidEngine()
    combinations = [(int(dpi), way) for way in args.ways.split(",") for dpi in args.dpi.split(",")]
    turn = itertools.cycle(combinations)
    sums: Counter[tuple[int, str, str]] = Counter()
    for file in args.files:
        document = pypdfium2.PdfDocument(file)
        for number in _pages(document, args.pages):
            page = document[number]
            truth = _visible_text(page)
            taken = [next(turn) for _ in range(args.each)] if args.each else combinations
            for dpi, group in itertools.groupby(sorted(taken), key=lambda one: one[0]):
                drawn = page.render(scale=dpi / 72).to_pil().convert("RGB")
                for _, way in group:
                    began = time.process_time()
                    text = _read(WAYS[way](drawn), engine)
                    found = _compare(truth, text, show=args.show)
                    sums.update({(dpi, way, name): value for name, value in found.items()})
                    print(
                        f"{file.name} p{number + 1} {dpi} {way}: words {found['hit']}/{found['words']}, "
                        f"identifiers {found['kept']}/{found['identifiers']}, {time.process_time() - began:.1f} CPU s",
                        flush=True,
                    )
    print("\ndpi  way            token recall  identifiers  pages' words")
    for dpi, way in sorted({(dpi, way) for dpi, way, _ in sums}):
        words, ids = sums[dpi, way, "words"], sums[dpi, way, "identifiers"]
        recall = sums[dpi, way, "hit"] / max(1, words)
        kept = sums[dpi, way, "kept"] / max(1, ids)
        print(f"{dpi:<4} {way:<14} {recall:.3f}         {kept:.3f} of {ids}   {words}")
    return 0


def _pages(document: pypdfium2.PdfDocument, wanted: int) -> list[int]:
    """Choose pages with much text, spread over the file, the same in every run."""
    numbers = list(range(len(document)))
    random.Random(11).shuffle(numbers)
    chosen = []
    for number in numbers:
        if len(chosen) == wanted:
            break
        if len(_WORD.findall(document[number].get_textpage().get_text_range())) >= _LEAST_WORDS:
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
    wanted, got = (Counter(_WORD.findall(t)) for t in (truth, text))
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
