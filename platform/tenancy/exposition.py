"""``/metrics`` as text, and who may read it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import Any, Final

from django.conf import settings

from basics.metrics import registry_fresh
from tenancy.readings import readings

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


def metrics_text() -> bytes:
    """Return what this process has counted, with what the database and the machine say now.

    Format: https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format
    """
    from prometheus_client import generate_latest

    registry = registry_fresh()
    registry.register(_Figures())
    return generate_latest(registry)


def token_given(authorization: str) -> bool:
    """Tell whether a header ``Authorization`` carries the operator's token; False while there is none.

    Takes the same time whatever is wrong with it.
    """
    expected = settings.METRICS_TOKEN
    given = f"Bearer {expected}".encode()
    return secrets.compare_digest(authorization.encode("utf-8", "surrogateescape"), given) and bool(expected)


class _Figures:
    """What was read, as Prometheus's client takes it."""

    def collect(self) -> Iterator[Any]:
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        families: dict[str, Any] = {}
        for figure in readings.figures():
            family = families.get(figure.name)
            if family is None:
                made = CounterMetricFamily if figure.kind == "counter" else GaugeMetricFamily
                family = families[figure.name] = made(
                    figure.full_name, figure.help, labels=tuple(figure.labels)
                )
            family.add_metric(tuple(figure.labels.values()), figure.value)
        yield from families.values()
