"""REST of the workspace itself (included under /api/v1/, namespace ``api``)."""

from __future__ import annotations

from django.urls import path

from web.api import MembersView, MeView

urlpatterns = [
    path("me", MeView.as_view(), name="me"),
    path("members", MembersView.as_view(), name="members-list"),
]
