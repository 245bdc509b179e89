"""The actor machinery: steps, hosts, leases, recovery, timers, effects, archive. It knows nothing about pods or
containers.

Read `kind` first (what an actor is), then `store` (what Redis guarantees), `ledger` (how messages become a step),
`host` (runs the steps of one shard), `supervisor` (acquires shards and starts hosts) and `process` (startup and
shutdown).
"""
