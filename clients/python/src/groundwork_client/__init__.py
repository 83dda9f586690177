"""Typed client of the Groundwork REST API: ``Groundwork(url, key)``."""

from groundwork_client.client import Groundwork
from groundwork_client.transport import (
    ApiError,
    Conflict,
    ConnectionFailed,
    Event,
    Forbidden,
    Invalid,
    NotFound,
    RateLimited,
    ServerFailed,
    Unauthorized,
)

__version__ = "1.0.0"
__all__ = [
    "ApiError",
    "Conflict",
    "ConnectionFailed",
    "Event",
    "Forbidden",
    "Groundwork",
    "Invalid",
    "NotFound",
    "RateLimited",
    "ServerFailed",
    "Unauthorized",
]
