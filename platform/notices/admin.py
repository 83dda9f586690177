"""Admin of notices: that people were told, and in which ways; to look at."""

from __future__ import annotations

from django.contrib import admin

from notices.models import Notice, NoticeSetting
from tenancy.admin_scope import JournalAdmin


@admin.register(Notice)
class NoticeAdmin(JournalAdmin):
    """What people were told of, without names of things."""

    list_display = ("kind", "state", "user", "at", "read_at", "mail", "mail_at")
    list_filter = ("kind", "mail", "at", ("user", admin.RelatedOnlyFieldListFilter))
    list_select_related = ("user",)
    search_fields = ("user__email",)
    ordering = ("-pk",)


@admin.register(NoticeSetting)
class NoticeSettingAdmin(JournalAdmin):
    list_display = ("user", "updated_at")
    list_filter = (("user", admin.RelatedOnlyFieldListFilter),)
    list_select_related = ("user",)
    search_fields = ("user__email",)
