"""Which model a name means, and what is known about it: routing and the model catalog."""

from toolloop.models.catalog import (
    CAPABILITIES,
    ModelCatalog,
    ModelInfo,
    ModelOverride,
    compute_cost,
    default_catalog,
    get_model_info,
    list_models,
)
from toolloop.models.routing import (
    DEFAULT_ENDPOINT,
    LOCAL_PROVIDERS,
    Route,
    is_endpoint_name,
    model_route,
    parse_model,
)

__all__ = [
    "CAPABILITIES",
    "DEFAULT_ENDPOINT",
    "LOCAL_PROVIDERS",
    "ModelCatalog",
    "ModelInfo",
    "ModelOverride",
    "Route",
    "compute_cost",
    "default_catalog",
    "get_model_info",
    "is_endpoint_name",
    "list_models",
    "model_route",
    "parse_model",
]
