"""What people do at machines that share no disk, each operation through both web servers: for share_nothing.py."""

from __future__ import annotations

import io
import json
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from benchmarks._share_machines import END_S, ENDED, Client

ROW = {
    "id": "r1",
    "question": "What is the rate?",
    "answer": "Two percent.",
    "type": "factual",
    "language": "en",
    "sources": [],
    "steps": [],
}


def text_of(number: int, salt: str) -> bytes:
    """Return a document that is no other's."""
    return f"# Lamp {salt} {number}\n\nLamp {salt}-{number} costs {number} cents and is dutiable at two percent.\n".encode()


def pdf_of(number: int, salt: str) -> bytes:
    """Return a PDF of a page that is no other's."""
    from reportlab.pdfgen.canvas import Canvas

    out = io.BytesIO()
    canvas = Canvas(out)
    canvas.drawString(72, 700, f"Lamp {salt}-{number} costs {number} cents and is dutiable at two percent.")
    canvas.save()
    return out.getvalue()


class Work:
    """The operations, each of which tells what was wrong, or nothing."""

    def __init__(self, client: Client, salt: str) -> None:
        self.client, self.salt = client, salt
        self.collection = client.own.collection
        _, found = client.post("/api/v1/datasets", {"name": f"Rows {salt}"})
        self.dataset = found["id"]
        path = f"/api/v1/datasets/{self.dataset}"
        status, brought = client.send(f"{path}/imports", "rows.jsonl", json.dumps(ROW).encode(), form="jsonl")
        assert status == 202, brought
        assert client.wait(f"/api/v1/dataset-imports/{brought['id']}", ENDED)["status"] == "completed"
        status, version = client.post(f"{path}/versions", {})
        assert status == 201, version
        self.version = version["number"]

    def uploaded(self, number: int) -> str:
        """Upload by one web server, download and look at it by the other."""
        is_pdf = number % 2 == 0
        data = pdf_of(number, self.salt) if is_pdf else text_of(number, self.salt)
        name = f"{self.salt}-{number}.{'pdf' if is_pdf else 'md'}"
        status, found = self.client.send(
            f"/api/v1/collections/{self.collection}/documents", name, data, web=number
        )
        if status not in (201, 202):
            return f"upload {status}"
        document = found.get("document", found)["id"]
        ended = self.client.wait(f"/api/v1/documents/{document}", ENDED, web=number + 1)
        if ended["status"] != "ready":
            return f"document {ended['status']} {ended.get('error_code')}"
        base = f"/t/{self.client.own.slug}/collections/{self.collection}/documents/{document}/"
        status, sent = self.client.ask("GET", f"{base}download/", web=number + 1)
        if (status, sent) != (200, data):
            return f"download {status}"
        if is_pdf:
            status, image = self.client.ask("GET", f"{base}pages/1/image/", web=number)
            if status != 200 or image[:4] != b"RIFF":
                return f"page {status}"
        return ""

    def archived(self, number: int) -> str:
        """Import an archive of two files."""
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as archive:
            for part in "ab":
                archive.writestr(f"{self.salt}-{number}-{part}.md", text_of(number, f"{self.salt}{part}"))
        status, found = self.client.send(
            f"/api/v1/collections/{self.collection}/imports",
            "a.zip",
            out.getvalue(),
            web=number,
            source="archive",
        )
        if status != 202:
            return f"import {status}"
        ended = self.client.wait(f"/api/v1/imports/{found['id']}", ENDED, web=number + 1)
        return "" if ended["status"] == "completed" else f"import {ended['status']} {ended.get('error_code')}"

    def exported(self, number: int) -> str:
        """Export a dataset and fetch the file by the other web server."""
        path = f"/api/v1/datasets/{self.dataset}/exports"
        status, found = self.client.post(path, {"version": self.version, "form": "jsonl"}, web=number)
        if status != 202:
            return f"export {status} {found}"
        ended = self.client.wait(f"/api/v1/dataset-exports/{found['id']}", ENDED, web=number + 1)
        if ended["status"] != "completed":
            return f"export {ended['status']} {ended.get('error_code')}"
        status, sent = self.client.ask("GET", f"/api/v1/dataset-exports/{found['id']}/file", web=number + 1)
        return "" if status == 200 and b"What is the rate?" in sent else f"file {status}"

    def brought(self, number: int) -> str:
        """Import rows into a dataset."""
        row = ROW | {"id": f"r{self.salt}{number}", "question": f"What does lamp {self.salt}-{number} cost?"}
        path = f"/api/v1/datasets/{self.dataset}/imports"
        status, found = self.client.send(
            path, "rows.jsonl", json.dumps(row).encode(), web=number, form="jsonl"
        )
        if status != 202:
            return f"rows {status}"
        ended = self.client.wait(f"/api/v1/dataset-imports/{found['id']}", ENDED, web=number + 1)
        is_right = ended["status"] == "completed" and ended["created"] == 1
        return "" if is_right else f"rows {ended['status']} {ended.get('error_code')}"

    def attached(self, number: int) -> str:
        """Attach a file to a new conversation, and see it read by the other web server."""
        status, conversation = self.client.post("/api/v1/conversations", {}, web=number)
        if status != 201:
            return f"conversation {status}"
        path = f"/api/v1/conversations/{conversation['id']}/attachments"
        status, found = self.client.send(
            path, f"{number}.md", text_of(number, f"{self.salt}x"), web=number + 1
        )
        if status not in (201, 202):
            return f"attachment {status}"
        until = time.monotonic() + END_S
        while time.monotonic() < until:
            state = self.client.get(f"{path}/{found['id']}", web=number)
            if state is not None and state["state"] in ("ready", "failed"):
                return "" if state["state"] == "ready" else f"attachment {state['problem']}"
            time.sleep(0.2)
        return "attachment never read"

    def all(self) -> list[Callable[[int], str]]:
        """Return the operations in the mix in which they come."""
        return [
            self.uploaded,
            self.uploaded,
            self.archived,
            self.uploaded,
            self.exported,
            self.brought,
            self.attached,
        ]


def mixed(work: Work, operations: int) -> dict[str, Any]:
    """Do them, eight at once, and count the right ones."""
    kinds = work.all()

    def one(number: int) -> tuple[str, str]:
        kind = kinds[number % len(kinds)]
        return kind.__name__, kind(number)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(one, range(operations)))
    wrong = [f"{kind}: {problem}" for kind, problem in found if problem]
    for problem in wrong[:20]:
        print(problem)
    return {
        "operations": operations,
        "right": operations - len(wrong),
        "kinds": dict(Counter(kind for kind, _ in found)),
    }
