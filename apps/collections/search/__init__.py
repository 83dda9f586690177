"""Search over collections: hybrid, filtered, permitted, traced."""

from apps.collections.search.filters import FIELDS, OPERATORS, SearchFilter, parse_filters
from apps.collections.search.run import search_run
from apps.collections.search.types import (
    DEPTH,
    LEGS,
    MAX_K,
    MAX_QUERY_CHARS,
    Candidate,
    CodeFound,
    Hidden,
    SearchHit,
    SearchResult,
    Trace,
)

__all__ = [
    "DEPTH",
    "FIELDS",
    "LEGS",
    "MAX_K",
    "MAX_QUERY_CHARS",
    "OPERATORS",
    "Candidate",
    "CodeFound",
    "Hidden",
    "SearchFilter",
    "SearchHit",
    "SearchResult",
    "Trace",
    "parse_filters",
    "search_run",
]
