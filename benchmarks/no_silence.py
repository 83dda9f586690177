"""Hundreds of corrupt and hostile files at once: does every one of them end, and say why where it is refused?

Made by hand (bombs, deep nesting, endless page trees) and from good and real files by a seeded fuzzer; uploaded over REST
to a running product with its own embedder and two worker processes. Counted are the ends by reason, the longest time from
the upload to an end and of one job, whether each ready document's row claims what the tables hold, what the check of the
collection finds, and whether each failed document can be retried and ends again for the same reason.

Run: python benchmarks/no_silence.py [--files 500]. Makes a database of its own on the server of DATABASE_URL, or on an
embedded one. Bar: no file without an end, none without a reason, every ledger equal, nothing found by the check.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from typing import Any

from _common import shared_data, write_result
from _stack import database, load, percentile, product

BAD_REASONS = ("", "internal_error", "worker_lost")


def main() -> None:
    """Measure and write results/no_silence.json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=500)
    parser.add_argument("--minutes", type=int, default=60, help="after which what hangs is counted")
    args = parser.parse_args()
    before = load()
    with database(), product("fake-words5", GROUNDWORK_WORKERS="2") as (stack, _):
        result = measure(stack.url, args.files, 60.0 * args.minutes)
    result |= {"load_before": before, "load_after": load()}
    for name, value in result.items():
        print(f"{name:36} {value}")
    print(write_result("no_silence", result))
    passed = not (
        result["without_an_end"]
        or result["without_a_reason"]
        or result["ledgers_unequal"]
        or result["findings_of_the_check"]
        or result["retried_to_another_end"]
    )
    sys.exit(0 if passed else 1)


def measure(url: str, count: int, seconds: float) -> dict[str, Any]:
    """Upload the files, wait for their ends, check, retry what failed; return the figures."""
    import httpx2

    from apps.collections.collection.reconcile import ingestion_check
    from apps.collections.collection.services import collection_create
    from apps.collections.models import Document
    from apps.collections.storage.ledger import ledger_agrees, ledger_count
    from tenancy.models import Role
    from tenancy.scope import tenant_scope
    from tenancy.services import api_key_create
    from tests.concurrency.hostile_corpus import hostile_corpus
    from tests.factories import actor_of, make_member, make_tenant

    tenant = make_tenant("benchmark")
    owner = actor_of(make_member(tenant, Role.OWNER))
    real = shared_data() if shared_data().is_dir() else None
    with tenant_scope(tenant.pk):
        collection = collection_create(
            tenant=tenant, actor=owner, name="Hostile", chunk_size=2000, chunk_overlap=0
        )
        scopes = ["collection.read", "document.write"]
        _, key = api_key_create(tenant=tenant, actor=owner, name="benchmark", scopes=scopes)
    client = httpx2.Client(base_url=f"{url}/api/v1", headers={"Authorization": f"Bearer {key}"}, timeout=120)
    began = time.monotonic()
    answers: Counter[int] = Counter()
    for name, data in hostile_corpus(count, real):
        sent = client.post(f"/collections/{collection.pk}/documents", files={"file": (name, data)})
        answers[sent.status_code] += 1
    uploaded = time.monotonic() - began
    with tenant_scope(tenant.pk):
        documents = ended(collection, seconds)
        ready = [d for d in documents if d.status == "ready"]
        failed = [d for d in documents if d.status == "failed"]
        waited = [(d.finished_at - d.created_at).total_seconds() for d in [*ready, *failed]]
        jobs = [(d.job.finished_at - d.job.started_at).total_seconds() for d in [*ready, *failed]]
        took = time.monotonic() - began
        unequal = [d.name for d in ready if not ledger_agrees(d, ledger_count(d, collection.space_id))]
        findings = ingestion_check(tenant=tenant, actor=owner, collection=collection).findings
        reasons = {d.pk: d.error_code for d in failed}
        for pk in reasons:
            client.post(f"/documents/{pk}/retry").raise_for_status()
        again = {d.pk: d.error_code for d in ended(collection, seconds) if d.pk in reasons}
        others = Document.objects.filter(collection=collection).exclude(status__in=("ready", "failed"))
        return {
            "files": count,
            "real_documents_damaged": real is not None,
            "answers_to_uploads": dict(answers),
            "documents": len(documents),
            "ready": len(ready),
            "failed": len(failed),
            "failed_by_reason": dict(Counter(reasons.values()).most_common()),
            "without_an_end": len(documents) - len(ready) - len(failed),
            "without_a_reason": sum(d.error_code in BAD_REASONS or len(d.error_message) < 25 for d in failed),
            "attempts_beyond_the_first": sum(d.job.attempts - 1 for d in documents),
            "longest_job_s": round(max(jobs), 1),
            "job_p95_s": round(percentile(jobs, 0.95), 2),
            "longest_from_upload_to_end_s": round(max(waited), 1),
            "upload_s": round(uploaded, 1),
            "all_s": round(took, 1),
            "ledgers_compared": len(ready),
            "ledgers_unequal": len(unequal),
            "findings_of_the_check": len(findings),
            "retried": len(again),
            "retried_to_another_end": sum(again[pk] != code for pk, code in reasons.items()),
            "still_under_way": others.count(),
        }


def ended(collection: Any, seconds: float) -> list[Any]:
    """Return the collection's documents when all have ended, or as they are after so many seconds."""
    from apps.collections.models import Document

    rows = Document.objects.filter(collection=collection)
    until = time.monotonic() + seconds
    while time.monotonic() < until and rows.exclude(status__in=("ready", "failed")).exists():
        time.sleep(1)
    return list(rows.select_related("job").order_by("pk"))


if __name__ == "__main__":
    main()
