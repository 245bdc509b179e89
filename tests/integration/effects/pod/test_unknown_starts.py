"""Starts that worked, on a real engine, and could not be looked at afterwards: the next try finds what runs."""

import sys
from typing import Any

import pytest

from chronolet.pod import signals
from chronolet.ports.runtime.runtime import Refusal
from tests.integration.effects.support import OBEDIENT, Context, World, container, pod, start_container, start_sandbox
from tests.support.scratch import HANG_SECONDS, wait_until


class Looks:
    """The runtime's `inspect`; it refuses the next so many, with what dockerd says of an error of its own."""

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
        """A start after which so many looks are refused."""

        def refuse() -> None:
            self.to_refuse = count

        return Context(at={"after docker.start": refuse})


@pytest.fixture
def world(world: World) -> World:
    """A start gives up soon if the runtime does not answer."""
    return world.with_timing(restart_patience_seconds=0.5)


@pytest.fixture
def looks(world: World, monkeypatch: pytest.MonkeyPatch) -> Looks:
    found = Looks(world)
    monkeypatch.setattr(world.runtime, "inspect", found)
    return found


def ran_blindly(world: World, looks: Looks, *args: str) -> tuple[Any, Any]:
    """A sandbox, and what a start of a container beside it came to."""
    manifest = pod(container(*args))
    sandbox = world.sandbox(manifest)
    refused = world.run(start_container(manifest, sandbox.id), looks.after_start())
    looks.to_refuse = 0
    assert isinstance(refused, signals.ContainerRefused), refused
    # Without an id the attempt at hand is the next one too.
    assert (refused.reason, refused.id) == ("RunContainerError", "")
    return sandbox, manifest


def test_a_running_container_is_found(world: World, looks: Looks) -> None:
    sandbox, manifest = ran_blindly(world, looks, *OBEDIENT)
    answer = world.run(start_container(manifest, sandbox.id), Context(cause="2-2"))
    assert isinstance(answer, signals.ContainerUp), answer
    assert {one.id: one.state for one in world.ours()} == {sandbox.id: "running", answer.id: "running"}


def test_a_container_that_has_ended_meanwhile_is_found(world: World, looks: Looks) -> None:
    sandbox, manifest = ran_blindly(world, looks, "-c", "exit 3")
    wait_until(lambda: {one.state for one in world.ours()} == {"running", "exited"}, "the container's end")
    answer = world.run(start_container(manifest, sandbox.id), Context(cause="2-2"))
    assert isinstance(answer, signals.ContainerDead), answer
    assert answer.exit_code == 3
    assert {one.id for one in world.ours()} == {sandbox.id, answer.id}


def test_a_sandbox_is_found(world: World, looks: Looks) -> None:
    manifest = pod(container(*OBEDIENT))
    refused = world.run(start_sandbox(manifest), looks.after_start())
    looks.to_refuse = 0
    assert isinstance(refused, signals.SandboxRefused), refused
    answer = world.run(start_sandbox(manifest), Context(cause="2-2"))
    assert isinstance(answer, signals.SandboxUp), answer
    assert [(one.id, one.state) for one in world.ours()] == [(answer.id, "running")]


def test_an_inspect_that_fails_briefly_is_retried(world: World, looks: Looks) -> None:
    """Within the patience with an engine that is back soon, the start is told as the success that it is."""
    world = world.with_timing(restart_patience_seconds=HANG_SECONDS)
    manifest = pod(container(*OBEDIENT))
    sandbox = world.sandbox(manifest)
    answer = world.run(start_container(manifest, sandbox.id), looks.after_start(2))
    assert isinstance(answer, signals.ContainerUp), answer
    assert looks.refused == 2
