"""Start, resume and stop the run behind a chat completion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from apps.collections.models import Collection
from apps.conversations.models import AssistantVersion, Mode
from apps.conversations.openai.wire import ParsedRequest, ToolChoice, call_ids_read
from apps.conversations.transcript import selectors
from apps.conversations.turns.answerer import assistant_answering
from basics.errors import Conflict, Denied, DomainError, Invalid
from jobs.services import job_enqueue
from runs.actors import actor_facts
from runs.approvals.services import call_decide
from runs.models import CallPath, DecisionStatus, PendingDecision, Run, RunStatus
from runs.providers import catalog_for, service_problem
from runs.services import run_create, run_stop
from tenancy.actors import Actor
from tenancy.models import Tenant
from tenancy.services import audit_record
from toolloop.deferred import Decision
from toolloop.media_types import NAMES
from toolloop.messages import ModelMessage, Turn
from toolloop.providers.registry import takes_media

RUN_KIND = "completion"
JOB_KIND = "conversations.completion_run"
ASSISTANT = "assistant/"
"""How model names begin that stand for an assistant, in its published version."""
WORKSPACE = "assistant/workspace"
"""The model name that stands for the workspace itself: its default model, its collections and its tools."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """What a client asks for.

    Attributes:
        model: as it was named: ``assistant/workspace``, ``assistant/<slug>`` or a routing name.
        tools: the client's own, as ``{"name", "description", "parameters"}``.
        first_tool: the one of them that the answer begins with a call of, "" for any; ``tool_choice`` is then "required".
        collections: ids to search; None for all, () for none of them and no tool of ours.
        schema: JSON Schema of the answer, {} for any JSON object, None for text.
        options: settings of the model, over the assistant's own; see ``ModelRequest``. What a model does not have is left
            out, but for ``stop``.
        response: what ``/responses`` keeps of its request, None for a chat completion.
    """

    model: str
    asked: ParsedRequest
    tools: Sequence[Mapping[str, Any]] = ()
    tool_choice: ToolChoice = "auto"
    first_tool: str = ""
    collections: Sequence[int] | None = ()
    schema: Mapping[str, Any] | None = None
    max_tokens: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    response: Mapping[str, Any] | None = None


def completion_start(*, tenant: Tenant, actor: Actor, request: CompletionRequest) -> Run:
    """Begin to answer, or go on with the run whose client calls the request answers.

    Raises:
        Denied: the actor may not, or is a key that acts for nobody.
        Invalid: an assistant is asked to use a form of the client's, or in a mode of fixed steps the client's tools or
            ``stop``; or a model that has no ``stop`` to use it.
        DomainError: ``model_not_found``, with the status that OpenAI gives it; ``collection_not_found``.
        Missing, Conflict: there is no such assistant to ask; the calls were answered before.
    """
    actor.require("conversation.write")
    if actor.user_id is None:
        raise Denied("person_needed", "Use a key that acts for a person: an answer needs their rights.")
    resumed = _resume(tenant, actor, request)
    if resumed is not None:
        return resumed
    _collections_there(actor, request.collections)
    model, version = request.model, None
    if model.startswith(ASSISTANT) and model != WORKSPACE:
        version, model = assistant_answering(tenant, actor, model.removeprefix(ASSISTANT))
        _own_alone(request, version)
    if version is None or request.options.get("stop"):
        model = _model_answering(tenant, model, has_stop=bool(request.options.get("stop")))
    _files_taken(tenant, model, request.asked.history)
    if problem := service_problem(tenant, model, request.options):
        raise Invalid("unsupported_parameter", problem, data={"fields": {"service_tier": [problem]}})
    facts = {
        "actor": actor_facts(actor),
        "path": CallPath.REST,
        "assistant_version": None if version is None else version.pk,
        "completion": _facts(request),
        "response": None if request.response is None else dict(request.response),
    }
    with transaction.atomic():
        run = run_create(tenant=tenant, actor=actor, kind=RUN_KIND, model=model, request=facts)
        run.job = job_enqueue(
            tenant=tenant, actor=actor, kind=JOB_KIND, payload={"run_id": run.pk}, dedupe_key=f"run:{run.pk}"
        )
        run.save(update_fields=["job"])
        audit_record(
            tenant=tenant, actor=actor, action="completion.create", object=run, data={"model": model}
        )
    return run


def _collections_there(actor: Actor, asked: Sequence[int] | None) -> None:
    """Refuse collections that the actor cannot read, before anything is begun. Raises Missing."""
    wanted = set(asked or ())
    rows = Collection.objects.visible_to(actor).filter(pk__in=wanted) if wanted else ()
    if len(rows) < len(wanted):
        unknown = sorted(wanted - {row.pk for row in rows})
        missing = ", ".join(map(str, unknown[:10]))
        raise DomainError(
            "collection_not_found",
            f"No collection of yours has the id {missing}. GET /v1/collections lists them.",
            status=404,
            data={"fields": {"groundwork.collections": [f"Not found: {missing}."]}},
        )


def _model_answering(tenant: Tenant, name: str, *, has_stop: bool) -> str:
    """Return the routing name of the model that a name stands for. Raises DomainError, Invalid."""
    models = selectors.model_list(tenant)
    wanted = selectors.model_default(models) if name == WORKSPACE else name
    found = next((info for info in models if info.id == wanted), None)
    if found is None:
        raise DomainError(
            "model_not_found",
            f"The model “{name}” isn't available here. GET /v1/models lists the available ones.",
            status=404,
            data={"fields": {"model": ["Not available."]}},
        )
    if has_stop and not found.profile.stop_sequences:
        raise Invalid(
            "unsupported_parameter",
            f"{found.label} doesn't support stop texts. Leave “stop” out, or choose another model.",
            data={"fields": {"stop": ["The model has none."]}},
        )
    return found.id


def _files_taken(tenant: Tenant, model: str, history: Sequence[ModelMessage]) -> None:
    """Refuse files that the model cannot be given, naming those that can be, before anything is begun. Raises Invalid."""
    parts = [part for message in history if not isinstance(message, Turn) for part in message.parts]
    if not parts:
        return
    info = catalog_for(tenant).get_model_info(model)
    for part in parts:
        if takes_media(info.provider, part.media_type, info.profile):
            continue
        able = [
            m.id for m in selectors.model_list(tenant) if takes_media(m.provider, part.media_type, m.profile)
        ]
        instead = f"Choose one that does: {', '.join(able[:5])}." if able else "No model here does."
        raise Invalid(
            "unsupported_content",
            f"The model “{info.id}” takes no {NAMES[part.kind]} of the type {part.media_type}. {instead}",
            data={"fields": {"messages": [f"No {NAMES[part.kind]} for this model."]}},
        )


def _facts(request: CompletionRequest) -> dict[str, Any]:
    """Return what the job needs of a request, as JSON values."""
    return {
        "model": request.model,
        "system": request.asked.system,
        "history": [message.to_json() for message in request.asked.history],
        "tools": [dict(tool) for tool in request.tools],
        "tool_choice": request.tool_choice,
        "first_tool": request.first_tool,
        "collections": None if request.collections is None else list(request.collections),
        "schema": None if request.schema is None else dict(request.schema),
        "max_tokens": request.max_tokens,
        "options": dict(request.options),
    }


def _own_alone(request: CompletionRequest, version: AssistantVersion) -> None:
    """Refuse what an assistant brings itself. Raises Invalid."""
    refusals = (
        (
            request.tools and version.mode != Mode.TOOLS,
            "tools",
            "works in its own steps and can't use your tools",
        ),
        (
            request.options.get("stop") and version.mode != Mode.TOOLS,
            "stop",
            "works in steps that a stop text could cut",
        ),
        (request.schema is not None, "response_format", "has its own answer format"),
    )
    for is_refused, name, why in refusals:
        if is_refused:
            raise Invalid(
                "assistant_has_its_own",
                f"This assistant {why}: leave “{name}” out, or name a model.",
                data={"fields": {name: ["The assistant has its own."]}},
            )


def _resume(tenant: Tenant, actor: Actor, request: CompletionRequest) -> Run | None:
    """Give a waiting run the results of its client's tools; None when it is to be answered anew, from the history.

    A run goes on as it began. A request that wants something else of what follows (another model, other tools, a form, a
    call at once) begins anew; only that no more calls are to be made is taken over.
    """
    asked = request.asked
    if request.tool_choice == "required":
        return None
    named = call_ids_read(asked.answers)
    if not named or len(named) != len(asked.answers) or len({run for run, _ in named.values()}) != 1:
        return None
    run_id = next(iter(named.values()))[0]
    run = completion_list(actor=actor).filter(pk=run_id, status=RunStatus.PARKED).first()
    if run is None or (run.request.get("response") is None) != (request.response is None):
        return None
    begun, facts = run.request["completion"], _facts(request)
    if any(begun[name] != facts[name] for name in ("model", "collections", "schema")):
        return None
    if facts["tools"] and begun["tools"] != facts["tools"]:
        return None
    with transaction.atomic():
        open_ = PendingDecision.objects.filter(run=run, status=DecisionStatus.PENDING)
        waiting = set(open_.values_list("pk", flat=True))
        if waiting - {decision for _, decision in named.values()}:
            raise Conflict("calls_open", "Answer all calls of the assistant message before continuing.")
        if begun["tool_choice"] != request.tool_choice:
            begun["tool_choice"] = request.tool_choice
            run.save(update_fields=["request"])
        for call_id, (_, decision) in named.items():
            call_decide(
                tenant=tenant,
                actor=actor,
                run=run,
                decision_id=decision,
                decision=Decision("answer", content=asked.answers[call_id]),
            )
        run.refresh_from_db()  # before a worker can have it: what it says next belongs to the response that follows
    return run


def completion_list(*, actor: Actor) -> QuerySet[Run]:
    """Return the runs that the actor may go on with: their person's own, made with the same key.

    Another key may have other rights, and what was said rests on those of the key that asked.
    """
    rows = Run.objects.visible_to(actor).filter(kind=RUN_KIND, user=actor.user_id)
    return rows.filter(request__actor=actor_facts(actor))


def completion_stop(*, tenant: Tenant, actor: Actor, run: Run) -> None:
    """Stop a run whose client has gone; harmless when it has ended. One that waits for its client goes on waiting."""
    if run.kind == RUN_KIND:
        run_stop(tenant=tenant, actor=actor, run=run)
