"""Word documents, through kreuzberg."""

from __future__ import annotations

import re
import zipfile
from html import unescape
from pathlib import Path

from apps.collections.ingestion import media_types
from apps.collections.ingestion.readers.base import Reading
from apps.collections.ingestion.readers.office import raised, read_with_kreuzberg
from apps.collections.ingestion.types import FailureCode, ReaderLimits, ReadFailure
from basics.texts import gettext as _
from basics.texts import number_told

_MAX_XML_BYTES = 300 * 1024 * 1024
_BREAK = re.compile(r"</w:p>|<w:tab\b[^>]*>|<w:br\b[^>]*>|</w:tc>")
_UNRESOLVED = re.compile(r"&(?!(?:amp|lt|gt|quot|apos);)\w+;")  # entities a hostile file defines itself
_RAISED = re.compile(
    r'(<w:vertAlign w:val="superscript"\s*/>(?:(?!</w:r>|<w:t[\s>])[^\n]){0,500}<w:t(?:\s[^>]*)?>)(\d{1,3})(?=</w:t>)',
    re.ASCII,
)
_RUN = re.compile(r"<w:t(?:\s[^>]*)?>([^<]*)</w:t>|(\n)")


class DocxReader:
    """Read a DOCX file as Markdown with headings and tables."""

    media_types = (media_types.DOCX,)

    def read(self, path: Path, limits: ReaderLimits) -> Reading:
        """Open the file.

        Raises:
            ReadFailure: ``corrupt_file``, ``no_text`` or ``too_large``.
        """
        return read_with_kreuzberg(
            path, media_types.DOCX, "Word document", limits, lambda: docx_source_text(path)
        )


def docx_source_text(path: Path) -> str:
    """Read the visible runs of the main document part, by the XML alone.

    Raises:
        ReadFailure: ``corrupt_file``, or ``too_large`` for an archive that unpacks to more than 300 MB.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            info = archive.getinfo("word/document.xml")
            if info.file_size > _MAX_XML_BYTES:
                raise ReadFailure(
                    FailureCode.TOO_LARGE,
                    _("The Word document unpacks to %(file_size)s MB of text markup. Split it.")
                    % {"file_size": number_told(info.file_size / 1e6)},
                )
            xml = _UNRESOLVED.sub("", archive.read(info).decode("utf-8", errors="replace"))
    except (zipfile.BadZipFile, KeyError, OSError, RuntimeError, NotImplementedError) as error:
        raise ReadFailure(
            FailureCode.CORRUPT_FILE,
            _("The Word document is damaged or incomplete. Save it again and upload the new file."),
        ) from error
    # Text deleted under tracked changes sits in w:delText and is rightly not among the runs.
    marked = _BREAK.sub("\n", _RAISED.sub(lambda found: found[1] + raised(found[2]), xml))
    return "".join(unescape(m.group(1)) if m.group(1) else (m.group(2) or "") for m in _RUN.finditer(marked))
