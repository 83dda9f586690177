"""A workspace's own kinds of codes as people enter them: read, checked, and tried for the time that they take."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

import regex

from apps.collections.ingestion.codes import (
    HTS,
    MAX_KINDS,
    MAX_PATTERN,
    SHIPPED,
    CodeKind,
    CodeKinds,
    CodesInvalid,
    Keep,
)
from basics.patterns import pattern_compile
from basics.texts import gettext as _

VERSION = 1
_PROBE_SECONDS = 0.2
_KEEPS = ("digits", "letters_digits")
_NAME = re.compile(r"[a-z][a-z0-9_]{0,29}\Z")


def code_kinds_parse(data: object, *, is_probed: bool = True) -> CodeKinds:
    """Check a workspace's patterns as they came from JSON.

    Args:
        is_probed: try each on texts that make slow patterns slow; patterns that are stored have passed that.

    Raises:
        CodesInvalid: anything missing, unknown, out of range, no regular expression, or one that is too slow.
    """
    given = _object(data, _("The patterns"), {"version", "kinds"})
    if given.get("version") != VERSION:
        raise CodesInvalid(_('The patterns must have "version": %(version)s.'), version=VERSION)
    kinds = given.get("kinds")
    if not isinstance(kinds, list) or len(kinds) > MAX_KINDS:
        raise CodesInvalid(_('"kinds" must be a list of at most %(max_kinds)s.'), max_kinds=MAX_KINDS)
    made = [_kind(kind, number, is_probed) for number, kind in enumerate(kinds, start=1)]
    names = [HTS, *(kind.name for kind in SHIPPED), *(kind.name for kind in made)]
    for name in names:
        if names.count(name) > 1:
            raise CodesInvalid(_("“%(name)s” already exists. Choose another name."), name=name)
    digest = hashlib.sha256(json.dumps(kinds, sort_keys=True).encode()).hexdigest()[:12]
    return CodeKinds(made, digest if made else "")


def _kind(data: object, number: int, is_probed: bool) -> CodeKind:
    where = _("Kind %(number)s") % {"number": number}
    given = _object(data, where, {"name", "pattern", "keep", "prefixes"})
    name = given.get("name")
    if not isinstance(name, str) or not _NAME.match(name):
        raise CodesInvalid(
            _('%(where)s: "name" must be 1 to 30 characters (a-z, 0-9 and _) and start with a letter.'),
            where=where,
        )
    where = _("Kind %(number)s (%(name)s)") % {"number": number, "name": name}
    pattern = given.get("pattern")
    said = {"where": where, "pattern": pattern, "most": MAX_PATTERN, "known": ", ".join(_KEEPS)}
    if not isinstance(pattern, str) or not 0 < len(pattern) <= MAX_PATTERN:
        raise CodesInvalid(_('%(where)s: "pattern" must be text of 1 to %(most)s characters.'), **said)
    keep = given.get("keep", "letters_digits")
    if keep not in _KEEPS:
        raise CodesInvalid(_('%(where)s: "keep" must be one of %(known)s.'), **said)
    prefixes = given.get("prefixes", False)
    if not isinstance(prefixes, bool):
        raise CodesInvalid(_('%(where)s: "prefixes" must be true or false.'), **said)
    try:
        compiled = pattern_compile(pattern, regex.IGNORECASE)
        is_empty = compiled.match("", timeout=_PROBE_SECONDS) is not None
        for probe in _PROBES if is_probed else ():
            for _match in compiled.finditer(probe, timeout=_PROBE_SECONDS):
                pass
    except TimeoutError as error:
        raise CodesInvalid(
            _("%(where)s: the pattern takes too long on plain text. Use fewer nested repetitions."),
            **said,
        ) from error
    except (regex.error, RecursionError, OverflowError, ValueError) as error:
        message = _("%(where)s: %(pattern)r isn't a valid regular expression: %(error)s.")
        raise CodesInvalid(message, **said, error=error) from error
    if is_empty:
        raise CodesInvalid(
            _("%(where)s: %(pattern)r matches nothing at all. Make it match something."), **said
        )
    return CodeKind(name, compiled, cast("Keep", keep), prefixes)


# What makes a pattern with repeats inside repeats slow; most patterns give up at once where a character they need is missing.
_TAIL = "\n".join("!?#$%&\"'()*+,-./:;<=>@[]^_`{|}~ xyzXYZ789")
_PROBES = tuple((run * 1500)[:3000] + _TAIL for run in ("a", "A", "1", "1-", "a1", "A-1 ", "0 ", "x.", "ab "))


def _object(data: object, where: str, keys: Iterable[str]) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise CodesInvalid(_("%(where)s must be an object."), where=where)
    if unknown := sorted(str(key) for key in data.keys() - set(keys)):
        keys_told = ", ".join(unknown)[:200]
        raise CodesInvalid(_("%(where)s has unknown keys: %(unknown)s."), where=where, unknown=keys_told)
    return data
