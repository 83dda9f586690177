"""What ``/metrics`` says, read by Prometheus's own parser."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from tenancy.exposition import metrics_text
from tenancy.readings import readings


@dataclass(frozen=True)
class Said:
    """Samples of one answer, by name and labels."""

    samples: Mapping[tuple[str, frozenset[tuple[str, str]]], float]
    families: frozenset[str]

    def value(self, name: str, **labels: str) -> float:
        """Return the sum of the samples of this name whose labels have these values; 0 where there are none."""
        return sum(v for (n, have), v in self.samples.items() if n == name and labels.items() <= set(have))

    def names(self) -> set[str]:
        """Return the names of all samples."""
        return {name for name, _ in self.samples}

    def label_values(self) -> set[str]:
        """Return every value of every label."""
        return {value for _, labels in self.samples for _, value in labels}


def parsed(text: str) -> Said:
    """Return what an answer says."""
    found: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    families = list(text_string_to_metric_families(text))
    for family in families:
        for sample in family.samples:
            key = sample.name, frozenset(sample.labels.items())
            assert key not in found, f"twice: {key}"
            found[key] = sample.value
    return Said(found, frozenset(family.name for family in families))


def said_here() -> Said:
    """Return what this process says now, read anew."""
    readings.forget()
    return parsed(metrics_text().decode())


def said_by(url: str, token: str = "") -> Said:
    """Return what a server says."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = urllib.request.Request(url, headers=headers)  # noqa: S310
    with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
        return parsed(answer.read().decode())
