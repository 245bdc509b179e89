"""Hosts (the actors that own shards), their inboxes, and the supervisor that starts and restarts them."""
