"""Subtitles (SubRip and WebVTT): what is said as a table, each sentence with its time and who says it."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from apps.collections.ingestion import media_types
from apps.collections.ingestion.readers.base import (
    Reading,
    read_text,
    require_text,
    split_parts,
    text_reading,
)
from apps.collections.ingestion.readers.tables import TextBuilder, one_line
from apps.collections.ingestion.types import ReaderLimits
from basics.texts import gettext as _

_TIME = r"(?:\d{1,4}:)?\d{1,2}:\d{2}(?:[.,]\d{1,3})?"
_TIMES = re.compile(rf"[ \t]*({_TIME})[ \t]*-->[ \t]*({_TIME})(?![\d:.,])")
_MARK = re.compile(
    rf"</?(?:[biuv]|c|lang|ruby|rt|font)(?:[.\s][^<>\n]{{0,300}})?>|<{_TIME}>|\{{\\[^{{}}\n]{{1,60}}\}}",
    re.IGNORECASE,
)
_VOICE = re.compile(r"<v(?:\.[^\s<>]{1,100})?[ \t]+([^\s<>][^<>\n]{0,199})>", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?…。！？؟][\"'”’»)\]]*\Z")
_ASIDE = re.compile(r"(?:NOTE|STYLE|REGION)(?:[ \t].*)?\Z")
_MOST_CHARS = 400  # of a row: what is said without a full stop is cut there


@dataclass(slots=True)
class _Row:
    """What one person says without a break, from one time to another, as the file writes them."""

    start: str
    end: str
    speaker: str
    texts: list[str] = field(default_factory=list)
    length: int = 0

    def add(self, text: str, end: str) -> None:
        self.texts.append(text)
        self.length += len(text) + 1
        self.end = end

    def goes_on(self, speaker: str, text: str) -> bool:
        """Tell whether the next cue continues the sentence of this row."""
        return (
            speaker == self.speaker
            and self.length + len(text) <= _MOST_CHARS
            and _SENTENCE_END.search(self.texts[-1]) is None
        )


class SubtitlesReader:
    """Read subtitles; cues that share a sentence become one row, from the first one's time to the last one's."""

    media_types = (media_types.SRT, media_types.VTT)

    def read(self, path: Path, limits: ReaderLimits) -> Reading:
        """Open the file; one without any time is read as plain text with a warning.

        Raises:
            ReadFailure: ``no_text`` or ``too_large``.
        """
        source = read_text(path, limits)
        is_vtt = source.lstrip("\ufeff \n\t").startswith("WEBVTT")
        rows: list[_Row] = []
        before, count = "", 0
        for start, end, said in _cues(source, is_vtt=is_vtt):
            if not start:
                before = _words("\n".join(said), is_vtt=is_vtt)
                continue
            count += 1
            for speaker, text in _voices(said, is_vtt=is_vtt):
                if not (rows and rows[-1].goes_on(speaker, text)):
                    rows.append(_Row(start, end, speaker))
                rows[-1].add(text, end)
        if not count:
            require_text(before, limits)
            return text_reading(source, _("no line of it says when something is shown"))
        builder = TextBuilder()
        builder.add_paragraph(before)
        has_speakers = any(row.speaker for row in rows)
        table = [["Time", "Speaker", "Text"] if has_speakers else ["Time", "Text"]]
        for row in rows:
            who = [row.speaker] if has_speakers else []
            table.append([f"{row.start} – {row.end}", *who, " ".join(row.texts)])
        if rows:
            builder.add_table(table)
        text = builder.text
        require_text(text, limits)
        parts = list(split_parts(text, builder.headings, builder.regions))
        reading = Reading(len(parts), iter(parts), is_paged=False)
        reading.metadata["cues"] = count
        return reading


def _cues(source: str, *, is_vtt: bool) -> Iterator[tuple[str, str, list[str]]]:
    """Yield start, end and lines of each cue; first what stands above all cues, with "" as its times.

    A blank line does not end a cue: programs write such cues, and their text must not be lost. The header of WebVTT
    and its notes and styles are left out.
    """
    times: tuple[str, str] = ("", "")
    said, is_aside = [""], is_vtt
    for line in source.split("\n"):
        found = _TIMES.match(line)
        if found is not None:
            yield *times, _without_name(said, is_vtt=is_vtt)
            times, said, is_aside = (found[1], found[2]), [], False
        elif not line.strip():
            is_aside = False
            said.append("")
        elif is_vtt and said and not said[-1] and _ASIDE.match(line):
            is_aside = True
        elif not is_aside:
            said.append(line)
    yield *times, said


def _without_name(lines: list[str], *, is_vtt: bool) -> list[str]:
    """Leave out the number or name of the next cue: the last line, if it stands alone below a blank one."""
    if len(lines) >= 2 and lines[-1] and not lines[-2] and (is_vtt or lines[-1].strip().isdigit()):
        return lines[:-1]
    return lines


def _voices(lines: list[str], *, is_vtt: bool) -> Iterator[tuple[str, str]]:
    """Yield who speaks ("" if nobody says) and the words, without marks of layout."""
    speaker, position = "", 0
    text = "\n".join(lines)
    for voice in _VOICE.finditer(text) if is_vtt else ():
        if said := _words(text[position : voice.start()], is_vtt=is_vtt):
            yield speaker, said
        speaker, position = one_line(html.unescape(voice[1])), voice.end()
    if said := _words(text[position:], is_vtt=is_vtt):
        yield speaker, said


def _words(text: str, *, is_vtt: bool) -> str:
    plain = _MARK.sub("", text)
    return one_line(html.unescape(plain) if is_vtt else plain)
