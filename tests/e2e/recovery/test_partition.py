"""Two hosts with one node name, each in a network namespace; the link between the first host and Redis fails."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from chronolet_schemas import kernel, pleg, prober
from tests.e2e.node import pod as a_pod
from tests.e2e.node import shell
from tests.e2e.recovery.hosts import STAYS, Host
from tests.support.docker.engine import private_docker
from tests.support.machine.netns import NetworkNamespace
from tests.support.ports import free_port
from tests.support.redis.server import RedisOptions, private_redis

PARTITION_SECONDS = 60
NEVER = 1_000


class Cable:
    """A veth link between the test's network namespace and `namespace`. `number` makes names and addresses unique."""

    def __init__(self, namespace: NetworkNamespace, number: int) -> None:
        self._namespace = namespace
        self._here, self._there = f"chro{number}a", f"chro{number}b"
        self.address = f"10.211.{number}.1"
        self._remote = f"10.211.{number}.2"

    def plug_in(self) -> None:
        ns = self._namespace.name
        _ip("link", "add", self._here, "type", "veth", "peer", "name", self._there, "netns", ns)
        _ip("addr", "add", f"{self.address}/24", "dev", self._here)
        _ip("link", "set", self._here, "up")
        _ip("-n", ns, "addr", "add", f"{self._remote}/24", "dev", self._there)
        _ip("-n", ns, "link", "set", self._there, "up")

    def remove(self) -> None:
        subprocess.run(["ip", "link", "delete", self._here], check=False, capture_output=True)

    @contextmanager
    def unplugged(self) -> Iterator[None]:
        """Drop everything on the link for the duration of the block."""
        _ip("-n", self._namespace.name, "link", "set", self._there, "down")
        try:
            yield
        finally:
            _ip("-n", self._namespace.name, "link", "set", self._there, "up")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


@pytest.mark.long
def test_a_partition_moves_no_pod_and_kills_no_container() -> None:
    """For a minute, the first host cannot reach Redis. The second host can, but takes over only kinds that touch
    neither the machine nor the engine. Then the first host continues: nothing has been restarted, and its probes go on.
    """
    port = free_port()
    reached = RedisOptions(port=port, more=("--bind", "0.0.0.0", "--protected-mode", "no"))
    with private_docker() as first, private_docker() as second, private_redis(reached) as server:
        cables = [Cable(first.namespace, 91), Cable(second.namespace, 92)]
        hosts: list[Host] = []
        try:
            for cable, engine, name in zip(cables, (first, second), ("1", "2"), strict=True):
                cable.plug_in()
                url = f"redis://{cable.address}:{port}"
                hosts.append(Host(engine, url, server.folder / name, name * 32, in_network=True))
            _check(hosts, cables[0])
        finally:
            for host in hosts:
                host.node.close()
            for cable in cables:
                cable.remove()


def _check(hosts: list[Host], cable: Cable) -> None:
    one, two = hosts
    one.start()
    probe = {"exec": {"command": ["cat", "/none"]}, "periodSeconds": 1, "failureThreshold": NEVER}
    one.node.write("p.yaml", a_pod("web", shell("app", STAYS, livenessProbe=probe)))
    one.node.wait_until_running("web")
    before = one.node.started_at("web")
    one.node.journal.wait_for_event(prober.ProbeFailed, pod="default/web", consecutive=2)
    two.start()
    two.wait_for_readiness("[-]site failed")

    with cable.unplugged():
        over = time.monotonic() + PARTITION_SECONDS
        one.wait_for_readiness("[-]lease failed")
        while time.monotonic() < over:
            assert one.node.started_at("web") == before
            assert two.node.engine.processes() == {}
            assert "[-]site failed" in two.readiness()
            time.sleep(1)  # the length of the partition is what is tested
    one.wait_for_readiness("[+]lease ok")
    failures = len(one.node.journal.events(prober.ProbeFailed))
    one.node.journal.wait_for("more probes", lambda: len(one.node.journal.events(prober.ProbeFailed)) > failures + 2)
    assert one.node.started_at("web") == before
    assert one.node.restarts("web") == [0]
    assert not one.node.journal.events(pleg.ContainerDied)
    assert len(one.node.journal.events(kernel.SiteRecorded)) == 1
    counts = [event.consecutive for event in one.node.journal.events(prober.ProbeFailed)]
    assert counts == list(range(1, len(counts) + 1)), "a probe was missed, doubled, or reported as an error"
    assert not one.node.journal.events(prober.ProbeErrored)
