"""Agent, Redis, engine or their disks are stalled for a while, or have no free file descriptors."""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
import redis

from tests.attacks.exhaustion.stalled_node import engine, engine_pids, node, redis_pid, unaffected
from tests.attacks.probed_pods import outcomes
from tests.e2e.node import Node
from tests.support import scratch
from tests.support.machine.frozen import frozen_disks, no_descriptor_left, stopped

__all__ = ["engine", "node"]

SHORT_SECONDS, LONG_SECONDS = 4.0, 20.0
"""Durations of the stalls. LONG_SECONDS is longer than a lease and longer than the three periods after which a liveness
probe has failed.
"""


def stalled(node: Node, what: str) -> AbstractContextManager[None]:
    """Return a context in which the processes or disks named by `what` are stalled."""
    match what:
        case "disks":
            return frozen_disks(node.root.parent, node.engine.data)
        case "agent":
            return stopped([node.pid])
        case "redis":
            return stopped([redis_pid(node)])
        case "engine":
            return stopped(engine_pids(node))
        case _:
            return stopped([redis_pid(node), *engine_pids(node)])


def test_a_short_stall_restarts_nothing(node: Node) -> None:
    """A pause of agent and engine together is tested in tests/e2e/probes/test_overload.py."""
    with unaffected(node, "moment"):
        for what in ("both servers", "disks"):
            with stalled(node, what):
                time.sleep(SHORT_SECONDS)


@pytest.mark.long
@pytest.mark.parametrize("what", ["agent", "redis", "engine", "disks"])
def test_a_long_stall_restarts_nothing(node: Node, what: str) -> None:
    with unaffected(node, f"long-{what}"), stalled(node, what):
        time.sleep(LONG_SECONDS)


def shim_of(node: Node, name: str) -> int:
    """Return the process id of the containerd shim that starts commands in the pod's container."""
    container = node.running(name)["app"]["State"]["Pid"]
    return int(Path(f"/proc/{container}/stat").read_text().rpartition(")")[2].split()[1])


def test_engine_and_redis_without_descriptors_lose_nothing(node: Node) -> None:
    """First the shim that starts commands in a container has no free file descriptors, so the container's probes end in
    errors. Then Redis and the engine have none: all connections to Redis are closed, and neither accepts new ones.
    """
    with no_descriptor_left(shim_of(node, "exec")):
        scratch.wait_until(lambda: outcomes(node, "exec")[:4] == ["error"] * 4, "probes whose command cannot start")
    with unaffected(node, "descriptors"), redis.Redis.from_url(node.url, single_connection_client=True) as client:
        assert client.ping()
        with no_descriptor_left(redis_pid(node), *engine_pids(node)):
            before = node.log.count("cannot be reached")
            assert client.client_kill_filter(_type="normal", skipme=True) > 0
            scratch.wait_until(
                lambda: node.log.count("cannot be reached") > before, "a report that Redis cannot be reached"
            )
