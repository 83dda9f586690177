"""Renders the chart with Helm's own library: values on stdin, a JSON list; files by name on stdout, or the error.

A program of its own, because the library brings the runtime of another language, which doesn't go with forks.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from helm_python.chart import Chart
from helm_python.errors import HelmError


def rendered(folder: str, values: dict[str, Any]) -> dict[str, Any]:
    """Return the rendered files of a chart, or why it refuses the values."""
    try:
        with Chart.load(folder) as chart:
            chart.validate_schema(values)
            return {
                "files": chart.render(values, name="acme", namespace="prod", is_install=True),
                "error": "",
            }
    except HelmError as error:
        return {"files": {}, "error": str(error)}


if __name__ == "__main__":
    sys.stdout.write(json.dumps([rendered(sys.argv[1], values) for values in json.load(sys.stdin)]))
