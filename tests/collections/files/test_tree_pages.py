"""Pages about a collection's files as a whole: search, structure, repository, rules."""

from __future__ import annotations

from typing import Any

import pytest
from django.urls import reverse

from apps.collections.models import Collection
from apps.collections.tree.rules import FileRules
from tests.cast import Cast
from tests.collections.conftest import upload
from tests.collections.files.conftest import Write
from tests.collections.files.test_git import bring, reading, repository, source  # noqa: F401 - fixtures
from tests.collections.files.test_pages import go  # noqa: F401 - a fixture
from tests.markup import flat

pytestmark = pytest.mark.django_db


@pytest.fixture
def see(go: Any) -> Any:  # noqa: F811
    """Return the text of a page that answers 200."""

    def text(name: str, **query: Any) -> str:
        answer = go(name, **query)
        assert answer.status_code == 200, answer.content[:500]
        return flat(answer.content.decode())

    return text


def test_search_shows_lines_names_and_a_refusal(see: Any, go: Any, write: Write) -> None:  # noqa: F811
    write("src/a.py", "x = 1\nTARIFF = '<b>'\n")
    write("notes.txt", "a tariff\n")
    page = see("file-search", q="tariff")
    assert "2 matches in 2 files" in page
    assert "&lt;b&gt;" in page
    assert "src/a.py" not in see("file-search", q="tariff", names="*.txt")
    assert "src/a.py" in see("file-search", q="*.py", kind="name")
    assert "No match" in see("file-search", q="tariff", folder="src/none")
    assert 'name="q"' in see("files")
    refused = go("file-search", q="(", kind="regex")
    assert refused.status_code == 400
    assert "is invalid" in refused.content.decode()
    for hostile in ("../x", "/etc", "a\0b"):
        assert go("file-search", q="x", folder=hostile).status_code in (200, 400)
    assert go("file-search", q="x", kind="nonsense", offset="99999999").status_code == 200


def test_search_leads_to_its_next_page(see: Any, write: Write) -> None:
    write("long.txt", "".join(f"line {n} tariff\n" for n in range(70)))
    page = see("file-search", q="tariff")
    assert "line 49" in page
    assert "line 50" not in page
    assert "offset=50" in page
    assert "line 69" in see("file-search", q="tariff", offset=50)


def test_structure_shows_folders_languages_and_what_is_left_out(
    see: Any,
    go: Any,  # noqa: F811
    write: Write,
) -> None:
    write("src/app/deep/er/down.py", "x = 1\n")
    write("src/<b>.txt", "x\n")
    page = see("file-structure")
    assert "Python 1" in page
    assert "&lt;b&gt;.txt" in page
    assert "down.py" not in page
    assert "down.py" in see("file-structure", folder="src/app")
    assert go("file-structure", folder="nowhere").status_code == 404
    assert go("file-structure", folder="../..").status_code in (400, 404)


def test_empty_collection_says_what_to_do(see: Any) -> None:
    assert "No files yet" in see("file-structure")
    git = see("git")
    assert "has no repository" in git
    assert "Import a repository" in git
    assert "has no repository" in see("git-diff")


@pytest.mark.servers
def test_repository_shows_state_commits_and_changes(
    see: Any,
    repository: Any,  # noqa: F811
    write: Write,
) -> None:
    write("a.py", "x = '<b>'\n")
    write("new.txt", "new\n")
    page = see("git")
    assert page.index("Second") < page.index("First")
    assert "modified" in page
    assert "new.txt" in page
    diff = see("git-diff")
    assert "&lt;b&gt;" in diff
    assert 'class="gi"' in diff
    assert "Nothing differs" in see("git-diff", path="b.txt")
    assert "Back to the newest commit" in see("git", ref="no-such-branch")
    assert see("git-diff", old="-x --upload-pack=y")
    blame = see("git-blame", path="a.py")
    assert "Second" in blame
    assert "x = 2" in blame
    assert "Nothing to show" in see("git-blame", path="none.py")
    assert "Blame" in see("file", path="a.py")


@pytest.mark.servers
def test_commit_is_made_on_the_page_and_says_what_is_refused(
    see: Any,
    cast: Cast,
    collection: Collection,
    repository: Any,  # noqa: F811
    write: Write,
    client: Any,
) -> None:
    write("a.py", "x = 4\n")
    assert "Commit 1 file" in see("git")
    client.force_login(cast.user("member"))
    address = reverse("collections:git-commit", args=[cast.tenant.slug, collection.pk])
    refused = client.post(address, {"message": " ", "repository": ""})
    assert refused.status_code == 400
    assert "Give the commit a message" in refused.content.decode()
    made = client.post(address, {"message": "From the page", "repository": ""})
    assert made.status_code == 302
    assert "From the page" in see("git")
    client.force_login(cast.user("viewer"))
    assert client.post(address, {"message": "No", "repository": ""}).status_code == 403


@pytest.mark.servers
def test_repository_is_closed_to_who_may_not_see_all_documents(
    go: Any,  # noqa: F811
    cast: Cast,
    collection: Collection,
    repository: Any,  # noqa: F811
) -> None:
    from apps.collections.documents import access

    secret = upload(cast, collection, "secret.txt", b"for owners\n")
    access.document_access_set(
        tenant=cast.tenant, actor=cast.actor("owner"), document=secret, is_restricted=True, roles=["owner"]
    )
    assert go("git").status_code == 403
    assert go("git-diff").status_code == 403


def test_rules_are_shown_changed_and_refused(
    see: Any,
    go: Any,  # noqa: F811
    write: Write,
    collection: Collection,
) -> None:
    write("src/a.py", "x = 1\n")
    write("keys/a.pem", "secret\n")
    page = see("file-rules")
    assert 'value="2000"' in page
    good = {
        "allow": "",
        "deny": "keys/\r\n\r\n*.pem\r\n",
        "show_hidden": "on",
        "max_file_bytes": "0.5",
        "max_total_bytes": "2000",
        "max_files": "100",
    }
    assert go("file-rules", post=good).status_code == 302
    collection.refresh_from_db()
    rules = FileRules.of(collection.file_rules)
    assert (rules.deny, rules.show_hidden, rules.read_only) == (("keys/", "*.pem"), True, False)
    assert (rules.max_file_bytes, rules.max_total_bytes) == (500_000, 2_000_000_000)
    assert "a.pem" not in see("file-search", q="*", kind="name")
    assert "*.pem" in see("file-rules")
    for wrong, says in (
        ({"max_file_bytes": "51"}, "less than or equal to 50"),
        ({"max_files": "-1"}, "greater than or equal to 1"),
        ({"max_files": ""}, "required"),
        ({"max_total_bytes": "0.0000001"}, "decimal places"),
        ({"max_total_bytes": "0"}, "whole number"),
        ({"allow": "x" * 300}, "200 characters"),
        ({"deny": "a\0b"}, "Null characters"),
    ):
        answer = go("file-rules", post=good | wrong)
        assert answer.status_code == 422, wrong
        assert says in answer.content.decode(), wrong


def test_settings_lead_to_the_rules(see: Any, cast: Cast, collection: Collection) -> None:
    address = reverse("collections:file-rules", args=[cast.tenant.slug, collection.pk])
    assert address in see("settings")
