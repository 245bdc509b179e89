"""The process and its supervisor, which starts, restarts and hands over the hosts of shards."""
