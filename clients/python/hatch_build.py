"""Build hook: a wheel, an sdist and an editable installation hold the client that the schema of today gives."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

GENERATED = ("client.py", "models.py")


class ClientBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Generates the client before it is packed; an sdist, which has no schema beside it, brings it along."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the generated modules.

        Raises:
            FileNotFoundError: there is neither the schema nor what was made from it.
        """
        root = Path(self.root)
        package = root / "src" / "groundwork_client"
        schema = root.parents[1] / "docs" / "openapi.yaml"
        if schema.exists():
            generate = runpy.run_path(str(root / "generate.py"))
            generate["client_write"](schema, package)
        lacking = [name for name in GENERATED if not (package / name).exists()]
        if lacking:
            raise FileNotFoundError(f"{schema}: without it {', '.join(lacking)} cannot be made")
