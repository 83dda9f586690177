"""What one run of a ``Client`` may be given, and how its input becomes a history."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from toolloop.deferred import Decision
from toolloop.errors import ConfigurationError
from toolloop.generation import Generation
from toolloop.history import histories_merge
from toolloop.journal import Journal
from toolloop.limits import Limits
from toolloop.messages import ModelMessage, UserMessage
from toolloop.output import Form
from toolloop.server_tools import ServerTool
from toolloop.tools.session import ToolSession

if TYPE_CHECKING:
    from toolloop.models import ModelCatalog

Input = str | UserMessage | Sequence[ModelMessage] | Generation


class RunOptions(TypedDict, total=False):
    """What one run may state besides its input.

    history: messages before the input.
    system: system prompt instead of the client's.
    output: type or JSON Schema of the answer, see ``toolloop.output.output_of``; None for text.
    use_tools: names of the tools that may be used, () for none; all without it.
    context: for tools, on top of the client's.
    limits, options: instead of the client's.
    mock_tools: call mocks; nothing has effects.
    decisions: by call id, about the pending calls of a parked generation.
    session: keeps loaded tools between runs, with dynamic tools.
    journal: told of everything before and after it happens.
    stop: set it to end the run.
    usage_metadata: on top of the client's.
    server_tools: what the provider may run itself.
    conversation_id: for prompt caches and traces.
    user_key: hashed identifier of the end user.
    """

    history: Sequence[ModelMessage]
    system: str
    output: Form
    use_tools: Collection[str]
    context: Mapping[str, Any]
    limits: Limits
    options: Mapping[str, Any]
    mock_tools: bool
    decisions: Mapping[str, Decision]
    session: ToolSession
    journal: Journal
    stop: asyncio.Event
    usage_metadata: Mapping[str, Any]
    server_tools: Sequence[ServerTool]
    conversation_id: str
    user_key: str


def input_history(before: Sequence[ModelMessage], given: Input) -> list[ModelMessage]:
    """Join what was before and the input to one history.

    Raises:
        ConfigurationError: nothing is asked.
    """
    if isinstance(given, str):
        given = UserMessage(given)
    asked = given.messages if isinstance(given, Generation) else given
    history = histories_merge(before, [asked] if isinstance(asked, UserMessage) else asked)
    if not history:
        raise ConfigurationError(
            "there is nothing to answer: pass a question, or a history that ends with one"
        )
    return history


def facts_checked(models: ModelCatalog | None, endpoints: Mapping[str, Mapping[str, Any]]) -> ModelCatalog:
    """Return the catalog in which the names of a client's models are looked up.

    Raises:
        ConfigurationError: an endpoint without a usable name or a URL, or one that the catalog does not know.
    """
    from toolloop.models import ModelCatalog, default_catalog, is_endpoint_name

    for name, settings in endpoints.items():
        if not is_endpoint_name(name):
            raise ConfigurationError(
                f"{name!r} isn't a valid endpoint name: use at most 30 lower-case letters, digits and '-', "
                f"and not a provider's name"
            )
        if not settings.get("base_url"):
            raise ConfigurationError(f"The endpoint {name!r} needs a base_url.")
    if models is None:
        return ModelCatalog(endpoints=endpoints) if endpoints else default_catalog()
    unknown = sorted(set(endpoints) - models.endpoints)
    if unknown:
        raise ConfigurationError(
            f"The model catalog doesn't know the endpoints {', '.join(unknown)}: create it with endpoints=."
        )
    return models
