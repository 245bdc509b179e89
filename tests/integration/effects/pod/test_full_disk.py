"""An engine whose disk is full: starts are refused with its message, and succeed once there is space again."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from chronolet.pod import signals
from tests.integration.effects.manifests import app, pod, start_in
from tests.integration.effects.support import PatientRuntime, World, cleanup, start_sandbox
from tests.support.docker.engine import private_docker
from tests.support.machine.full_disk import fill


@pytest.fixture
def small_engine(tmp_path: Path) -> Iterator[tuple[World, Path]]:
    """Yield a node on an engine with 64 MB of disk, and the folder of this disk."""
    with private_docker(disk_megabytes=64) as engine:
        runtime = PatientRuntime(engine.host)
        yield World(runtime, tmp_path), engine.data
        runtime.close()


def test_a_container_waits_for_disk_space(small_engine: tuple[World, Path]) -> None:
    world, disk = small_engine
    manifest = pod()
    sandbox = world.sandbox(manifest)
    assert isinstance(sandbox, signals.SandboxUp)
    filler = fill(disk)
    refused = start_in(world, manifest, sandbox, "app")
    assert refused.reason in ("CreateContainerError", "RunContainerError")
    assert "no space left on device" in refused.message
    filler.unlink()
    assert isinstance(start_in(world, manifest, sandbox, "app"), signals.ContainerUp)
    assert isinstance(world.run(cleanup()), signals.CleanedUp)


def test_a_sandbox_waits_for_disk_space(small_engine: tuple[World, Path]) -> None:
    world, disk = small_engine
    manifest = pod(app())
    filler = fill(disk)
    refused = world.run(start_sandbox(manifest))
    assert isinstance(refused, signals.SandboxRefused)
    assert "no space left on device" in refused.message
    filler.unlink()
    assert isinstance(world.run(start_sandbox(manifest)), signals.SandboxUp)
