"""A node on an engine with a small separate disk; the node's collectors run only on request."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.collecting.images import YOUNG_SECONDS
from tests.e2e.node import BUSYBOX, Node
from tests.support.docker.engine import PrivateDocker, private_docker
from tests.support.docker.images import PAUSE
from tests.support.docker.proxy import DockerProxy, docker_proxy
from tests.support.redis.server import PrivateRedis

DISK_MEGABYTES = 320
NEVER = "1h"


@pytest.fixture(scope="module")
def small_engine() -> Iterator[PrivateDocker]:
    """An engine whose data is on a small disk."""
    with private_docker(disk_megabytes=DISK_MEGABYTES) as engine:
        yield engine


@pytest.fixture
def node(small_engine: PrivateDocker, redis_server: PrivateRedis) -> Iterator[Node]:
    """A node whose collectors run only on request."""
    found = Node(small_engine, redis_server.url, redis_server.folder.name, redis_server.folder / "agent")
    found.environ |= {
        "CHRONOLET_CONTAINER_GC_PERIOD": NEVER,
        "CHRONOLET_IMAGE_GC_PERIOD": NEVER,
        "CHRONOLET_IMAGE_USAGE_PERIOD": "100ms",
        "CHRONOLET_IMAGE_GC_HIGH_THRESHOLD": "60",
        "CHRONOLET_IMAGE_GC_LOW_THRESHOLD": "40",
        "CHRONOLET_MINIMUM_IMAGE_TTL_DURATION": f"{YOUNG_SECONDS}s",
    }
    try:
        yield found
    finally:
        found.close()
        small_engine.remove_containers()
        for one in found.engine.api().images():
            if set(one["RepoTags"] or ()) <= {BUSYBOX, PAUSE.reference} and one["RepoTags"]:
                continue
            found.engine.api().remove_image(one["Id"], force=True)


@pytest.fixture
def proxy(small_engine: PrivateDocker) -> Iterator[DockerProxy]:
    """A proxy in front of the small engine."""
    with docker_proxy(small_engine.host) as found:
        yield found
