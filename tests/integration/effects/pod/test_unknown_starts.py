"""Starts that succeeded on a real engine but could not be inspected: the retry finds the container."""

import sys
from typing import Any

import pytest

from chronolet.pod import signals
from chronolet.ports.runtime.runtime import Refusal
from tests.integration.effects.support import OBEDIENT, Context, World, container, pod, start_container, start_sandbox
from tests.support.scratch import HANG_SECONDS, wait_until


class Inspects:
    """The runtime's `inspect`. It refuses the next `to_refuse` calls with dockerd's message for an internal error."""

    def __init__(self, world: World) -> None:
        self._inspect = world.runtime.inspect
        self.refused = 0
        self.to_refuse = 0

    def __call__(self, container_id: str) -> Any:
        if self.to_refuse:
            self.to_refuse -= 1
            self.refused += 1
            raise Refusal("failed", "500 Server Error: stream error")
        return self._inspect(container_id)

    def after_start(self, count: int = sys.maxsize) -> Context:
        """Return a context in which the first `count` inspects after the start are refused."""

        def refuse() -> None:
            self.to_refuse = count

        return Context(at={"after docker.start": refuse})


@pytest.fixture
def world(world: World) -> World:
    """Return a world in which a start soon fails if the runtime does not respond."""
    return world.with_timing(restart_patience_seconds=0.5)


@pytest.fixture
def inspects(world: World, monkeypatch: pytest.MonkeyPatch) -> Inspects:
    found = Inspects(world)
    monkeypatch.setattr(world.runtime, "inspect", found)
    return found


def start_without_inspect(world: World, inspects: Inspects, *args: str) -> tuple[Any, Any]:
    """Start a container without being able to inspect the result; return its sandbox and manifest."""
    manifest = pod(container(*args))
    sandbox = world.sandbox(manifest)
    refused = world.run(start_container(manifest, sandbox.id), inspects.after_start())
    inspects.to_refuse = 0
    assert isinstance(refused, signals.ContainerRefused), refused
    # Because the id is empty, the same attempt will be retried.
    assert (refused.reason, refused.id) == ("RunContainerError", "")
    return sandbox, manifest


def test_a_running_container_is_found(world: World, inspects: Inspects) -> None:
    sandbox, manifest = start_without_inspect(world, inspects, *OBEDIENT)
    answer = world.run(start_container(manifest, sandbox.id), Context(cause="2-2"))
    assert isinstance(answer, signals.ContainerUp), answer
    assert {one.id: one.state for one in world.ours()} == {sandbox.id: "running", answer.id: "running"}


def test_a_container_that_has_ended_meanwhile_is_found(world: World, inspects: Inspects) -> None:
    sandbox, manifest = start_without_inspect(world, inspects, "-c", "exit 3")
    wait_until(lambda: {one.state for one in world.ours()} == {"running", "exited"}, "the container's end")
    answer = world.run(start_container(manifest, sandbox.id), Context(cause="2-2"))
    assert isinstance(answer, signals.ContainerDead), answer
    assert answer.exit_code == 3
    assert {one.id for one in world.ours()} == {sandbox.id, answer.id}


def test_a_sandbox_is_found(world: World, inspects: Inspects) -> None:
    manifest = pod(container(*OBEDIENT))
    refused = world.run(start_sandbox(manifest), inspects.after_start())
    inspects.to_refuse = 0
    assert isinstance(refused, signals.SandboxRefused), refused
    answer = world.run(start_sandbox(manifest), Context(cause="2-2"))
    assert isinstance(answer, signals.SandboxUp), answer
    assert [(one.id, one.state) for one in world.ours()] == [(answer.id, "running")]


def test_an_inspect_that_fails_briefly_is_retried(world: World, inspects: Inspects) -> None:
    """The start succeeds if the engine responds again in time."""
    world = world.with_timing(restart_patience_seconds=HANG_SECONDS)
    manifest = pod(container(*OBEDIENT))
    sandbox = world.sandbox(manifest)
    answer = world.run(start_container(manifest, sandbox.id), inspects.after_start(2))
    assert isinstance(answer, signals.ContainerUp), answer
    assert inspects.refused == 2
