"""How bodies are read: as Django REST framework does, and what would break further in is refused here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

from rest_framework import exceptions, parsers


class JSONParser(parsers.JSONParser):
    """JSON whose text can be stored and whose nesting can be walked.

    ``"\\ud800"`` is valid JSON for half a character: neither the database nor an answer in UTF-8 can hold it.
    """

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        """Return the body's value.

        Raises:
            ParseError: it is no JSON, nested too deeply, or holds half characters.
        """
        try:
            value = super().parse(stream, media_type, parser_context)
            json.dumps(value, ensure_ascii=False).encode()
        except RecursionError:
            raise exceptions.ParseError("The JSON is nested too deeply.") from None
        except UnicodeEncodeError:
            raise exceptions.ParseError(
                "The JSON contains half of a surrogate pair, which isn't a character."
            ) from None
        return value
