"""A node on the shared private engine, which has no containers before and after each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.effects.support import PatientRuntime, World
from tests.support import scratch
from tests.support.docker.engine import PrivateDocker


@pytest.fixture
def world(docker_engine: PrivateDocker, tmp_path: Path) -> Iterator[World]:
    runtime = PatientRuntime(docker_engine.host)
    yield World(runtime, tmp_path)
    runtime.close()
    docker_engine.remove_containers()


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """Yield a folder whose path is short enough for sockets in it."""
    folder = scratch.create("devices")
    yield folder
    scratch.remove(folder)
