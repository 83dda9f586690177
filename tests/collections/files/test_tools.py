"""The tools of a model: what they read and write, as whom, and how a refusal reads."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Coroutine
from typing import Any

import pytest

from apps.collections.file_tools.toolset import FILE_SCOPE, FILE_TOOLS, FileScope
from apps.collections.models import Collection, FileBatch
from runs.actors import actor_facts
from runs.models import Run
from tenancy.models import Membership
from tests.cast import Cast
from tests.collections.files.conftest import Write
from toolloop.tools import ToolContext, ToolError, ToolOutput

pytestmark = pytest.mark.django_db


async def here(function: Any, *arguments: Any) -> Any:
    """Run a function where the test's transaction is."""
    return function(*arguments)


def finished(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Return what a coroutine returns that waits for nothing: in a loop, Django would refuse the database."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits for something")


@pytest.fixture
def call(cast: Cast, collection: Collection, scope: None) -> Any:
    def of(role: str = "member") -> Any:
        run = Run.objects.create(
            tenant=cast.tenant, user=cast.user(role), request={"actor": actor_facts(cast.actor(role))}
        )
        context = ToolContext({FILE_SCOPE: FileScope(cast.tenant, run, lambda actor: [collection], here)})

        def calling(name: str, **arguments: Any) -> Any:
            tool = FILE_TOOLS.get(name)
            assert tool is not None
            output = finished(tool.function(context, **{"collection": "trade", **arguments}))
            assert isinstance(output, ToolOutput)
            # What was read is noted from the payload; the model need not be told.
            payload = {k: v for k, v in output.payload.items() if k != "documents"}
            assert json.loads(output.content) == payload
            return output.payload

        return calling

    return of


def test_model_reads_edits_and_undoes_under_its_run(call: Any, cast: Cast) -> None:
    use = call()
    made = use("write_file", path="src/a.py", content="x = 1\ny = 2\n", expected="", note="start")
    read = use("read_file", path="src/a.py")
    assert (read["text"], read["total_lines"], read["sha256"]) == (
        "x = 1\ny = 2",
        2,
        made["changed"][0]["sha256"],
    )
    edits = [
        {"kind": "replace_text", "old": "y = 2", "text": "y = 3"},
        {"kind": "insert", "line": 1, "text": "import os"},
    ]
    change = use("edit_file", files=[{"path": "src/a.py", "expected": read["sha256"], "edits": edits}])
    assert use("read_file", path="src/a.py")["text"] == "import os\nx = 1\ny = 3"
    assert use("list_directory")["entries"][0]["name"] == "src/"
    assert use("search_files", query="y =")["matches"][0]["line"] == 3
    assert use("project_structure")["languages"] == {"Python": 1}
    use("undo_change", change=change["change"])
    assert use("read_file", path="src/a.py")["text"] == "x = 1\ny = 2"
    use("move_file", path="src/a.py", to="b.py")
    use("delete_file", path="b.py")
    batches = FileBatch.objects.all()
    assert batches.count() == 5
    assert {batch.run_id for batch in batches} == {Run.objects.get().pk}
    assert {batch.user_id for batch in batches} == {cast.user("member").pk}


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("read_file", {"path": "../../etc/passwd"}, "“..”"),
        ("read_file", {"path": "nothing"}, "does not exist"),
        ("read_file", {"path": "a.txt", "collection": "Other"}, "Available: “Trade”"),
        ("read_file", {"path": "a.txt", "start_line": 7}, "1 lines"),
        ("write_file", {"path": "a.txt", "content": "x", "expected": ""}, "Read it again"),
        ("write_file", {"path": "a.txt", "content": "x"}, "exists already, and nothing was written"),
        ("write_file", {"path": "b/c.txt", "content": "x", "create_directories": False}, "no folder “b” yet"),
        ("write_file", {"path": "b.txt", "content": "x", "encoding": "hex"}, "isn't a text encoding"),
        ("write_file", {"path": "b.txt", "content": "ω", "encoding": "latin-1"}, "has no 'ω'"),
        ("write_file", {"path": "/etc/x", "content": "x"}, "from the collection's root"),
        (
            "edit_file",
            {"files": [{"path": "a.txt", "edits": [{"kind": "replace_text", "old": "no", "text": ""}]}]},
            "0 times",
        ),
        ("edit_file", {"files": [{"path": "a.txt", "edits": [{"text": "x"}]}]}, "needs a kind"),
        ("undo_change", {"change": 99999}, "does not exist"),
        ("search_files", {"query": "(", "kind": "regex"}, "is invalid"),
        ("git_log", {}, "no repository"),
    ],
)
def test_refusal_tells_the_model_what_to_do(
    call: Any, write: Write, name: str, arguments: dict[str, Any], says: str
) -> None:
    write("a.txt", "one\n")
    with pytest.raises(ToolError, match=re.escape(says)):
        call()(name, **arguments)


def test_a_file_is_replaced_when_that_is_what_was_said(call: Any, write: Write) -> None:
    write("a.txt", "one\n")
    use = call()
    sha256 = use("read_file", path="a.txt")["sha256"]
    use("write_file", path="a.txt", content="two\n", expected=sha256)
    use("write_file", path="a.txt", content="th\xe9\n", overwrite=True, encoding="latin-1")
    read = use("read_file", path="a.txt", encoding="latin-1")
    assert (read["text"], read["sha256"]) == ("th\xe9", hashlib.sha256(b"th\xe9\n").hexdigest())
    use("write_file", path="b/c.txt", content="x")
    use("write_file", path="b/d.txt", content="x", create_directories=False)


def test_viewer_may_look_but_not_change(call: Any, write: Write) -> None:
    write("a.txt", "one\n")
    use = call("viewer")
    assert use("read_file", path="a.txt")["text"] == "one"
    for name, more in (("write_file", {"path": "b", "content": ""}), ("delete_file", {"path": "a.txt"})):
        with pytest.raises(ToolError, match="document\\.write"):
            use(name, **more)


def test_tools_act_for_nobody_who_has_left(call: Any, write: Write, cast: Cast) -> None:
    write("a.txt", "one\n")
    use = call()
    Membership.objects.filter(pk=cast.member.pk).delete()
    with pytest.raises(ToolError, match="no longer a member"):
        use("read_file", path="a.txt")
