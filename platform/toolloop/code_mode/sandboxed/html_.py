"""``html`` for programs."""

import re

_NAMES = {
    "amp": "&",
    "lt": "<",
    "gt": ">",
    "quot": '"',
    "apos": "'",
    "nbsp": "\xa0",
    "copy": "©",
    "euro": "€",
    "ndash": "–",
    "mdash": "—",
    "hellip": "…",
    "lsquo": "‘",
    "rsquo": "’",
    "ldquo": "“",
    "rdquo": "”",
    "auml": "ä",
    "ouml": "ö",
    "uuml": "ü",
    "Auml": "Ä",
    "Ouml": "Ö",
    "Uuml": "Ü",
    "szlig": "ß",
    "eacute": "é",
}


def escape(s: str, quote: bool = True) -> str:
    s = s.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return s.replace('"', "&quot;").replace("'", "&#x27;") if quote else s


def unescape(s: str) -> str:
    out: list[str] = []
    last = 0
    for found in re.finditer(r"&(#\d+|#[xX][0-9a-fA-F]+|\w+);", s):
        name = found.group(1)
        if name[:2] in ("#x", "#X"):
            text = chr(int(name[2:], 16))
        elif name[0] == "#":
            text = chr(int(name[1:]))
        else:
            text = _NAMES.get(name, found.group(0))
        out.append(s[last : found.start()])
        out.append(text)
        last = found.end()
    out.append(s[last:])
    return "".join(out)
