"""The batch APIs of OpenAI, Anthropic and Gemini for tests, on the loopback server of ``tests.fake_provider``.

``with fake_provider.running() as (base, fake)``: an OpenAI adapter takes ``base``, the two others take it without its
``/v1``; ``fake.batches`` is the object here. The same addresses answer single calls as well, as streams. What a model
says is ``fake.replies[model]``, for single calls and lines of batches alike: a function of the request as a chat
completion would have it (``model``, ``messages``), which returns a text, a list of calls, a number (the status of a
failure), or None for "Answer to: …".

Nothing depends on time: a batch is over when it was asked about ``polls`` times.
"""

from __future__ import annotations

import json
import re
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import parse_qs, urlsplit

from tests.toolloop.providers import encodings
from tests.toolloop.providers.encodings import Call, Script

Outcome = Literal["ended", "failed", "expired"]
Reply = Callable[[dict[str, Any]], str | int | list[dict[str, Any]] | None]
# A status, more headers, and a body; None drops the connection without an answer.
Sent = tuple[int, dict[str, str], bytes]

_PATHS = re.compile(
    r"/v1/(files|batches|responses|messages)\b|/(upload/)?v1(beta)?/(files|batches|models/[^/]+:)|/sent-here"
)


@dataclass
class Batch:
    """One batch: ``lines`` are key and request in order; the rest is decided when it is submitted."""

    id: str
    wire: str
    mark: str
    lines: list[tuple[str, dict[str, Any]]]
    outcome: Outcome
    left: int
    unanswered: frozenset[str]
    input_file: str = ""
    is_cancelled: bool = False
    begun_at: float = field(default_factory=time.time)
    answers: list[tuple[str, Script | int | str]] = field(default_factory=list)

    def is_over(self) -> bool:
        return self.left <= 0


class FakeBatches:
    """What is to happen, to be set before it does.

    Attributes:
        polls: how often a batch is asked about before it is over.
        outcome: how the next batches end.
        unanswered: keys that a batch which expires or is cancelled leaves over; all of them when empty.
        refuse: status of the answer to the next submissions, 0 to take them.
        lose: so many submissions are carried out, but their answer is lost.
        strange: lines put before those of any results.
        cut: results break off after so many bytes, None for never.
        is_gone: whether results have vanished.
        batches: what was submitted, by id.
        files: uploaded and made files, by id.
        asked: method and path of every request.
    """

    def __init__(self, replies: dict[str, Reply] | None = None) -> None:
        self.replies = {} if replies is None else replies
        self.polls = 1
        self.outcome: Outcome = "ended"
        self.unanswered: frozenset[str] = frozenset()
        self.refuse = 0
        self.lose = 0
        self.strange: list[bytes] = []
        self.cut: int | None = None
        self.is_gone = False
        self.batches: dict[str, Batch] = {}
        self.files: dict[str, bytes] = {}
        self.asked: list[tuple[str, str]] = []
        self._count = 0

    def takes(self, path: str) -> bool:
        """Tell whether a path belongs here."""
        return _PATHS.match(path) is not None

    def answer(self, method: str, address: str, content: bytes) -> Sent | None:
        """Answer a request, with status 500 where this server or its test is wrong about it.

        Args:
            address: path and query.
            content: body as it came.
        """
        try:
            return self._answer(method, address, content)
        except Exception:  # noqa: BLE001 - unanswered, it would wait until its timeout
            return _error(500, traceback.format_exc())

    def _answer(self, method: str, address: str, content: bytes) -> Sent | None:
        parts = urlsplit(address)
        path, query = parts.path, {k: v[0] for k, v in parse_qs(parts.query).items()}
        self.asked.append((method, path))
        if ":streamGenerateContent" in path or path in ("/v1/responses", "/v1/messages"):
            return self._now(path, json.loads(content))
        if path.startswith("/v1/messages/batches"):
            return self._anthropic(method, path, content, query)
        if path.startswith(("/v1/batches", "/v1/files")):
            return self._openai(method, path, content, query)
        return self._google(method, path, content, query)

    # --- what all of them share ---------------------------------------------------------------------------------

    def _id(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _begin(
        self, wire: str, batch_id: str, mark: str, lines: Iterable[tuple[str, Any]], file: str = ""
    ) -> Batch:
        batch = Batch(batch_id, wire, mark, list(lines), self.outcome, self.polls, self.unanswered, file)
        self.batches[batch_id] = batch
        return batch

    def _submitted(self, answer: dict[str, Any]) -> Sent | None:
        if self.lose:
            self.lose -= 1
            return None
        return _json(answer)

    def _asked_about(self, batch: Batch) -> None:
        if not batch.is_over():
            batch.left -= 1
            if batch.is_over():
                self._finish(batch)

    def _finish(self, batch: Batch) -> None:
        """Decide what becomes of every line: a script, the status of its failure, or why it was not tried."""
        word = "cancelled" if batch.is_cancelled else "expired"
        if batch.outcome == "failed" and not batch.is_cancelled:
            return
        for key, body in batch.lines:
            is_left = batch.is_cancelled or batch.outcome == "expired"
            # At Anthropic a mark of 25 characters stands before the key.
            own = key[25:] if batch.wire == "anthropic" else key
            if is_left and (not batch.unanswered or own in batch.unanswered):
                batch.answers.append((key, word))
            else:
                batch.answers.append((key, self._said(batch.wire, body)))
        batch.answers.reverse()  # No provider promises an order.

    def _said(self, wire: str, body: dict[str, Any]) -> Script | int:
        chat = _as_chat(wire, body)
        reply = self.replies.get(chat["model"])
        said = reply(chat) if reply is not None else None
        if isinstance(said, int):
            return said
        if isinstance(said, list):
            calls = [Call(self._id("call_"), c["name"], json.dumps(c["arguments"])) for c in said]
            return Script(calls=calls)
        return Script(text=[said or f"Answer to: {chat['messages'][-1]['content']}"])

    def _results(self, lines: list[dict[str, Any]]) -> Sent | None:
        if self.is_gone:
            return _error(404, "gone")
        content = b"".join(line + b"\n" for line in self.strange)
        content += b"".join(json.dumps(line).encode() + b"\n" for line in lines)
        headers = {"Content-Type": "application/x-jsonl"}
        if self.cut is not None:
            # More is announced than comes.
            headers["Content-Length"] = str(len(content))
            return 200, headers, content[: self.cut]
        return 200, headers, content

    def _now(self, path: str, body: dict[str, Any]) -> Sent:
        encode, wire = encodings.google_body, "google"
        if path == "/v1/responses":
            encode, wire = encodings.responses_body, "openai"
        elif path == "/v1/messages":
            encode, wire = encodings.anthropic_body, "anthropic"
        else:
            body = {**body, "model": path.split("models/")[1].split(":")[0]}
        said = self._said(wire, body)
        if isinstance(said, int):
            return _error(said, "told to fail")
        return 200, {"Content-Type": "text/event-stream"}, encode(said)

    # --- OpenAI -------------------------------------------------------------------------------------------------

    def _openai(self, method: str, path: str, content: bytes, query: dict[str, str]) -> Sent | None:
        _, _, kind, *rest = path.split("/")
        name, action = (*rest, "", "")[:2]
        if kind == "files" and method == "POST":
            file_id = self._id("file-")
            self.files[file_id] = _form_file(content)
            return _json({"id": file_id, "object": "file", "purpose": "batch"})
        if kind == "files" and name in self.files:
            if method == "DELETE":
                del self.files[name]
                return _json({"id": name, "deleted": True})
            if action == "content":
                return self._results([json.loads(x) for x in self.files[name].splitlines()])
        if kind == "batches" and method == "POST" and not name:
            return self._openai_begin(json.loads(content))
        if kind == "batches" and not name:
            return _json(_page([_openai_batch(b) for b in self._of("openai")], query, "after"))
        batch = self.batches.get(name)
        if batch is None or batch.wire != "openai":
            return _error(404, f"No such {kind}: {name}")
        if action == "cancel":
            if batch.is_over():
                return _error(409, "Cannot cancel a batch that is over.")
            batch.is_cancelled, batch.left = True, 1
        elif not batch.is_over():
            self._asked_about(batch)
            if batch.is_over():
                self._openai_files(batch)
        return _json(_openai_batch(batch))

    def _openai_begin(self, body: dict[str, Any]) -> Sent | None:
        if self.refuse:
            return _error(self.refuse, "told to refuse")
        assert body["endpoint"] == "/v1/responses"
        assert body["completion_window"] == "24h"
        rows = [json.loads(line) for line in self.files[body["input_file_id"]].splitlines()]
        lines = [(row["custom_id"], row["body"]) for row in rows]
        mark = next(iter(body["metadata"].values()))
        batch = self._begin("openai", self._id("batch_"), mark, lines, body["input_file_id"])
        return self._submitted(_openai_batch(batch))

    def _openai_files(self, batch: Batch) -> None:
        done, failed = [], []
        for key, said in batch.answers:
            line: dict[str, Any] = {"id": f"batch_req_{key}", "custom_id": key, "error": None}
            if isinstance(said, Script):
                body = encodings.responses_whole(said)
                response = {"status_code": 200, "request_id": f"req_{key}", "body": body}
                done.append({**line, "response": response})
            elif isinstance(said, int):
                body = encodings.openai_error(said, "", "told to fail")
                response = {"status_code": said, "request_id": f"req_{key}", "body": body}
                failed.append({**line, "response": response})
            else:
                error = {"code": f"batch_{said}", "message": f"This request was {said}."}
                failed.append({**line, "response": None, "error": error})
        for name, rows in (("output", done), ("error", failed)):
            if rows:
                text = "".join(json.dumps(row) + "\n" for row in rows)
                self.files[f"file-{name}-{batch.id}"] = text.encode()

    # --- Anthropic ----------------------------------------------------------------------------------------------

    def _anthropic(self, method: str, path: str, content: bytes, query: dict[str, str]) -> Sent | None:
        name, action = (*path.split("/")[4:], "", "")[:2]
        if method == "POST" and not name:
            if self.refuse:
                return _error(self.refuse, "told to refuse")
            rows = json.loads(content)["requests"]
            for row in rows:
                assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", row["custom_id"])
                assert "stream" not in row["params"]
            lines = [(row["custom_id"], row["params"]) for row in rows]
            batch = self._begin("anthropic", self._id("msgbatch_"), "", lines)
            return self._submitted(_anthropic_batch(batch))
        if not name:
            found = [_anthropic_batch(b) for b in self._of("anthropic")]
            return _json(_page(found, query, "after_id"))
        found_batch = self.batches.get(name)
        if found_batch is None or found_batch.wire != "anthropic":
            return _error(404, f"No such batch: {name}")
        batch = found_batch
        if action == "results":
            return self._results([_anthropic_line(key, said) for key, said in batch.answers])
        if method == "DELETE":
            if not batch.is_over():
                return _error(400, "Cancel it first.")
            del self.batches[name]
            return _json({"id": name, "type": "message_batch_deleted"})
        if action == "cancel":
            if batch.is_over():
                return _error(409, "It has ended.")
            batch.is_cancelled, batch.left = True, 1
        else:
            self._asked_about(batch)
        return _json(_anthropic_batch(batch))

    # --- Gemini -------------------------------------------------------------------------------------------------

    def _google(self, method: str, path: str, content: bytes, query: dict[str, str]) -> Sent | None:
        if path == "/upload/v1beta/files":
            # Another host on purpose: what is sent must come here all the same.
            place = f"http://elsewhere.invalid/sent-here?upload_id={self._id('')}"
            return 200, {"X-Goog-Upload-URL": place, "X-Goog-Upload-Status": "active"}, b"{}"
        if path == "/sent-here":
            name = f"files/{self._id('f')}"
            self.files[name] = content
            status, headers, body = _json({"file": {"name": name, "mimeType": "application/jsonl"}})
            return status, {**headers, "X-Goog-Upload-Status": "final"}, body
        name, _, action = path.removeprefix("/v1beta/").partition(":")
        if action == "batchGenerateContent":
            return self._google_begin(name, json.loads(content)["batch"])
        if name == "batches":
            page = _page([_google_batch(b) for b in self._of("google")], query, "pageToken")
            token = {"nextPageToken": page["last_id"]} if page["has_more"] else {}
            return _json({"operations": page["data"], **token})
        if name in self.files:
            if method == "DELETE":
                del self.files[name]
                return _json({})
            if action == "download":
                return self._results([json.loads(x) for x in self.files[name].splitlines()])
        batch = self.batches.get(name)
        if batch is None:
            return _error(404, f"No such thing: {name}")
        if method == "DELETE":
            del self.batches[name]
            return _json({})
        if action == "cancel":
            if batch.is_over():
                return _error(400, "It is over.")
            batch.is_cancelled, batch.left = True, 1
            return _json({})
        was_over = batch.is_over()
        self._asked_about(batch)
        if batch.is_over() and not was_over and batch.answers:
            lines = [_google_line(key, said) for key, said in batch.answers]
            text = "".join(json.dumps(line) + "\n" for line in lines if line is not None)
            self.files[f"files/batch-{batch.id.partition('/')[2]}"] = text.encode()
        return _json(_google_batch(batch))

    def _google_begin(self, model: str, given: dict[str, Any]) -> Sent | None:
        if self.refuse:
            return _error(self.refuse, "told to refuse")
        file = given["inputConfig"]["fileName"]
        rows = [json.loads(line) for line in self.files[file].splitlines()]
        bare = model.removeprefix("models/")
        lines = [(row["key"], {**row["request"], "model": bare}) for row in rows]
        batch = self._begin("google", f"batches/{self._id('b')}", given["displayName"], lines, file)
        return self._submitted(_google_batch(batch))

    def _of(self, wire: str) -> list[Batch]:
        return [batch for batch in reversed(self.batches.values()) if batch.wire == wire]


def _json(data: dict[str, Any], status: int = 200) -> Sent:
    return status, {"Content-Type": "application/json"}, json.dumps(data).encode()


def _error(status: int, message: str) -> Sent:
    return _json({"type": "error", "error": {"message": message, "code": status}}, status)


def _page(rows: list[dict[str, Any]], query: dict[str, str], after: str) -> dict[str, Any]:
    """Return two rows at most, so that every search has to leaf through."""
    names = [row.get("id") or row["name"] for row in rows]
    start = names.index(query[after]) + 1 if after in query else 0
    data = rows[start : start + 2]
    last = names[start : start + 2][-1:]
    return {"data": data, "has_more": start + 2 < len(rows), "last_id": last[0] if last else None}


def _form_file(content: bytes) -> bytes:
    """Return the file of a form, and see to it that the form says what it is for."""
    boundary = content.split(b"\r\n", 1)[0]
    fields = content.split(boundary)
    assert any(b'name="purpose"' in f and f.strip().endswith(b"batch") for f in fields)
    assert any(b'name="expires_after[anchor]"' in f for f in fields)
    file = next(f for f in fields if b'name="file"' in f)
    return file.split(b"\r\n\r\n", 1)[1].removesuffix(b"\r\n")


def _as_chat(wire: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return model and messages of a request as a chat completion would have them."""
    messages: list[dict[str, Any]] = []
    if wire == "openai":
        if body.get("instructions"):
            messages.append({"role": "system", "content": body["instructions"]})
        for item in body["input"]:
            if "role" in item:
                messages.append({"role": item["role"], "content": _text(item["content"])})
            elif item.get("type") == "function_call_output":
                messages.append({"role": "tool", "content": _text(item["output"])})
    elif wire == "anthropic":
        messages += [{"role": "system", "content": b["text"]} for b in body.get("system", ())]
        for message in body["messages"]:
            for block in message["content"]:
                if block["type"] == "tool_result":
                    messages.append({"role": "tool", "content": _text(block["content"])})
                elif block["type"] == "text":
                    messages.append({"role": message["role"], "content": block["text"]})
    else:
        given = body.get("systemInstruction", {}).get("parts", ())
        messages += [{"role": "system", "content": part["text"]} for part in given]
        for content in body["contents"]:
            role = "assistant" if content["role"] == "model" else "user"
            for part in content["parts"]:
                if "functionResponse" in part:
                    inner = part["functionResponse"]["response"]
                    messages.append({"role": "tool", "content": str(next(iter(inner.values())))})
                elif "text" in part:
                    messages.append({"role": role, "content": part["text"]})
    return {**body, "model": body["model"], "messages": messages}


def _text(content: Any) -> str:
    return content if isinstance(content, str) else "".join(p.get("text", "") for p in content)


def _tally(batch: Batch) -> tuple[int, int, int]:
    """Return how many lines were answered, failed, and were not tried."""
    said = [answer for _, answer in batch.answers]
    return (
        sum(isinstance(answer, Script) for answer in said),
        sum(isinstance(answer, int) for answer in said),
        sum(isinstance(answer, str) for answer in said),
    )


def _openai_batch(batch: Batch) -> dict[str, Any]:
    done, failed, left = _tally(batch)
    status = "cancelling" if batch.is_cancelled else "in_progress"
    if batch.is_over():
        status = {"ended": "completed"}.get(batch.outcome, batch.outcome)
        status = "cancelled" if batch.is_cancelled else status
    found: dict[str, Any] = {
        "id": batch.id,
        "object": "batch",
        "endpoint": "/v1/responses",
        "status": status,
        "created_at": int(batch.begun_at),
        "metadata": {"groundwork_mark": batch.mark},
        "input_file_id": batch.input_file,
        "output_file_id": f"file-output-{batch.id}" if done else None,
        "error_file_id": f"file-error-{batch.id}" if failed or left else None,
        "request_counts": {"total": len(batch.lines), "completed": done, "failed": failed},
        "errors": None,
    }
    if status == "failed":
        problem = {"code": "model_mismatch", "message": "Every line must name one model.", "line": 2}
        found["errors"] = {"object": "list", "data": [problem]}
    return found


def _anthropic_batch(batch: Batch) -> dict[str, Any]:
    done, failed, left = _tally(batch)
    total = 0 if batch.is_over() else len(batch.lines)
    status = "ended" if batch.is_over() else "canceling" if batch.is_cancelled else "in_progress"
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": status,
        "created_at": datetime.fromtimestamp(batch.begun_at, UTC).isoformat(),
        "request_counts": {
            "processing": total,
            "succeeded": done,
            "errored": failed,
            "canceled": left if batch.is_cancelled else 0,
            "expired": 0 if batch.is_cancelled else left,
        },
        # Not where the results are: whoever went there would take the key along.
        "results_url": "http://elsewhere.invalid/results" if batch.is_over() else None,
    }


def _anthropic_line(key: str, said: Script | int | str) -> dict[str, Any]:
    if isinstance(said, Script):
        result = {"type": "succeeded", "message": encodings.anthropic_whole(said)}
    elif isinstance(said, int):
        word = "overloaded_error" if said >= 500 else "invalid_request_error"
        result = {"type": "errored", "error": encodings.anthropic_error(said, word, "told to fail")}
    else:
        result = {"type": "canceled" if said == "cancelled" else said}
    return {"custom_id": key, "result": result}


def _google_batch(batch: Batch) -> dict[str, Any]:
    done, failed, _ = _tally(batch)
    state = "RUNNING"
    if batch.is_over():
        state = {"ended": "SUCCEEDED"}.get(batch.outcome, batch.outcome.upper())
        state = "CANCELLED" if batch.is_cancelled else state
    stats = {"requestCount": str(len(batch.lines))}
    stats |= {"successfulRequestCount": str(done)} if done else {}
    stats |= {"failedRequestCount": str(failed)} if failed else {}
    metadata: dict[str, Any] = {
        "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
        "displayName": batch.mark,
        "state": f"BATCH_STATE_{state}",
        "inputConfig": {"fileName": batch.input_file},
        "batchStats": stats,
    }
    found: dict[str, Any] = {"name": batch.id, "metadata": metadata, "done": batch.is_over()}
    if done or failed:
        metadata["output"] = {"responsesFile": f"files/batch-{batch.id.partition('/')[2]}"}
    if state == "FAILED":
        found["error"] = {"code": 3, "message": "Every line must name one model."}
    return found


def _google_line(key: str, said: Script | int | str) -> dict[str, Any] | None:
    if isinstance(said, Script):
        return {"key": key, "response": encodings.google_whole(said)}
    if isinstance(said, int):
        # gRPC's codes, as in a status object.
        return {"key": key, "error": {"code": 14 if said >= 500 else 3, "message": "told to fail"}}
    return None  # Gemini has no line for what it did not try.
