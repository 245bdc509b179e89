"""Changes of a log's layout: the number of shards of a kind, and the kinds that the log has (docs/adr/0043)."""
