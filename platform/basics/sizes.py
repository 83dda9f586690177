"""Sizes in words."""

from __future__ import annotations


def gigabytes(count: float) -> str:
    """Return a size in words: ``0.3 GB``, small ones in MB."""
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"
