"""How long does the server take for the usage page of a workspace with 100,000 calls of tools in 30 days?

Bar: under 300 ms, the same number of queries as with a single call. Asked through Django's test client, so the time is
that of the whole request without the network. Needs a migrated database; what it makes stays in a tenant of its own.

Run: python benchmarks/usage_page.py
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "platform"), str(Path(__file__).parent)]
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")

import django  # noqa: E402

django.setup()

from _common import write_result  # noqa: E402
from django.db import connection  # noqa: E402
from django.test import Client  # noqa: E402
from django.test.utils import CaptureQueriesContext  # noqa: E402
from django.urls import reverse  # noqa: E402

from runs.models import Run, ToolCall  # noqa: E402
from tenancy.database.base import as_login_role  # noqa: E402
from tenancy.models import Membership, Role, Tenant, User  # noqa: E402
from tenancy.scope import platform_scope, tenant_scope  # noqa: E402

CALLS, RUNS, PEOPLE, TOOLS, BAR_MS = 100_000, 30_000, 40, 60, 300
_FILL = """
WITH runs AS (
    INSERT INTO runs_run (tenant_id, user_id, kind, model, status, request, answer, last_seq, stop_reason, limit_reached,
        error_code, error_message, is_retryable, usage, created_at)
    SELECT %(tenant)s, (%(people)s::int[])[1 + n %% %(count)s], 'conversation', 'openai/m' || n %% 5, 'completed', '{}', '', 0,
        '', '', '', '', false, '{}', now() - (n %% 43000) * interval '1 minute'
    FROM generate_series(1, %(runs)s) AS n
    RETURNING id, user_id, model, created_at
), numbered AS (
    SELECT *, row_number() OVER () AS place FROM runs
), used AS (
    INSERT INTO runs_usagerecord (tenant_id, run_id, user_id, step, kind, provider, model, input_tokens, cached_tokens,
        cache_write_tokens, output_tokens, reasoning_tokens, cost_usd, attribution, at,
        duration_ms)
    SELECT %(tenant)s, id, user_id, s, 'turn', 'openai', model, 1000 + s, 100, 0, 200, 50, 0.01, '{}', created_at,
        exp(random() * 9)::int
    FROM numbered, generate_series(0, 1) AS s
)
INSERT INTO runs_toolcall (tenant_id, run_id, user_id, step, call_id, parent_call_id, path, name, tool_version, decision,
    decision_why, has_side_effects, status, content, result_size, error_code, attempts, started_at, finished_at, duration_ms,
    arguments)
SELECT %(tenant)s, id, user_id, n %% 2, 'c' || n, '', 'chat', 'tool_' || floor(%(tools)s * random() * random()), '1', 'allow',
    '', false, CASE WHEN n %% 20 = 0 THEN 'failed' WHEN n %% 33 = 0 THEN 'denied' ELSE 'succeeded' END, repeat('x', 300), 300,
    '', 1, created_at, created_at, exp(random() * 9)::int, '{"query": "what is it"}'
FROM generate_series(1, %(calls)s) AS n JOIN numbered ON place = 1 + n %% %(runs)s
"""


def filled() -> tuple[Tenant, User]:
    """Return the benchmark's tenant with its calls, made at the first run and kept."""
    with platform_scope():
        tenant, is_new = Tenant.objects.get_or_create(slug="benchmark-usage", defaults={"name": "Usage"})
        if not is_new:
            return tenant, User.objects.get(email="usage0@example.com")
        people = [User.objects.create_user(f"usage{n}@example.com") for n in range(PEOPLE)]
    with tenant_scope(tenant.pk):
        for person in people:
            Membership.objects.create(tenant=tenant, user=person, role=Role.OWNER)
    with as_login_role(), connection.cursor() as cursor:
        values = {
            "tenant": tenant.pk,
            "people": [p.pk for p in people],
            "count": PEOPLE,
            "runs": RUNS,
            "calls": CALLS,
            "tools": TOOLS,
        }
        cursor.execute(_FILL, values)
        cursor.execute("ANALYZE runs_toolcall, runs_run, runs_usagerecord")
    return tenant, people[0]


def asked(client: Client, tenant: Tenant) -> tuple[int, float]:
    """Return the queries and the median milliseconds of the page."""
    url = reverse("usage:page", args=[tenant.slug])
    with CaptureQueriesContext(connection) as queries:
        status = client.get(url).status_code
    if status != 200:
        raise SystemExit(f"the page was answered with {status}")
    count, times = len(queries), []
    for _ in range(9):
        began = time.perf_counter()
        client.get(url)
        times.append((time.perf_counter() - began) * 1000)
    return count, round(statistics.median(times), 1)


def main() -> int:
    tenant, person = filled()
    with platform_scope():
        empty, _ = Tenant.objects.get_or_create(slug="benchmark-usage-0", defaults={"name": "None"})
    with tenant_scope(empty.pk):
        Membership.objects.get_or_create(tenant=empty, user=person, role=Role.OWNER)
        run, is_new = Run.objects.get_or_create(tenant=empty, user=person, kind="t", model="m")
        if is_new:
            ToolCall.objects.create(tenant=empty, run=run, user_id=person.pk, step=0, call_id="c", name="one")
    client = Client(HTTP_HOST="localhost")
    client.force_login(person, "django.contrib.auth.backends.ModelBackend")
    (few, _), (many, ms) = asked(client, empty), asked(client, tenant)
    print(f"{CALLS:,} calls: {many} queries ({few} with one call), {ms:.1f} ms")
    passed = ms < BAR_MS and few == many
    print("bar met" if passed else "BAR MISSED")
    write_result(
        "usage_page",
        {"calls": CALLS, "queries": many, "queries_one_call": few, "p50_ms": ms, "passed": passed},
    )
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())
