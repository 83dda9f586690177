"""A file that another installation made, and whose key the operator trusts, still can't reach out of its own workspace."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from apps.collections.models import Collection, Document
from apps.conversations.models import Conversation
from basics.errors import Conflict, Invalid
from blobs.models import PendingBlob
from exports.files import MANIFEST, SIGNATURE, workspace_export
from exports.imports import workspace_import
from exports.signing import public_key, sign
from tenancy.models import Tenant, User
from tenancy.row_security import tenant_models
from tenancy.scope import platform_scope, tenant_scope
from tests.conversations.pictures.test_figures import png
from tests.exports.test_files import content_of, rewritten
from tests.exports.test_import import files_name
from tests.permissions.world import Side

pytestmark = pytest.mark.django_db(transaction=True)
Row = dict[str, Any]


def forged(source: Path, target: Path, changes: dict[str, bytes]) -> Path:
    """Write a file with other parts, rightly signed."""
    found = {**content_of(source), **changes}
    manifest = json.loads(found.pop(MANIFEST))
    del found[SIGNATURE]
    manifest["parts"] = [
        {
            "name": name,
            "size": len(content),
            "sha256": hashlib.sha256(content).hexdigest(),
            "rows": content.count(b"\n") if name.startswith("rows/") else 0,
        }
        for name, content in found.items()
    ]
    text = json.dumps(manifest).encode()
    return rewritten(source, target, {**changes, MANIFEST: text, SIGNATURE: sign(text).encode()})


def changed(source: Path, label: str, change: Callable[[Row], None]) -> dict[str, bytes]:
    """Return a table's part with its first row changed."""
    name = f"rows/{label}.jsonl"
    rows = [json.loads(line) for line in content_of(source)[name].splitlines()]
    change(rows[0])
    return {name: b"".join(json.dumps(row).encode() + b"\n" for row in rows)}


def bytes_of(content: bytes) -> Row:
    """Return the columns of a picture with these bytes."""
    return {"content": base64.b64encode(content).decode(), "sha256": hashlib.sha256(content).hexdigest()}


def everything() -> dict[str, int]:
    """Count all rows but those of a table that keeps what was removed."""
    with platform_scope():
        counts = {m._meta.label: m._base_manager.count() for m in tenant_models() if m is not PendingBlob}
    return {**counts, "User": User.objects.count(), "Tenant": Tenant.objects.count()}


def files(home: Path) -> set[str]:
    return {str(p.relative_to(home)) for p in (home / "files").rglob("*") if p.is_file()}


@pytest.fixture
def source(home: Path, tmp_path: Path) -> tuple[Side, Side, Path]:
    side, other = Side(), Side()
    for label in (
        "collections.Document",
        "collections.Chunk",
        "conversations.Turn",
        "conversations.Citation",
        "conversations.Picture",
        "datasets.DatasetCheck",
        "datasets.DatasetRow",
        "tools.ToolGrant",
        "tenancy.AuditEvent",
    ):
        side.row(label, "owner")
        other.row(label, "owner")
    files_name(side)
    files_name(other)
    workspace_export(side.tenant, tmp_path / "team.zip")
    return side, other, tmp_path / "team.zip"


def hostile(other: Side, path: Path) -> dict[str, dict[str, bytes]]:
    """Return what a malicious installation may sign, by what it is."""
    with tenant_scope(other.tenant.pk):
        theirs = {
            "collection": Collection.objects.get().pk,
            "conversation": Conversation.objects.get().pk,
            "file": Document.objects.get().file,
        }
    outsider = other.user("owner").pk

    def put(**values: Any) -> Callable[[Row], None]:
        return lambda row: row.update(values)

    def drop(column: str) -> Callable[[Row], None]:
        return lambda row: row.pop(column)

    document, user, picture = "collections.Document", "tenancy.User", "conversations.Picture"
    twice = content_of(path)["rows/collections.Chunk.jsonl"] * 2
    return {
        "another workspace's row": changed(path, document, put(tenant_id=other.tenant.pk)),
        "a workspace that is another": changed(path, "tenancy.Tenant", put(id=other.tenant.pk)),
        "another workspace's collection": changed(path, document, put(collection_id=theirs["collection"])),
        "another workspace's conversation": changed(
            path, "conversations.Turn", put(conversation_id=theirs["conversation"])
        ),
        "a person who isn't in it": changed(path, document, put(uploaded_by_id=outsider)),
        "a reference that is no number": changed(path, document, put(collection_id="1")),
        "a reference that is true": changed(path, document, put(collection_id=True)),
        "another workspace's file": changed(path, document, put(file=theirs["file"])),
        "a file outside": changed(path, document, put(file="../../etc/passwd")),
        "another workspace's file in JSON": changed(
            path,
            "datasets.DatasetCheck",
            put(options={"moves": f"datasets/t{other.tenant.pk}/1/splits-1-ab"}),
        ),
        "a dataset's row that can't be read": changed(
            path, "datasets.DatasetRow", put(sources=[{"document": 5}])
        ),
        "a superuser": changed(path, user, put(is_superuser=True)),
        "a password": changed(path, user, put(password="pbkdf2_sha256$1$a$b")),
        "no address": changed(path, user, put(email="")),
        "no column": changed(path, document, drop("name")),
        "a column that isn't there": changed(path, document, put(secret_encrypted="eA==")),
        "a number too large": changed(path, document, put(id=2**63)),
        "a row that is no object": {"rows/collections.Chunk.jsonl": b"[1]\n"},
        "a line without an end": {"rows/collections.Chunk.jsonl": b'{"id": 1}'},
        "a row twice": {"rows/collections.Chunk.jsonl": twice},
        "a value too many": changed(path, document, put(status="x" * 500)),
        "a null where none may be": changed(path, document, put(name=None)),
        "a NUL": changed(path, document, put(name="a\x00b")),
        "deep JSON": {
            name: part.replace(b'"deep"', b"[" * 900 + b"]" * 900)
            for name, part in changed(path, document, put(metadata="deep")).items()
        },
        "a number beyond all": {
            "rows/collections.Chunk.jsonl": content_of(path)["rows/collections.Chunk.jsonl"].replace(
                b'"char_start": ', b'"char_start": 1e999, "was": '
            )
        },
        "NaN": {
            "rows/collections.Chunk.jsonl": content_of(path)["rows/collections.Chunk.jsonl"].replace(
                b'"char_start": ', b'"char_start": NaN, "was": '
            )
        },
        "very deep JSON": {
            "rows/collections.Chunk.jsonl": b'{"id": ' + b"[" * 200_000 + b"]" * 200_000 + b"}\n"
        },
        "a table of the installation": {"rows/tenancy.Erasure.jsonl": b'{"id": 1}\n'},
        "groups": {"rows/auth.Group.jsonl": b'{"id": 1, "name": "x"}\n'},
        "a file of another workspace": {f"files/t{other.tenant.pk}/1/ab/{'ab' * 32}": b"theirs"},
        "a picture of another type": changed(path, picture, put(media_type="image/jpeg")),
        "a picture that is a page": changed(path, picture, put(media_type="text/html")),
        "a picture of another size": changed(path, picture, put(width=4)),
        "a picture that is cut off": changed(path, picture, put(**bytes_of(png(3, 2)[:45]))),
        "a picture that is none": changed(path, picture, put(**bytes_of(b"<script>"))),
        "a file of no place": {"files/anywhere.txt": b"words"},
    }


def test_what_reaches_out_is_refused_and_leaves_nothing(
    source: tuple[Side, Side, Path], home: Path, tmp_path: Path
) -> None:
    _, other, path = source
    before, kept = everything(), files(home)
    accepted = []
    for number, (what, changes) in enumerate(hostile(other, path).items()):
        bad = forged(path, tmp_path / f"{number}.zip", changes)
        try:
            workspace_import(bad, slug="elsewhere")
            accepted.append(what)
        except Invalid as error:
            assert error.code == "import_refused", (what, error.message)  # noqa: PT017 - each of many
        assert (what, everything()) == (what, before)
        assert (what, files(home)) == (what, kept)
    assert accepted == []
    assert workspace_import(forged(path, tmp_path / "good.zip", {}), slug="elsewhere").rows > 10


def test_a_changed_byte_a_strange_key_and_a_taken_address_are_refused(
    source: tuple[Side, Side, Path], tmp_path: Path, settings: Any
) -> None:
    side, _, path = source
    before = everything()
    bad = rewritten(path, tmp_path / "bad.zip", {"rows/collections.Chunk.jsonl": b"{}\n"})
    with pytest.raises(Invalid, match="isn't what was signed"):
        workspace_import(bad, slug="elsewhere")
    with pytest.raises(Conflict, match="already taken"):
        workspace_import(path)
    with pytest.raises(Invalid, match="hyphens"):
        workspace_import(path, slug="No address")
    key = public_key()
    settings.SECRET_KEY = "another-secret-key-another-secret-key"
    with pytest.raises(Invalid, match="signature"):
        workspace_import(path, slug="elsewhere")
    assert everything() == before
    made = workspace_import(path, key=key, slug="elsewhere")
    assert made.tenant.slug == "elsewhere"
    assert made.tenant.is_active
    assert made.people_made == []
    assert side.tenant.pk != made.tenant.pk


def test_an_older_file_and_a_persons_are_refused(source: tuple[Side, Side, Path], tmp_path: Path) -> None:
    side, _, path = source
    manifest = json.loads(content_of(path)[MANIFEST])
    for change, words in (
        ({"format": 1, "schema": {}}, "export it again"),
        ({"schema": {**manifest["schema"], "runs": "0001_initial"}}, "tables of runs differ"),
        ({"kind": "person"}, "file of a person"),
    ):
        text = json.dumps({**manifest, **change}).encode()
        bad = rewritten(path, tmp_path / "old.zip", {MANIFEST: text, SIGNATURE: sign(text).encode()})
        with pytest.raises(Invalid, match=words):
            workspace_import(bad, slug="elsewhere")
    assert not Tenant.objects.filter(slug="elsewhere").exists()
    assert side.tenant.is_active


def test_the_command_tells_what_stays_and_who_is_new(
    source: tuple[Side, Side, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    side, _, path = source
    email = side.user("owner").email
    User.objects.filter(email=email).update(email="someone-else@example.org")
    with pytest.raises(CommandError, match="already taken"):
        call_command("exports", "import", str(path))
    call_command("exports", "import", str(path), "--slug", "elsewhere", "--key", public_key())
    told = capsys.readouterr().out
    assert "“elsewhere”" in told
    assert f"new account without a password: {email}" in told
    assert "tenancy.AuditEvent" in told
    assert "the sealed trail stays in the file" in told
    made = User.objects.get(email=email)
    assert not made.has_usable_password()
    assert (made.is_staff, made.is_superuser) == (False, False)


def test_what_fails_in_the_middle_leaves_no_file_and_no_row(
    source: tuple[Side, Side, Path], home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, _, path = source
    before, kept = everything(), files(home)

    def fail(arrival: object) -> None:
        raise OSError("no more")

    monkeypatch.setattr("exports.imports.import_hooks", lambda: [fail])
    with pytest.raises(OSError, match="no more"):
        workspace_import(path, slug="elsewhere")
    assert (everything(), files(home)) == (before, kept)
