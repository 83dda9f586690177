"""Do 10,000 audit events and reads arrive, in order, while sender and receiver are killed with SIGKILL again and again?

    python benchmarks/audit_stream.py [--events 10000] [--kills 25]

For a signed webhook and for syslog over TLS: half of the events are acts in the audit chain, half are reads. Both sides
are processes; each is killed ``--kills`` times, in turns, as events arrive. The receiver writes what it has to the disk
before it says so. Bar: 0 lost, the order of first arrivals kept, at least once. Repetitions are counted. Makes a
database of its own.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent)]

from _common import write_result  # noqa: E402
from _stack import database  # noqa: E402

PATIENCE_S = 300.0


def events_make(count: int) -> set[str]:
    """Write half of the events as acts and half as reads; returns the uids of all that there are."""
    from django.db import transaction

    from audit.reads import content_read, reads_number
    from tenancy.actors import system_actor
    from tenancy.models import AuditEvent, Tenant
    from tenancy.scope import platform_scope, tenant_scope
    from tenancy.services import audit_record

    tenant = Tenant.objects.create(slug="stream", name="Stream")
    actor = system_actor(tenant.pk)
    with tenant_scope(tenant.pk):
        for number in range(count // 2):
            with transaction.atomic():
                audit_record(
                    tenant=tenant, actor=actor, action="collection.update", object_name=f"no. {number}"
                )
            content_read(actor=actor, door="api:search", kind="search", named={}, documents=[number])
    for _ in range(count // 2000 + 1):
        reads_number(tenant.pk)
    with platform_scope():
        acts = AuditEvent.objects.select_related("tenant")
        return {f"{one.tenant.slug}:audit:{one.seq}" for one in acts} | {
            f"stream:reads:{number}" for number in range(1, count // 2 + 1)
        }


def measured(kind: str, expected: set[str], kills: int) -> dict[str, object]:
    """Let all through to one kind of receiver; returns what arrived."""
    import os

    from audit.models import AuditStream
    from tenancy.scope import platform_scope
    from tests.audit.relay import Relay, order_kept, relayed
    from tests.certificates import certificate
    from tests.servers import free_port
    from webhooks.signing import secret_make

    with platform_scope():
        AuditStream.objects.all().delete()
    with tempfile.TemporaryDirectory(prefix="groundwork-stream-") as name:
        port = free_port()
        if kind == "webhook":
            secret, url = secret_make(), f"http://127.0.0.1:{port}/siem"
        else:
            secret, url = str(certificate(Path(name))), f"syslog+tls://127.0.0.1:{port}"
        env = {
            "GROUNDWORK_AUDIT_STREAM": url,
            "GROUNDWORK_AUDIT_STREAM_SECRET": secret if kind == "webhook" else "",
            **({"SSL_CERT_FILE": secret} if kind == "syslog" else {}),
            "DATABASE_URL": os.environ["DATABASE_URL"],
        }
        relay = Relay(kind, Path(name), env, port, secret, batch=50)
        try:
            arrived = relayed(relay, expected, kills=kills, patience_s=PATIENCE_S)
        except AssertionError:
            print((Path(name) / "relay.log").read_text(errors="replace")[-3000:])
            raise
        finally:
            relay.close()
    return {
        "events": len(expected),
        "lost": len(expected - set(arrived.uids)),
        "order_kept": order_kept(arrived.uids),
        "repeated": len(arrived.uids) - len(set(arrived.uids)),
        "sender_kills": arrived.sender_kills,
        "receiver_kills": arrived.receiver_kills,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=25)
    options = parser.parse_args()
    with database():
        expected = events_make(options.events)
        found = {kind: measured(kind, expected, options.kills) for kind in ("webhook", "syslog")}
    print(write_result("audit_stream", found).read_text())
    if any(one["lost"] or not one["order_kept"] for one in found.values()):
        raise SystemExit("events were lost, or came out of order")


if __name__ == "__main__":
    main()
