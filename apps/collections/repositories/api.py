"""REST of a collection's repositories. The views hold no rules: selectors read, services write."""

from __future__ import annotations

from dataclasses import asdict

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from apps.collections.files.api import FilesAPIView
from apps.collections.repositories import selectors as repositories
from apps.collections.repositories import services, shapes
from web.drf.pages import page_linked

_TAG = ["files"]
_REPOSITORY = OpenApiParameter("repository", str, description="Its folder, where the collection has several.")


class GitStatusView(FilesAPIView):
    """Status of a repository."""

    actions = {"GET": "collection.read"}

    @extend_schema(
        operation_id="git_status", tags=_TAG, parameters=[_REPOSITORY], responses=shapes.GitStatusOutput
    )
    def get(self, request: Request, pk: int) -> Response:
        """Compare the last commit and the files as they are now."""
        found = repositories.git_status(
            actor=self.actor, collection=self.collection(pk), repository=self.word("repository")
        )
        return Response(found)


class GitLogView(FilesAPIView):
    """Commits of a repository."""

    actions = {"GET": "collection.read"}

    @extend_schema(
        operation_id="git_log",
        tags=_TAG,
        parameters=[
            _REPOSITORY,
            OpenApiParameter("ref", str),
            OpenApiParameter("path", str),
            OpenApiParameter("skip", int),
            OpenApiParameter("limit", int),
        ],
        responses=shapes.GitLogOutput,
    )
    def get(self, request: Request, pk: int) -> Response:
        """List commits, newest first."""
        skip, limit = self.number("skip", 0), min(self.number("limit", 50, 1), repositories.MAX_COMMITS)
        commits = repositories.git_log(
            actor=self.actor,
            collection=self.collection(pk),
            ref=self.word("ref", "HEAD"),
            path=self.word("path"),
            skip=skip,
            limit=limit,
            repository=self.word("repository"),
        )
        return page_linked(request, commits, {"skip": skip + limit} if len(commits) == limit else None)


class GitDiffView(FilesAPIView):
    """Differences in a repository."""

    actions = {"GET": "collection.read"}

    @extend_schema(
        operation_id="git_diff",
        tags=_TAG,
        parameters=[
            _REPOSITORY,
            OpenApiParameter("old", str),
            OpenApiParameter("new", str),
            OpenApiParameter("path", str),
        ],
        responses=shapes.GitDiffOutput,
    )
    def get(self, request: Request, pk: int) -> Response:
        """Show what changed from one commit to another, or to the files as they are now."""
        found = repositories.git_diff(
            actor=self.actor,
            collection=self.collection(pk),
            old=self.word("old", "HEAD"),
            new=self.word("new"),
            path=self.word("path"),
            repository=self.word("repository"),
        )
        return Response({"files": [asdict(one) for one in found]})


class GitBlameView(FilesAPIView):
    """Who wrote a file."""

    actions = {"GET": "collection.read"}

    @extend_schema(
        operation_id="git_blame",
        tags=_TAG,
        parameters=[OpenApiParameter("path", str, required=True), OpenApiParameter("ref", str), _REPOSITORY],
        responses=shapes.GitBlameOutput,
    )
    def get(self, request: Request, pk: int) -> Response:
        """Return for each line of a file which commit added it, by whom and when."""
        found = repositories.git_blame(
            actor=self.actor,
            collection=self.collection(pk),
            path=self.path(),
            ref=self.word("ref", "HEAD"),
            repository=self.word("repository"),
        )
        return Response(found)


class GitCommitView(FilesAPIView):
    """Commits."""

    actions = {"POST": "document.write"}

    @extend_schema(
        operation_id="git_commit",
        tags=_TAG,
        request=shapes.GitCommitInput,
        responses={201: shapes.GitCommitOutput},
    )
    def post(self, request: Request, pk: int) -> Response:
        """Commit files as they are now on top of the last commit; you are the author."""
        collection = self.collection(pk)
        values = shapes.GitCommitInput(data=request.data)
        values.is_valid(raise_exception=True)
        made = services.git_commit(
            tenant=self.tenant, actor=self.actor, collection=collection, **values.validated_data
        )
        return Response(asdict(made), status=201)
