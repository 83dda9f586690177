"""What the loop asks of a provider adapter."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from toolloop.events import ProviderEvent
from toolloop.messages import ModelMessage
from toolloop.server_tools import ServerTool

if TYPE_CHECKING:
    from toolloop.metering import Meter
    from toolloop.providers.profile_types import Profile


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a provider must see it: name, description and JSON Schema of the arguments object.

    Attributes:
        deferred: the model need not see it until it searches for it. Sent only to models whose provider has such a
            search; for any other the tools marked ``finder`` stand in.
        finder: it finds or loads deferred tools; left out where the provider's own search does.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    deferred: bool = False
    finder: bool = False


@dataclass(frozen=True, slots=True)
class ResponseSchema:
    """The form a turn's text must have; adapters map it to what their provider calls structured output.

    Attributes:
        name: letters, digits, ``_`` and ``-``, at most 64.
        schema: JSON Schema of type object.
        strict: it is in the form that strict modes take. One that is not is sent only to providers that treat a schema
            as a hint or take any.
    """

    name: str
    schema: Mapping[str, Any]
    strict: bool = True


class Resume(Protocol):
    """What outlives the connection of an answer in the background.

    Attributes:
        response_id: the provider's id of an answer that an earlier attempt at this turn has begun, "" for none.
    """

    response_id: str

    async def started(self, response_id: str) -> None:
        """Remember the id of an answer that has begun, before anything of it is read."""

    def is_given_up(self) -> bool:
        """Tell whether nobody will want the answer any more, so that the provider is to stop it."""


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One call to a model.

    Attributes:
        model: bare model name of the provider, without our routing prefix.
        system: system prompt, "" for none.
        messages: normalised history, oldest first; each call id is answered before the next user message.
        tools: offered tools; with ``tool_choice="none"`` they stay declared (cached prefix) but may not be called.
        max_output_tokens: None lets the provider decide where it can.
        timeout_s: seconds this call may take in total.
        cache_key: stable key per tenant and conversation for prompt caching, "" for none.
        user_key: hashed identifier of the end user, "" for none.
        options: settings that only some models know: ``temperature``, ``top_p``, ``seed``, ``stop`` (texts before which
            the answer ends), ``effort``, ``parallel_tool_calls``. Adapters send what their provider and the model's
            profile allow and drop the rest. Those of ``toolloop.service`` (``service_tier``, ``cache_ttl``, ``background``)
            are refused instead of dropped.
        response_schema: structured output, None for free text.
        withheld: tells of a tool that is not offered why it may not be called, "" where there is no such tool.
        server_tools: what the provider may run itself; an adapter refuses what its model does not have.
        profile: facts about the model that go before those its name stands for, None for these.
        meter: told where the count of this call is to be read while it is under way, None where nobody asks.
        resume: what outlives the connection of an answer in the background; None where nobody takes it up again.
    """

    model: str
    system: str
    messages: Sequence[ModelMessage]
    tools: Sequence[ToolSpec] = ()
    tool_choice: Literal["auto", "required", "none"] = "auto"
    max_output_tokens: int | None = None
    timeout_s: float = 600.0
    cache_key: str = ""
    user_key: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    response_schema: ResponseSchema | None = None
    server_tools: Sequence[ServerTool] = ()
    withheld: Callable[[str], str] = field(default=lambda name: "", compare=False, repr=False)
    profile: Profile | None = None
    meter: Meter | None = field(default=None, compare=False, repr=False)
    resume: Resume | None = field(default=None, compare=False, repr=False)


class Provider(Protocol):
    """An adapter instance belongs to one event loop and one account; make it per run, close it after.

    ``stream`` yields deltas and at last exactly one ``TurnFinished``; it raises only
    ``toolloop.errors.ProviderError`` kinds. Closing the generator (``aclose``) or cancelling the task closes the HTTP
    stream at once.
    """

    name: str

    def stream(self, request: ModelRequest) -> AsyncIterator[ProviderEvent]: ...

    async def aclose(self) -> None: ...
