"""Stops of containers and sandboxes on a real engine: stop signal, grace period, KILL."""

import signal
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from chronolet.adapters.machine.processes import HostProcesses
from chronolet.kernel.effects.slot import LostOwnership
from chronolet.pod import signals, wanted
from chronolet.ports.runtime.processes import NoProcesses, Processes
from chronolet.ports.runtime.runtime import ContainerState, Runtime
from tests.integration.effects.pod.support import HOUR, now, started
from tests.integration.effects.support import (
    DEAF,
    OBEDIENT,
    POD,
    UID,
    Context,
    World,
    cleanup,
    container,
    pod,
    stop_container,
)
from tests.support.docker.engine import PrivateDocker
from tests.support.scratch import HANG_SECONDS, wait_until


def test_a_container_that_obeys_the_stop_signal_ends_with_its_own_exit_code(world: World) -> None:
    up = started(world, *OBEDIENT)
    answer = world.run(stop_container(up.id, grace=3600, deadline=now() + HOUR))
    assert isinstance(answer, signals.ContainerDead)
    assert (answer.id, answer.exit_code, answer.reason, answer.started_at) == (up.id, 4, "Error", up.started_at)
    assert answer.finished_at >= up.started_at


@pytest.mark.parametrize("known", [True, False])
def test_the_end_of_the_process_is_reported_before_the_container_is_dead(world: World, known: bool) -> None:
    up = started(world, *OBEDIENT)
    if not known:
        world = World(world.runtime, world.root)  # another agent, which did not start the container
    context = Context()
    answer = world.run(stop_container(up.id, grace=3600, deadline=now() + HOUR, with_pod=True), context)
    assert (answer.exit_code, answer.reason) == (4, "Error")
    assert [signal for signal, _ in context.sent] == [
        signals.ProcessEnded(subject="container/app", intent="stop/0", id=up.id)
    ]


def test_a_stop_without_the_pod_reports_only_its_result(world: World) -> None:
    context = Context()
    world.run(stop_container(started(world, *OBEDIENT).id, grace=3600, deadline=now() + HOUR), context)
    assert context.sent == []


def test_a_container_that_ignores_the_stop_signal_is_killed_at_its_deadline(world: World) -> None:
    up = started(world, *DEAF)
    began = now()
    # Only 2.5 s of the grace period of an hour are left: the deadline counts.
    answer = world.run(stop_container(up.id, grace=3600, deadline=began + 2500))
    assert (answer.exit_code, answer.reason) == (137, "Error")
    assert 2400 <= answer.finished_at - began < HOUR


def test_a_stop_after_the_deadline_sends_the_stop_signal_before_kill(world: World) -> None:
    """The previous worker may have been killed before it sent the signal."""
    patient = world.with_timing(minimum_grace_seconds=HANG_SECONDS)
    obedient = started(patient, *OBEDIENT)
    assert patient.run(stop_container(obedient.id, grace=3600, deadline=now() - 60_000)).exit_code == 4
    world.run(cleanup())
    deaf = started(world, *DEAF)
    began = now()
    assert world.run(stop_container(deaf.id, grace=3600, deadline=began - 60_000)).exit_code == 137
    assert 1900 <= now() - began < HOUR


def test_a_stop_without_grace_period_sends_kill_immediately(world: World) -> None:
    up = started(world, *OBEDIENT)
    assert world.run(stop_container(up.id, grace=0, deadline=now())).exit_code == 137


def test_a_deadline_after_a_clock_jump_is_limited_to_the_grace_period(world: World) -> None:
    up = started(world, *DEAF)
    began = now()
    answer = world.run(stop_container(up.id, grace=1, deadline=began + HOUR))
    assert answer.exit_code == 137
    assert answer.finished_at - began < HOUR


def test_a_cancelled_stop_ends_within_its_grace_period(world: World) -> None:
    up = started(world, *DEAF)
    context = Context()
    ended: list[Exception] = []

    def stop() -> None:
        try:
            world.run(stop_container(up.id, grace=600, deadline=now() + 600_000), context)
        except LostOwnership as fenced:
            ended.append(fenced)

    thread = threading.Thread(target=stop)
    thread.start()
    wait_until(lambda: "before docker.wait" in context.points, "the wait")
    context.cancelled.set()
    thread.join(HANG_SECONDS)
    assert len(ended) == 1
    assert world.runtime.inspect(up.id).state == "running"


def test_a_stop_killed_at_any_point_has_the_same_result(world: World) -> None:
    world = world.with_timing(minimum_grace_seconds=0.2)

    def fresh() -> wanted.StopContainer:
        world.run(cleanup())
        return stop_container(started(world, *DEAF).id, grace=30, deadline=now() + 200)

    def dead(answer: Any) -> None:
        assert isinstance(answer, signals.ContainerDead)
        assert (answer.exit_code, answer.reason) == (137, "Error")

    assert world.run_through_every_death(fresh, dead) >= 7


def test_a_container_that_does_not_exist_is_dead_for_an_unknown_reason(world: World) -> None:
    answer = world.run(stop_container("0" * 64, grace=1, deadline=now()))
    assert (answer.exit_code, answer.reason, answer.id) == (137, "ContainerStatusUnknown", "0" * 64)


class SignalledRuntime:
    """A runtime that records the signals it is asked to send."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.signals: list[str] = []

    def kill(self, container_id: str, signal: str) -> None:
        self.signals.append(signal)
        self._runtime.kill(container_id, signal)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)


class RestartedRuntime:
    """A runtime with a user who starts each container again as soon as it is dead."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def wait(self, container_id: str, seconds: float) -> bool:
        if not self._runtime.wait(container_id, seconds):
            return False
        self._runtime.start(container_id)
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._runtime, name)


def test_a_container_that_was_started_again_is_not_dead(world: World) -> None:
    up = started(world, *OBEDIENT)
    runtime: Any = RestartedRuntime(world.runtime)
    refused = replace(world, runtime=runtime).run(stop_container(up.id, grace=3600, deadline=now() + HOUR))
    assert isinstance(refused, signals.StopRefused)
    assert f"container {up.id} is running again" in refused.message
    assert world.run(stop_container(up.id, grace=0, deadline=now())).exit_code == 137


def handles_term(running: ContainerState) -> bool:
    """Whether the container's process is already running its program, and the program handles SIGTERM."""
    proc = Path(f"/proc/{running.pid}")
    status = dict(line.split(":", 1) for line in (proc / "status").read_text().splitlines())
    begun = (proc / "cmdline").read_text().split("\0")[:-1] == list(running.command)
    return begun and bool(int(status["SigCgt"], 16) >> (signal.SIGTERM - 1) & 1)


def wait_for_handler(runtime: Runtime, container_id: str) -> None:
    """Wait until the container's program handles SIGTERM. Until then, the kernel discards the signal, because the
    program is the first process of its pid namespace, and the container would end only after the grace period.
    """
    running = runtime.inspect(container_id)
    wait_until(lambda: running is not None and handles_term(running), "the handler of the container's process")


def test_a_sandbox_stops(world: World) -> None:
    sandbox = world.sandbox(pod(container(*OBEDIENT)))
    wait_for_handler(world.runtime, sandbox.id)
    at: dict[str, Any] = {"pod": POD, "uid": UID, "attempt": 0, "id": sandbox.id}
    stop = wanted.StopSandbox(subject="sandbox", intent="stop/0", grace_period_seconds=3600, **at)
    answer = world.run(stop)
    assert isinstance(answer, signals.SandboxDown)
    assert (answer.id, answer.exit_code, answer.finished_at > sandbox.started_at) == (sandbox.id, 0, True)
    assert world.run(stop) == answer


@pytest.mark.parametrize(("processes", "asked"), [(HostProcesses(), []), (NoProcesses(), ["TERM"])])
def test_a_sandbox_gets_its_signal_from_the_kernel_where_its_process_is_seen(
    world: World, processes: Processes, asked: list[str]
) -> None:
    runtime = SignalledRuntime(world.runtime)
    seeing = replace(world, runtime=runtime, processes=processes)
    sandbox = seeing.sandbox(pod(container(*OBEDIENT)))
    wait_for_handler(world.runtime, sandbox.id)
    at: dict[str, Any] = {"pod": POD, "uid": UID, "attempt": 0, "id": sandbox.id}
    stop = wanted.StopSandbox(subject="sandbox", intent="stop/0", grace_period_seconds=3600, **at)
    context = Context()
    answer = seeing.run(stop, context)
    assert (answer.id, answer.exit_code) == (sandbox.id, 0)
    assert runtime.signals == asked
    assert context.points.count("before docker.kill") == 1


def test_a_stop_interrupted_by_a_crash_of_the_engine_is_repeatable(world: World, docker_engine: PrivateDocker) -> None:
    up = started(world, *OBEDIENT)
    context = Context(at={"before docker.kill": docker_engine.kill9})
    try:
        refused = world.run(stop_container(up.id, grace=3600, deadline=now() + HOUR), context)
    finally:
        docker_engine.start()
    assert isinstance(refused, signals.StopRefused)
    assert "cannot connect" in refused.message
    answer = world.run(stop_container(up.id, grace=3600, deadline=now() + HOUR))
    assert (answer.id, answer.exit_code) == (up.id, 4)
