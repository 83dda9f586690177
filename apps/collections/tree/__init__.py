"""A collection's folder on disk, reached by file descriptors alone."""

from apps.collections.tree.paths import PathRefused, path_parts
from apps.collections.tree.tree import Entry, SourceTree, TreeRefused, tree_open, tree_remove

__all__ = ["Entry", "PathRefused", "SourceTree", "TreeRefused", "path_parts", "tree_open", "tree_remove"]
