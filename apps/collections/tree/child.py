"""The limited child: checks syntax, or reads a repository. It never imports Django and dies with its parent."""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable, Mapping
from typing import Any

from basics.errors import DomainError
from basics.processes import end_with_parent
from basics.texts import kept


def main() -> int:
    """Serve one request and exit."""
    request = json.loads(sys.stdin.buffer.read())
    end_with_parent(parent=int(request["parent_pid"]))
    seconds, memory = int(request["seconds"]), int(request["memory_bytes"])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))  # it has nothing to write
    try:
        answer: dict[str, Any] = {"answer": _ACTIONS[request["action"]](request)}
    except DomainError as refused:
        answer = {"refused": kept(refused.message)}
    sys.stdout.write(json.dumps(answer))
    sys.stdout.flush()
    os._exit(0)


def _syntax(request: Mapping[str, Any]) -> Any:
    from apps.collections.tree.syntax import problems

    return problems(request["text"], request["language"])


def _git(request: Mapping[str, Any]) -> Any:
    from apps.collections.ingestion.git.repository import answer

    return answer(request)


_ACTIONS: dict[str, Callable[[Mapping[str, Any]], Any]] = {"syntax": _syntax, "git": _git}


if __name__ == "__main__":
    sys.exit(main())
