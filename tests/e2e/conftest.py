"""Nodes and registries for the end-to-end tests. One node is shared by the tests of a module, the other is for one
test.
"""

from collections.abc import Iterator

import pytest

from tests.e2e.node import Node, running_node
from tests.integration.effects.registry import Registry, registry_in
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.registry import forget, unique_root
from tests.support.redis.server import PrivateRedis, private_redis


@pytest.fixture(scope="module")
def node(docker_engine: PrivateDocker, request: pytest.FixtureRequest) -> Iterator[Node]:
    """A node shared by the tests of a module; each test uses different pod names."""
    with private_redis() as server:
        name = request.module.__name__.rpartition("_")[2]
        with running_node(docker_engine, server.url, name, server.folder / "agent") as node:
            yield node


@pytest.fixture
def own_node(docker_engine: PrivateDocker, redis_server: PrivateRedis) -> Iterator[Node]:
    """A node for one test, on `redis_server`; its agent has not been started."""
    node = Node(docker_engine, redis_server.url, scratch_name(redis_server), redis_server.folder / "agent")
    try:
        yield node
    finally:
        node.close()


@pytest.fixture
def slow(docker_engine: PrivateDocker) -> Iterator[Registry]:
    """A registry that blocks in the middle of a pull until `released` is set."""
    with registry_in(docker_engine.namespace, slow=True, root=unique_root()) as found:
        yield found
    forget(docker_engine, found.address)


@pytest.fixture
def quick(docker_engine: PrivateDocker) -> Iterator[Registry]:
    """A registry that answers immediately."""
    with registry_in(docker_engine.namespace, root=unique_root()) as found:
        yield found
    forget(docker_engine, found.address)


def scratch_name(server: PrivateRedis) -> str:
    """Return a name that is unique within a test run."""
    return server.folder.name.removeprefix("chronolet-")
