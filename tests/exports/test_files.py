"""An export holds all of a workspace or a person and no secret, and one changed byte is found."""

from __future__ import annotations

import hashlib
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.core.management import CommandError, call_command

from apps.conversations.models import Conversation
from basics.errors import Invalid
from exports.files import MANIFEST, SIGNATURE, export_verify, person_export, workspace_export
from exports.signing import public_key, sign
from tenancy.models import ProviderCredential
from tenancy.row_security import tenant_models
from tenancy.scope import platform_scope, tenant_scope
from tenancy.services import credential_set
from tests.erasure.conftest import files_of, rows_of
from tests.factories import actor_of
from tests.permissions.world import Side

pytestmark = pytest.mark.django_db(transaction=True)
PRIVATE = {"conversations.MemoryEntry", "conversations.MemorySetting"}
"""Of people for themselves: in their own file, and not in the workspace's."""


def content_of(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def rewritten(source: Path, target: Path, changes: dict[str, bytes | None]) -> Path:
    """Write an archive with other members; None leaves one out."""
    parts: dict[str, bytes | None] = {**content_of(source), **changes}
    with zipfile.ZipFile(target, "w") as archive:
        for name, content in parts.items():
            if content is not None:
                archive.writestr(name, content)
    return target


def test_a_workspace_is_whole_and_has_no_secret(home: Path, tmp_path: Path) -> None:
    side, other = Side(), Side()
    rows_of(side)
    files = files_of(side.tenant.pk, home, "the original's words")[4:]
    files_of(other.tenant.pk, home, "the neighbour's words")
    with tenant_scope(side.tenant.pk):
        ProviderCredential.objects.all().delete()
        credential_set(
            tenant=side.tenant,
            actor=actor_of(side.people["owner"]),
            provider="openai",
            secret="sk-zq-secret-1",
        )
    target = tmp_path / "team.zip"
    made = workspace_export(side.tenant, target)
    assert export_verify(target) == made
    assert target.stat().st_mode & 0o077 == 0
    found = content_of(target)
    with platform_scope():
        for model in tenant_models():
            count = model._base_manager.filter(tenant_id=side.tenant.pk).count()
            lines = found.get(f"rows/{model._meta.label}.jsonl", b"").splitlines()
            withheld = model._meta.label in {"tenancy.OAuthToken", *PRIVATE}
            assert len(lines) == (0 if withheld else count), model
            assert count or model._meta.label not in PRIVATE, "there is a row to leave out"
            assert all(json.loads(line)["tenant_id"] == side.tenant.pk for line in lines)
    named = [name for name in found if name.startswith("files/")]
    assert len(named) == len(files)
    told = {part.name: part.sha256 for part in made.parts}
    assert all(hashlib.sha256(found[name]).hexdigest() == told[name] for name in told)
    whole = b"".join(found.values())
    assert b"the original's words" in whole
    for secret in (
        b"sk-zq-secret-1",
        b"_encrypted",
        b"secret_sha256",
        b"the neighbour",
        other.tenant.slug.encode(),
    ):
        assert secret not in whole


def test_a_person_gets_what_is_theirs(home: Path, tmp_path: Path) -> None:
    side, other = Side(), Side()
    for one in (side, other):
        one.row("conversations.Message", "member")
    person = side.user("member")
    with tenant_scope(side.tenant.pk):
        Conversation.objects.filter(user=person).update(title="Mine")
    with tenant_scope(other.tenant.pk):
        Conversation.objects.all().update(title="Not mine")
    key = {"id": "pk-ident-1", "response": {"attestationObject": "pk-public-1"}}
    Authenticator.objects.create(user=person, type="webauthn", data={"name": "My laptop", "credential": key})
    Authenticator.objects.create(user=person, type="totp", data={"secret": "totp-secret-1"})
    made = person_export(person, tmp_path / "person.zip")
    found = content_of(tmp_path / "person.zip")
    assert export_verify(tmp_path / "person.zip") == made
    assert {
        "rows/tenancy.User.jsonl",
        "rows/tenancy.Membership.jsonl",
        "rows/conversations.Message.jsonl",
    } <= set(found)
    assert b'"Mine"' in found["rows/conversations.Conversation.jsonl"]
    whole = b"".join(found.values())
    assert b"Not mine" not in whole
    assert b'"password"' not in whole
    assert b'"My laptop"' in found["rows/mfa.Authenticator.jsonl"]
    assert b"pk-ident-1" not in whole
    assert b"pk-public-1" not in whole
    assert b"totp-secret-1" not in whole
    assert other.user("member").email.encode() not in whole


def hostile(source: Path, folder: Path) -> dict[str, Path]:
    """Return files that somebody changed, by what they did."""
    found = content_of(source)
    name = next(n for n in found if n.startswith("rows/"))
    manifest = json.loads(found[MANIFEST])

    def signed(**changes: Any) -> bytes:
        return json.dumps({**manifest, **changes}).encode()

    up = {"name": "files/../../etc/passwd", "size": 1, "sha256": hashlib.sha256(b"x").hexdigest(), "rows": 0}
    climbing = signed(parts=[*manifest["parts"], up])
    bomb = {"name": "files/t1/bomb", "size": 10, "sha256": "0" * 64, "rows": 0}
    bombing = signed(parts=[*manifest["parts"], bomb])
    made: dict[str, dict[str, bytes | None]] = {
        "a row changed": {name: found[name].replace(b"1", b"2")},
        "a part left out": {name: None},
        "a part added": {"files/t1/new": b"x"},
        "the manifest changed": {MANIFEST: signed(subject=99)},
        "no signature": {SIGNATURE: None},
        "an empty signature": {SIGNATURE: b""},
        "words for a signature": {SIGNATURE: b"\xff" * 900},
        "a path that climbs": {
            MANIFEST: climbing,
            SIGNATURE: sign(climbing).encode(),
            "files/../../etc/passwd": b"x",
        },
        "a bomb": {MANIFEST: bombing, SIGNATURE: sign(bombing).encode(), "files/t1/bomb": b"0" * 5_000_000},
        "a manifest of rubbish": {MANIFEST: b"[]", SIGNATURE: sign(b"[]").encode()},
    }
    paths = {
        what: rewritten(source, folder / f"{n}.zip", change) for n, (what, change) in enumerate(made.items())
    }
    paths["cut short"] = folder / "cut.zip"
    paths["cut short"].write_bytes(source.read_bytes()[:-100])
    paths["no archive"] = folder / "none.zip"
    paths["no archive"].write_bytes(b"words")
    twice = folder / "twice.zip"
    shutil.copy(source, twice)
    with zipfile.ZipFile(twice, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(name, b"other rows")
    paths["a name twice"] = twice
    return paths


def test_what_somebody_changed_is_refused(home: Path, tmp_path: Path, settings: Any) -> None:
    side = Side()
    side.row("collections.Collection", "owner")
    source = tmp_path / "team.zip"
    workspace_export(side.tenant, source)
    accepted = []
    for what, path in hostile(source, tmp_path).items():
        try:
            export_verify(path)
            accepted.append(what)
        except Invalid as error:
            assert "isn't a whole export" in error.message  # noqa: PT017 - each of many
    assert accepted == []
    key = public_key()
    settings.SECRET_KEY, old = "another-secret-key-another-secret-key", settings.SECRET_KEY
    with pytest.raises(Invalid, match="signature"):
        export_verify(source)
    assert export_verify(source, key=key).subject == side.tenant.pk
    with pytest.raises(Invalid, match="signature"):
        export_verify(source, key="not a key")
    settings.SECRET_KEY_FALLBACKS = [old]
    assert export_verify(source).key == key


def test_the_command_writes_and_verifies(home: Path, tmp_path: Path) -> None:
    side = Side()
    target = tmp_path / "person.zip"
    call_command("exports", "person", side.user("owner").email, str(target))
    call_command("exports", "verify", str(target))
    call_command("exports", "workspace", side.tenant.slug, str(tmp_path / "team.zip"))
    target.write_bytes(target.read_bytes().replace(b"manifest.sig", b"manifest.sik"))
    with pytest.raises(CommandError, match="whole export"):
        call_command("exports", "verify", str(target))
    with pytest.raises(CommandError, match="no account"):
        call_command("exports", "person", "nobody@example.org", str(target))
