"""The actor machinery: steps, hosts, leases, recovery, timers, effects, archive. Knows nothing of pods or containers.

Read `kind` first (what an actor is), then `store` (what Redis promises), `ledger` (how messages become a step), `host`
(who drives it), `supervisor` (who takes shards and starts hosts), `process` (how all this starts and ends).
"""
