"""Documents: upload, versions, who may see them, their types, and the viewer."""
