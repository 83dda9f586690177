"""A real S3 server on loopback (moto), and ways to make it go away."""

from __future__ import annotations

import contextlib
import os
import uuid
from collections.abc import Iterator

import boto3
from moto.server import ThreadedMotoServer

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


@contextlib.contextmanager
def serving() -> Iterator[str]:
    """Run the server; yields its address."""
    before = {name: os.environ.get(name) for name in KEYS}
    os.environ.update(KEYS)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
