"""Containers that Docker restores only in part, because dockerd was killed after their process had started, but before
dockerd recorded the start. If containerd delivers the start event to the new dockerd, Docker shows the container as
running, but without a start time and an address; otherwise, Docker shows it as never started and cannot start it. Its
process runs in both cases.

In these tests, the engine's OCI runtime pauses containerd at the end of the start, so that dockerd is killed before it
is notified of the start.
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
    Killed,
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
            pid=$(cat {folder}/armed)
            kill -STOP $pid
            # On a busy machine, its threads run on for a while.
            while grep -qs "^State:[[:space:]][^T]" /proc/$pid/task/*/status; do sleep 0.01; done
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

    def run(self, effect: Any, *, seconds: float, dies: str = "") -> Any:
        """Run the effect; during its first start, the engine is killed and started again. The kill comes `seconds`
        after the container's process has started; until then, dockerd is not notified of that start. If `seconds`
        exceeds the five seconds for which the shim retries the notification, it is lost. The worker is killed at the
        point `dies`, and the effect run again.
        """
        self._seconds = seconds
        armed = self._folder / "armed"
        restarts = threading.Thread(target=self._restart)

        def arm() -> None:
            if not restarts.ident:
                armed.write_text(str(self._engine.containerd()))
                restarts.start()

        def die() -> None:
            raise Killed(dies)

        context = Context(at={"before docker.start": arm, **({dies: die} if dies else {})})
        try:
            result = self.world.run(effect, context)
        except Killed:
            result = self.world.run(effect)
        restarts.join(HANG_SECONDS)
        assert context.points[-1] == dies or context.points.count("before docker.start") >= 2
        return result

    def containers(self) -> set[tuple[str, bool]]:
        """Return the id of each running container, and whether it is half restored."""
        found = [self.runtime.inspect(one.id) for one in self.world.ours()]
        return {(one.id, one.half_restored) for one in found if one is not None and one.state == "running"}

    def started_processes(self) -> set[str]:
        """Return the ids of the containers that have processes, whatever state Docker shows for them."""
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
"""Seconds from the start of the process to the kill of the engine. containerd's shim retries its notification of the
start for five seconds: it arrives after the restart in the first case, and is lost in the second.
"""


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


@pytest.mark.parametrize("dies", ["before processes.kill", "after processes.kill", "after docker.remove"])
def test_a_worker_that_is_killed_while_it_discards_leaves_no_process(engine: FragileEngine, dies: str) -> None:
    up = engine.run(start_sandbox(pod(container(*OBEDIENT))), seconds=6.0, dies=dies)
    assert isinstance(up, signals.SandboxUp), up
    assert engine.containers() == {(up.id, False)}
    assert engine.started_processes() == {up.id}
