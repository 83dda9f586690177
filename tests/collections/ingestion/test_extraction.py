from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from apps.collections.ingestion import sandbox
from apps.collections.ingestion.extraction import document_extract
from apps.collections.ingestion.sandbox import run_child
from apps.collections.ingestion.types import JunkReason, ReaderLimits, ReadFailure
from tests.collections.ingestion.files import ROOT, make_image_pdf, make_pdf
from tests.patience import PATIENCE_S

LIMITS = ReaderLimits(wall_seconds=20, cpu_seconds=20)


def failure_of(path: Path, limits: ReaderLimits = LIMITS) -> ReadFailure:
    with pytest.raises(ReadFailure) as caught:
        document_extract(path, name=path.name, limits=limits)
    return caught.value


@pytest.fixture
def hostile(monkeypatch):
    monkeypatch.setattr(sandbox, "_CHILD_MODULE", "tests.collections.ingestion.hostile_child")


def test_pages_arrive_in_order_with_progress_when_pdf_is_good(tmp_path):
    path = make_pdf(tmp_path / "a.pdf", [[f"Page number {i} says 8539.50.{i:02d}."] for i in range(40)])
    seen: list[int] = []
    progress: list[tuple[int, int]] = []
    document = document_extract(
        path,
        name="a.pdf",
        limits=LIMITS,
        on_page=lambda page: seen.append(page.number),
        on_progress=lambda done, total: progress.append((done, total)),
    )
    assert seen == list(range(1, 41))
    assert progress[0] == (0, 40)
    assert progress[-1] == (40, 40)
    assert len(progress) > 3
    assert document.pages[7].text.strip() == "Page number 7 says 8539.50.07."
    assert document.pages[7].width == 612
    assert document.is_paged


def test_failure_is_encrypted_when_pdf_has_a_password(tmp_path):
    path = make_pdf(tmp_path / "a.pdf", [["secret"]], encrypt="password")
    assert failure_of(path).code == "encrypted_pdf"


def test_failure_is_corrupt_when_pdf_is_garbage(tmp_path):
    path = tmp_path / "a.pdf"
    path.write_bytes(b"%PDF-1.7\n" + b"garbage " * 500)
    failure = failure_of(path)
    assert failure.code == "corrupt_file"
    assert "damaged" in failure.message


def test_pdf_with_only_images_waits_for_text_recognition(tmp_path):
    document = document_extract(make_image_pdf(tmp_path / "a.pdf"), name="a.pdf")
    assert document.is_scanned
    assert [page.text.strip() for page in document.pages] == ["", ""]


def test_failure_is_too_many_pages_when_over_the_limit(tmp_path):
    path = make_pdf(tmp_path / "a.pdf", [["words"]] * 4)
    assert failure_of(path, replace(LIMITS, max_pages=3)).code == "too_many_pages"


def test_failure_is_too_large_when_text_is_over_the_limit(tmp_path):
    path = make_pdf(tmp_path / "a.pdf", [["words and more words"]] * 4)
    assert failure_of(path, replace(LIMITS, max_chars=50)).code == "too_large"


def test_failure_is_timed_out_when_wall_time_ends(tmp_path):
    path = make_pdf(tmp_path / "a.pdf", [["words"]])
    failure = failure_of(path, replace(LIMITS, wall_seconds=0.01))
    assert failure.code == "timed_out"


def test_failure_is_out_of_memory_when_reader_outgrows_its_limit(tmp_path):
    path = make_pdf(tmp_path / "a.pdf", [["many words here"] * 40] * 300)
    failure = failure_of(path, replace(LIMITS, memory_bytes=8 * 1024 * 1024))
    assert failure.code == "out_of_memory"
    assert "8 MB" in failure.message


def test_misnamed_file_is_read_with_a_warning_when_it_is_a_pdf(tmp_path):
    path = make_pdf(tmp_path / "notes.txt", [["words in a document"]])
    document = document_extract(path, name="notes.txt", limits=LIMITS)
    assert document.media_type == "application/pdf"
    assert "notes.txt" in document.warnings[0]


def test_empty_page_is_reported_when_others_have_text(tmp_path):
    lines = ["A page of text that is long enough to count as a page with something to say."] * 3
    path = make_pdf(tmp_path / "a.pdf", [lines, [], lines])
    document = document_extract(path, name="a.pdf", limits=LIMITS)
    assert document.pages[1].junk is JunkReason.TOO_SHORT
    assert any("1 page has neither text nor a picture" in warning for warning in document.warnings)


@pytest.mark.parametrize(
    ("action", "code"), [("segfault", "crashed"), ("exit", "crashed"), ("hog", "out_of_memory")]
)
def test_failure_is_typed_when_child_breaks(hostile, action, code):
    limits = replace(LIMITS, memory_bytes=200 * 1024 * 1024)
    with pytest.raises(ReadFailure) as caught:
        list(run_child({"action": action}, limits))
    assert caught.value.code == code


def test_stderr_is_kept_when_child_exits_with_an_error(hostile):
    with pytest.raises(ReadFailure) as caught:
        list(run_child({"action": "exit"}, LIMITS))
    assert "something went wrong inside" in caught.value.data["stderr"]


def test_failure_is_typed_when_child_sends_garbage(hostile):
    with pytest.raises(ReadFailure) as caught:
        list(run_child({"action": "garbage"}, LIMITS))
    assert caught.value.code == "crashed"


def test_document_fails_when_child_ends_without_finishing(hostile, tmp_path, monkeypatch):
    path = make_pdf(tmp_path / "a.pdf", [["words"]])
    failure = failure_of(path)  # the stand-in does not know the action "read" and ends quietly
    assert failure.code == "crashed"


def test_child_is_killed_when_caller_stops(hostile, tmp_path):
    pid_file = tmp_path / "pid"

    class Cancelled(Exception):
        pass

    def stop() -> None:
        if pid_file.exists() and pid_file.read_text():
            raise Cancelled

    with pytest.raises(Cancelled):
        list(run_child({"action": "sleep", "pid_file": str(pid_file)}, LIMITS, on_tick=stop))
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid_file.read_text()), 0)


def test_child_sees_no_secrets_when_parent_has_them(hostile, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("DATABASE_URL", "postgres://secret")
    [(header, _)] = list(run_child({"action": "environment"}, LIMITS))
    assert not {"OPENAI_API_KEY", "DATABASE_URL"} & header["result"].keys()
    assert "sk-secret" not in str(header)


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel kills orphans on Linux only")
def test_child_dies_when_parent_is_killed(tmp_path):
    path = make_pdf(tmp_path / "a.pdf", [["words " * 10] * 40] * 400)  # many times what a pipe holds
    script = (
        "import sys\n"
        "from pathlib import Path\n"
        "from apps.collections.ingestion.sandbox import run_child\n"
        "from apps.collections.ingestion.types import ReaderLimits\n"
        "request = {'action': 'read', 'path': sys.argv[1], 'media_type': 'application/pdf'}\n"
        "for header, _ in run_child(request, ReaderLimits()):\n"
        "    print('frame', flush=True)\n"
        "    input()\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'platform'}", "PATH": os.environ["PATH"]},
    )
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"frame\n"
        children = _children_of(parent.pid)
        assert len(children) == 1
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    deadline = time.monotonic() + PATIENCE_S
    while Path(f"/proc/{children[0]}").exists() and _state(children[0]) != "Z":
        assert time.monotonic() < deadline, "the reader outlived its parent"
        time.sleep(0.02)


def _children_of(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(child) for child in text.split()]


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"
