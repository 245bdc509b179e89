"""`get`: a table per resource type, with selectors and sorting."""
