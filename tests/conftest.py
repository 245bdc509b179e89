"""Fixtures and markers for all tests.

Input: pytest's options. Output: a private Docker Engine for the whole run, a private redis-server for each test, and
the markers `docker`, `redis` (added to tests that use those fixtures) and `long` (deselected unless --long).
"""

import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.docker.engine import PrivateDocker, private_docker
from tests.support.redis.server import PrivateRedis, private_redis

# A slow machine needs a long time to draw and run examples, which must not fail a test.
settings.register_profile(
    "patient",
    parent=settings.get_profile(settings.get_current_profile_name()),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("fast", parent=settings.get_profile("patient"), max_examples=10)
settings.load_profile("patient")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the tests marked `long` as well")


def pytest_configure() -> None:
    """Let programs started by tests receive SIGINT, even if the shell ignores it for the test run (`... &`)."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        names = getattr(item, "fixturenames", ())
        for fixture, marker in (("docker_engine", "docker"), ("redis_server", "redis")):
            if fixture in names:
                item.add_marker(marker)
    if config.getoption("--long"):
        return
    # Deselected instead of skipped: a skip in the summary means that this machine lacks something.
    left_out = [item for item in items if item.get_closest_marker("long")]
    items[:] = [item for item in items if item not in left_out]
    if left_out:
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def docker_engine() -> Iterator[PrivateDocker]:
    """A Docker Engine shared by all tests of the run; a test that kills it must restart it.

    `docker_engine.api()` is a client, `.namespace.http(8080)` requests a pod's host port, `.remove_containers()` cleans
    up.
    """
    with private_docker() as engine:
        yield engine


@pytest.fixture
def redis_server() -> Iterator[PrivateRedis]:
    """An empty redis-server on a unix socket, with `appendfsync always`."""
    with private_redis() as server:
        yield server
