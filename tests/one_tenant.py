"""Statements that a sharded Postgres refuses or sends to every machine, found while the tests run.

Two rules. ``FOR UPDATE SKIP LOCKED`` on a tenant's table has to run in that tenant's scope: a sweep reads what is due
everywhere without a lock, and then locks in each workspace by itself. And each statement of the product on a tenant's table
says whose rows it means (``tests.routing``), unless ``ACROSS`` tells why it asks all of them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, wraps
from pathlib import Path
from typing import Any

from tenancy.database import cursors
from tenancy.database.cursors import LOGIN, scope_wanted
from tenancy.scope import ALL
from tests.routing import tables_loose

ROOT = Path(__file__).resolve().parent.parent
_NAMES = re.compile(r'(?:FROM|JOIN|UPDATE)\s+"?(\w+)', re.IGNORECASE)
_MORE_VALUES = re.compile(r"%s(?:, %s){2,}")
_SAME_ROWS = re.compile(r"(\([^()]*\))(?:, \1)+")
_PRODUCT = (str(ROOT / "apps"), str(ROOT / "platform"))
_TESTS = str(ROOT / "tests")
_BELOW = str(ROOT / "platform" / "tenancy" / "database")  # whoever asks stands above it

_SIGN_IN = "finds out which workspace it is: by person and address, by the hash of a key, a token or a link"
_FORGETS = "forgets what has expired, of every workspace; nobody waits for it"
_DUE = "finds what is due in any workspace, without a lock; each is then looked at again in its own scope"
_OPERATOR = "is run by the operator, once, for the whole installation"
_OPERATORS_PAGE = "the page of superusers, who run the whole installation"
_PERSON = "a person is in several workspaces, and all that is theirs goes or is written out"
ACROSS = {
    "tenancy.selectors:membership_find": _SIGN_IN,
    "tenancy.selectors:membership_list": _SIGN_IN,
    "tenancy.selectors:api_key_authenticate": _SIGN_IN,
    "tenancy.selectors:access_token_authenticate": _SIGN_IN,
    "tenancy.selectors:may_create_tenant": _SIGN_IN,
    "tenancy.selectors:invite_read": _SIGN_IN,
    "tenancy.lagging:writes_of_person_noted": "a person's workspaces: the admin site knows no single one",
    "tenancy.lagging:marks_expire": _FORGETS,
    "tenancy.idempotency:answers_expire": _FORGETS,
    "tenancy.services.connections:tokens_expire": _FORGETS,
    "budgets.services:budgets_sweep": _FORGETS,
    "webhooks.services:rotations_end": _FORGETS,
    "notices.services:notices_forget": _FORGETS,
    "notices.mailing:_due": _DUE,
    "blobs.services:pending_sweep": _DUE,
    "blobs.caches:caches_look": "a machine's cache holds files of every workspace",
    "jobs.sweeper:sweep": _DUE,
    "jobs.sweeper:sweep_orphaned": _DUE,
    "jobs.fairness:next_turn": "takes turns between workspaces, so it has to see what waits in each",
    "jobs.waits:_lane_waits": "the same for the wait that people are told",
    "jobs.heartbeat:_run": "a worker process holds jobs of several workspaces, and tells so once for all",
    "runs.services.lifecycle:orphans_end": _DUE,
    "runs.approvals.expiry:decisions_expire": _DUE,
    "erasure.removal:_tenants": _DUE,
    "apps.collections.pipeline.lexical_upgrade:terms_sweep": _DUE,
    "apps.collections.index.codes:codes_sweep": _DUE,
    "apps.collections.index.large:graphs_sweep": _DUE,
    "apps.collections.index.large:indexes_restore": _OPERATOR,
    "apps.collections.index.embedder_install:embedder_install": _OPERATOR,
    "backups.kept_keys:_stored": _OPERATOR,
    "apps.collections.search.verified:search_verify": _OPERATOR,
    "backups.verifying:_tenants": _OPERATOR,
    "tenancy.management.commands.credentials_rotate:handle": _OPERATOR,
    "sso.domains:domain_mark": "one workspace of the installation has a mail domain",
    "sso.domains:domain_tenant": _SIGN_IN,
    "sso.saml.services:answers_expire": _FORGETS,
    "sso.selectors:_connections": _SIGN_IN,
    "sso.scim.views:_authenticated": _SIGN_IN,
    "sso.sign_ins:sign_ins_expire": _FORGETS,
    "audit.pump:pump_round": _DUE,
    "audit.services:streams_of_operator_ensure": "the operator's streams: one in each workspace",
    "audit.middleware:_tenant_of_admin": "finds out whose row a superuser's page has shown",
    "config.operate.selectors:installation_read": _OPERATORS_PAGE,
    "config.operate.services:failed_retry": _OPERATORS_PAGE,
    "erasure.persons:person_refuse": _PERSON,
    "erasure.persons:person_close": _PERSON,
    "erasure.persons:person_rows_erase": _PERSON,
    "erasure.persons:person_names_erase": _PERSON,
    "exports.files:person_export": _PERSON,
    "apps.collections.collection.erasing:person_collections_erase": _PERSON,
    "erasure.services:ledger_apply": _OPERATOR,
    "erasure.services:ledger_round": _OPERATOR,
    "tenancy.readings:_read": "metrics of the whole installation",
}
"""Who asks all tenants at once, as the function that opens the platform's scope for it, and why.

The admin site's pages for superusers ask so too; their scope is opened by the middleware.
"""


class AcrossTenants(AssertionError):
    """A statement asks, or locks, rows of several tenants at once."""


@cache
def _tables() -> frozenset[str]:
    from tenancy.row_security import tenant_models

    return frozenset(m._meta.db_table for m in tenant_models())


def check(sql: str, scope: str) -> None:
    """Refuse a statement that skips locked rows of tenants' tables outside of one tenant's scope.

    Raises:
        AcrossTenants: with the tables.
    """
    if "SKIP LOCKED" not in sql or scope.isdecimal():
        return
    if found := _tables().intersection(_NAMES.findall(sql)):
        raise AcrossTenants(f"locks rows across tenants: {', '.join(sorted(found))}")


@cache
def _any_table() -> re.Pattern[str]:
    return re.compile("|".join(sorted(_tables())))


@lru_cache(maxsize=65536)
def loose(sql: str) -> tuple[str, ...]:
    """Return the tenants' tables of a statement of which it doesn't say whose rows it means."""
    return _loose(shortened(sql)) if _any_table().search(sql) else ()


@lru_cache(maxsize=65536)
def _loose(sql: str) -> tuple[str, ...]:
    return tuple(tables_loose(sql, _tables()))


def shortened(sql: str) -> str:
    """Return a statement with two values for each longer list of them, and one row of VALUES for several alike.

    What a statement says of tenants is the same for three values and for three hundred: it is read once for all.
    """
    return _SAME_ROWS.sub(r"\1", _MORE_VALUES.sub("%s, %s", sql))


def askers() -> Iterator[Any]:
    """Yield the frames of the product's code that ask, innermost first, up to the test that calls it."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if path.startswith(_TESTS) and path != __file__:
            return
        if path.startswith(_PRODUCT) and not path.startswith(_BELOW):
            yield frame
        frame = frame.f_back


def check_routed(sql: str, scope: str) -> None:
    """Refuse a statement of the product that doesn't say whose rows it means, unless ``ACROSS`` tells why.

    Raises:
        AcrossTenants: with who asks and the tables.
    """
    if not scope or not (found := loose(sql)):  # without a scope no row is seen
        return
    frames = list(askers())
    if scope == ALL:
        # Whose scope it is: a test may open it and call what works within one tenant otherwise.
        frames = [frame for frame in frames if "platform_scope" in frame.f_code.co_names]
    names = [f"{frame.f_globals['__name__']}:{frame.f_code.co_name}" for frame in frames]
    if names and not (scope == ALL and names[0] in ACROSS):
        raise AcrossTenants(f"{names[0]} asks all tenants for {', '.join(found)}: {sql[:1000]}")


def _seen(query: Any) -> None:
    scope = scope_wanted()
    if scope == LOGIN:
        return
    sql = query if isinstance(query, str) else query.as_string(None) if hasattr(query, "as_string") else None
    if sql is not None:
        check(sql, scope)
        check_routed(sql, scope)


def watch() -> None:
    """Check every statement of this process from now on."""
    for kind in (
        cursors.ScopedCursor,
        cursors.ScopedServerCursor,
        cursors.BinaryCursor,
        cursors.BinaryServerCursor,
    ):
        _checked(kind, "execute")
    _checked(cursors._Scoped, "executemany")
    _checked(cursors._Scoped, "stream")
    _checked(cursors._Scoped, "copy")


def _checked(kind: Any, name: str) -> None:
    sends: Callable[..., Any] = getattr(kind, name)

    @wraps(sends)
    def checked(self: Any, query: Any, *args: Any, **options: Any) -> Any:
        _seen(query)
        return sends(self, query, *args, **options)

    setattr(kind, name, checked)
