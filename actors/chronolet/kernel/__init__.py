"""The actor machinery: steps, hosts, leases, recovery, timers, effects, archive. Knows nothing of pods or containers.

Read `kind` first (what an actor is), then `store` (what Redis promises), then `host` (how they meet).
"""
