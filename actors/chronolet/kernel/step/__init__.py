"""One step of a shard: from messages to decisions to one atomic commit."""
