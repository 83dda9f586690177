"""Office packages (ZIP archives of XML parts): bounded reading of parts, their relations, and XML as flat events."""

from __future__ import annotations

import posixpath
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal, NamedTuple, Self
from urllib.parse import unquote
from xml.parsers import expat

from apps.collections.ingestion.types import FailureCode, ReadFailure
from basics.texts import gettext as _
from basics.texts import number_told

MAX_PART_BYTES = 300 * 1024 * 1024
MAX_PARTS = 20_000
_MAX_DEPTH = 5000
_STEP = 1 << 18


class XmlEvent(NamedTuple):
    """One step through an XML part.

    Attributes:
        kind: ``start``, ``end`` or ``text``.
        name: local name of the element, without its namespace; the characters for ``text``.
        attributes: of a ``start``, by local name; those that name a relation as ``r:id``, ``r:embed`` ...
    """

    kind: Literal["start", "end", "text"]
    name: str
    attributes: Mapping[str, str] = {}


class Package:
    """An office file opened for reading, part by part, within limits that no archive bomb passes."""

    def __init__(self, path: Path, noun: str) -> None:
        """Open it.

        Args:
            path: the file.
            noun: how messages call it.

        Raises:
            ReadFailure: ``corrupt_file``, or ``too_large`` for an archive of more than 20,000 parts.
        """
        self.noun = noun
        try:
            self._archive = zipfile.ZipFile(path)
            self.names = frozenset(self._archive.namelist())
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
            raise self.damaged() from error
        if len(self.names) > MAX_PARTS:
            self._archive.close()
            raise ReadFailure(
                FailureCode.TOO_LARGE,
                _("The %(noun)s consists of more than %(max_parts)s parts. Split it.")
                % {"noun": _(noun), "max_parts": number_told(MAX_PARTS)},
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()

    def read(self, name: str) -> bytes:
        """Unpack one part.

        Raises:
            ReadFailure: ``corrupt_file``, or ``too_large`` for a part of more than 300 MB, whatever the archive
                declares.
        """
        pieces: list[bytes] = []
        size = 0
        try:
            with self._archive.open(name) as stream:
                while piece := stream.read(_STEP):
                    size += len(piece)
                    if size > MAX_PART_BYTES:
                        raise ReadFailure(
                            FailureCode.TOO_LARGE,
                            _("A part of the %(noun)s unpacks to more than %(max_part_bytes)s MB. Split it.")
                            % {"noun": _(self.noun), "max_part_bytes": MAX_PART_BYTES // 1024 // 1024},
                        )
                    pieces.append(piece)
        except (
            KeyError,
            zipfile.BadZipFile,
            zlib.error,
            OSError,
            EOFError,
            RuntimeError,
            NotImplementedError,
        ) as error:
            raise self.damaged() from error
        return b"".join(pieces)

    def events(self, name: str) -> Iterator[XmlEvent]:
        """Walk through an XML part.

        Raises:
            ReadFailure: see ``xml_events``.
        """
        return xml_events(self.read(name), self.noun)

    def relations(self, part: str) -> dict[str, tuple[str, str]]:
        """Read where a part points to: {relation id: (last word of its type, target part)}; outside targets are left out."""
        folder, _, file = part.rpartition("/")
        source = posixpath.join(folder, "_rels", f"{file}.rels")
        found: dict[str, tuple[str, str]] = {}
        if source not in self.names:
            return found
        for event in self.events(source):
            given = event.attributes
            if event.name != "Relationship" or event.kind != "start" or "Target" not in given:
                continue
            if given.get("TargetMode") == "External":
                continue
            kind = given.get("Type", "").rpartition("/")[2]
            found[given.get("Id", "")] = (kind, self.resolve(part, given["Target"]))
        return found

    @staticmethod
    def resolve(part: str, target: str) -> str:
        """Give the name of the part that a reference inside ``part`` points to."""
        target = unquote(target.partition("#")[0])
        folder = "" if target.startswith("/") else part.rpartition("/")[0]
        return posixpath.normpath(posixpath.join(folder, target.lstrip("/")))

    def damaged(self) -> ReadFailure:
        """Make the failure of a package that is not what it should be."""
        return ReadFailure(
            FailureCode.CORRUPT_FILE,
            _("The %(noun)s is damaged or incomplete. Save it again and upload the new file.")
            % {"noun": _(self.noun)},
        )


def xml_events(data: bytes, noun: str) -> Iterator[XmlEvent]:
    """Parse XML without recursion and without a tree.

    A document type declaration is refused: office files have none, and it is where entity bombs and references to
    other files live.

    Args:
        data: the XML.
        noun: how messages call the file.

    Raises:
        ReadFailure: ``corrupt_file``: not well-formed, a document type declaration, or more than 5000 levels deep.
    """
    waiting: list[XmlEvent] = []
    depth = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > _MAX_DEPTH:
            raise _malformed(noun, _("its markup is nested too deeply"))
        given = {_short_name(key): value for key, value in attributes.items()}
        waiting.append(XmlEvent("start", name.rpartition(" ")[2], given))

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        waiting.append(XmlEvent("end", name.rpartition(" ")[2]))

    def text(characters: str) -> None:
        waiting.append(XmlEvent("text", characters))

    def doctype(*given: object) -> None:
        raise _malformed(noun, _("it declares a document type, as office files never do"))

    parser = expat.ParserCreate(namespace_separator=" ")
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = doctype
    try:
        for offset in range(0, len(data), _STEP):
            parser.Parse(data[offset : offset + _STEP], False)
            yield from waiting
            waiting.clear()
        parser.Parse(b"", True)
    except (expat.ExpatError, ValueError, LookupError) as error:
        raise _malformed(noun, _("its markup is not well-formed")) from error
    yield from waiting


def _short_name(attribute: str) -> str:
    space, _, name = attribute.rpartition(" ")
    # A slide has an id of its own and one of its relation: only the latter leads anywhere.
    return f"r:{name}" if space.endswith("/relationships") else name


def _malformed(noun: str, why: str) -> ReadFailure:
    return ReadFailure(
        FailureCode.CORRUPT_FILE,
        _("The %(noun)s cannot be read: %(why)s. Save it again and upload the new file.")
        % {"noun": _(noun), "why": why},
    )
