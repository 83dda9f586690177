"""What a spreadsheet takes for a formula when it opens a CSV file (OWASP, "CSV injection")."""

from __future__ import annotations

from typing import Final

FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
"""How a cell begins that a spreadsheet would run; with an apostrophe in front it is text."""
