"""Variables in a prompt's text: ``{name}``, which a person fills in before the text is used."""

from __future__ import annotations

import re

MOST_VARIABLES = 20
# Letters first, so that JSON, code and ``{}`` in a prompt stay what they are.
_VARIABLE = re.compile(r"\{([^\W\d_](?:[\w -]{0,38}\w)?)\}")


def variables_of(text: str) -> list[str]:
    """Return the names of the variables in a text, each once, in the order in which they are met."""
    return list(dict.fromkeys(_VARIABLE.findall(text)))
