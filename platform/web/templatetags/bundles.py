"""The address of a bundle of styles or scripts, for templates."""

from __future__ import annotations

from django import template

from web.bundles import bundle_url

register = template.Library()


@register.simple_tag
def bundle(name: str) -> str:
    """Return where a bundle of ``web.bundles`` is."""
    return bundle_url(name)
