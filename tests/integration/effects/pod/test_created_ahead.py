"""Containers that are created on a real engine before their sandbox is running, and their starts."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec.structs import replace

from chronolet.pod import signals, wanted
from chronolet.ports.runtime.runtime import Runtime
from chronolet_schemas.podspec import ContainerPort, Pod
from tests.integration.effects.support import (
    OBEDIENT,
    POD,
    UID,
    Context,
    World,
    container,
    pod,
    start_container,
    start_sandbox,
)
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.images import BUSYBOX
from tests.support.scratch import HANG_SECONDS

MANIFEST = pod(container(*OBEDIENT))


def create(manifest: Pod, sandbox_id: str) -> wanted.CreateContainer:
    start = start_container(manifest, sandbox_id)
    shared = {name: getattr(start, name) for name in wanted.ContainerEffect.__struct_fields__}
    return wanted.CreateContainer(**{**shared, "intent": f"create/{sandbox_id}"})


def discard() -> wanted.DiscardContainer:
    return wanted.DiscardContainer(subject="create/app", intent="discard", pod=POD, uid=UID, container="app", attempt=0)


def start(manifest: Pod, sandbox: Any, made: signals.ContainerMade) -> wanted.StartContainer:
    return replace(start_container(manifest, sandbox.id, sandbox_ip=sandbox.ip), made_id=made.id)


def while_it_starts(world: World, manifest: Pod, act: Callable[[str], None]) -> Any:
    """Start the sandbox, calling `act` with its id after it is created and before it is started; return the result."""
    context = Context()

    def made() -> None:
        ((signal, _),) = context.sent
        assert isinstance(signal, signals.SandboxMade)
        act(signal.id)

    context.at["before docker.start"] = made
    return world.run(start_sandbox(manifest), context)


def created_ahead(world: World, manifest: Pod = MANIFEST) -> tuple[Any, signals.ContainerMade]:
    """Return a running sandbox, and the container that was created before the sandbox was started."""
    found: list[signals.ContainerMade] = []

    def act(sandbox_id: str) -> None:
        answer = world.run(create(manifest, sandbox_id), Context(cause="5-5"))
        assert isinstance(answer, signals.ContainerMade), answer
        found.append(answer)

    up = while_it_starts(world, manifest, act)
    assert isinstance(up, signals.SandboxUp), up
    return up, found[0]


def test_a_container_created_before_its_sandbox_runs_is_started(world: World, docker_engine: PrivateDocker) -> None:
    sandbox, made = created_ahead(world)
    hosts = Path(docker_engine.api().inspect_container(made.id)["HostConfig"]["Binds"][-1].partition(":")[0])
    assert not hosts.exists(), "the pod has no address yet"
    context = Context()
    up = world.run(start(MANIFEST, sandbox, made), context)
    assert isinstance(up, signals.ContainerUp), up
    assert up.id == made.id
    assert "after docker.create" not in context.points
    assert f"{sandbox.ip}\tweb" in hosts.read_text()
    raw = docker_engine.api().inspect_container(up.id)
    assert raw["HostConfig"]["NetworkMode"] == f"container:{sandbox.id}"


def test_a_creation_with_an_image_name_refuses_another_image(world: World) -> None:
    sandbox = world.sandbox(MANIFEST)
    there = world.runtime.image(BUSYBOX.reference)
    assert there is not None
    effect = replace(create(MANIFEST, sandbox.id), image=BUSYBOX.reference, image_id=there.id)
    for other in (replace(effect, image_id=f"sha256:{'0' * 64}"), replace(effect, image="chronolet/none:1")):
        answer = world.run(other)
        assert isinstance(answer, signals.ContainerRefused), answer
        assert other.image in answer.message
        assert {one.id for one in world.ours()} == {sandbox.id}
    made = world.run(effect)
    assert isinstance(made, signals.ContainerMade), made


def test_a_creation_killed_at_any_point_creates_one_container(world: World) -> None:
    sandbox = world.sandbox(MANIFEST)

    def make() -> wanted.CreateContainer:
        for one in world.ours():
            if one.id != sandbox.id:
                world.runtime.remove(one.id)
        return create(MANIFEST, sandbox.id)

    def check(answer: Any) -> None:
        assert isinstance(answer, signals.ContainerMade), answer
        assert {one.id for one in world.ours()} == {answer.id, sandbox.id}

    assert world.run_through_every_death(make, check) >= 4


def test_a_start_killed_at_any_point_starts_one_container(world: World) -> None:
    sandbox = world.sandbox(MANIFEST)

    def make() -> wanted.StartContainer:
        for one in world.ours():
            if one.id != sandbox.id:
                world.runtime.remove(one.id)
        made = world.run(create(MANIFEST, sandbox.id))
        return start(MANIFEST, sandbox, made)

    def check(answer: Any) -> None:
        assert isinstance(answer, signals.ContainerUp), answer
        assert {one.id for one in world.ours()} == {answer.id, sandbox.id}

    assert world.run_through_every_death(make, check) >= 4


def test_another_definition_replaces_the_created_container(world: World, docker_engine: PrivateDocker) -> None:
    sandbox, made = created_ahead(world)
    changed = pod(container(*OBEDIENT, working_dir="/tmp"))
    up = world.run(start(changed, sandbox, made))
    assert isinstance(up, signals.ContainerUp), up
    assert up.id != made.id
    assert docker_engine.api().inspect_container(up.id)["Config"]["WorkingDir"] == "/tmp"
    assert {one.id for one in world.ours()} == {up.id, sandbox.id}


def test_a_created_container_that_was_removed_is_created_by_the_start(world: World) -> None:
    sandbox, made = created_ahead(world)
    world.runtime.remove(made.id)
    up = world.run(start(MANIFEST, sandbox, made))
    assert isinstance(up, signals.ContainerUp), up
    assert {one.id for one in world.ours()} == {up.id, sandbox.id}


def test_a_sandbox_that_cannot_be_started_leaves_nothing(world: World, docker_engine: PrivateDocker) -> None:
    with docker_engine.namespace.call(lambda: socket.create_server(("0.0.0.0", 8099))):
        manifest = pod(container(*OBEDIENT, ports=(ContainerPort(container_port=80, host_port=8099),)))

        def act(sandbox_id: str) -> None:
            assert isinstance(world.run(create(manifest, sandbox_id)), signals.ContainerMade)

        answer = while_it_starts(world, manifest, act)
    assert isinstance(answer, signals.SandboxRefused), answer
    world.run(discard())
    assert world.ours() == []


def test_a_removal_killed_at_any_point_leaves_nothing_and_stops_nothing(world: World) -> None:
    sandbox = world.sandbox(MANIFEST)

    def make() -> wanted.DiscardContainer:
        assert isinstance(world.run(create(MANIFEST, sandbox.id)), signals.ContainerMade)
        return discard()

    def check(answer: Any) -> None:
        assert isinstance(answer, signals.ContainerRefused), answer
        assert {one.id for one in world.ours()} == {sandbox.id}

    assert world.run_through_every_death(make, check) >= 3
    up = world.run(start_container(MANIFEST, sandbox.id))
    world.run(discard())
    assert {one.id for one in world.ours()} == {up.id, sandbox.id}


def another_process(world: World) -> World:
    """Return another process's world, which does not know what the first process created."""
    return World(world.runtime, world.root)


def test_another_process_starts_the_created_container(world: World) -> None:
    sandbox, made = created_ahead(world)
    up = another_process(world).run(start(MANIFEST, sandbox, made))
    assert isinstance(up, signals.ContainerUp), up
    assert up.id == made.id


def test_a_repeated_creation_with_another_definition_replaces_the_first(world: World) -> None:
    """The agent was killed before it reported the creation, and then the spec was changed."""
    sandbox, made = created_ahead(world)
    changed = pod(container(*OBEDIENT, working_dir="/tmp"))
    again = another_process(world).run(create(changed, sandbox.id))
    assert isinstance(again, signals.ContainerMade), again
    assert again.id != made.id
    assert {one.id for one in world.ours()} == {again.id, sandbox.id}


def test_the_start_removes_a_container_whose_sandbox_died(world: World) -> None:
    sandbox, made = created_ahead(world)
    world.runtime.kill(sandbox.id, "KILL")
    assert world.runtime.wait(sandbox.id, HANG_SECONDS)
    answer = world.run(start(MANIFEST, sandbox, made))
    assert isinstance(answer, signals.ContainerRefused), answer
    assert answer.reason == "CreateContainerError", "the same attempt is created again in the next sandbox"
    assert {one.id for one in world.ours()} == {sandbox.id}


@pytest.mark.parametrize("by_another_process", [False, True])
def test_a_crash_of_the_engine_between_creation_and_start(
    world: World, docker_engine: PrivateDocker, *, by_another_process: bool
) -> None:
    sandbox, made = created_ahead(world)
    docker_engine.kill9()
    docker_engine.start()
    up = (another_process(world) if by_another_process else world).run(start(MANIFEST, sandbox, made))
    assert isinstance(up, signals.ContainerUp), up
    assert up.id == made.id
    assert {one.id for one in world.ours()} == {up.id, sandbox.id}


def test_a_container_starts_though_the_name_of_its_image_is_gone(world: World, docker_engine: PrivateDocker) -> None:
    api = docker_engine.api()
    api.tag(BUSYBOX.reference, "passing", "1")
    manifest = pod(replace(container(*OBEDIENT), image="passing:1"))
    sandbox, made = created_ahead(world, manifest)
    api.remove_image("passing:1", force=True)
    up = world.run(start(manifest, sandbox, made))
    assert isinstance(up, signals.ContainerUp), up
    assert up.id == made.id


def test_a_running_container_is_not_created_again(world: World) -> None:
    sandbox = world.sandbox(MANIFEST)
    up = world.run(start_container(MANIFEST, sandbox.id))
    answer = world.run(create(MANIFEST, sandbox.id))
    assert isinstance(answer, signals.ContainerRefused), answer
    assert {one.id for one in world.ours()} == {up.id, sandbox.id}


def test_a_container_that_starts_during_its_removal_is_kept(world: World) -> None:
    up, made = created_ahead(world)
    begins = Context(at={"before docker.remove": lambda: world.run(start(MANIFEST, up, made))})
    world.run(discard(), begins)
    assert world.runtime.inspect(made.id).state == "running"


def test_a_lookup_finds_a_container_that_starts_meanwhile_and_removes_one_that_never_ran(world: World) -> None:
    up, made = created_ahead(world)
    find = wanted.FindContainer(subject="container/app", intent="find", pod=POD, uid=UID, container="app", attempt=0)
    begins = Context(at={"before docker.remove": lambda: world.run(start(MANIFEST, up, made))})
    found = world.run(find, begins)
    assert isinstance(found, signals.ContainerUp)
    assert found.id == made.id
    world.runtime.remove(made.id)
    again = world.run(create(MANIFEST, up.id))
    assert isinstance(world.run(find), signals.ContainerRefused)
    assert world.runtime.inspect(again.id) is None


def test_only_successful_creations_count_for_the_pace(tmp_path: Path) -> None:
    measure = World(cast(Runtime, None), tmp_path).jobs[wanted.CreateContainer].measure
    assert measure is not None
    effect = create(MANIFEST, "sandbox")
    ref = {"subject": effect.subject, "intent": effect.intent}
    refused = signals.ContainerRefused(**ref, reason="CreateContainerError", message="no")
    assert measure(effect, signals.ContainerMade(**ref, id="made")) == "creation"
    assert measure(effect, refused) == ""
