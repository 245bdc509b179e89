"""The command `get`: a table for each resource type, with selectors and sorting."""
