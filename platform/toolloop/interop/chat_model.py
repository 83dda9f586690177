"""A LangChain chat model as a provider of the loop: tools, streaming, usage, and errors in our own classes.

What crosses is LangChain's standard form (messages, tool call chunks, usage metadata, standard content blocks), so that any
integration works. A turn goes back to the model that wrote it word for word, in LangChain's own serialised form, because
several providers want their reasoning returned.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from toolloop.errors import (
    AuthFailed,
    BadRequest,
    ConfigurationError,
    ContextTooLong,
    ProviderError,
    ProviderUnavailable,
    RateLimited,
    UnsupportedFeature,
)
from toolloop.events import ProviderEvent, TurnFinished
from toolloop.interop.chat_chunks import TurnReader
from toolloop.interop.langchain import with_parts
from toolloop.messages import ToolCall, Turn, UserMessage
from toolloop.output import schema_prompt
from toolloop.providers._common import Until, account_of, one_call_only
from toolloop.providers._exchanges import exchanges, native_items
from toolloop.providers._failures import billed, classify, scrub, translate
from toolloop.providers.base import ModelRequest, ToolSpec
from toolloop.providers.profiles import Profile, profile_for

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

NAME: Final = "langchain"

# Names under which integrations keep what a request may state; the first that a model has is set.
_FIELDS: Final[dict[str, tuple[str, ...]]] = {
    "temperature": ("temperature",),
    "top_p": ("top_p",),
    "seed": ("seed",),
    "effort": ("reasoning_effort", "effort"),
}
_LIMIT_FIELDS: Final = ("max_tokens", "max_output_tokens", "num_predict", "max_new_tokens")
# How LangChain calls providers whose prices we know, and under which name.
_OURS: Final = {"openai": "openai", "anthropic": "anthropic", "google_genai": "google", "xai": "xai"}
_KINDS: Final[dict[str, type[ProviderError]]] = {
    "ContextOverflowError": ContextTooLong,
    "ModelAuthenticationError": AuthFailed,
    "ModelPermissionDeniedError": AuthFailed,
    "ModelRateLimitError": RateLimited,
    "ModelAPIError": ProviderUnavailable,
    "ModelConnectionError": ProviderUnavailable,
    "ModelTimeoutError": ProviderUnavailable,
    "ModelNotFoundError": BadRequest,
    "ModelInvalidRequestError": BadRequest,
}


def is_from_langchain(given: object) -> bool:
    """Tell whether something is LangChain's, without importing it: nothing of it exists before somebody has."""
    return "langchain_core" in sys.modules and any(
        kind.__module__.startswith("langchain_core.") for kind in type(given).__mro__
    )


def chat_model_of(given: object) -> BaseChatModel:
    """Return what was given if it is a chat model.

    Raises:
        ConfigurationError: it is something else of LangChain's; says what to give in its place.
    """
    from langchain_core.language_models import BaseChatModel, BaseLLM

    if isinstance(given, BaseChatModel):
        return given
    name = type(given).__name__
    if isinstance(given, BaseLLM):
        raise ConfigurationError(
            f"{name} is a completion model, not a chat model: pass a chat model such as ChatOpenAI"
        )
    raise ConfigurationError(
        f"{name} is built around a model (with bind, bind_tools, with_structured_output, with_retry, a chain or an agent): "
        "pass the chat model itself, and pass tools and limits to the agent"
    )


class LangChainProvider:
    """A provider that asks a LangChain chat model.

    The model stays the application's: it is not closed, and its own retries and timeouts apply beside the loop's. Options
    of a request (``temperature``, ``top_p``, ``seed``, ``effort``, the output limit) are set on a copy of the model where it
    has such a field, else they are left out. ``ModelRequest.model`` is not used: the chat model knows its own.

    Args:
        model: a ``BaseChatModel``.

    Raises:
        ConfigurationError: it is something else.
    """

    name = NAME

    def __init__(self, model: BaseChatModel) -> None:
        if not is_from_langchain(model):
            raise ConfigurationError(f"{type(model).__name__} isn't a LangChain chat model")
        self._model = chat_model_of(model)
        told = self._model._get_ls_params()
        self.model: str = told.get("ls_model_name") or type(model).__name__
        self._ls_provider = str(told.get("ls_provider", ""))
        self._account = account_of(NAME, self._ls_provider, "")

    @property
    def calls_tools(self) -> bool:
        """Tell whether tools can be bound to the model."""
        from langchain_core.language_models import BaseChatModel

        return type(self._model).bind_tools is not BaseChatModel.bind_tools

    @property
    def profile(self) -> Profile:
        """Return what is known about the model: prices and sizes where it is one of a provider's own."""
        owner = _OURS.get(self._ls_provider)
        own_server = any(getattr(self._model, name, None) for name in ("openai_api_base", "base_url"))
        known = profile_for(owner, self.model) if owner and not own_server else Profile()
        return replace(
            known, structured_output="never", web_search=False, file_search=False, deferred_tools=False
        )

    async def aclose(self) -> None:
        """Do nothing: the model is the application's."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ProviderEvent, None]:
        """Make one turn; see ``toolloop.providers.base.Provider``."""
        if request.server_tools:
            raise UnsupportedFeature("A LangChain chat model can't use server tools here.")
        deadline = asyncio.get_running_loop().time() + request.timeout_s
        runnable = self._bound(request)
        reader = TurnReader()
        given: dict[str, Any] = {}
        if request.options.get("stop"):
            given["stop"] = list(request.options["stop"])
        with billed(request, NAME, lambda: reader.usage):
            source = runnable.astream(self._messages(request), **given)
            async with aclosing(source) as chunks:
                until = Until(chunks, deadline)
                try:
                    async for chunk in until:
                        for event in reader.take(chunk):
                            yield event
                except ProviderError:
                    raise
                except Exception as error:
                    known = _translated(error, type(self._model).__name__)
                    if known is None:
                        raise
                    raise known from None
                finally:
                    until.close()
            turn = reader.turn(self.name, request.model, self._account)
        yield TurnFinished(turn)

    def _bound(self, request: ModelRequest) -> Any:
        model = self._set(request)
        specs = [spec for spec in request.tools if not spec.deferred]
        if not specs:
            return model
        given: dict[str, Any] = {}
        choice = self._choice(request.tool_choice)
        if choice is not None:
            given["tool_choice"] = choice
        if one_call_only(request) and self._ls_provider in ("openai", "azure", "xai", "groq"):
            given["parallel_tool_calls"] = False
        return model.bind_tools([_function(spec) for spec in specs], **given)

    def _choice(self, choice: str) -> Any:
        """Return LangChain's word for a tool choice; None leaves it out, and the loop refuses calls nobody may make."""
        if choice == "required":
            return "any"
        if choice == "auto":
            return None
        if self._ls_provider == "anthropic":
            return {"type": "none"}
        known = ("openai", "azure", "google_genai", "xai", "groq", "mistral", "deepseek")
        return "none" if self._ls_provider in known else None

    def _set(self, request: ModelRequest) -> BaseChatModel:
        fields = type(self._model).model_fields
        update: dict[str, Any] = {}
        for option, names in _FIELDS.items():
            name = next((n for n in names if n in fields), "")
            if name and request.options.get(option) is not None:
                update[name] = request.options[option]
        most = request.max_output_tokens
        name = next((n for n in _LIMIT_FIELDS if n in fields), "")
        if most is not None and name:
            own = getattr(self._model, name)
            update[name] = min(most, own) if isinstance(own, int) and own > 0 else most
        # A copy only where there is something to set: some models count their calls in themselves.
        return self._model.model_copy(update=update) if update else self._model

    def _messages(self, request: ModelRequest) -> list[Any]:
        from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage

        system = request.system
        if request.response_schema is not None:
            said = schema_prompt(request.response_schema.schema)
            system = f"{system}\n\n{said}" if system else said
        made: list[Any] = [SystemMessage(system)] if system else []
        for part in exchanges(request.messages):
            if isinstance(part, UserMessage):
                made.append(HumanMessage(_content(part)))
                continue
            made.append(self._ai_message(part.turn, part.calls, whole=part.whole, request=request))
            made += [
                ToolMessage(
                    with_parts(result.content, result.parts),
                    tool_call_id=result.call_id,
                    name=result.name,
                    status="error" if result.is_error else "success",
                )
                for result in part.results
            ]
        return made

    def _ai_message(
        self, turn: Turn, calls: Sequence[ToolCall], *, whole: bool, request: ModelRequest
    ) -> Any:
        from langchain_core.messages import AIMessage, messages_from_dict

        native = native_items(turn, provider=self.name, model=request.model, account=self._account)
        if native and whole:
            return messages_from_dict(native)[0]
        made = [
            {"name": call.name, "args": call.arguments or {}, "id": call.id, "type": "tool_call"}
            for call in calls
        ]
        return AIMessage(turn.text, tool_calls=made)


def _function(spec: ToolSpec) -> dict[str, Any]:
    function = {"name": spec.name, "description": spec.description, "parameters": dict(spec.parameters)}
    return {"type": "function", "function": function}


def _content(message: UserMessage) -> Any:
    made = with_parts(message.text, message.parts)
    # A model sees the files before the words about them.
    return made if isinstance(made, str) else [*made[1:], made[0]]


def _translated(error: Exception, name: str) -> ProviderError | None:
    """Return an error of an integration or of its SDK in our classes, None for what is no failure of a provider."""
    known = translate(error, name, "")
    if known is not None:
        return known
    kinds = [kind.__name__ for kind in type(error).__mro__]
    text = scrub(str(error)) or type(error).__name__
    status = _status(error)
    if status is not None:
        return classify(text, status=status)
    kind = next((_KINDS[k] for k in kinds if k in _KINDS), None)
    if kind is not None:
        return kind(text)
    modules = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    if isinstance(error, TimeoutError | ConnectionError) or modules & {"httpx", "aiohttp", "grpc"}:
        return ProviderUnavailable(f"{name}: {text}")
    return None


def _status(error: Exception) -> int | None:
    response = getattr(error, "response", None)
    for value in (
        getattr(error, "status_code", None),
        getattr(response, "status_code", None),
        getattr(error, "code", None),
    ):
        if isinstance(value, int) and not isinstance(value, bool) and 400 <= value < 600:
            return value
    return None


def provider_of(given: object) -> LangChainProvider | None:
    """Return a provider for a LangChain chat model, None for what is not LangChain's.

    Raises:
        ConfigurationError: it is LangChain's, and no chat model.
    """
    return LangChainProvider(chat_model_of(given)) if is_from_langchain(given) else None
