"""The corpus lies beside the repository. CI has it; where somebody has the repository alone, its tests are left out.
The tests' own pods share one node.
"""

import os
from collections.abc import Iterator

import pytest

from tests.corpus import images
from tests.corpus.manifests import FOLDER
from tests.corpus.own import Ran
from tests.e2e.node import running_node
from tests.support.docker.engine import PrivateDocker
from tests.support.redis.server import private_redis


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if FOLDER.is_dir() or os.environ.get("CI") == "true":
        return
    left_out = [item for item in items if item.get_closest_marker("corpus")]
    items[:] = [item for item in items if item not in left_out]
    config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="package")
def ran(docker_engine: PrivateDocker) -> Iterator[Ran]:
    """A node that all of the tests' own pods have been applied to; it ends with the last test of this folder."""
    images.load(docker_engine.api())
    # A host's address is where its way out begins; this one has only Docker's bridge.
    docker_engine.namespace.run("ip", "route", "replace", "192.0.2.0/24", "dev", "docker0")
    with private_redis() as server:
        agent = running_node(docker_engine, server.url, "own", server.folder / "agent", in_network=True)
        with agent as node:
            ran = Ran(node)
            ran.apply_all()
            yield ran
