"""Answer one question about a repository, or make a commit for it. Runs in the limited child.

Objects come from packs that our own import verified and indexed, refs from the database. No configuration, hook, filter,
attribute or other file of the repository is there to be obeyed, and no program is started.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from apps.collections.ingestion.git import history
from apps.collections.ingestion.git.ignores import Ignores
from apps.collections.ingestion.git.objects import Commit, Objects, Refused
from basics.texts import gettext as _

MAX_CHANGED = 200
TOO_LARGE = "!"  # in place of a text; no base64 has it
_MAX_TEXT = 1_000_000
_MAX_TEXTS = 16_000_000
_SHA = re.compile(r"[0-9a-f]{40}")


def answer(request: Mapping[str, Any]) -> Any:
    """Do what the request names, in the repository whose packs it has the descriptors of."""
    from apps.collections.ingestion.git.committing import commit_make

    repository = Repository(request)
    ask: dict[str, Callable[[Mapping[str, Any]], Any]] = {
        "log": repository.log,
        "diff": repository.diff,
        "status": repository.status,
        "blame": repository.blame,
        "tracked": repository.tracked,
        "ignored": repository.ignored,
        "commit": lambda values: commit_make(repository.objects, repository.head(), values),
    }
    try:
        return ask[request["what"]](request)
    except (MemoryError, Refused):
        raise
    except Exception as error:  # whatever a stranger's objects bring out of zlib and the parser
        raise Refused(
            _("The repository is incomplete or damaged (%(error)s).") % {"error": type(error).__name__}
        ) from error


class _NoParent(Refused):
    """The history begins here."""


class Repository:
    """One repository.

    Args:
        request: ``packs`` (descriptors), ``shallow``, ``head`` (a branch or a commit), ``refs``.
    """

    def __init__(self, request: Mapping[str, Any]) -> None:
        self.objects = Objects(request["packs"], request["shallow"])
        self._head = str(request["head"])
        self._refs: Mapping[str, str] = request["refs"]

    def head(self) -> str | None:
        """Return the commit that the files are compared with, None before the first one."""
        sha = self._head if _SHA.fullmatch(self._head) else self._refs.get(self._head)
        return self.objects.peeled(sha) if sha else None

    def resolve(self, name: str) -> str:
        """Return the commit that HEAD, a branch, a tag, a full or abbreviated id, or one of them with ``~2`` or ``^`` names.

        Raises:
            Refused: nothing has that name.
        """
        if name in ("HEAD", "@", ""):
            head = self.head()
            if head is None:
                raise Refused(_("There is no commit yet."))
            return head
        for prefix in ("", "refs/heads/", "refs/tags/", "refs/remotes/", "refs/remotes/origin/"):
            if prefix + name in self._refs:
                return self.objects.peeled(self._refs[prefix + name])
        if back := re.fullmatch(r"(.+?)(?:\^|~([0-9]{0,4}))", name):
            return self._back(self.resolve(back[1]), int(back[2] or 1))
        found = {name} if _SHA.fullmatch(name) and self.objects.holds(name) else set()
        if re.fullmatch(r"[0-9a-f]{4,39}", name):
            found = self.objects.named(name)
        if len(found) != 1:
            raise Refused(_("There is no commit, branch or tag “%(name)s”.") % {"name": name[:100]})
        return self.objects.peeled(found.pop())

    def _back(self, sha: str, steps: int) -> str:
        for _step in range(steps):
            parents = [one for one in self.objects.commit(sha).parents if self.objects.holds(one)]
            if not parents:
                raise _NoParent(
                    _("The history begins with %(commit)s: there is no earlier commit.") % {"commit": sha[:8]}
                )
            sha = parents[0]
        return sha

    def log(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return commits, newest first."""
        skip, most = int(request["skip"]), int(request["limit"])
        if request["ref"] == "HEAD" and self.head() is None:
            return []
        found = history.commits(self.objects, self.resolve(request["ref"]), request["path"])
        return [_shown(commit) for commit in islice(found, skip, skip + most)]

    def blame(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Return runs of lines with the commit that brought them, and the text."""
        start = self.resolve(request["ref"])
        lines, came = history.blame(self.objects, start, request["path"])
        if b"\0" in b"".join(lines[:200])[:8000]:
            raise Refused(_("The file isn't text."))
        runs: list[dict[str, Any]] = []
        for number, (sha, path) in enumerate(came, 1):
            if runs and (runs[-1]["id"], runs[-1]["was"]) == (sha, path):
                runs[-1]["lines"] += 1
            else:
                runs.append({"line": number, "lines": 1, "id": sha, "was": path})
        commits = {sha: _shown(self.objects.commit(sha)) for sha, _ in came}
        for run in runs:
            commit = commits[run["id"]]
            run |= {name: commit[name] for name in ("author", "at", "subject")}
            run["was"] = run["was"] if run["was"] != request["path"] else ""
        text = [line.rstrip(b"\r\n").decode("utf-8", "replace") for line in lines]
        return {"ref": start, "runs": runs, "text": text}

    def diff(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return changed files with what they held before and after, between commits or from one to the files now."""
        old = self._tree(request["old"])
        if request["new"]:
            changed = self.objects.changes(old, self._tree(request["new"]))
        else:
            changed = self._to_files(old, request)
        wanted = request["path"]
        rows: list[dict[str, Any]] = []
        left = _MAX_TEXTS
        for path, before, after in changed:
            if wanted and path != wanted and not path.startswith(f"{wanted}/"):
                continue
            if len(rows) >= MAX_CHANGED:
                break
            texts = [self._text(sha, left) for sha in (before, after)]
            left -= sum(len(text or "") for text in texts)
            rows.append(
                {
                    "path": path,
                    "old": texts[0],
                    "new": texts[1],
                    "had": before is not None,
                    "has": after is not None,
                }
            )
        return rows

    def _tree(self, name: str) -> str | None:
        if name == "root" or (name == "HEAD" and self.head() is None):
            return None  # before the first commit there is nothing
        try:
            return self.objects.commit(self.resolve(name)).tree
        except _NoParent:
            return None  # nothing was before the first commit

    def _to_files(
        self, old: str | None, request: Mapping[str, Any]
    ) -> Iterator[tuple[str, str | None, str | None]]:
        files, left_out = request["files"], set(request["left_out"])
        tracked = self.objects.files(old) if old else {}
        for path in sorted(tracked):
            if tracked[path].sha != files.get(path) and (path in files or path not in left_out):
                yield path, tracked[path].sha, "now" if path in files else None

    def _text(self, sha: str | None, left: int) -> str | None:
        if sha is None or sha == "now":
            return None
        content = self.objects.blob(sha)
        if len(content) > min(left, _MAX_TEXT):
            return TOO_LARGE
        return base64.b64encode(content).decode()

    def status(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Compare the last commit and the files now."""
        files, left_out = request["files"], set(request["left_out"])
        head = self.head()
        tree = self.objects.commit(head).tree if head else None
        tracked = self.objects.files(tree) if tree else {}
        changed = [
            {"path": path, "kind": "modified" if path in files else "deleted"}
            for path in sorted(tracked)
            if tracked[path].sha != files.get(path) and (path in files or path not in left_out)
        ]
        new = sorted(set(files) - set(tracked))
        ignores = Ignores.of(self.objects, tree)
        return {
            "branch": self._head.removeprefix("refs/heads/") if not _SHA.fullmatch(self._head) else "",
            "commit": head,
            "changed": changed,
            "untracked": [path for path in new if not ignores.matches(path)],
            "ignored": len([path for path in new if ignores.matches(path)]),
            "left_out": len(left_out & (set(tracked) - set(files))),
        }

    def tracked(self, request: Mapping[str, Any]) -> list[str]:
        """Return the paths of the regular files of the last commit."""
        head = self.head()
        return sorted(self.objects.files(self.objects.commit(head).tree)) if head else []

    def ignored(self, request: Mapping[str, Any]) -> list[str]:
        """Return those of some paths that the repository's own rules leave out, and that no commit has in spite of them."""
        head = self.head()
        tree = self.objects.commit(head).tree if head else None
        tracked = self.objects.files(tree) if tree else {}
        ignores = Ignores.of(self.objects, tree)
        return [path for path in request["paths"] if path not in tracked and ignores.matches(path)]


def _shown(commit: Commit) -> dict[str, Any]:
    try:
        at = datetime.fromtimestamp(commit.author_time, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        at = ""
    return {
        "id": commit.sha,
        "author": commit.author[:200],
        "at": at,
        "subject": commit.message.split("\n", 1)[0][:300],
        "message": commit.message[:5000],
        "parents": list(commit.parents),
    }
