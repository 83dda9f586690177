"""The S3 store of compose.yaml: its settings lead one real store to a bucket, and nothing changes without it."""

from __future__ import annotations

from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from blobs.management.commands import blobs as command
from blobs.stores import store
from config import env_values
from tests.bucket import KEYS, Bucket, serving
from tests.config.test_compose_scale import COMPOSE, interpolated
from tests.servers import free_port

SERVICES = COMPOSE["services"]
NAMES = ("GROUNDWORK_FILES_URL", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
INSIDE = "http://files:7070"


def told(**given: str) -> tuple[str, ...]:
    shared = COMPOSE["x-groundwork"]["environment"]
    return tuple(interpolated(shared[name], given) for name in NAMES)


@pytest.fixture(scope="module")
def s3() -> Iterator[str]:
    with serving() as endpoint:
        yield endpoint


def made(*more: str) -> str:
    out = StringIO()
    call_command("blobs", "bucket", *more, stdout=out)
    return out.getvalue()


def test_files_stay_in_the_folder_unless_the_store_is_asked_for() -> None:
    assert told() == ("", "", ""), "an empty key is none for boto3, so a role of the machine goes on working"
    url, key, secret = told(FILES_PASSWORD="pw")
    assert url.startswith("s3://groundwork/files?")
    assert env_values.as_files_url(url) == url
    assert (key, secret) == ("groundwork", "pw")
    elsewhere = {"GROUNDWORK_FILES_URL": "s3://other", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    assert told(FILES_PASSWORD="pw", **elsewhere) == ("s3://other", "a", "b")


def test_store_and_bucket_are_there_before_who_needs_them() -> None:
    files, bucket = SERVICES["files"], SERVICES["bucket"]
    port = files["command"][files["command"].index("--port") + 1]
    assert f"endpoint=http://files{port}&" in told(FILES_PASSWORD="pw")[0]
    assert files["environment"]["ROOT_ACCESS_KEY"] == told(FILES_PASSWORD="pw")[1]
    assert interpolated(files["environment"]["ROOT_SECRET_KEY"], {"FILES_PASSWORD": "pw"}) == "pw"
    assert "ports" not in files
    kept, _, there = files["volumes"][0].partition(":")
    assert kept in COMPOSE["volumes"]
    assert files["command"][-1] == there
    assert files["image"].partition(":")[2].startswith("v"), "pinned"
    assert bucket["depends_on"] == {"files": {"condition": "service_started"}}
    for name in ("web", "worker"):
        waits = SERVICES[name].get("depends_on", COMPOSE["x-groundwork"]["depends_on"])
        assert waits["bucket"] == {"condition": "service_completed_successfully", "required": False}, name


def test_its_address_leads_to_a_bucket_that_is_made_once(
    s3: str, settings: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings.FILES_URL = told(FILES_PASSWORD=KEYS["AWS_SECRET_ACCESS_KEY"])[0].replace(INSIDE, s3)
    assert settings.FILES_URL.count(s3) == 1
    step = SERVICES["bucket"]["command"][4:]
    assert made(*step) == "Bucket made.\n"
    assert made(*step) == "The bucket is already there.\n"
    (tmp_path / "source").write_bytes(b"bytes")
    store().put("t1/2/export-3", tmp_path / "source")
    assert store().size("t1/2/export-3") == 5


def test_store_that_is_not_up_yet_is_waited_for(
    s3: str, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.FILES_URL = f"s3://b/p?endpoint=http://127.0.0.1:{free_port()}&region=us-east-1&style=path"
    with pytest.raises(CommandError, match="doesn't answer"):
        made()
    waited: list[float] = []

    def comes_up(seconds: float) -> None:
        waited.append(seconds)
        settings.FILES_URL = Bucket(s3).url

    monkeypatch.setattr(command, "sleep", comes_up)
    assert made("--wait", "60") == "The bucket is already there.\n"
    assert waited == [1]


def test_folder_has_no_bucket_to_make(settings: Any) -> None:
    settings.FILES_URL = ""
    with pytest.raises(CommandError, match="names no S3 bucket"):
        made()
