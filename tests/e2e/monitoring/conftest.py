"""A node with one sound pod and pods that have one fault each, monitored by a real Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.e2e.monitoring.prometheus import Prometheus
from tests.e2e.node import Node, pod, shell
from tests.integration.effects.registry import Registry, registry_in
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.registry import forget, unique_root
from tests.support.redis.server import PrivateRedis, private_redis

PORT = 10255
CLOSED_PORT = 9
BUSY = "trap 'exit 0' TERM; while :; do :; done & wait"
HOG = "x=a; while :; do x=$x$x; done"
VOLUMES = {"volumes": [{"name": "scratch", "emptyDir": {}}]}


class Watched(NamedTuple):
    """The node, its servers and its Prometheus."""

    node: Node
    server: PrivateRedis
    prometheus: Prometheus


@pytest.fixture(scope="module")
def stuck(docker_engine: PrivateDocker) -> Iterator[Registry]:
    """A registry that starts to send an image but never finishes."""
    with registry_in(docker_engine.namespace, slow=True, root=unique_root()) as found:
        yield found
    forget(docker_engine, found.address)


@pytest.fixture(scope="module")
def watched(docker_engine: PrivateDocker, stuck: Registry) -> Iterator[Watched]:
    """Start a node and its Prometheus once per module. The module's tests add faults to the node one by one."""
    with private_redis() as server:
        node = Node(docker_engine, server.url, "watched", server.folder / "agent")
        prometheus = Prometheus(docker_engine.namespace, server.folder / "prometheus", PORT)
        try:
            node.environ |= {
                "CHRONOLET_IMAGE_PULL_PROGRESS_DEADLINE": "1h",
                "CHRONOLET_EVENT_WEBHOOK_URL": f"http://127.0.0.1:{CLOSED_PORT}",
                "CHRONOLET_HOUSEKEEPING_INTERVAL": "1s",
                "CHRONOLET_PLEG_RELIST_PERIOD": "1s",
                "CHRONOLET_PLEG_RELIST_THRESHOLD": "3s",
                "CHRONOLET_MAX_PODS": "6",
            }
            node.start(PORT, in_network=True)
            prometheus.start()
            faulty(node, stuck)
            yield Watched(node, server, prometheus)
        finally:
            prometheus.destroy()
            node.close()


def faulty(node: Node, stuck: Registry) -> None:
    """Start as many pods as the node may run, and one more, which it rejects."""
    unready = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
    limits = {"limits": {"cpu": "50m", "memory": "32Mi"}}
    mounts = [{"name": "scratch", "mountPath": "/scratch"}]
    node.write(
        "pods.yaml",
        pod("web", shell("app", volumeMounts=mounts, resources={"requests": {"cpu": "10m"}}), **VOLUMES),
        pod("crashing", shell("app", "exit 3")),
        pod("unready", shell("app", readinessProbe=unready)),
        pod("hog", shell("app", HOG, resources={"limits": {"memory": "32Mi"}})),
        pod("busy", shell("app", BUSY, resources=limits)),
        pod("pulling", shell("app", image=stuck.reference)),
    )
    node.wait_until_running("web", "unready", "busy")
    node.write("one-more.yaml", pod("rejected"))
