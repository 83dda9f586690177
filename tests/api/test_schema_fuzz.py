"""schemathesis: whatever the OpenAPI schema allows, and what it forbids, gets an answer the schema knows, never a 500."""

from __future__ import annotations

import math
import os
import time
from collections import Counter
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.result import Ok
from schemathesis.schemas import APIOperation
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.conftest import Api
from tests.nightly import NIGHTLY

pytestmark = pytest.mark.servers

CHECKS: list[Any] = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    response_headers_conformance,
]
# Requests per operation and mode, by how much there is to make up: where it is an id alone, four of them (a key and a
# session are values too) have shown what ten would. By day no operation gets more than these four.
LEAST, MOST = 1, 10 if NIGHTLY else 4
# Share of the operations that some made-up request must get right: below it most of what is sent bounces off a check in
# front (a key, an id) and hardly anything is tested. Which ones it hits is chance; that each of them can succeed is what
# tests/permissions/test_matrix.py shows, row by row.
REACHED_LEAST = 0.5
ANSWER_S = 60
ONLY = os.environ.get("FUZZ_ONLY", "")  # part of a path, while one works on it
# By day the same tenth of the operations with the same made-up requests, so that no run fails by its date; at night all of
# them, made up anew each night. What a run said can be had again with its seed.
SEED = int(os.environ.get("FUZZ_SEED") or (datetime.now(UTC).date().toordinal() if NIGHTLY else 1))
SHARE = 1.0 if NIGHTLY else 0.1


def test_every_answer_is_documented_and_none_is_a_500_when_requests_are_made_up(api: Api) -> None:
    schema = schemathesis.openapi.from_url(f"{api.url}/api/schema/?format=json")
    schema.config.update(base_url=api.url)
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {api.key}"
    problems: dict[str, str] = {}
    statuses: Counter[tuple[str, int]] = Counter()
    slowest: dict[str, float] = {}
    operations = [found.ok() for found in schema.get_all_operations() if isinstance(found, Ok)]
    assert len(operations) == sum(1 for _ in schema.get_all_operations()), "the schema is broken"
    operations = [operation for operation in operations if ONLY in operation.label]
    if not ONLY:
        operations = Random(SEED).sample(operations, math.ceil(SHARE * len(operations)))
    print(f"FUZZ_SEED={SEED} NIGHTLY={NIGHTLY:d}: {len(operations)} operations")  # noqa: T201
    for label, operation in ((o.label, o) for o in operations):
        # OpenAPI 3.0 has no words for the events of a stream; schemathesis would read "string" as one event.
        checks = [c for c in CHECKS if "events" not in label or c is not response_schema_conformance]
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            name = f"{label} ({mode.value})"

            def examine(case: Case[Any], real: bool, name: str = name, checks: list[Any] = checks) -> None:
                # A deletion always goes to the row kept for it: one made up takes a row that the rest is about.
                if real or case.method == "DELETE":
                    _aim(case, api)
                began = time.monotonic()
                response = case.call(session=session, timeout=ANSWER_S)
                slowest[name] = max(slowest.get(name, 0), time.monotonic() - began)
                statuses[name, response.status_code] += 1
                try:
                    case.validate_response(response, checks=checks)
                except (Failure, FailureGroup) as failure:
                    causes = getattr(failure, "exceptions", [failure])
                    for cause in causes:
                        key = f"{name}: {type(cause).__name__} {response.status_code}"
                        problems.setdefault(key, f"{cause}\n{case.as_curl_command()}"[:1500])

            _run(operation.as_strategy(generation_mode=mode), examples(operation), examine)
    for (name, status), count in sorted(statuses.items()):
        print(f"{name:60} {status} x{count}  slowest {slowest[name]:.2f} s")  # noqa: T201
    told = [f"{key}\n{text}" for key, text in problems.items()]
    assert not problems, "\n\n".join([f"again with FUZZ_SEED={SEED} NIGHTLY={NIGHTLY:d}", *told])
    labels = {operation.label for operation in operations}
    reached = {label for label in labels if _succeeded(statuses, label)}
    # Of a few operations, chance may reach too few.
    assert SHARE < 1 or ONLY or len(reached) >= REACHED_LEAST * len(labels), sorted(labels - reached)


def examples(operation: APIOperation[Any, Any, Any, Any]) -> int:
    """Return how many requests to make up: the more, the more values the operation takes (with those that sign in)."""
    values = sum(1 for _ in operation.iter_parameters())
    # As JSON and as a form it is the same body.
    values += max((_fields(body.resolved_schema) for body in operation.body), default=0)
    return min(MOST, LEAST + values)


def _fields(schema: Any) -> int:
    """Count the fields that a schema names, at any depth."""
    if isinstance(schema, list):
        return sum(map(_fields, schema))
    if not isinstance(schema, dict):
        return 0
    return sum((len(part) if name == "properties" else 0) + _fields(part) for name, part in schema.items())


def _succeeded(statuses: Counter[tuple[str, int]], label: str) -> bool:
    """Say whether some request to the operation was carried out."""
    return any(name.rsplit(" ", 1)[0] == label and status < 300 for name, status in statuses)


def _run(cases: st.SearchStrategy[Case[Any]], most: int, examine: Any) -> None:
    @seed(SEED)
    @settings(
        max_examples=most,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases, real=st.sampled_from([True, True, True, False]))
    def run(case: Case[Any], real: bool) -> None:
        examine(case, real)

    try:
        run()
    except Exception as error:
        if type(error).__name__ != "Unsatisfiable":  # an operation without input has nothing wrong to send
            raise


def _aim(case: Case[Any], api: Api) -> None:
    """Point a request at rows that exist, so that it gets past the 404."""
    ids = api.ids[""] | api.ids.get(case.operation.label, {})
    kind = case.path.split("/")[3]
    for name in case.path_parameters or {}:
        known = name if name in ids else kind
        case.path_parameters[name] = ids.get(known, case.path_parameters[name])
