"""Addresses of a collection's files: pages and REST, each included by those of collections."""

from __future__ import annotations

from django.urls import path

from apps.collections.files import api as file_api
from apps.collections.files import history_api as file_history_api
from apps.collections.files import tree_views
from apps.collections.files import views as file_views
from apps.collections.repositories import api as git_api
from apps.collections.repositories import views as git_views

_API = "collections/<int:pk>/"
API = [
    path(f"{_API}files", file_api.FilesView.as_view(), name="files-list"),
    path(f"{_API}files/content", file_api.FileContentView.as_view(), name="files-content"),
    path(f"{_API}files/edit", file_api.FilesEditView.as_view(), name="files-edit"),
    path(f"{_API}files/move", file_api.FileMoveView.as_view(), name="files-move"),
    path(f"{_API}files/search", file_api.FilesSearchView.as_view(), name="files-search"),
    path(f"{_API}files/structure", file_api.FilesStructureView.as_view(), name="files-structure"),
    path(f"{_API}files/diff", file_history_api.FilesDiffView.as_view(), name="files-diff"),
    path(f"{_API}files/syntax", file_api.FileSyntaxView.as_view(), name="files-syntax"),
    path(f"{_API}files/changes", file_history_api.FileChangesView.as_view(), name="files-changes"),
    path(f"{_API}files/undo", file_history_api.FilesUndoView.as_view(), name="files-undo"),
    path(f"{_API}files/redo", file_history_api.FilesRedoView.as_view(), name="files-redo"),
    path(f"{_API}files/restore", file_history_api.FileRestoreView.as_view(), name="files-restore"),
    path(f"{_API}files/rules", file_api.FileRulesView.as_view(), name="files-rules"),
    path(f"{_API}git/status", git_api.GitStatusView.as_view(), name="git-status"),
    path(f"{_API}git/log", git_api.GitLogView.as_view(), name="git-log"),
    path(f"{_API}git/diff", git_api.GitDiffView.as_view(), name="git-diff"),
    path(f"{_API}git/blame", git_api.GitBlameView.as_view(), name="git-blame"),
    path(f"{_API}git/commit", git_api.GitCommitView.as_view(), name="git-commit"),
]
_PAGE = "<int:pk>/files/"
PAGES = [
    path(_PAGE, file_views.files, name="files"),
    path(f"{_PAGE}view/", file_views.file, name="file"),
    path(f"{_PAGE}edit/", file_views.edit, name="file-edit"),
    path(f"{_PAGE}delete/", file_views.delete, name="file-delete"),
    path(f"{_PAGE}history/", file_views.history, name="file-history"),
    path(f"{_PAGE}history/<int:revision>/", file_views.revision, name="file-revision"),
    path(f"{_PAGE}undo/", file_views.undo, name="file-undo"),
    path(f"{_PAGE}redo/", file_views.redo, name="file-redo"),
    path(f"{_PAGE}restore/", file_views.restore, name="file-restore"),
    path(f"{_PAGE}search/", tree_views.search, name="file-search"),
    path(f"{_PAGE}structure/", tree_views.structure, name="file-structure"),
    path(f"{_PAGE}rules/", tree_views.rules, name="file-rules"),
    path(f"{_PAGE}git/", git_views.git, name="git"),
    path(f"{_PAGE}git/diff/", git_views.git_diff, name="git-diff"),
    path(f"{_PAGE}git/blame/", git_views.git_blame, name="git-blame"),
    path(f"{_PAGE}git/commit/", git_views.git_commit, name="git-commit"),
]
