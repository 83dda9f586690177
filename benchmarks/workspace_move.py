"""Is a workspace that is exported on one server and imported on a second one the same? And do both take the memory of a small one?

Two servers with nothing in common: each its own embedded Postgres, data directory and secret key; everything is done by
the product's own command in processes of its own.

- A workspace with a row of every table and with files, and one in which people have uploaded, asked and made a dataset,
  are moved. Then the second server exports its copies, and both files are compared table by table: number of rows, and
  the SHA-256 of all values with each number of a row replaced by the row's place. Columns that an import makes again
  (``tests.exports.moved.MADE_AGAIN``) are left out. The originals' SHA-256 are compared, what three searches find, and the
  first citation is opened.
- Every row of the first workspace is fabricated: work is under way, which the import ends; numbers name no row; its
  embedder is on no other server. So it is moved back once more: then nothing of that is left, and nothing may differ.
- Workspaces of fabricated passages, each read once by a run, are moved, one with a tenth of the other's. Told is the most
  memory (PSS) of the process that exports and of the one that imports, above what it has at its start.

Run: python -m benchmarks.workspace_move [--passages 200000]. Exit status 1 when anything differs, or the larger import or
export takes more than 48 MB above the smaller one.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform"), str(Path(__file__).parent)]

from _common import write_result  # noqa: E402
from _stack import load  # noqa: E402

MORE_MB = 48


class Server:
    """An installation: its database, data directory and keys."""

    def __init__(self, home: Path, stack: contextlib.ExitStack) -> None:
        from config.embedded import EmbeddedPostgres

        home.mkdir(mode=0o700)
        database = EmbeddedPostgres(home / "database", durable=False, die_with_parent=True)
        database.start()
        stack.callback(database.stop)
        self.env = {
            **os.environ,
            "DATABASE_URL": database.url,
            "DJANGO_SETTINGS_MODULE": "config.settings.test",
            "GROUNDWORK_DATA_DIR": str(home / "data"),
            "GROUNDWORK_SECRET_KEY": hashlib.sha256(str(home).encode()).hexdigest(),
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'platform'}",
        }
        self.manage("migrate", "-v0")
        self.manage("createcachetable")

    def side(self, *words: str) -> Any:
        """Do one of the works of ``_move_side``; return what it tells."""
        return json.loads(self._run("-m", "benchmarks._move_side", *words)[0].splitlines()[-1])

    def manage(self, *words: str) -> tuple[str, dict[str, float]]:
        """Run a command; return what it prints and its memory."""
        return self._run("manage.py", *words)

    def _run(self, *words: str) -> tuple[str, dict[str, float]]:
        with tempfile.TemporaryFile("w+") as out:
            process = subprocess.Popen([sys.executable, *words], env=self.env, cwd=ROOT, stdout=out)
            began, most = time.monotonic(), 0.0
            while process.poll() is None:
                most = max(most, pss_mb(process.pid))
                time.sleep(0.05)
            if process.returncode:
                raise SystemExit(f"{' '.join(words)} ended with {process.returncode}")
            out.seek(0)
            return out.read(), {"pss_mb": round(most, 1), "seconds": round(time.monotonic() - began, 1)}


def pss_mb(pid: int) -> float:
    """Return the memory of a process with its part of what it shares; 0 when it has ended."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0


def key_of(printed: str) -> str:
    """Return the public key that an export prints."""
    return printed.rpartition("signed by ")[2].strip()


def moved(there: Server, here: Server, slug: str, folder: Path) -> tuple[Path, Path, dict[str, Any]]:
    """Move a workspace under another address; return its file, where the file of the copy will be, and the memory."""
    first, second = folder / f"{slug}.zip", folder / f"{slug}-copy.zip"
    printed, exported = there.manage("exports", "workspace", slug, str(first))
    _, imported = here.manage(
        "exports", "import", str(first), "--key", key_of(printed), "--slug", f"{slug}-copy"
    )
    return (
        first,
        second,
        {"export": exported, "import": imported, "file_mb": round(first.stat().st_size / 2**20, 1)},
    )


def compared(first: Path, second: Path) -> dict[str, Any]:
    """Compare two files of a workspace: rows and the hash of all values by table, and which columns differ."""
    from exports.moves import shared_models
    from tests.exports.moved import canonical

    mine, theirs = (
        {name: value for name, value in canonical(path).items() if name.split(" ")[0] not in shared_models()}
        for path in (first, second)
    )
    hashes = [{}, {}]
    for found, values in zip(hashes, (mine, theirs), strict=True):
        tables: dict[str, list[tuple[str, str]]] = {}
        for name, value in sorted(values.items()):
            tables.setdefault(name.split(" ")[0], []).append((name, value))
        for label, told in tables.items():
            rows = len({name.rpartition(" ")[0] for name, _ in told})
            found[label] = rows, hashlib.sha256(json.dumps(told).encode()).hexdigest()
    differ = {name for name in mine.keys() | theirs.keys() if mine.get(name) != theirs.get(name)}
    return {
        "tables": len(hashes[0]),
        "rows": sum(count for count, _ in hashes[0].values()),
        "tables_differing": sorted(
            t for t in hashes[0].keys() | hashes[1].keys() if hashes[0].get(t) != hashes[1].get(t)
        ),
        "columns_differing": sorted({".".join(name.split(" ")[::2]) for name in differ}),
    }


def originals(path: Path) -> list[str]:
    """Return the hashes of a file's files."""
    from tests.exports.moved import files_in

    return sorted(hashlib.sha256(content).hexdigest() for _, content in files_in(path))


def fidelity(there: Server, here: Server, folder: Path) -> dict[str, Any]:
    """Move both workspaces and compare them with their copies."""
    there.side("make")
    here.side("begin")
    result: dict[str, Any] = {}
    for slug in ("everything", "lively"):
        first, second, _ = moved(there, here, slug, folder)
        before, after = there.side("told", slug), here.side("told", f"{slug}-copy")
        key = key_of(here.manage("exports", "workspace", f"{slug}-copy", str(second))[0])
        result[slug] = {
            **compared(first, second),
            "originals": len(originals(first)),
            "originals_same": originals(first) == originals(second),
            "searches_same": before["hits"] == after["hits"],
            "hits": sum(map(len, after["hits"])),
            "citation": [before["opened"], after["opened"]],
            "people_same": before["people"] == after["people"],
            "old_numbers": after["old_numbers"],
        }
        if slug == "everything":
            back = folder / "back.zip"
            there.manage("exports", "import", str(second), "--key", key, "--slug", "back")
            there.manage("exports", "workspace", "back", str(back))
            result["back"] = compared(second, back)
        print(json.dumps({slug: result[slug]}, indent=1), flush=True)
    return result


def memory(there: Server, here: Server, folder: Path, passages: int) -> dict[str, Any]:
    """Move fabricated workspaces, a small and a large one."""
    result: dict[str, Any] = {}
    for slug, count in (("small", passages // 10), ("large", passages)):
        there.side("fill", slug, str(count))
        _, _, told = moved(there, here, slug, folder)
        result[slug] = {"passages": count, **told}
        print(json.dumps({slug: result[slug]}), flush=True)
    for work in ("export", "import"):
        result[f"{work}_more_mb"] = round(
            result["large"][work]["pss_mb"] - result["small"][work]["pss_mb"], 1
        )
    return result


def is_same(found: dict[str, Any]) -> bool:
    """Tell whether the moved workspaces were as they were."""
    moved_ones = found["everything"], found["lively"]
    return (
        not found["lively"]["tables_differing"]
        and not found["back"]["tables_differing"]
        and all(one["originals_same"] and one["searches_same"] and one["people_same"] for one in moved_ones)
        and not any(one["old_numbers"] for one in moved_ones)
        and all(told["status"] == 200 and told["has_quote"] for told in found["lively"]["citation"])
    )


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--passages", type=int, default=200_000)
    parser.add_argument("--skip-memory", action="store_true")
    given = parser.parse_args()
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="groundwork-move-")))
        folder.chmod(0o755)
        there, here = (Server(folder / name, stack) for name in ("there", "here"))
        os.environ.update(there.env)
        import django

        django.setup()
        same = fidelity(there, here, folder)
        grown = {} if given.skip_memory else memory(there, here, folder, given.passages)
    good = is_same(same) and all(grown.get(f"{work}_more_mb", 0) <= MORE_MB for work in ("export", "import"))
    if not given.skip_memory:
        write_result("workspace_move", {"load": load(), **same, "memory": grown, "is_good": good})
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
