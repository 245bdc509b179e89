"""Containers that a killed engine restores only in part: dockerd died after the container's process had started, but
before it recorded the start. If the restarted dockerd still receives the start event, it reports the container as
running, but without a start time and an address. Otherwise it reports the container as never started, and can no longer
start it. The process runs in both cases.

The engine's OCI runtime pauses containerd at the end of a start, so that dockerd is killed before it learns of the
start.
"""

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chronolet.pod import signals
from tests.integration.effects.support import (
    OBEDIENT,
    Context,
    PatientRuntime,
    World,
    container,
    pod,
    start_container,
    start_sandbox,
)
from tests.support.docker.engine import PrivateDocker, private_docker
from tests.support.scratch import HANG_SECONDS, wait_until

_OCI_RUNTIME = """#!/bin/sh
runc "$@"
code=$?
if [ -e {folder}/armed ]; then
    for word in "$@"; do
        if [ "$word" = start ]; then
            kill -STOP $(cat {folder}/armed)
            mv {folder}/armed {folder}/started
        fi
    done
fi
exit $code
"""


class FragileEngine:
    """An engine that can be killed in the middle of a start."""

    def __init__(self, engine: PrivateDocker, folder: Path) -> None:
        self._engine = engine
        self._folder = folder
        self._seconds = 0.0
        self.runtime = PatientRuntime(engine.host)
        self.world = World(self.runtime, folder / "state").with_timing(restart_patience_seconds=HANG_SECONDS)

    def run(self, effect: Any, *, seconds: float) -> Any:
        """Run the effect, kill the engine during its first start of a container, and start the engine again. The kill
        comes `seconds` after the container's process has started; after five seconds, the start event is lost.
        """
        self._seconds = seconds
        armed = self._folder / "armed"
        restarts = threading.Thread(target=self._restart)

        def arm() -> None:
            if not restarts.ident:
                armed.write_text(str(self._engine.containerd()))
                restarts.start()

        context = Context(at={"before docker.start": arm})
        result = self.world.run(effect, context)
        restarts.join(HANG_SECONDS)
        assert context.points.count("before docker.start") >= 2
        return result

    def containers(self) -> set[tuple[str, bool]]:
        """Return the id of each running container, and whether it is half restored."""
        found = [self.runtime.inspect(one.id) for one in self.world.ours()]
        return {(one.id, one.half_restored) for one in found if one is not None and one.state == "running"}

    def started_processes(self) -> set[str]:
        """Return the ids of the containers that have processes, whether or not Docker reports them as running."""
        return set(self._engine.processes())

    def _restart(self) -> None:
        wait_until((self._folder / "started").exists, "the start of the process")
        time.sleep(self._seconds)
        self._engine.kill9()
        self._engine.start()


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[FragileEngine]:
    script = tmp_path / "fragile-runc"
    script.write_text(_OCI_RUNTIME.format(folder=tmp_path))
    script.chmod(0o755)
    config = json.dumps({"runtimes": {"fragile": {"path": str(script)}}, "default-runtime": "fragile"})
    with private_docker(config=config) as docker:
        fragile = FragileEngine(docker, tmp_path)
        yield fragile
        fragile.runtime.close()


LOST_AND_NOT = pytest.mark.parametrize("seconds", [0.0, 6.0])
"""Delays of the start event, in seconds. The second one loses it: containerd's shim sends it for only five seconds."""


@LOST_AND_NOT
def test_a_half_restored_sandbox_is_replaced(engine: FragileEngine, seconds: float) -> None:
    up = engine.run(start_sandbox(pod(container(*OBEDIENT))), seconds=seconds)
    assert isinstance(up, signals.SandboxUp), up
    assert up.started_at
    assert up.ip
    assert engine.containers() == {(up.id, False)}
    assert engine.started_processes() == {up.id}


@LOST_AND_NOT
def test_a_half_restored_container_is_replaced(engine: FragileEngine, seconds: float) -> None:
    manifest = pod(container(*OBEDIENT))
    sandbox = engine.world.sandbox(manifest)
    up = engine.run(start_container(manifest, sandbox.id), seconds=seconds)
    assert isinstance(up, signals.ContainerUp), up
    assert up.started_at
    assert engine.containers() == {(sandbox.id, False), (up.id, False)}
    assert engine.started_processes() == {sandbox.id, up.id}
