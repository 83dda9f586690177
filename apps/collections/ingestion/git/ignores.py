"""The ``.gitignore`` files of a commit, and what they leave out."""

from __future__ import annotations

from pathspec import GitIgnoreSpec

from apps.collections.ingestion.git.objects import Objects

_MAX_FILES = 200
_MAX_BYTES = 100_000
_MAX_LINE = 500


class Ignores:
    """Rules by folder; those of the deepest folder count most, and within one the last.

    Args:
        specs: by folder, "" for the root, else with a slash at the end.
    """

    def __init__(self, specs: dict[str, GitIgnoreSpec]) -> None:
        self._specs = specs

    @classmethod
    def of(cls, objects: Objects, tree: str | None) -> Ignores:
        """Read the rules of a tree; a pattern that nobody can read leaves out nothing."""
        specs: dict[str, GitIgnoreSpec] = {}
        for path, file in (objects.files(tree) if tree else {}).items():
            folder, _, name = path.rpartition("/")
            if name == ".gitignore" and len(specs) < _MAX_FILES:
                text = objects.blob(file.sha)[:_MAX_BYTES].decode("utf-8", "replace")
                specs[f"{folder}/" if folder else ""] = _spec(text.splitlines())
        return cls(specs)

    def with_file(self, folder: str, content: bytes) -> Ignores:
        """Return these rules with those of one more folder ("" for the root, else with a slash at the end)."""
        text = content[:_MAX_BYTES].decode("utf-8", "replace")
        return Ignores({**self._specs, folder: _spec(text.splitlines())})

    def matches(self, path: str) -> bool:
        """Tell whether a file, or a folder when the path ends with a slash, is left out, itself or with a folder above it."""
        parts = path.split("/")
        decided: bool | None = None
        for depth in range(len(parts)):
            folder = "/".join(parts[:depth]) + ("/" if depth else "")
            spec = self._specs.get(folder)
            if spec is not None:
                found = spec.check_file(path[len(folder) :]).include
                decided = found if found is not None else decided
        return bool(decided)


def _spec(lines: list[str]) -> GitIgnoreSpec:
    kept = [line for line in lines if len(line) <= _MAX_LINE]
    try:
        return GitIgnoreSpec.from_lines(kept)
    except ValueError:
        good = []
        for line in kept:
            try:
                GitIgnoreSpec.from_lines([line])
            except ValueError:
                continue
            good.append(line)
        return GitIgnoreSpec.from_lines(good)
