"""The host of one shard: its turns, its inbox and its effects."""
