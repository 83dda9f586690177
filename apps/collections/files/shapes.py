"""What the REST API of files takes and gives."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.collections.files.changes import MAX_CHANGES
from apps.collections.files.edits import MAX_EDITS

_KINDS = ["insert", "replace_lines", "delete_lines", "replace_text"]
_EXPECTED = "SHA-256 of the file as it was read; if it has changed since, the change is refused (409)."


class ListedOutput(serializers.Serializer[Any]):
    name = serializers.CharField()
    path = serializers.CharField()
    is_folder = serializers.BooleanField()
    size = serializers.IntegerField(help_text="Bytes; of a folder, of all files below it.")
    files = serializers.IntegerField()
    language = serializers.CharField()
    changed_at = serializers.DateTimeField()
    document_id = serializers.IntegerField(allow_null=True)
    is_restricted = serializers.BooleanField()


class ListingOutput(serializers.Serializer[Any]):
    folder = serializers.CharField()
    entries = ListedOutput(many=True)
    total = serializers.IntegerField()
    offset = serializers.IntegerField()
    has_more = serializers.BooleanField()

    class Meta:
        ref_name = "FileListing"


class FileOutput(serializers.Serializer[Any]):
    path = serializers.CharField()
    lines = serializers.ListField(child=serializers.CharField(trim_whitespace=False))
    start = serializers.IntegerField()
    total_lines = serializers.IntegerField()
    has_more = serializers.BooleanField()
    size = serializers.IntegerField(help_text="Bytes.")
    encoding = serializers.CharField()
    newline = serializers.CharField(trim_whitespace=False)
    language = serializers.CharField()
    sha256 = serializers.CharField()
    is_binary = serializers.BooleanField()
    document_id = serializers.IntegerField(allow_null=True)
    changed_at = serializers.DateTimeField()

    class Meta:
        ref_name = "File"


class NotedInput(serializers.Serializer[Any]):
    note = serializers.CharField(required=False, default="", allow_blank=True, max_length=255)


class FileWriteInput(NotedInput):
    path = serializers.CharField(max_length=2000, trim_whitespace=False)
    content = serializers.CharField(allow_blank=True, trim_whitespace=False)
    expected = serializers.CharField(
        required=False, allow_null=True, allow_blank=True, default=None, max_length=64, help_text=_EXPECTED
    )
    encoding = serializers.CharField(
        required=False,
        allow_blank=True,
        default="",
        max_length=40,
        help_text="Such as utf-8 or latin-1; default: UTF-8 for a new file, unchanged for an existing one.",
    )


class FileMoveInput(NotedInput):
    path = serializers.CharField(max_length=2000, trim_whitespace=False)
    to = serializers.CharField(max_length=2000, trim_whitespace=False)


class TextEditInput(serializers.Serializer[Any]):
    kind = serializers.ChoiceField(choices=_KINDS)
    text = serializers.CharField(required=False, allow_blank=True, trim_whitespace=False)
    line = serializers.IntegerField(required=False, min_value=0)
    end_line = serializers.IntegerField(required=False, min_value=0)
    old = serializers.CharField(required=False, allow_blank=True, trim_whitespace=False)
    count = serializers.IntegerField(required=False, min_value=1)


class FileEditInput(serializers.Serializer[Any]):
    path = serializers.CharField(max_length=2000, trim_whitespace=False)
    expected = serializers.CharField(
        required=False, allow_null=True, default=None, max_length=64, help_text=_EXPECTED
    )
    edits = TextEditInput(many=True, max_length=MAX_EDITS)  # type: ignore[call-arg]


class FilesEditInput(NotedInput):
    files = FileEditInput(many=True, max_length=MAX_CHANGES)  # type: ignore[call-arg]


class RevisionOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    path = serializers.CharField()
    before = serializers.CharField(source="before.sha256", default=None, allow_null=True)
    after = serializers.CharField(source="after.sha256", default=None, allow_null=True)

    class Meta:
        ref_name = "FileRevision"


class ChangeOutput(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    action = serializers.CharField()
    note = serializers.CharField()
    user_id = serializers.IntegerField(allow_null=True)
    run_id = serializers.IntegerField(allow_null=True)
    undoes_id = serializers.IntegerField(allow_null=True)
    is_undone = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    revisions = RevisionOutput(many=True, source="shown")

    class Meta:
        ref_name = "FileChange"


class ChangedOutput(serializers.Serializer[Any]):
    change = ChangeOutput(allow_null=True, help_text="Null if the files were already up to date.")

    class Meta:
        ref_name = "FilesChanged"


class ChangeInput(serializers.Serializer[Any]):
    change = serializers.IntegerField(
        required=False,
        allow_null=True,
        default=None,
        min_value=1,
        max_value=2**63 - 1,
        help_text="The change; default: the newest one.",
    )


class RestoreInput(serializers.Serializer[Any]):
    revision = serializers.IntegerField(min_value=1, max_value=2**63 - 1)


class MatchOutput(serializers.Serializer[Any]):
    path = serializers.CharField()
    line = serializers.IntegerField()
    column = serializers.IntegerField()
    text = serializers.CharField(trim_whitespace=False)


class MatchesOutput(serializers.Serializer[Any]):
    matches = MatchOutput(many=True)
    next_offset = serializers.IntegerField(allow_null=True)
    files_searched = serializers.IntegerField()
    note = serializers.CharField()

    class Meta:
        ref_name = "FileMatches"


class StructureOutput(serializers.Serializer[Any]):
    name = serializers.CharField()
    size = serializers.IntegerField()
    files = serializers.IntegerField()
    languages = serializers.DictField(child=serializers.IntegerField())
    children = serializers.ListField(child=serializers.DictField())

    class Meta:
        ref_name = "ProjectStructure"


class DiffOutput(serializers.Serializer[Any]):
    diff = serializers.CharField(trim_whitespace=False, help_text="A unified diff.")

    class Meta:
        ref_name = "FileDiff"


class SyntaxOutput(serializers.Serializer[Any]):
    path = serializers.CharField()
    language = serializers.CharField()
    problems = serializers.ListField(
        child=serializers.DictField(), help_text="Line, column and message of each."
    )

    class Meta:
        ref_name = "SyntaxCheck"


class RulesShape(serializers.Serializer[Any]):
    allow = serializers.ListField(child=serializers.CharField(), required=False)
    deny = serializers.ListField(child=serializers.CharField(), required=False)
    show_hidden = serializers.BooleanField(required=False)
    read_only = serializers.BooleanField(required=False)  # type: ignore[assignment]
    max_file_bytes = serializers.IntegerField(required=False)
    max_total_bytes = serializers.IntegerField(required=False)
    max_files = serializers.IntegerField(required=False)

    class Meta:
        ref_name = "FileRules"
