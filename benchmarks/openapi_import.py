"""How long does it take to import an OpenAPI document: read it and store its tools? Writes results/openapi_import.json.

Needs a database: an own test database is made on the server of DATABASE_URL and removed again.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path

import django

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / part) for part in ("platform", "")]
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
django.setup()

from django.test.runner import DiscoverRunner  # noqa: E402

from apps.tools.connectors.base import kind_get  # noqa: E402
from apps.tools.sources import services  # noqa: E402
from apps.tools.sources.versions import versions_store  # noqa: E402
from benchmarks._common import write_result  # noqa: E402
from tenancy.scope import tenant_scope  # noqa: E402
from tests.cast import Cast, make_cast  # noqa: E402
from tests.tools.connectors.openapi_documents import large_document  # noqa: E402

SIZES, ROUNDS, BAR_S = (100, 150, 500), 3, 2.0


def main() -> None:
    runner = DiscoverRunner(verbosity=0, interactive=False)
    databases = runner.setup_databases()
    try:
        cast = make_cast()
        table = [_measured(cast, size) for size in SIZES]
    finally:
        runner.teardown_databases(databases)
    print("operations     KB   read s import s   wall s  again s")
    for row in table:
        print(
            f"{row['operations']:>10} {row['kilobytes']:>6} "
            + " ".join(f"{row[n]:>8}" for n in ("read_s", "import_s", "wall_s", "again_s"))
        )
    write_result("openapi_import", {"rounds": ROUNDS, "bar_s": BAR_S, "medians": table})


def _measured(cast: Cast, size: int) -> dict[str, float | int]:
    """Return medians in seconds: ``read`` and ``import`` (read and stored) of this process's own time, ``wall`` of an
    import by the clock, which counts what else the machine does, ``again`` of a refresh that brings nothing new.
    """
    text = json.dumps(large_document(size))
    kind, admin = kind_get("openapi"), cast.actor("admin")
    times: dict[str, list[float]] = {"read": [], "import": [], "wall": [], "again": []}
    for number in range(ROUNDS):
        row = services.source_create(
            tenant=cast.tenant, actor=admin, kind="openapi", name=f"biz{size}x{number}", document=text
        )
        with tenant_scope(cast.tenant.pk):
            row.refresh_from_db()
            wall, begun = time.perf_counter(), time.process_time()
            found = kind.read(row)
            read = time.process_time()
            done = versions_store(tenant=cast.tenant, actor=admin, read=row, found=found)
            stored = time.process_time()
            times["wall"].append(time.perf_counter() - wall)
            assert done is not None
            assert len(done.added) == size
            row.refresh_from_db()
            versions_store(tenant=cast.tenant, actor=admin, read=row, found=kind.read(row))
            times["again"].append(time.process_time() - stored)
            times["read"].append(read - begun)
            times["import"].append(stored - begun)
    medians = {f"{name}_s": round(statistics.median(values), 3) for name, values in times.items()}
    return {"operations": size, "kilobytes": len(text) // 1000, **medians}


if __name__ == "__main__":
    main()
