"""Pages as tests read them: what is said, however the template that says it is laid out."""

from __future__ import annotations

import re


def flat(html: str) -> str:
    """Return HTML with one space for each run of white space, and none beside a tag's angle brackets.

    Args:
        html: A page or a piece of one.
    """
    html = re.sub(r"\s+", " ", html)
    return re.sub(r"> ", ">", re.sub(r" ?/?>", ">", html).replace(" <", "<"))
