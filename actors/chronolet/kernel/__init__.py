"""The actor machinery: steps, hosts, leases, recovery, timers, effects, archive. Knows nothing of pods or containers.

Read `kind` first (what an actor is), then `store` (what Redis promises), `ledger` (how messages become a step), `host`
(who drives it), `process` (how a process starts, takes over and recovers).
"""
