"""xAI over its Responses API: the wire of OpenAI with a few fields named otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from toolloop.providers._media import XAI_MEDIA, MediaLimits
from toolloop.providers.openai import OpenAIProvider


class XAIProvider(OpenAIProvider):
    """Adapter for xAI; arguments as for ``OpenAIProvider``."""

    name = "xai"
    default_base_url: ClassVar[str] = "https://api.x.ai/v1"
    _user_field: ClassVar[str] = "user"
    # The ``instructions`` field is not supported there; a system item is.
    _system_field: ClassVar[str | None] = None
    _media: ClassVar[MediaLimits] = XAI_MEDIA
    _blocked_domains: ClassVar[str | None] = "excluded_domains"
    _container: ClassVar[Mapping[str, Any]] = {}
