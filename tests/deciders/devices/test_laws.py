"""Invariants of devices for any order of plugin, pod and crash events.

The state is the folded log; no device is shared by two pods, or by two containers that run concurrently; devices are
held only for existing pods; waiting claims get devices once there are some; and when all pods have ended, all devices
are free. The recorded number of a plugin's refusals is more than half of the actual number.
"""

from __future__ import annotations

import random
from collections import Counter

import pytest

from chronolet.devices.context import Policy
from tests.deciders.devices.world import OPERATIONS, POLICIES, World
from tests.deciders.given import through_snapshot


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_the_invariants_hold_in_any_order_of_events(policy: Policy, pytestconfig: pytest.Config) -> None:
    did: Counter[str] = Counter()
    for seed in range(2_000 if pytestconfig.getoption("--long") else 300):
        chance = random.Random(seed)
        world = World(policy)
        for _ in range(100):
            world.do(chance.choice(OPERATIONS), chance.randrange(2**16))
        assert world.replayed() == world.state == through_snapshot(world.state), seed
        world.settle()
        did.update(world.did)
    assert min(did[name] for name in ("DevicesAllocated", "DevicesFreed", "Crash")) > 300, did
    rare = ("PreferenceAsked", "DevicesAdopted", "PreStartAsked", "RegistrationRefused")
    assert min(did[name] for name in rare) > 10, did
    assert did["DevicesPending" if policy.wait_for_resources else "DevicesRefused"] > 100, did
