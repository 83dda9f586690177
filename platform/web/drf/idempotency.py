"""``Idempotency-Key`` on every REST write, in one place: the base view wraps its handler with ``repeatable``."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from django.core.files.uploadhandler import FileUploadHandler
from django.db import transaction
from django.http import HttpRequest
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from basics.errors import Invalid
from tenancy.actors import Actor
from tenancy.idempotency import MAX_KEY, IdempotentWrite, StoredResponse, caller_of
from tenancy.models import Tenant

HEADER = "Idempotency-Key"
REPLAYED = "Idempotent-Replayed"
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
Handler = Callable[..., Any]


class HashingUploadHandler(FileUploadHandler):
    """Hash uploaded files while they stream by, so that a fingerprint reads nothing twice."""

    def __init__(self, request: HttpRequest | None = None) -> None:
        super().__init__(request)
        self.files: list[tuple[str, str, str]] = []
        self._digest = hashlib.sha256()

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        super().new_file(*args, **kwargs)
        self._digest = hashlib.sha256()

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        self._digest.update(raw_data)
        return raw_data  # on to the handlers that keep it

    def file_complete(self, file_size: int) -> None:
        self.files.append((self.field_name or "", self.file_name or "", self._digest.hexdigest()))


def watch_uploads(request: HttpRequest) -> HashingUploadHandler | None:
    """Hash what is uploaded with a key; to be called before anything reads the body."""
    if request.method not in WRITES or HEADER not in request.headers:
        return None
    watcher = HashingUploadHandler(request)
    request.upload_handlers.insert(0, watcher)
    return watcher


def repeatable(
    handler: Handler, *, tenant: Tenant, actor: Actor, uploads: HashingUploadHandler, waits: bool = False
) -> Handler:
    """Return the handler of a write such that a repetition with the same key gets the first answer.

    Only what succeeded is kept: a refusal changed nothing, so that its repetition is simply tried again.

    Args:
        waits: the handler waits for work that others do (a worker, a tool), which must see what it has written: it runs
            outside of a transaction. Should the server die between the work and its answer, a repetition works anew.
            A stream is not kept.

    Raises:
        Invalid: when called, if a handler that does not wait answers with what cannot be kept; what it has written is
            taken back.
    """

    def answer(request: Request, *args: Any, **kwargs: Any) -> Any:
        write = IdempotentWrite(
            tenant=tenant,
            caller=caller_of(actor),
            route=_route(request),
            key=_key(request),
            fingerprint=_fingerprint(request, uploads),
        )
        if waits:
            with write.held():
                found = write.answered()
                if found is not None:
                    return _replayed(found)
                response = handler(request, *args, **kwargs)
                with transaction.atomic():
                    _keep(write, response)
            return response
        with transaction.atomic():
            found = write.begin()
            if found is not None:
                return _replayed(found)
            response = handler(request, *args, **kwargs)
            if not _can_be_kept(response):
                raise Invalid(
                    "idempotency_key_unsupported",
                    f"The response of this operation can't be stored. Send the request without {HEADER}. "
                    f"Nothing was done.",
                )
            _keep(write, response)
        return response

    return answer


def _replayed(found: StoredResponse) -> Response:
    data = json.loads(found.body) if found.body else None
    return Response(data, status=found.status, headers={REPLAYED: "true"})


def _can_be_kept(response: Any) -> bool:
    """Say whether an answer is data: a file or a stream is not, and its repetition would have to be that again."""
    return isinstance(response, Response) and not response.streaming


def _keep(write: IdempotentWrite, response: Any) -> None:
    if response.status_code >= 400 or not _can_be_kept(response):
        return
    body = "" if response.data is None else JSONRenderer().render(response.data).decode()
    write.store(StoredResponse(response.status_code, body))


def _key(request: Request) -> str:
    key = request.headers[HEADER].strip()
    if not key or len(key) > MAX_KEY or not key.isascii() or not key.isprintable():
        raise Invalid(
            "idempotency_key_invalid",
            f"{HEADER} must be 1 to {MAX_KEY} printable ASCII characters, a UUID for example.",
        )
    return key


def _route(request: Request) -> str:
    match = request._request.resolver_match
    return f"{request.method} {match.route if match else request.path}"[:150]


def _fingerprint(request: Request, uploads: HashingUploadHandler) -> str:
    """Hash what was asked for: the values of a form or JSON body, for its bytes differ by boundary and spaces."""
    data = request.data
    fields = (
        {k: data.getlist(k) for k in data if k not in request.FILES} if hasattr(data, "getlist") else data
    )
    said = [request.method, request.get_full_path(), fields, uploads.files]
    return hashlib.sha256(json.dumps(said, sort_keys=True, default=str).encode()).hexdigest()
