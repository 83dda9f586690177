"""Charts and pictures of answers in documents, in Markdown and in JSON."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from apps.conversations.display.figures import Figure, turn_figures
from apps.conversations.models import Conversation, Picture, Turn
from apps.conversations.pictures.selectors import pictures_read
from basics.papers.model import Block, Run
from basics.papers.model import Picture as PaperPicture
from tenancy.actors import Actor
from web.charts.picture import chart_png

_REFERRED = re.compile(r"^[ \t]{0,3}!\[([^\]\n]*)\]\(figure:([0-9a-f]{8})\)[ \t]*$", re.MULTILINE)
_SPECIAL = re.compile(r"([\\`*_\[\]<>|#])")


@dataclass(slots=True)
class Figures:
    """The figures of one answer on their way into a file, each at its first place in the answer, or before it.

    Attributes:
        pictures: rows of its pictures that the reader may see, by their numbers.
    """

    figures: Sequence[Figure] = ()
    pictures: Mapping[int, Picture] = field(default_factory=dict)
    _placed: set[str] = field(default_factory=set)

    def blocks(self, address: str, words: str) -> list[Block]:
        """Return the blocks of the figure that an answer names by its address; none where there is none."""
        found = self._take(address.removeprefix("figure:")) if address.startswith("figure:") else None
        return [] if found is None else self._blocks(found, words or found.title)

    def rest(self) -> list[Block]:
        """Return the blocks of those that the answer doesn't name."""
        return [b for f in self.figures if f.key not in self._placed for b in self._blocks(f, f.title)]

    def markdown(self, text: str) -> str:
        """Return an answer as Markdown with its figures: a chart as a table of its numbers, a picture as a ``data:`` address."""

        def shown(match: re.Match[str]) -> str:
            found = self._take(match[2])
            return match[1] if found is None else self._markdown(found, match[1] or found.title)

        said = _REFERRED.sub(shown, text)
        rest = [self._markdown(f, f.title) for f in self.figures if f.key not in self._placed]
        return "\n\n".join(part for part in (*rest, said) if part)

    def to_json(self) -> list[dict[str, Any]]:
        """Return them as plain values, pictures with their bytes in Base64."""
        made = []
        for figure in self.figures:
            row = self.pictures.get(figure.picture_id)
            content = {} if row is None else {"content": base64.b64encode(bytes(row.content)).decode()}
            made.append({**figure.to_json(), **content})
        return made

    def _take(self, key: str) -> Figure | None:
        found = next((figure for figure in self.figures if figure.key == key), None)
        if found is None or key in self._placed:
            return None
        self._placed.add(key)
        return found

    def _blocks(self, figure: Figure, caption: str) -> list[Block]:
        if figure.chart is not None:
            content, width, height = chart_png(figure.chart)
            picture = PaperPicture(content, "image/png", width, height, figure.alt)
        elif (row := self.pictures.get(figure.picture_id)) is not None:
            picture = PaperPicture(bytes(row.content), row.media_type, row.width, row.height, figure.alt)
        else:
            return []
        return [Block("picture", [Run(caption, italic=True)] if caption else (), picture=picture)]

    def _markdown(self, figure: Figure, caption: str) -> str:
        said = _SPECIAL.sub(r"\\\1", caption)
        if figure.chart is not None:
            head, *rows = ([_SPECIAL.sub(r"\\\1", cell) for cell in row] for row in figure.rows)
            lines = [head, ["---"] * len(head), *rows]
            return f"**{said}**\n\n" + "\n".join(f"| {' | '.join(line)} |" for line in lines)
        row = self.pictures.get(figure.picture_id)
        if row is None:
            return said and f"*{said}*"
        return f"![{said}](data:{row.media_type};base64,{base64.b64encode(bytes(row.content)).decode()})"


def turns_figures(
    *, actor: Actor, conversation: Conversation, turns: Iterable[Turn]
) -> Mapping[int, Figures]:
    """Return the figures of turns of ``turn_list`` by their ids, as far as the actor may see them."""
    found = {turn.pk: turn_figures(turn) for turn in turns}
    pks = {figure.picture_id for figures in found.values() for figure in figures if figure.picture_id}
    pictures = pictures_read(actor=actor, conversation=conversation, pks=pks)
    return {pk: Figures(figures, pictures) for pk, figures in found.items()}
