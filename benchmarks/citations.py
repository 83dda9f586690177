"""Can the quotes of citations be trusted? Whole sentences and rows, on their page, marked there: checked by other means.

Documents are read by the product's own pipeline. Sentences and rows are sampled from them by other libraries (see
``_citation_truth.py``), put in other words (some dropped, some in another order), found by the product's search and cited.
Each quote must be whole sentences or a row of the document as those libraries read it, stand on the page that the source
names, and be what the viewer marks there: in the text, and on the picture of a PDF's or a scan's page by the letters whose
middle lies in the marks. A scan that is refused as illegible, or in a script that is not read, has no citation and is counted.

With ``--made`` documents in English, Chinese, Japanese, Thai and Arabic are made of known sentences (``_citation_files.py``);
what is whole in them is then known, whatever a splitter says. ``--units`` checks all that may be quoted of the documents
instead, and asks nothing.

Run: python benchmarks/citations.py FOLDER_OR_FILE ... --made [--citations 300] [--scans 4] [--show 20] [--write] [--units]. Needs
``pip install pdfplumber openpyxl pysbd fonttools`` and Chromium (for ``--made``) beside the product's packages, and an empty database server (DATABASE_URL) or none,
then it starts the embedded one. Bar: every quote whole, on its page and marked.
"""

from __future__ import annotations

import argparse
import html
import random
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform"), str(Path(__file__).parent)]

from _citation_files import Made, files_make  # noqa: E402
from _citation_readers import READERS, truth_of  # noqa: E402
from _citation_truth import Asked, Truth, covered, letters, letters_in  # noqa: E402
from _citation_units import wrong_units  # noqa: E402
from _stack import database  # noqa: E402

_RECT = re.compile(r'<rect[^>]*\sx="([\d.]+)"\s+y="([\d.]+)"\s+width="([\d.]+)"\s+height="([\d.]+)"')
_VIEW_BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
_MARKED = re.compile(r"<mark[^>]*>(.*?)</mark>", re.DOTALL)
_LEAST_COVERED, _LEAST_OWN = 0.95, 0.85


def claim_of(asked: Asked, rng: random.Random) -> str:
    """Put a sentence or a row in other words."""
    if asked.cells:
        told = [(h, c) for h, c in zip(asked.head, asked.cells, strict=False) if letters(c)]
        rng.shuffle(told)
        said = [
            f"{head} is {cell}" if letters(head) else cell
            for head, cell in told[: max(2, len(told) * 2 // 3)]
        ]
        return "For this one " + " and ".join(said)
    words = asked.text.rstrip('.?!。！？؟।"”’)').split()
    if len(words) < 5:  # a script without spaces: its beginning and its end change places
        text = "".join(words)
        cut = len(text) // 2
        return text[cut + 1 :] + "，" + text[: cut - 1]
    kept = [w for w in words if any(map(str.isdigit, w)) or rng.random() > 0.25] or words
    cut = rng.randrange(1, len(kept)) if len(kept) > 2 else 1
    return " ".join([*kept[cut:], *kept[:cut]])


class Product:
    """The product in this process: documents go in, citations and the pages of the viewer come out."""

    def __init__(self, tenant: Any) -> None:
        from django.test import Client

        from apps.collections.collection.services import collection_create
        from apps.collections.pipeline import scans
        from tenancy.models import Role
        from tests.factories import actor_of, make_member

        scans.PAGE_SECONDS = 3_600  # Not what is measured: a busy machine needs minutes for a page.
        self.tenant = tenant
        member = make_member(self.tenant, Role.OWNER)
        self.actor = actor_of(member)
        self.collection = collection_create(tenant=self.tenant, actor=self.actor, name="All")
        self.client = Client(headers={"host": "localhost"})
        self.client.force_login(member.user)

    def read(self, path: Path) -> Any:
        """Read a file as an upload is read; returns its document, None of a scan that says that it cannot be read."""
        from apps.collections.documents.services import document_upload
        from apps.collections.ingestion.ocr.pages import UNREADABLE
        from apps.collections.models import Document
        from jobs.runner import run_here

        added = document_upload(
            tenant=self.tenant,
            actor=self.actor,
            collection=self.collection,
            name=path.name,
            chunks=[path.read_bytes()],
        )
        for _ in range(6):
            document = Document.objects.get(pk=added.document.pk)
            if document.status in ("ready", "failed"):
                break
            run_here(self.tenant.pk, document.job_id or 0)
        if document.error_message.endswith(UNREADABLE):
            return None
        if document.status != "ready":
            raise SystemExit(f"{path.name}: {document.status} {document.error_code} {document.error_message}")
        return document

    def passages(self, document: Any, asked: Asked, claim: str) -> list[Any]:
        """Find passages for a claim, the best first, those alone that hold what it was made of."""
        from apps.collections.models import Chunk
        from apps.collections.search import search_run

        found = search_run(
            tenant=self.tenant,
            actor=self.actor,
            collections=[self.collection],
            query=claim,
            k=8,
            filters={"document_id": {"in": [document.pk]}},
        )
        chunks = Chunk.objects.in_bulk([hit.chunk_id for hit in found.hits])
        return [chunks[hit.chunk_id] for hit in found.hits if hit.chunk_id in chunks]

    def cite(self, document: Any, chunk: Any, answer: str) -> list[Any]:
        """Return the sources of an answer, by the way of a tool's result."""
        from apps.conversations.citations.markers import answer_cite, passages_of
        from apps.conversations.toolset.results import result_row, results_output

        row = result_row(chunk, chunk.pk, document.name, document.version, "All")
        output = results_output(SimpleNamespace(tenant=self.tenant), [row], "", "", "")  # type: ignore[arg-type]
        return answer_cite(answer, passages_of([output.payload])).sources

    def page(self, document: Any, source: Any, page: int | None, view: str) -> str:
        """Return a page of the viewer with the source's mark."""
        mark = f"{source.char_start}-{source.char_end}"
        from django.urls import reverse

        at = f"page={page}&" if page else ""
        address = reverse("collections:document", args=[self.tenant.slug, self.collection.pk, document.pk])
        found = self.client.get(f"{address}?{at}chunk={source.passage.chunk_id}&mark={mark}&view={view}")
        if found.status_code != 200:
            raise SystemExit(f"{address}: {found.status_code}")
        return found.content.decode()


def marked_text(product: Product, document: Any, source: Any) -> str:
    """Return what the viewer's text has marked, on the source's page and the one after it."""
    pages = [source.page]
    if source.page and source.page < document.page_count:
        pages.append(source.page + 1)
    shown = [product.page(document, source, page, "text") for page in pages]
    return " ".join(html.unescape(part) for text in shown for part in _MARKED.findall(text))


def marked_letters(product: Product, document: Any, source: Any, truth: Truth) -> list[str]:
    """Return the letters of the page's picture that lie in the marks."""
    found: list[str] = []
    for page in (source.page, source.page + 1):
        if page > document.page_count or page not in truth.places:
            continue
        shown = product.page(document, source, page, "image")
        if (box := _VIEW_BOX.search(shown[shown.find('<div class="sheet">') :])) is None:
            continue
        width, height = float(box[1]), float(box[2])
        boxes = []
        for x, y, w, h in (tuple(map(float, found)) for found in _RECT.findall(shown)):
            boxes.append((x / width, y / height, (x + w) / width, (y + h) / height))
        found += letters_in(truth.places[page], boxes)
    return found


def check(product: Product, document: Any, truth: Truth, source: Any) -> list[str]:
    """Return what is wrong with a source, nothing where it can be trusted."""
    wrong: list[str] = []
    is_excerpt = "…" in (source.quote[:1], source.quote[-1:])
    quote = source.quote.strip("… ")
    if source.header and quote.count("|") and letters(quote) == letters(source.header):
        wrong.append("a header for a row")
    stands, whole = truth.holds(quote, source.page if document.is_paged else None)
    if not stands:
        wrong.append("not on its page")
    elif not whole and not is_excerpt:
        wrong.append("not whole")
    text = marked_text(product, document, source)
    held, own = covered([letters(re.sub(r"\]\([^)]*\)|<br>", "", text))], quote)
    if held < 0.99 or own < _LEAST_OWN:
        wrong.append(f"text mark {held:.2f} {own:.2f}")
    if truth.places and document.is_paged:
        held, own = covered(marked_letters(product, document, source, truth), quote)
        if held < _LEAST_COVERED - truth.error / 2 or own < _LEAST_OWN - truth.error:
            wrong.append(f"mark on the picture {held:.2f} {own:.2f}")
    return wrong


def scan_make(pdf: Path, pages: int, folder: Path, rng: random.Random) -> tuple[Path, list[int]] | None:
    """Draw some pages of a PDF as a PDF of pictures."""
    import pypdfium2

    with pypdfium2.PdfDocument(pdf) as document:
        full = [n for n in range(len(document)) if len(document[n].get_textpage().get_text_range()) > 900]
        if not full:
            return None
        chosen = sorted(rng.sample(full, min(pages, len(full))))
        drawn = [document[n].render(scale=200 / 72).to_pil().convert("L") for n in chosen]
    path = folder / f"scan-{pdf.stem}.pdf"
    drawn[0].save(path, save_all=True, append_images=drawn[1:], resolution=200)
    return path, [n + 1 for n in chosen]


def main() -> int:
    """Measure and print a line for each kind, and what was wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--citations", type=int, default=300)
    parser.add_argument(
        "--scans", type=int, default=3, help="PDFs that are read as scans too, two pages each"
    )
    parser.add_argument("--made", action="store_true", help="also documents made of citation_texts/")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=30, help="failures to print")
    parser.add_argument(
        "--write", action="store_true", help="write results/citations.json, or citation_units.json"
    )
    parser.add_argument("--units", action="store_true", help="check every unit, without questions")
    options = parser.parse_args()
    rng = random.Random(options.seed)
    files = [
        file
        for path in options.paths
        for file in (sorted(path.iterdir()) if path.is_dir() else [path])
        if file.suffix in READERS
    ]
    if options.units:
        return units(files, options)
    with tempfile.TemporaryDirectory() as folder, database():
        jobs: list[tuple[Path, Any]] = [(file, None) for file in files]
        if options.made:
            jobs += [(made.path, made) for made in files_make(Path(folder))]
        for pdf in rng.sample(
            pdfs := [f for f in files if f.suffix == ".pdf"], min(options.scans, len(pdfs))
        ):
            if made := scan_make(pdf, 2, Path(folder), rng):
                jobs.append((made[0], (pdf, made[1])))
        return run(jobs, options, rng)


def units(files: list[Path], options: argparse.Namespace) -> int:
    """Check every unit of documents; returns 1 where one is not whole on its page."""
    every = bad = 0
    with tempfile.TemporaryDirectory() as folder:
        jobs: list[tuple[Path, Made | None]] = [(file, None) for file in files]
        if options.made:
            jobs += [(made.path, made) for made in files_make(Path(folder))]
        for path, made in jobs:
            count, wrong = wrong_units(path, truth_of(path, None, made))
            print(f"{path.name}: {count - len(wrong)} of {count} whole on their page", flush=True)
            for line in wrong[: max(0, options.show - bad)]:
                print(f"  - {line}", flush=True)
            every, bad = every + count, bad + len(wrong)
    print(f"{every - bad} of {every} whole on their page")
    if options.write:
        from _common import write_result

        write_result("citation_units", {"units": every, "good": every - bad})
    return int(bad > 0)


def run(jobs: list[tuple[Path, Any]], options: argparse.Namespace, rng: random.Random) -> int:
    """Read all, ask in turn of each document and kind until there are enough citations."""
    from tenancy.scope import tenant_scope
    from tests.factories import make_tenant

    counts: Counter[tuple[str, str]] = Counter()
    shown = 0
    tenant = make_tenant("benchmark")
    with tenant_scope(tenant.pk):
        product = Product(tenant)
        queues = []
        for path, drawn_from in jobs:
            made = drawn_from if isinstance(drawn_from, Made) else None
            truth = truth_of(path, None if made else drawn_from, made)
            document = product.read(path)
            if document is None:
                print(f"{path.name}: says that it cannot be read, and has nothing to cite", flush=True)
                counts[truth.kind, "documents that say they cannot be read"] += 1
                continue
            by_kind: dict[str, list[Asked]] = {}
            for asked in truth.asked():
                by_kind.setdefault(asked.kind, []).append(asked)
            for asked in by_kind.values():
                rng.shuffle(asked)
            print(f"{path.name}: " + ", ".join(f"{k} {len(v)}" for k, v in by_kind.items()), flush=True)
            queues += [(document, truth, kind, asked) for kind, asked in by_kind.items()]
        while queues := [queue for queue in queues if queue[3]]:
            for document, truth, kind, left in queues:
                if (
                    not left
                    or sum(n for (_, what), n in counts.items() if what == "all") >= options.citations
                ):
                    continue
                asked = left.pop()
                shown += one(product, document, truth, kind, asked, counts, rng, shown < options.show)
            if sum(n for (_, what), n in counts.items() if what == "all") >= options.citations:
                break
    return report(counts, options)


def one(
    product: Product,
    document: Any,
    truth: Truth,
    kind: str,
    asked: Asked,
    counts: Counter[tuple[str, str]],
    rng: random.Random,
    is_shown: bool,
) -> int:
    """Make and check one citation; returns 1 if something was printed."""
    claim = claim_of(asked, rng)
    chunks = product.passages(document, asked, claim)
    wanted = letters(asked.text)
    held = [c for c in chunks if wanted in letters(c.text)] or [
        c for c in chunks if wanted[:40] in letters(c.text)
    ]
    if not chunks:
        counts[kind, "not found"] += 1
        return 0
    chunk = held[0] if held else chunks[0]
    [source] = product.cite(document, chunk, f"It is said that {claim} [c{chunk.pk}].")
    wrong = check(product, document, truth, source)
    counts[kind, "all"] += 1
    counts[kind, "good"] += not wrong
    counts[kind, "meant"] += wanted in letters(source.quote) or letters(source.quote) in wanted
    for problem in wrong:
        counts[kind, re.sub(r" [\d.]+", "", problem)] += 1
    if wrong and is_shown:
        print(
            f"- {document.name} page {source.page} ({asked.page}), {', '.join(wrong)}\n    asked: {asked.text[:300]}\n    quote: {source.quote[:400]}",
            flush=True,
        )
    return int(bool(wrong))


def report(counts: Counter[tuple[str, str]], options: argparse.Namespace) -> int:
    """Print the table; returns 1 below the bar."""
    rows = {}
    for kind in sorted({kind for kind, _ in counts}):
        rows[kind] = {what: n for (k, what), n in sorted(counts.items()) if k == kind}
        row = rows[kind]
        print(
            f"{kind:18} {row.get('good', 0)} of {row.get('all', 0)} good, {row.get('meant', 0)} the sentence or row that was meant; { ({k: v for k, v in row.items() if k not in ('all', 'good', 'meant')}) }"
        )
    every = sum(row.get("all", 0) for row in rows.values())
    good = sum(row.get("good", 0) for row in rows.values())
    print(f"{good} of {every} whole, on their page and marked")
    if options.write:
        from _common import write_result

        write_result("citations", {"citations": every, "good": good, "kinds": rows})
    return int(good < every)


if __name__ == "__main__":
    sys.exit(main())
