"""`get`: the tables of each resource, with selectors and sorting."""
