"""Print what each module of `platform/` and `apps/` answers for: the first sentence of its docstring, room by room.

Run: python docs/ownership.py [FOLDER] (`make ownership`), for example `python docs/ownership.py apps/tools/policy`.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_APART = {"migrations", "management"}
"""Folders whose files go by their app's name."""


def modules(folder: str = "") -> Iterator[tuple[str, str]]:
    """Yield path and first sentence of each module, packages by their folder; "" for a module without a docstring.

    Args:
        folder: only what is in it, from the top of the checkout.
    """
    for top in ("platform", "apps"):
        for file in sorted((ROOT / top).rglob("*.py")):
            path = file.relative_to(ROOT)
            if _APART & set(path.parts) or path.as_posix() == "apps/__init__.py":
                continue
            name = path.parent.as_posix() if path.name == "__init__.py" else path.as_posix()
            if name == folder or name.startswith(f"{folder}/" if folder else ""):
                yield name, first_sentence(file)


def first_sentence(file: Path) -> str:
    """Return the first sentence of a module's docstring, on one line."""
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[.:])\s+(?=[A-Z])", paragraph)[0].rstrip(".:")


def main() -> None:
    """Print the list."""
    folder = sys.argv[1].strip("/") if len(sys.argv) > 1 else ""
    found = list(modules(folder))
    if not found:
        sys.exit(
            f"{folder} has no modules. Name a folder below platform/ or apps/, such as apps/tools/policy."
        )
    room = ""
    for name, what in found:
        here = "/".join(name.split("/")[:3])
        if here != room and not name.endswith(".py"):
            print(f"\n{name}: {what}")  # noqa: T201
            room = here
            continue
        print(f"  {name.split('/', 2)[-1]}: {what}")  # noqa: T201


if __name__ == "__main__":
    try:
        main()
        sys.stdout.flush()
    except BrokenPipeError:  # `make ownership | head` has read enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
