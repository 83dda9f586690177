"""The code graph in the database: written with documents, kept right by what comes and goes, asked within permissions."""

from __future__ import annotations

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from apps.collections.graph import selectors as code_queries
from apps.collections.graph.rows import code_graph_forget, code_graph_settle, code_graph_write
from apps.collections.models import Chunk, CodeEdge, Collection, Document
from tenancy.scope import tenant_scope
from tests.cast import Cast
from tests.collections.conftest import ingest

pytestmark = pytest.mark.django_db

MODELS = b'''"""Users."""


class Base:
    """Saves."""

    def save(self):
        """Keep the row and tell the log, so that nobody wonders where it went."""
        return write(self)


def write(row):
    """Write a row somewhere safe, as the name says, and return it for whoever asked."""
    return row
'''
USERS = b'''"""Named people."""
import os
from models import Base


class User(Base):
    """Has a name."""

    def rename(self, name):
        """Change the name, then keep the row; the log tells who did that and when it was."""
        self.name = name
        self.save()
        os.getcwd()


class Admin(User):
    """May do more than others."""
'''
VIEWS = b'''"""Shows people."""
import models
from users import User


def show(request):
    """Show a user after a change of name, which is not what a view should do, but a test may."""
    user = User()
    user.rename("x")
    models.write(user)
'''


@pytest.fixture(autouse=True)
def scope(cast: Cast):
    with tenant_scope(cast.tenant.pk):
        yield


def put(cast: Cast, collection: Collection, name: str, data: bytes) -> Document:
    """Ingest a file and write its graph, as the pipeline does."""
    document = ingest(cast, collection, name, data)
    assert document.status == "ready", document.error_message
    with transaction.atomic():
        code_graph_write(document)
    return document


@pytest.fixture
def code(cast: Cast, collection: Collection) -> dict[str, Document]:
    # Users before what they use: their edges are stale until that comes.
    files = {"views.py": VIEWS, "users.py": USERS, "models.py": MODELS}
    documents = {name: put(cast, collection, name, data) for name, data in files.items()}
    assert code_graph_settle(collection.pk)
    return documents


def ends(links) -> set[tuple[str, str]]:
    return {(link.source, link.target) for link in links}


def test_questions_are_answered_when_files_came_in_any_order(cast, collection, code):
    def ask(question, name):
        return ends(
            getattr(code_queries, question)(actor=cast.actor("viewer"), collection=collection, name=name)
        )

    assert ask("callers_of", "write") == {
        ("models.Base.save", "models.write"),
        ("views.show", "models.write"),
    }
    assert ask("callers_of", "models.Base.save") == {("users.User.rename", "models.Base.save")}
    assert ask("callers_of", "User.rename") == {("views.show", "users.User.rename")}
    assert ask("callers_of", "os.getcwd") == {("users.User.rename", "os.getcwd")}
    assert ask("callees_of", "views.show") == {
        ("views.show", "users.User"),
        ("views.show", "users.User.rename"),
        ("views.show", "models.write"),
    }
    assert ask("importers_of", "models") == {("users", "models"), ("views", "models")}
    assert ask("importers_of", "models.Base") == {("users", "models.Base")}
    assert ask("subclasses_of", "Base") == {("users.User", "models.Base")}
    assert ask("subclasses_of", "User") == {("users.Admin", "users.User")}
    assert ask("callers_of", "nobody") == set()
    assert ask("callers_of", "") == set()


def test_edge_ends_at_the_chunk_that_holds_the_definition(cast, collection, code):
    (found,) = code_queries.definition_of(
        actor=cast.actor("viewer"), collection=collection, name="User.rename"
    )
    assert (found.name, found.kind, found.path, found.line) == ("users.User.rename", "method", "users.py", 9)
    assert found.chunk_id is not None
    chunk = Chunk.objects.get(pk=found.chunk_id)
    assert "def rename" in chunk.text
    assert chunk.qualified_name.startswith("users.User")
    (link,) = code_queries.callers_of(
        actor=cast.actor("viewer"), collection=collection, name="users.User.rename"
    )
    assert link.target_chunk_id == found.chunk_id
    assert link.is_ambiguous  # nothing says what ``user`` is
    assert (link.path, link.line) == ("views.py", 9)
    assert "def show" in Chunk.objects.get(pk=link.chunk_id).text


def test_edges_are_what_writing_anew_gives_when_files_change(cast, collection, code):
    def all_edges():
        fields = ("source_name", "kind", "target_name", "is_ambiguous", "line", "target_id")
        return set(CodeEdge.objects.filter(collection=collection).values_list(*fields))

    def rewritten():
        for document in Document.objects.filter(collection=collection, live_to__isnull=True):
            with transaction.atomic():
                code_graph_write(document)
        code_graph_settle(collection.pk)
        return all_edges()

    assert all_edges() == rewritten()
    put(cast, collection, "more.py", b"class User:\n    def rename(self):\n        pass\n")
    assert CodeEdge.objects.filter(is_stale=True).exists()
    assert code_graph_settle(collection.pk)
    found = code_queries.callers_of(
        actor=cast.actor("viewer"), collection=collection, name="users.User.rename"
    )
    assert [(link.target, link.target_chunk_id, link.is_ambiguous) for link in found] == [
        ("user.rename", None, True)
    ]
    assert all_edges() == rewritten()


def test_edge_loses_its_target_when_the_definition_goes(cast, collection, code):
    code_graph_forget(code["models.py"])
    code["models.py"].delete()
    code_graph_settle(collection.pk)
    viewer = cast.actor("viewer")
    assert code_queries.definition_of(actor=viewer, collection=collection, name="models.write") == []
    (link,) = code_queries.subclasses_of(actor=viewer, collection=collection, name="Base")
    assert (link.source, link.target, link.target_chunk_id) == ("users.User", "Base", None)


def test_settling_goes_on_where_it_stopped_when_it_is_limited(cast, collection, code):
    CodeEdge.objects.filter(collection=collection).update(is_stale=True)
    assert not code_graph_settle(collection.pk, limit=2)
    assert code_graph_settle(collection.pk, limit=2)
    assert not CodeEdge.objects.filter(collection=collection, is_stale=True).exists()


def test_restricted_definition_is_not_there_when_the_actor_may_not_see_it(cast, collection, code):
    Document.objects.filter(pk=code["models.py"].pk).update(is_restricted=True)
    viewer = cast.actor("viewer")
    assert code_queries.definition_of(actor=viewer, collection=collection, name="write") == []
    links = code_queries.callees_of(actor=viewer, collection=collection, name="users.User.rename")
    hidden = next(link for link in links if link.target.endswith("save"))
    assert (hidden.target, hidden.target_chunk_id) == ("self.save", None)
    assert code_queries.callers_of(actor=viewer, collection=collection, name="Base.save") == []


def test_other_tenant_finds_nothing(cast, collection, code):
    outsider = cast.actor("outsider")
    with tenant_scope(outsider.tenant_id):
        assert code_queries.definition_of(actor=outsider, collection=collection, name="write") == []


def test_number_of_queries_stays_the_same(cast, collection, code):
    actor = cast.actor("viewer")
    found = {}
    for question in ("definition_of", "callers_of", "callees_of", "importers_of", "subclasses_of"):
        with CaptureQueriesContext(connection) as caught:
            getattr(code_queries, question)(actor=actor, collection=collection, name="User")
        found[question] = len(caught)
    assert found == {
        "definition_of": 1,
        "callers_of": 2,
        "callees_of": 2,
        "importers_of": 2,
        "subclasses_of": 2,
    }


@pytest.mark.django_db(transaction=True)
def test_write_refuses_to_run_outside_a_transaction():
    with pytest.raises(RuntimeError, match="belongs into a transaction"):
        code_graph_write(Document(pk=1))


def test_plain_text_has_no_graph(cast, collection):
    document = put(cast, collection, "notes.txt", b"Notes about nothing in particular.\n")
    assert not CodeEdge.objects.filter(document=document).exists()
