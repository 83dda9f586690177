"""Paths of files and the module names that code knows them by."""

from __future__ import annotations

import posixpath
from typing import Protocol

from apps.collections.ingestion.code.programming_languages import LANGUAGES, family_of

_INDEX_NAMES = {"python": "__init__", "javascript": "index", "rust": "mod"}


class _Placed(Protocol):
    """What is needed of a file to understand its imports."""

    @property
    def path(self) -> str: ...

    @property
    def language(self) -> str: ...

    @property
    def module(self) -> str: ...


_RUST_ROOTS = ("lib", "main")


def module_name(path: str, language: str, package: str = "") -> str:
    """Name the module of a file.

    Args:
        path: relative to the tree's root, with ``/``.
        language: name of a ``Language``.
        package: what the file itself says (Java).

    Returns:
        ``a.b`` for Python and Java, ``a/b`` (no ending, no ``index``) for JavaScript and TypeScript, the folder for Go,
        ``a::b`` for Rust, the path for C and C++.
    """
    family = family_of(language)
    path = posixpath.normpath(path.replace("\\", "/")).lstrip("/")
    folder, _, last = path.rpartition("/")
    stem = _stem(last, language)
    if family == "java":
        return package or folder.replace("/", ".")
    if family == "go":
        return folder
    if family == "c":
        return path
    parts = [part for part in folder.split("/") if part]
    if family == "rust":
        if "src" in parts:
            parts = parts[len(parts) - parts[::-1].index("src") :]
        if stem in _RUST_ROOTS and not parts:
            return "crate"
    if stem != _INDEX_NAMES.get(family) or not parts:
        parts.append(stem)
    return {"python": ".", "rust": "::"}.get(family, "/").join(parts)


def full_name(module: str, qualified: str, language: str) -> str:
    """Name a symbol in its collection: module and name inside the file; C and C++ have no modules."""
    family = family_of(language)
    if not qualified:
        return module
    if family == "c" or not module:
        return qualified
    separator = "::" if family == "rust" else "."
    return f"{module}{separator}{qualified}"


def module_key(path: str, language: str, package: str = "") -> str:
    """Give the last part of a file's module name, by which imports of it are looked up."""
    return last_part(module_name(path, language, package))


def last_part(name: str) -> str:
    """Give the last part of any name: of a path, a dotted or a scoped one."""
    name = name.removesuffix("!").rstrip("/.")
    for separator in ("/", "::"):
        name = name.rpartition(separator)[2]
    if name.endswith((".h", ".hpp", ".hh", ".hxx", ".inl", ".ipp", ".c", ".cc", ".cpp", ".cxx")):
        return name
    return name.rpartition(".")[2]


def joined_module(module: str, name: str, family: str) -> str:
    """Name a module below a module."""
    if not name:
        return module
    separator = {"rust": "::", "python": ".", "java": "."}.get(family, "/")
    return f"{module}{name}" if module.endswith(separator) else f"{module}{separator}{name}"


def joined_import(module: str, name: str) -> str:
    """Write an import of a name as an edge does; ``split_import`` takes it apart."""
    return f"{module} : {name}"


def split_import(written: str) -> tuple[str, str]:
    """Take an import edge's text apart into module and name ("" for the module itself)."""
    module, _, name = written.partition(" : ")
    return module, name


def import_key(module: str, language: str) -> str:
    """Give the name under which the files that an import means are looked up; see ``module_key``."""
    if family_of(language) == "javascript":
        folder, _, last = module.rpartition("/")
        stem = _stem(last, language) if folder else last
        for other in ("typescript", "javascript", "tsx"):
            stem = _stem(stem, other) if folder else stem
        return last_part(folder if stem == "index" and folder else stem)
    return last_part(module)


def import_rank(file: _Placed, module: str, path: str, target: str) -> int:
    """Tell how well an import in ``file`` fits a module: 0 not at all, 1 below it, 2 by its end, 3 exactly.

    Args:
        file: where the import stands.
        module: as the import says.
        path: of the file that may be meant.
        target: that file's module name.
    """
    family = family_of(file.language)
    if family == "c":
        here = posixpath.normpath(posixpath.join(posixpath.dirname(file.path), module))
        wanted = posixpath.normpath(module).lstrip("./")
        return 3 if path == here else 2 if f"/{path}".endswith(f"/{wanted}") else 0
    separator = {"rust": "::", "python": ".", "java": "."}.get(family, "/")
    wanted, is_placed = _placed(file, module, family)
    if not wanted:
        return 0
    if target == wanted:
        return 3
    if family == "go":
        return 2 if target and f"/{wanted}".endswith(f"/{target}") else 0
    if not is_placed and target.endswith(f"{separator}{wanted}"):
        return 2
    framed, inside = f"{separator}{target}{separator}", f"{separator}{wanted}{separator}"
    if family == "java":
        return 0
    return 1 if framed.startswith(inside) or (not is_placed and inside in framed) else 0


def _placed(file: _Placed, module: str, family: str) -> tuple[str, bool]:
    """Turn what an import says into a module name, and tell whether that is the whole name."""
    if family == "python" and module.startswith("."):
        rest = module.lstrip(".")
        parts = file.module.split(".")
        up = len(module) - len(rest) - (1 if _is_package(file.path) else 0)
        parts = parts[: len(parts) - up] if up else parts
        return ".".join([*parts, *([rest] if rest else [])]), True
    if family == "javascript":
        if module.startswith("."):
            joined = posixpath.join(posixpath.dirname(file.path), module)
            return module_name(_with_ending(joined, file.language), file.language), True
        if module.startswith(("@/", "~/")):
            module = module[2:]
        elif "/" not in module or module.startswith("@"):
            return "", True  # a package from the registry
        return module_name(_with_ending(module, file.language), file.language), False
    if family == "rust":
        head, _, rest = module.partition("::")
        if head == "crate":
            return rest or "crate", False
        if head in ("self", "super"):
            parts = [] if file.module == "crate" else file.module.split("::")
            if head == "super":
                parts = parts[:-1]
            return "::".join([*parts, *([rest] if rest else [])]), True
    return module, False


def _is_package(path: str) -> bool:
    return posixpath.basename(path).startswith("__init__.")


def _with_ending(path: str, language: str) -> str:
    """Leave a path with an ending that its family knows, so that naming it takes exactly one off."""
    for other in (language, "typescript", "javascript", "tsx"):
        if path.lower().endswith(LANGUAGES[other].suffixes):
            return path[: path.rindex(".")] + LANGUAGES[language].suffixes[0]
    return path + LANGUAGES[language].suffixes[0]


def _stem(last: str, language: str) -> str:
    lowered = last.lower()
    if lowered.endswith(".d.ts"):
        return last[: -len(".d.ts")]
    for suffix in LANGUAGES[language].suffixes:
        if lowered.endswith(suffix):
            return last[: -len(suffix)]
    return last
