"""Words of the admin that Django takes from the names of classes and columns: "Tenant", "Is enabled", "Created at".

The portal says workspace, switched on, created. The names stay what they are in the code (a migration would be needed to give each
a wording of its own); here they get the portal's words on their way to the page.
"""

from __future__ import annotations

import re
from typing import Any, Final

from django.contrib.admin import helpers
from django.contrib.admin.templatetags import admin_list
from django.contrib.admin.utils import label_for_field

WORDS: Final = {
    "tenant": "workspace",
    "user": "person",
    "at": "when",
    "ip": "IP address",
    "is enabled": "switched on",
    "is operators": "the operator's",
    "is flip": "flipped",
    "slug": "address",
    "request id": "request",
    "api key": "API key",
    "client id": "client",
    "actor name": "who",
    "actor kind": "kind of actor",
    "object type": "kind of object",
    "object name": "object",
}


def portal_word(label: str) -> str:
    """Return what the portal calls a column, with its capital where the label had one."""
    plain = label.lower()
    word = WORDS.get(plain) or re.sub(r"^is | at$", "", plain)
    if word == plain:
        return label
    return word[:1].upper() + word[1:] if label[:1].isupper() else word


def page_words(context: dict[str, Any]) -> None:
    """Give a page of the admin, before it is drawn, the words of the index: its group, its list, its filters and fields."""
    from config.operate.admin_groups import group_of, name_of  # models, which aren't loaded when the site is

    if (opts := context.get("opts")) is None:
        return
    context["group"], context["list_name"] = group_of(opts), name_of(opts)
    if (shown := context.get("cl")) is not None:
        context["title"] = context["list_name"]
        for one in shown.filter_specs:
            one.title = portal_word(str(one.title))
    if (form := getattr(context.get("adminform"), "form", None)) is not None:
        for field in form.fields.values():
            field.label = portal_word(str(field.label)) if field.label else field.label


def _labelled(*args: Any, **kwargs: Any) -> Any:
    found = label_for_field(*args, **kwargs)
    if isinstance(found, tuple):
        return portal_word(str(found[0])), *found[1:]
    return portal_word(str(found))


def words_install() -> None:
    """Have headings of lists and labels of rows that are only shown use these words: both ask this one function of Django."""
    for module in (admin_list, helpers):
        vars(module)["label_for_field"] = _labelled
