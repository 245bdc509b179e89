"""The pods of this folder share one node."""

from collections.abc import Iterator

import pytest

from tests.corpus import images
from tests.corpus.extra.pods import AppliedPods
from tests.e2e.node import running_node
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.server import private_redis


@pytest.fixture(scope="package")
def pods(docker_engine: PrivateDocker) -> Iterator[AppliedPods]:
    """A node to which all pods of this folder have been applied; it is stopped after the folder's last test."""
    images.load(docker_engine.api())
    # The agent reads the host's address from the outgoing route; this namespace has only Docker's bridge.
    docker_engine.namespace.run("ip", "route", "replace", "192.0.2.0/24", "dev", "docker0")
    with private_redis() as server:
        agent = running_node(docker_engine, server.url, "own", server.folder / "agent", in_network=True)
        with agent as node:
            applied = AppliedPods(node)
            applied.apply_all()
            yield applied
