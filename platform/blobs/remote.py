"""Files in a bucket or container: anything that ``django-storages`` speaks to, S3 with what only its own client can do."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.files.base import File
from django.core.files.storage import Storage

from blobs.errors import BlobMissing, StoreAway
from blobs.keys import Kept, key_checked

_CONNECT_S, _READ_S, _ATTEMPTS = 5, 60, 3


class RemoteStore:
    """Files in a bucket or container, through a storage class of ``django-storages``."""

    is_local = False
    incoming = None

    def __init__(self, storage: Storage, away: tuple[type[BaseException], ...]) -> None:
        """Make a store.

        Args:
            away: what its client raises when the server is out of reach or refuses.
        """
        self._storage = storage
        self._away = away

    def here(self, key: str) -> None:
        """See Store."""

    def put(self, key: str, source: Path) -> None:
        """See Store."""
        with source.open("rb") as stream, self._reaching():
            self._storage.save(key_checked(key), File(stream))

    def fetch(self, key: str, target: Path) -> None:
        """See Store."""
        with self._reaching(), self._storage.open(key_checked(key)) as stream, target.open("wb") as out:
            shutil.copyfileobj(stream, out, 1 << 20)

    def size(self, key: str) -> int | None:
        """See Store."""
        with self._reaching():
            try:
                return int(self._storage.size(key_checked(key)))
            except FileNotFoundError:
                return None

    def remove(self, key: str) -> None:
        """See Store."""
        with self._reaching():
            self._storage.delete(key_checked(key))

    def remove_below(self, prefix: str) -> None:
        """See Store."""
        for kept in list(self.below(prefix)):
            self.remove(kept.key)

    def below(self, prefix: str) -> Iterator[Kept]:
        """See Store."""
        with self._reaching():
            yield from self._below(prefix.rstrip("/"))

    def signed(self, key: str, *, disposition: str, seconds: int) -> str:
        """See Store."""
        return ""

    def _below(self, folder: str) -> Iterator[Kept]:
        try:
            folders, names = self._storage.listdir(folder)
        except FileNotFoundError:
            return
        start = f"{folder}/" if folder else ""
        for name in names:
            key = start + name
            yield Kept(key, int(self._storage.size(key)), self._storage.get_modified_time(key))
        for name in folders:
            yield from self._below(start + name)

    @contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise BlobMissing from None
        except self._away as error:
            if _says_missing(error):
                raise BlobMissing from None
            raise StoreAway(f"{type(error).__name__}: {error}"[:300]) from error


class S3Store(RemoteStore):
    """A bucket of anything that speaks S3: lists and deletes a thousand keys in one request."""

    _is_there = False

    def fetch(self, key: str, target: Path) -> None:
        """See Store."""
        with self._reaching():
            body = self._bucket.Object(self._full(key_checked(key))).get()["Body"]
            with closing(body), target.open("wb") as out:
                shutil.copyfileobj(body, out, 1 << 20)

    def size(self, key: str) -> int | None:
        """See Store. Once a process it makes sure that what lacks the key is the key and not the bucket."""
        found = super().size(key)
        if found is None and not self._is_there:
            with self._reaching():
                list(self._bucket.objects.limit(1))
        self._is_there = True
        return found

    def remove_below(self, prefix: str) -> None:
        """See Store."""
        with self._reaching():
            answers = self._bucket.objects.filter(Prefix=self._full(prefix)).delete()
        for answer in answers:
            for problem in answer.get("Errors", ()):  # the request itself is answered with success
                raise StoreAway(f"{problem.get('Code')} while deleting {problem.get('Key')}")

    def below(self, prefix: str) -> Iterator[Kept]:
        """See Store."""
        start = len(self._full(""))
        with self._reaching():
            for one in self._bucket.objects.filter(Prefix=self._full(prefix)):
                yield Kept(one.key[start:], one.size, one.last_modified)

    def bucket_make(self) -> bool:
        """Make the bucket unless it is there; returns whether it was made.

        Raises:
            StoreAway: the server does not answer, or refuses.
        """
        client = self._bucket.meta.client
        try:
            with self._reaching():
                client.head_bucket(Bucket=self._bucket.name)
        except BlobMissing:
            region = client.meta.region_name
            # S3's own rule: its first region must not be named, every other must.
            is_first = region in (None, "us-east-1")
            place = {} if is_first else {"CreateBucketConfiguration": {"LocationConstraint": region}}
            with self._reaching():
                client.create_bucket(Bucket=self._bucket.name, **place)
            return True
        return False

    def signed(self, key: str, *, disposition: str, seconds: int) -> str:
        """See Store; AWS Signature Version 4 in the query, which every server that speaks S3 knows. It asks no server."""
        told = {
            "Bucket": self._bucket.name,
            "Key": self._full(key_checked(key)),
            "ResponseContentDisposition": disposition,
            "ResponseContentType": "application/octet-stream",
            "ResponseCacheControl": "private, no-store",
        }
        with self._reaching():
            client = self._bucket.meta.client
            return str(client.generate_presigned_url("get_object", Params=told, ExpiresIn=seconds))

    @property
    def _bucket(self) -> Any:
        storage: Any = self._storage
        return storage.bucket

    def _full(self, key: str) -> str:
        storage: Any = self._storage
        return f"{storage.location}/{key}" if storage.location else key


def _says_missing(error: BaseException) -> bool:
    """Tell whether an S3 client error says that there is no such key (a missing bucket is the operator's matter)."""
    told = getattr(error, "response", None)
    return isinstance(told, dict) and str(told.get("Error", {}).get("Code", "")) in ("404", "NoSuchKey")


def _s3(bucket: str, prefix: str, options: dict[str, str]) -> RemoteStore:
    from boto3.s3.transfer import TransferConfig
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError
    from storages.backends.s3 import S3Storage

    style = options.pop("style", None)
    storage = S3Storage(
        bucket_name=bucket,
        location=prefix,
        endpoint_url=options.pop("endpoint", None),
        region_name=options.pop("region", None),
        file_overwrite=True,
        default_acl=None,
        # Threads of its own would not live through the worker's fork.
        transfer_config=TransferConfig(use_threads=False),
        # django-storages has no say in a client with a configuration of its own: what it would set stands here.
        client_config=Config(
            s3={"addressing_style": style} if style else None,
            signature_version="s3v4",  # also for signed addresses, whose older kind most servers refuse
            connect_timeout=_CONNECT_S,
            read_timeout=_READ_S,
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
            # Checksums in trailers, boto3's default since 1.36, are refused by many servers that are not AWS.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        ),
    )
    from boto3.exceptions import Boto3Error

    return S3Store(storage, (BotoCoreError, ClientError, Boto3Error))


def _gs(bucket: str, prefix: str, options: dict[str, str]) -> RemoteStore:
    made = _storage("gcloud", "GoogleCloudStorage", "google", bucket_name=bucket, location=prefix)
    away = import_module("google.api_core.exceptions").GoogleAPIError
    return RemoteStore(made, (away, ConnectionError))


def _azure(container: str, prefix: str, options: dict[str, str]) -> RemoteStore:
    made = _storage(
        "azure_storage",
        "AzureStorage",
        "azure",
        azure_container=container,
        location=prefix,
        account_name=options.pop("account", None),
        overwrite_files=True,
    )
    away = import_module("azure.core.exceptions").AzureError
    return RemoteStore(made, (away,))


def _storage(module: str, name: str, extra: str, **options: Any) -> Storage:
    try:
        made: Callable[..., Storage] = getattr(import_module(f"storages.backends.{module}"), name)
    except (ImportError, ImproperlyConfigured):
        raise ValueError(f"Install django-storages[{extra}] for this kind of file store.") from None
    return made(**options)


MAKERS: dict[str, Callable[[str, str, dict[str, str]], RemoteStore]] = {"s3": _s3, "gs": _gs, "azure": _azure}
