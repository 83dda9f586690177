"""Repositories of collections: what their branches name, and the packs with all their objects."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from apps.collections.models.collection import Collection
from tenancy.fields import TenantForeignKey
from tenancy.models import TenantModel


class Repository(TenantModel):
    """A repository whose files lie below a folder of a collection.

    Nothing of its own control folder is kept but objects and refs: those in packs, these here. ``head`` is the branch, or
    the commit, that the files are compared with.
    """

    collection = TenantForeignKey(Collection, related_name="repositories", db_index=False)
    folder = models.CharField(
        max_length=1000,
        blank=True,
        help_text="Folder of the collection that holds its files; empty: the whole collection.",
    )
    head = models.CharField(
        max_length=255, help_text="Current branch (refs/heads/…), or a commit if the head is detached."
    )
    refs = models.JSONField(default=dict, help_text="Commits and tags, by ref name.")
    shallow = models.JSONField(default=list, help_text="Commits whose parents were not imported.")
    left_out = models.JSONField(
        default=list,
        help_text="Files of the last commit that were not imported; they don't count as deleted.",
    )
    is_limited = models.BooleanField(
        db_default=False,
        default=False,
        help_text="Its history may contain deleted documents that only some people could see, so only owners can read it.",
    )
    created_at = models.DateTimeField(db_default=Now())
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        verbose_name_plural = "repositories"
        constraints = [models.UniqueConstraint(fields=["collection", "folder"], name="repository_once")]

    def __str__(self) -> str:
        return self.folder or "repository"


class RepositoryPack(TenantModel):
    """A pack of a repository with its index, kept as originals are."""

    repository = TenantForeignKey(Repository, related_name="packs", db_index=False)
    file = models.CharField(max_length=255, db_index=True, help_text="Key of the pack in the file storage.")
    index = models.CharField(
        max_length=255, db_index=True, help_text="Key of the pack's index in the file storage."
    )
    size = models.BigIntegerField(help_text="Bytes of the pack and its index.")
    is_made_here = models.BooleanField(help_text="Holds commits made here, not imported ones.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["repository", "file"], name="repository_pack_once")]

    def __str__(self) -> str:
        return self.file
