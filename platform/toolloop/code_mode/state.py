"""The state of a paused program as signed text: whoever can change it could make the program do anything."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import zlib
from typing import Any

from toolloop.errors import ConfigurationError, ToolloopError

FORMAT = 1
_MOST_BYTES = 64 * 1024 * 1024


class StateRefused(ToolloopError):
    """A paused program cannot go on: its state was changed, belongs to someone else, or is of another version."""

    code = "code_state_refused"


def state_seal(data: dict[str, Any], *, key: bytes, binding: str) -> str:
    """Return state as text.

    Args:
        data: JSON.
        key: secret of the application, at least 16 bytes.
        binding: whose state it is (tenant, run); must be the same when it is opened.
    """
    if len(key) < 16:
        raise ConfigurationError(
            "CodeMode(state_key=...) must be at least 16 secret bytes, the same in every process: tools that need "
            "approval pause a program, and its state is signed with that key."
        )
    raw = zlib.compress(json.dumps({"format": FORMAT, **data}).encode(), 1)
    return base64.urlsafe_b64encode(_tag(raw, key, binding) + raw).decode()


def state_open(text: str, *, key: bytes, binding: str) -> dict[str, Any]:
    """Return what ``state_seal`` was given.

    Raises:
        StateRefused: the signature does not fit text, key and binding, or the format is another one.
    """
    try:
        sealed = base64.urlsafe_b64decode(text.encode())
    except ValueError as error:
        raise StateRefused("The state of the paused program cannot be read.") from error
    tag, raw = sealed[:32], sealed[32:]
    if not hmac.compare_digest(tag, _tag(raw, key, binding)):
        raise StateRefused(
            "The state of the paused program does not carry the right signature: it was changed, it belongs to another "
            "tenant or run, or the key is another one."
        )
    data = json.loads(zlib.decompressobj().decompress(raw, _MOST_BYTES))
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise StateRefused("The paused program is from another version; run it again.")
    return data


def _tag(raw: bytes, key: bytes, binding: str) -> bytes:
    bound = hashlib.sha256(binding.encode()).digest()
    return hmac.new(key, b"groundwork-code-state" + bound + raw, hashlib.sha256).digest()
