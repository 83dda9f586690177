"""Codes in a question: which of the passages found hold them, which hold longer ones or those they stand under.

Where a question asks for codes or identifiers and hardly anything else, passages that tell of them come before those that
mention them (``apps.collections.search.heads``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from apps.collections.ingestion.codes import Code, CodeKinds, plain
from apps.collections.ingestion.identifiers import identifier_lexemes, identifier_list
from apps.collections.search.heads import heads_of, is_about_codes
from apps.collections.search.types import CodeFound, Found, Ranked, SearchHit

MAX_ASKED = 20
_MATCHES = ("exact", "near", "parent", "")
_NAMED = 5
_IDENTIFIER = "identifier"  # the kind of what no pattern knows: a name of code, a number of an invoice


class CodeQuestion:
    """The codes of one question, and what passages say about them.

    Attributes:
        lexemes: what the index is asked for.
        is_lookup: it asks for codes or identifiers themselves, with hardly another word.
    """

    def __init__(self, kinds: CodeKinds, query: str, *, is_lookup: bool = False) -> None:
        """Read the codes of a question.

        Args:
            is_lookup: it asks for its codes, whatever else it says.
        """
        self._kinds = kinds
        self._codes = kinds.find(query)[:MAX_ASKED]
        self._identifiers = _identifiers(query)[:MAX_ASKED]
        asked = [code.text for code in (*self._codes, *self._identifiers)]
        self.is_lookup = bool(asked) and (is_lookup or is_about_codes(query, asked))
        self._heads: dict[int, dict[str, int]] = {}  # how a passage tells of what it holds
        self._held: dict[int, dict[str, str]] = {}  # what a passage holds: lexeme -> as it is written there
        self._parents: dict[str, str] = {}  # of codes that are not there: the lexeme of a shorter one
        self.lexemes = [
            wanted for lexeme in identifier_lexemes(plain(query)) for wanted in (lexeme, f"{lexeme}.*")
        ]
        for code in self._codes:
            self.lexemes.append(code.lexeme)
            if below := kinds.below(code):
                self.lexemes.append(f"{below}*")

    def __bool__(self) -> bool:
        return bool(self._codes)

    def read(self, hits: Sequence[SearchHit]) -> None:
        """Look which codes passages hold."""
        for hit in hits:
            if hit.chunk_id not in self._held:
                text = "\n".join([hit.text, *hit.headings])
                self._held[hit.chunk_id] = {c.lexeme: c.text for c in self._kinds.find(text)}
                if self.is_lookup:
                    self._heads[hit.chunk_id] = self._heads_of(hit)

    def parents_sought(self) -> list[str]:
        """List the lexemes of shorter codes to look for, of codes of which nothing was found."""
        missing = [code for code in self._codes if code.is_sure and not self._is_found(code)]
        return [parent.lexeme for code in missing for parent in self._kinds.parents(code)]

    def parents_read(self, hits: Sequence[SearchHit]) -> None:
        """Take the passages that a search for the shorter codes has found."""
        self.read(hits)
        there = {lexeme for held in self._held.values() for lexeme in held}
        for code in self._codes:
            if not self._is_found(code):
                parents = (parent.lexeme for parent in self._kinds.parents(code))
                found = next((lexeme for lexeme in parents if lexeme in there), "")
                if found:
                    self._parents[code.lexeme] = found

    def ordered(self, hits: Sequence[SearchHit]) -> list[SearchHit]:
        """Put passages that hold the codes first, then those with longer codes, then those with shorter ones."""
        placed = sorted(hits, key=lambda hit: self._place(hit.chunk_id))
        return [
            replace(hit, match=_MATCHES[place], head=-told)
            for hit in placed
            for place, _, told in [self._place(hit.chunk_id)]
        ]

    def rows_ordered(self, rows: Sequence[Ranked]) -> list[Ranked]:
        """Put candidates in the same order; one whose text was not read holds no code."""
        return sorted(rows, key=lambda row: self._place(row.chunk_id))

    def found(self) -> tuple[CodeFound, ...]:
        """Tell what became of each code; one that may be a date or a number is told of only where it is there."""
        exact = {code.lexeme for code in self._codes if self._holds(code.lexeme)}
        told: list[CodeFound] = []
        for code in self._codes:
            # “8481.80.30 55” is one code where the passages have it, else a code and a number.
            if any(code.text != c.text and code.text in c.text for c in self._codes if c.lexeme in exact):
                continue
            if code.lexeme in exact:
                told.append(self._told(code, "exact"))
            elif below := self._below(code):
                told.append(self._told(code, "near", below))
            elif parent := self._parents.get(code.lexeme):
                told.append(self._told(code, "parent", (self._written(parent),)))
            elif code.is_sure:
                told.append(self._told(code, "none"))
        return tuple(told)

    def _told(self, code: Code, found: Found, others: tuple[str, ...] = ()) -> CodeFound:
        return CodeFound(code.text, f"{code.kind}:{code.canonical}", found, others)

    def _place(self, chunk_id: int) -> tuple[int, int, int]:
        held, heads = self._held.get(chunk_id, {}), self._heads.get(chunk_id, {})
        exact = sum(code.lexeme in held for code in self._codes)
        if exact:
            return 0, -exact, -sum(heads.get(code.lexeme, 0) for code in self._codes)
        told = -max(heads.values(), default=0)
        if any(self._is_below(code, held) for code in self._codes):
            return 1, 0, told
        return (2 if any(parent in held for parent in self._parents.values()) else 3), 0, told

    def _heads_of(self, hit: SearchHit) -> dict[str, int]:
        """Tell how a passage tells of the codes that are asked for, of those under them and those they stand under."""
        asked = {code.lexeme for code in self._codes}
        below = tuple(filter(None, (self._kinds.below(code) for code in self._codes)))
        parents = {parent.lexeme for code in self._codes for parent in self._kinds.parents(code)}
        wanted = {
            lexeme: written
            for lexeme, written in self._held[hit.chunk_id].items()
            if lexeme in asked or lexeme in parents or lexeme.startswith(below)
        } | {one.lexeme: one.text for one in self._identifiers}
        return heads_of(hit.text, hit.headings, wanted, self._named_in) if wanted else {}

    def _named_in(self, text: str) -> list[Code]:
        return [*self._kinds.find(text), *_identifiers(text)]

    def _holds(self, lexeme: str) -> bool:
        return any(lexeme in held for held in self._held.values())

    def _is_below(self, code: Code, held: Mapping[str, str]) -> bool:
        below = self._kinds.below(code)
        return bool(below) and any(lexeme.startswith(below) for lexeme in held)

    def _is_found(self, code: Code) -> bool:
        return any(code.lexeme in held or self._is_below(code, held) for held in self._held.values())

    def _below(self, code: Code) -> tuple[str, ...]:
        below = self._kinds.below(code)
        found = {
            lexeme: text
            for held in self._held.values()
            for lexeme, text in held.items()
            if below and lexeme.startswith(below)
        }
        return tuple(found[lexeme] for lexeme in sorted(found)[:_NAMED])

    def _written(self, lexeme: str) -> str:
        return next(held[lexeme] for held in self._held.values() if lexeme in held)


def _identifiers(text: str) -> list[Code]:
    return [Code(_IDENTIFIER, token, token) for token in identifier_list(plain(text))]


def codes_placed(
    asked: CodeQuestion,
    rows: list[Ranked],
    look: Callable[[list[str]], list[Ranked]],
    read: Callable[[list[Ranked]], list[SearchHit]],
) -> list[Ranked]:
    """Put the passages with the codes of a question first; shorter codes are looked for where there are no others.

    Args:
        rows: the candidates, best first.
        look: finds candidates by lexemes alone.
        read: gives candidates with their texts; asked for those alone that hold an identifier of the question.
    """
    asked.read(read([row for row in rows if row.exact_rank is not None]))
    if sought := asked.parents_sought():
        more = look(sought)
        asked.parents_read(read(more))
        known = {row.chunk_id for row in rows}
        rows = [*rows, *(row for row in more if row.chunk_id not in known)]
    return asked.rows_ordered(rows)
