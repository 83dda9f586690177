"""What REST takes and gives about a collection's repositories."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers


class GitStatusOutput(serializers.Serializer[Any]):
    repository = serializers.CharField(help_text="Its folder in the collection.")
    branch = serializers.CharField(help_text="Empty if the head is a commit, not a branch.")
    commit = serializers.CharField(allow_null=True, help_text="Null before the first one.")
    changed = serializers.ListField(child=serializers.DictField())
    untracked = serializers.ListField(child=serializers.CharField())
    ignored = serializers.IntegerField(help_text="New files that .gitignore leaves out.")
    left_out = serializers.IntegerField(help_text="Files of the commit that were not imported.")

    class Meta:
        ref_name = "GitStatus"


class GitLogOutput(serializers.Serializer[Any]):
    next = serializers.URLField(allow_null=True, help_text="The next page; null at the end.")
    previous = serializers.URLField(
        allow_null=True, help_text="Always null: pages can only be read forwards."
    )
    results = serializers.ListField(child=serializers.DictField())

    class Meta:
        ref_name = "GitLog"


class GitDiffOutput(serializers.Serializer[Any]):
    files = serializers.ListField(child=serializers.DictField())

    class Meta:
        ref_name = "GitDiff"


class GitBlameOutput(serializers.Serializer[Any]):
    path = serializers.CharField()
    ref = serializers.CharField(help_text="The commit the lines come from.")
    text = serializers.ListField(child=serializers.CharField(allow_blank=True))
    runs = serializers.ListField(
        child=serializers.DictField(),
        help_text="line, lines, id, author, at, subject, and was: the file's earlier path, if it differed.",
    )

    class Meta:
        ref_name = "GitBlame"


class GitCommitInput(serializers.Serializer[Any]):
    message = serializers.CharField(max_length=10_000)
    paths = serializers.ListField(
        child=serializers.CharField(max_length=1000),
        required=False,
        max_length=200,
        help_text="Only these files and folders; default: everything that changed.",
    )
    branch = serializers.CharField(
        required=False, max_length=200, allow_blank=True, help_text="Commit to this new branch."
    )
    repository = serializers.CharField(
        required=False,
        max_length=1000,
        allow_blank=True,
        help_text="Its folder, where the collection has several.",
    )

    class Meta:
        ref_name = "GitCommitInput"


class GitCommitOutput(serializers.Serializer[Any]):
    commit = serializers.CharField()
    branch = serializers.CharField()
    paths = serializers.ListField(child=serializers.CharField())

    class Meta:
        ref_name = "GitCommit"
