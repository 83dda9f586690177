"""How well and how fast is source code understood? The structure of Python's own library against ``ast``, and chunking.

Every ``.py`` file of the standard library is parsed both ways. A definition agrees when kind, qualified name, first line
and docstring are the same. Then all files are cut into chunks. Speed is per CPU-second of one process.

    python benchmarks/code_chunks.py [folder]
"""

from __future__ import annotations

import ast
import sys
import sysconfig
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform")]

from apps.collections.ingestion.code.chunks import code_chunks  # noqa: E402
from apps.collections.ingestion.code.parse import structure_of  # noqa: E402
from apps.collections.ingestion.code.types import CALLABLE_KINDS, SymbolKind  # noqa: E402

sys.path.insert(0, str(Path(__file__).parent))
from _common import write_result  # noqa: E402

Definition = tuple[str, str, int, str]


def definitions_by_ast(tree: ast.Module) -> Iterator[Definition]:
    """Yield (kind, qualified name, line of its header, docstring) of every function and class."""
    todo: list[tuple[ast.AST, str]] = [(tree, "")]
    while todo:
        node, prefix = todo.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}.{child.name}" if prefix else child.name
                kind = "class" if isinstance(child, ast.ClassDef) else "function"
                first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                yield kind, name, first, ast.get_docstring(child) or ""
                todo.append((child, name))
            else:
                todo.append((child, prefix))


def main() -> None:
    """Compare, time, print."""
    warnings.simplefilter("ignore", SyntaxWarning)
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else sysconfig.get_paths()["stdlib"])
    counts: Counter[str] = Counter()
    seconds: Counter[str] = Counter()
    missed: list[str] = []
    for path in sorted(folder.rglob("*.py")):
        if "site-packages" in path.parts or "lib2to3" in path.parts:
            continue
        try:
            text = path.read_text(encoding="utf-8").replace("\r\n", "\n")
            tree = ast.parse(text)
        except (SyntaxError, UnicodeDecodeError, ValueError):
            counts["files that Python refuses"] += 1
            continue
        began = time.process_time()
        structure = structure_of(text, "python")
        seconds["structure"] += time.process_time() - began
        began = time.process_time()
        chunks = code_chunks(text, structure, path=path.name)
        seconds["chunks"] += time.process_time() - began
        expected = set(definitions_by_ast(tree))
        found = {
            (
                "function" if s.kind in CALLABLE_KINDS else "class",
                s.qualified_name,
                first_line(text, s.line_start),
                s.docstring,
            )
            for s in structure.symbols
            if s.kind != SymbolKind.VARIABLE
        }
        counts["files"] += 1
        counts["bytes"] += len(text.encode())
        counts["definitions"] += len(expected)
        counts["agree"] += len(expected & found)
        counts["names"] += len({e[:2] for e in expected})
        counts["names agree"] += len({e[:2] for e in expected} & {f[:2] for f in found})
        counts["invented"] += len({f[:2] for f in found} - {e[:2] for e in expected})
        counts["chunks"] += len(chunks)
        missed += [f"{path.relative_to(folder)}:{line} {name}" for _, name, line, _ in expected - found]
    megabytes = counts["bytes"] / 1e6
    result = {
        **counts,
        "names_rate": counts["names agree"] / counts["names"],
        "exact_rate": counts["agree"] / counts["definitions"],
        "structure_mb_per_cpu_s": megabytes / seconds["structure"],
        "chunks_mb_per_cpu_s": megabytes / seconds["chunks"],
        "both_mb_per_cpu_s": megabytes / (seconds["structure"] + seconds["chunks"]),
        "missed": sorted(missed)[:20],
    }
    for key, value in result.items():
        print(f"{key:28} {value}")
    write_result("code_chunks", result)


def first_line(text: str, line: int) -> int:
    """Skip the comments above a definition: ``ast`` counts from the decorator or the header."""
    lines = text.split("\n")
    while lines[line - 1].lstrip().startswith("#") or not lines[line - 1].strip():
        line += 1
    return line


if __name__ == "__main__":
    main()
