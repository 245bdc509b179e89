"""Nodes for the end-to-end tests: one that most share, and one of a test's own."""

from collections.abc import Iterator

import pytest

from tests.e2e.node import Node, running_node
from tests.integration.effects.registry import Registry, registry_in
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.registry import forget, unique_root
from tests.support.redis.server import PrivateRedis, private_redis


@pytest.fixture(scope="module")
def node(docker_engine: PrivateDocker, request: pytest.FixtureRequest) -> Iterator[Node]:
    """A node that the tests of a module share: each has pods of its own names."""
    with private_redis() as server:
        name = request.module.__name__.rpartition("_")[2]
        with running_node(docker_engine, server.url, name, server.folder / "agent") as node:
            yield node


@pytest.fixture
def own_node(docker_engine: PrivateDocker, redis_server: PrivateRedis) -> Iterator[Node]:
    """A node of the test's own, on `redis_server`; its agent is not started yet."""
    node = Node(docker_engine, redis_server.url, scratch_name(redis_server), redis_server.folder / "agent")
    try:
        yield node
    finally:
        node.close()


@pytest.fixture
def slow(docker_engine: PrivateDocker) -> Iterator[Registry]:
    """A registry that hangs in the middle of a pull until it is let go."""
    with registry_in(docker_engine.namespace, slow=True, root=unique_root()) as found:
        yield found
    forget(docker_engine, found.address)


@pytest.fixture
def quick(docker_engine: PrivateDocker) -> Iterator[Registry]:
    """One that answers at once."""
    with registry_in(docker_engine.namespace, root=unique_root()) as found:
        yield found
    forget(docker_engine, found.address)


def scratch_name(server: PrivateRedis) -> str:
    """No two tests of a run have the same."""
    return server.folder.name.removeprefix("chronolet-")
