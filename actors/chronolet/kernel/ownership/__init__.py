"""Decides which process owns which shard: leases, claims and takeover."""
