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

    collection = TenantForeignKey(Collection, related_name="repositories")
    folder = models.CharField(max_length=1000, blank=True, help_text="Empty: the whole collection.")
    head = models.CharField(
        max_length=255, help_text="A branch (refs/heads/…), or a commit when it is detached."
    )
    refs = models.JSONField(default=dict, help_text="Commits and tags by the names of refs.")
    shallow = models.JSONField(default=list, help_text="Commits whose parents did not come along.")
    left_out = models.JSONField(
        default=list, help_text="Paths of the last commit that the import left out: no deletions."
    )
    is_limited = models.BooleanField(
        db_default=False,
        default=False,
        help_text="It may hold what only some might see, under documents that are gone: open to owners and admins alone.",
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

    repository = TenantForeignKey(Repository, related_name="packs")
    file = models.CharField(max_length=255, db_index=True, help_text="Key of the pack.")
    index = models.CharField(max_length=255, db_index=True, help_text="Key of its index.")
    size = models.BigIntegerField(help_text="Bytes of both.")
    is_made_here = models.BooleanField(help_text="Of commits made here, not of an import.")
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["repository", "file"], name="repository_pack_once")]

    def __str__(self) -> str:
        return self.file
