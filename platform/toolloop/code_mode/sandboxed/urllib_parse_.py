"""``urllib.parse`` for programs."""

# The interpreter that runs this file is not CPython.
# ruff: noqa: B905, C419, PERF401, SIM108

from typing import Any

_SAFE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-~"
_HEX = "0123456789ABCDEF"


def quote(string: Any, safe: str = "/", encoding: Any = None, errors: Any = None) -> str:
    raw = string if isinstance(string, bytes) else str(string).encode("utf-8")
    keep = _SAFE + safe
    out = []
    for byte in raw:
        one = chr(byte)
        out.append(one if byte < 128 and one in keep else "%" + _HEX[byte // 16] + _HEX[byte % 16])
    return "".join(out)


def quote_plus(string: Any, safe: str = "", encoding: Any = None, errors: Any = None) -> str:
    return quote(string, safe + " ").replace(" ", "+")


def unquote(string: str, encoding: str = "utf-8", errors: str = "replace") -> str:
    parts = string.split("%")
    if len(parts) == 1:
        return string
    out = [parts[0]]
    run = ""
    for part in parts[1:]:
        code = part[:2]
        if len(code) == 2 and all([c in "0123456789abcdefABCDEF" for c in code]):
            run += code
            rest = part[2:]
        else:
            rest = "%" + part
        if rest:
            if run:
                out.append(bytes.fromhex(run).decode("utf-8", "replace"))
                run = ""
            out.append(rest)
    if run:
        out.append(bytes.fromhex(run).decode("utf-8", "replace"))
    return "".join(out)


def unquote_plus(string: str, encoding: str = "utf-8", errors: str = "replace") -> str:
    return unquote(string.replace("+", " "))


def urlencode(query: Any, doseq: bool = False, safe: str = "", quote_via: Any = None) -> str:
    via = quote_plus if quote_via is None else quote_via
    out = []
    for name, value in list(query.items()) if isinstance(query, dict) else list(query):
        if doseq and isinstance(value, (list, tuple)):
            values = list(value)
        else:
            values = [value]
        for one in values:
            out.append(via(name, safe) + "=" + via(one, safe))
    return "&".join(out)


def parse_qsl(qs: str, keep_blank_values: bool = False, separator: str = "&") -> Any:
    out = []
    for pair in qs.split(separator):
        if not pair:
            continue
        name, _, value = pair.partition("=")
        if value or keep_blank_values:
            out.append((unquote_plus(name), unquote_plus(value)))
    return out


def parse_qs(qs: str, keep_blank_values: bool = False, separator: str = "&") -> Any:
    out: dict[str, list[str]] = {}
    for name, value in parse_qsl(qs, keep_blank_values, separator):
        out.setdefault(name, []).append(value)
    return out


class _Parts:
    def __init__(self, kind: str, names: Any, values: Any) -> None:
        self._kind, self._names, self._values = kind, names, tuple(values)
        for name, value in zip(names, values):
            setattr(self, name, value)
        netloc = values[1]
        info, at, host = netloc.rpartition("@")
        user, colon, password = info.partition(":")
        self.username = user if at else None
        self.password = password if at and colon else None
        if host.startswith("["):
            name, _, port = host[1:].partition("]")
            port = port[1:]
        else:
            name, _, port = host.partition(":")
        self.hostname = name.lower() or None
        self.port = int(port) if port else None

    def __iter__(self) -> Any:
        return iter(self._values)

    def __getitem__(self, index: Any) -> Any:
        return self._values[index]

    def __eq__(self, other: object) -> bool:
        return self._values == tuple(other)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        shown = ", ".join([f"{n}={v!r}" for n, v in zip(self._names, self._values)])
        return f"{self._kind}({shown})"

    def _replace(self, **changes: Any) -> Any:
        values = [changes.get(n, v) for n, v in zip(self._names, self._values)]
        return _Parts(self._kind, self._names, values)

    def geturl(self) -> str:
        return urlunparse(self._values) if len(self._values) == 6 else urlunsplit(self._values)


def _split(url: str, scheme: str) -> Any:
    url = url.strip()
    netloc = query = fragment = ""
    head, colon, tail = url.partition(":")
    if colon and head and head[0].isalpha() and all([c.isalnum() or c in "+-." for c in head]):
        scheme, url = head.lower(), tail
    if url[:2] == "//":
        end = min([i for i in [url.find(c, 2) for c in "/?#"] if i >= 0], default=len(url))
        netloc, url = url[2:end], url[end:]
    if "#" in url:
        url, _, fragment = url.partition("#")
    if "?" in url:
        url, _, query = url.partition("?")
    return scheme, netloc, url, query, fragment


def urlsplit(url: str, scheme: str = "") -> Any:
    names = ("scheme", "netloc", "path", "query", "fragment")
    return _Parts("SplitResult", names, _split(url, scheme))


def urlparse(url: str, scheme: str = "") -> Any:
    kind, netloc, path, query, fragment = _split(url, scheme)
    params = ""
    last = path.rfind("/")
    cut = path.find(";", max(last, 0))
    if cut >= 0:
        path, params = path[:cut], path[cut + 1 :]
    names = ("scheme", "netloc", "path", "params", "query", "fragment")
    return _Parts("ParseResult", names, (kind, netloc, path, params, query, fragment))


def urlunsplit(parts: Any) -> str:
    scheme, netloc, url, query, fragment = parts
    if netloc:
        url = "//" + netloc + ("/" if url and url[0] != "/" else "") + url
    if scheme:
        url = scheme + ":" + url
    text: str = url + ("?" + query if query else "") + ("#" + fragment if fragment else "")
    return text


def urlunparse(parts: Any) -> str:
    scheme, netloc, path, params, query, fragment = parts
    return urlunsplit((scheme, netloc, path + (";" + params if params else ""), query, fragment))


def urldefrag(url: str) -> Any:
    base, _, fragment = url.partition("#")
    return base, fragment


def urljoin(base: str, url: str) -> str:
    if not base or not url:
        return url or base
    scheme, netloc, path, query, fragment = _split(url, "")
    bscheme, bnetloc, bpath, bquery, _ = _split(base, "")
    if scheme and scheme != bscheme:
        return url
    if netloc:
        return urlunsplit((bscheme, netloc, path, query, fragment))
    if not path:
        return urlunsplit((bscheme, bnetloc, bpath, query or bquery, fragment))
    base_parts = bpath.split("/")
    if base_parts[-1] != "":
        base_parts.pop()
    parts = path.split("/") if path[0] == "/" else base_parts + path.split("/")
    parts = parts[:1] + [part for part in parts[1:-1] if part] + parts[max(1, len(parts) - 1) :]
    out: list[str] = []
    for part in parts:
        if part == "..":
            if out:
                out.pop()
        elif part != ".":
            out.append(part)
    if parts[-1] in (".", ".."):
        out.append("")
    return urlunsplit((bscheme, bnetloc, "/".join(out) or "/", query, fragment))
