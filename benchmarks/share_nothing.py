"""Two web servers and two workers that share no disk: four data directories, one Postgres, one bucket.

Prints a table and writes results/share_nothing.json: of mixed uploads, archives, exports, imports, attachments and page views
through either web server, how many were right; what was lost or left over after processes were killed on the way; what came of
documents while the bucket was away; and where planted words were left after their documents were deleted.

    python benchmarks/share_nothing.py --operations 500 --kills 40 --away 60
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import _stack
from benchmarks._common import write_result
from benchmarks._share_machines import Client, Machines, served
from benchmarks._share_parts import away, deleted, killed
from benchmarks._share_work import Work, mixed


def main() -> None:
    """Run all parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--operations", type=int, default=500)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--away", type=float, default=60.0)
    chosen = parser.parse_args()
    with (
        _stack.database(),
        served() as (door, bucket),
        tempfile.TemporaryDirectory(prefix="groundwork-nothing-") as folder,
    ):
        from apps.collections.index.embedding import space_default
        from apps.collections.models import Collection
        from tenancy.scope import platform_scope
        from tests.many_tenants import workspaces_make

        workspace = workspaces_make(1)[0]
        with platform_scope():
            collection = Collection.objects.select_related("tenant").get(pk=workspace.collection)
            collection.space = space_default(tenant=collection.tenant)
            collection.save()
        machines = Machines(Path(folder), bucket.url)
        client = Client(machines, workspace)
        result: dict[str, Any] = {}
        try:
            work = Work(client, "mix")
            for name, part in (
                ("mixed", lambda: mixed(work, chosen.operations)),
                ("deleted", lambda: deleted(machines, client, bucket)),
                ("away", lambda: away(door, client, chosen.away)),
                ("killed", lambda: killed(machines, client, bucket, chosen.kills)),
            ):
                result[name] = part()
                print(f"{name}: {json.dumps(result[name])}", flush=True)
        except BaseException:
            for log in sorted(Path(folder).glob("logs-*/*.log")):
                print(f"--- {log}\n{log.read_text(errors='replace')[-3000:]}")
            raise
        finally:
            machines.stop()
    write_result("share_nothing", result)


if __name__ == "__main__":
    main()
