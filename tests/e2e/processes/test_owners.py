"""Ownership of the shards of a node whose probers run in two processes, as if on two machines."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from chronolet.kernel.storage.redis.replies import text
from chronolet_schemas import kernel, pod, prober
from chronolet_schemas.keys import Keys, Shard
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod
from tests.e2e.probes.probed_pods import NEVER, with_period
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.server import PrivateRedis, private_redis
from tests.support.scratch import wait_until

STAYS = "trap 'exit 0' TERM; while :; do sleep 1; done"
NAME = "owners"
CLOCK_STEPS = (10, -10, 3600, 0)
"""The offsets of the server's clock, in seconds, applied one after the other."""
PROBES_IN_LEASE = 25
"""More probes than take place within one lease, at five per second."""


@pytest.fixture
def server() -> Iterator[PrivateRedis]:
    with private_redis(clock=True) as found:
        yield found


class TwoProbers:
    """A node whose pod is probed by the process `one`, while `two` is on standby because it is drained."""

    def __init__(self, node: Node, server: PrivateRedis) -> None:
        self.node = node
        self.keys = Keys(NAME)
        self.client = server.client()
        node.start(0, "--actors", "manifests,pod,pleg,keeper", "--admission", "prober")
        self.one = node.start_other("one", "prober")
        probe = {"exec": {"command": ["cat", "/none"]}, "failureThreshold": NEVER, "timeoutSeconds": 60}
        node.write("p.yaml", with_period(200, a_pod("probed", shell("app", STAYS, livenessProbe=probe))))
        node.journal.wait_for_event(prober.ProbeFailed, pod="default/probed", consecutive=1)
        self.two = node.start_other("two", "prober")
        node.put_on_standby("two")
        wait_until(lambda: node.stands_by("two", "one"), "the second process on standby")

    def owners(self, kind: str = "prober") -> set[str]:
        """Return the processes that own shards of the kind."""
        tokens = [self.client.hget(self.keys.shard(Shard(kind, number)), "token") for number in range(4)]
        return {text(token).partition(":")[2] for token in tokens if token}

    def wait_for_probes(self, more: int) -> None:
        """Wait for `more` further failures. Each is recorded once, in order, no matter which process has probed."""
        self.node.journal.read()
        before = len(self._counts())
        self.node.journal.wait_for(f"{more} more failures", lambda: len(self._counts()) >= before + more)
        assert self._counts() == list(range(1, len(self._counts()) + 1))

    def _counts(self) -> list[int]:
        return [one.consecutive for one in self.node.journal.events(prober.ProbeFailed, pod="default/probed")]


@pytest.mark.long
def test_only_a_counter_that_stands_still_proves_a_death(docker_engine: PrivateDocker, server: PrivateRedis) -> None:
    """Neither the deletion of a lease key nor a step of the server's clock moves a shard. A paused owner loses its
    shards. After it resumes, it does not probe until the other process is killed; then it takes the shards over again.
    """
    node = Node(docker_engine, server.url, NAME, server.folder / "agent")
    try:
        found = TwoProbers(node, server)
        (owner,) = found.owners()
        for _ in range(3):
            found.client.delete(*(found.keys.alive(process) for process in {owner, *found.owners("pod")}))
            found.wait_for_probes(PROBES_IN_LEASE)
            for seconds in CLOCK_STEPS:
                server.step_clock(seconds)
                found.wait_for_probes(PROBES_IN_LEASE)
        assert found.owners() == {owner}
        assert not node.journal.events(kernel.ShardTakenOver)

        found.one.send_signal(signal.SIGSTOP)
        wait_until(lambda: owner not in found.owners(), "the takeover from the stopped owner")
        found.wait_for_probes(PROBES_IN_LEASE)
        node.put_on_standby("one", instead_of="two")
        found.one.send_signal(signal.SIGCONT)
        wait_until(lambda: "shard was taken over" in node.log_of_other("one"), "the former owner to learn of its loss")
        found.wait_for_probes(PROBES_IN_LEASE)

        (second,) = found.owners()
        found.two.kill()
        wait_until(lambda: second not in found.owners(), "the takeover from the killed owner")
        found.wait_for_probes(PROBES_IN_LEASE)
        assert node.restarts("probed") == [0]
        assert len(node.journal.events(pod.ContainerStarted)) == 1
    finally:
        node.close()
