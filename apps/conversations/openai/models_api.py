"""The list of models, as OpenAI's clients ask for it: the workspace itself, its assistants, its models."""

from __future__ import annotations

from dataclasses import replace

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.conversations.assistants.selectors import assistant_models
from apps.conversations.openai.services import ASSISTANT, WORKSPACE
from apps.conversations.openai.shapes import ModelOutput, ModelsOutput
from apps.conversations.transcript import selectors
from basics.errors import Missing
from toolloop.providers.registry import ModelInfo
from web.drf.views import TenantAPIView


class ModelsView(TenantAPIView):
    """What can answer."""

    actions = {"GET": "model.read"}

    @extend_schema(operation_id="models_list", tags=["models"], responses=ModelsOutput)
    def get(self, request: Request) -> Response:
        """List what can be named as a model: the workspace itself (its default model with its documents and tools), its
        published assistants, then its models; `extractive`, the last, quotes without a language model.
        """
        return Response(ModelsOutput({"object": "list", "data": _models(self)}).data)


class ModelView(TenantAPIView):
    """One thing that can answer."""

    actions = {"GET": "model.read"}

    @extend_schema(operation_id="models_get", tags=["models"], responses=ModelOutput)
    def get(self, request: Request, model: str) -> Response:
        """Return what is listed under an id."""
        found = next((known for known in _models(self) if known.id == model), None)
        if found is None:
            raise Missing("model", code="model_not_found")
        return Response(ModelOutput(found).data)


def _models(view: TenantAPIView) -> list[ModelInfo]:
    models = selectors.model_list(view.tenant)
    default = selectors.model_default(models)
    whole = next(m for m in models if m.id == default)
    by_id = {m.id: m for m in models} | {"": whole}
    assistants = [
        replace(by_id[row.published.model], id=f"{ASSISTANT}{row.slug}", label=row.name)
        for row in assistant_models(actor=view.actor)
        if row.published is not None and row.published.model in by_id
    ]
    return [replace(whole, id=WORKSPACE, label=str(view.tenant)), *assistants, *models]
