"""A real S3 server on loopback (moto), and ways to make it go away.

What moto leaves out is checked in front of it: signed addresses, as AWS describes them ("Authenticating Requests: Using
Query Parameters (AWS Signature Version 4)" in the reference of S3).
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, quote

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from moto.server import ThreadedMotoServer
from werkzeug.serving import make_server

KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test", "AWS_DEFAULT_REGION": "us-east-1"}


class Bucket:
    """A bucket of its own on the running server.

    Attributes:
        url: as ``GROUNDWORK_FILES_URL`` names it, below a prefix.
    """

    def __init__(self, endpoint: str) -> None:
        self.name = f"b{uuid.uuid4().hex}"
        self._client = boto3.client("s3", endpoint_url=endpoint)
        self._client.create_bucket(Bucket=self.name)
        self.url = f"s3://{self.name}/pre/fix?endpoint={endpoint}&region=us-east-1&style=path"

    def keys(self) -> set[str]:
        """Return all keys below the prefix, without it."""
        pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self.name)
        return {one["Key"].removeprefix("pre/fix/") for page in pages for one in page.get("Contents", [])}

    def content(self) -> bytes:
        """Return all bytes of the bucket, to look for something in."""
        return b"\n".join(
            self._client.get_object(Bucket=self.name, Key=f"pre/fix/{key}")["Body"].read()
            for key in sorted(self.keys())
        )

    def damage(self, key: str) -> None:
        """Change a key's bytes behind our back."""
        self._client.put_object(Bucket=self.name, Key=f"pre/fix/{key}", Body=b"other bytes")


class Signed:
    """Refuses signed addresses whose signature is not right or no longer holds, as S3 does.

    Attributes:
        ahead: how far this server's clock is ahead of the machine's.
    """

    def __init__(self, app: Callable[..., Iterable[bytes]]) -> None:
        self._app = app
        self.ahead = timedelta(0)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        told = dict(parse_qsl(environ.get("QUERY_STRING", ""), keep_blank_values=True))
        problem = self._problem(environ, told) if "X-Amz-Signature" in told else ""
        if problem:
            body = f"<Error><Code>AccessDenied</Code><Message>{problem}</Message></Error>".encode()
            start_response(
                "403 Forbidden", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))]
            )
            return [body]
        return self._app(environ, start_response)

    def _problem(self, environ: dict[str, Any], told: dict[str, str]) -> str:
        signature = told.pop("X-Amz-Signature")
        begun = datetime.strptime(told["X-Amz-Date"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        if datetime.now(UTC) + self.ahead > begun + timedelta(seconds=int(told["X-Amz-Expires"])):
            return "Request has expired"
        if told["X-Amz-SignedHeaders"] != "host":
            return "There were headers present in the request which were not signed"
        _, _, scope = told["X-Amz-Credential"].partition("/")
        query = "&".join(f"{quote(name, safe='')}={quote(told[name], safe='')}" for name in sorted(told))
        path = environ["RAW_URI"].partition("?")[0]
        asked = [
            environ["REQUEST_METHOD"],
            path,
            query,
            f"host:{environ['HTTP_HOST']}",
            "",
            "host",
            "UNSIGNED-PAYLOAD",
        ]
        digest = hashlib.sha256("\n".join(asked).encode()).hexdigest()
        key = ("AWS4" + KEYS["AWS_SECRET_ACCESS_KEY"]).encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        text = "\n".join(["AWS4-HMAC-SHA256", told["X-Amz-Date"], scope, digest])
        right = hmac.digest(key, text.encode(), "sha256").hex()
        return "" if hmac.compare_digest(right, signature) else "SignatureDoesNotMatch"


class Server(ThreadedMotoServer):
    """moto behind ``Signed``."""

    def __init__(self) -> None:
        super().__init__(ip_address="127.0.0.1", port=0, verbose=False)
        self.signed = Signed(DomainDispatcherApplication(create_backend_app))

    @property
    def address(self) -> str:
        """Return the server's address."""
        host, port = self.get_host_and_port()
        return f"http://{host}:{port}"

    def _server_entry(self) -> None:
        self._server = make_server("127.0.0.1", 0, self.signed, True, request_handler=MotoRequestHandler)
        self._server_ready_event.set()
        self._server.serve_forever()


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """Run the server; yields its address."""
    with server_run() as server:
        yield server.address


@contextlib.contextmanager
def server_run() -> Iterator[Server]:
    """Run the server; yields it."""
    before = {name: os.environ.get(name) for name in KEYS}
    os.environ.update(KEYS)
    server = Server()
    server.start()
    try:
        yield server
    finally:
        server.stop()
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
