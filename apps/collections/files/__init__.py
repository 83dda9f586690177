"""Files of a collection: browse, search, edit, undo."""
