"""Containers created on a real engine for a sandbox that does not run yet, and what their start makes of them."""

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
    """The sandbox's start, and what is done between its creation and that."""
    context = Context()

    def made() -> None:
        ((signal, _),) = context.sent
        assert isinstance(signal, signals.SandboxMade)
        act(signal.id)

    context.at["before docker.start"] = made
    return world.run(start_sandbox(manifest), context)


def created_ahead(world: World, manifest: Pod = MANIFEST) -> tuple[Any, signals.ContainerMade]:
    """A sandbox that runs, and the container that was created while it did not."""
    found: list[signals.ContainerMade] = []

    def act(sandbox_id: str) -> None:
        answer = world.run(create(manifest, sandbox_id), Context(cause="5-5"))
        assert isinstance(answer, signals.ContainerMade), answer
        found.append(answer)

    up = while_it_starts(world, manifest, act)
    assert isinstance(up, signals.SandboxUp), up
    return up, found[0]


def test_what_was_created_for_a_sandbox_that_did_not_run_yet_is_started(
    world: World, docker_engine: PrivateDocker
) -> None:
    sandbox, made = created_ahead(world)
    hosts = Path(docker_engine.api().inspect_container(made.id)["HostConfig"]["Binds"][-1].partition(":")[0])
    assert not hosts.exists(), "the pod has no address yet to be written there"
    context = Context()
    up = world.run(start(MANIFEST, sandbox, made), context)
    assert isinstance(up, signals.ContainerUp), up
    assert up.id == made.id
    assert "after docker.create" not in context.points
    assert f"{sandbox.ip}\tweb" in hosts.read_text()
    raw = docker_engine.api().inspect_container(up.id)
    assert raw["HostConfig"]["NetworkMode"] == f"container:{sandbox.id}"


def test_a_creation_that_names_an_image_makes_nothing_of_another_one(world: World) -> None:
    sandbox = world.sandbox(MANIFEST)
    there = world.runtime.image(BUSYBOX.reference)
    assert there is not None
    asked = replace(create(MANIFEST, sandbox.id), image=BUSYBOX.reference, image_id=there.id)
    for other in (replace(asked, image_id=f"sha256:{'0' * 64}"), replace(asked, image="chronolet/none:1")):
        answer = world.run(other)
        assert isinstance(answer, signals.ContainerRefused), answer
        assert other.image in answer.message
        assert {one.id for one in world.ours()} == {sandbox.id}
    made = world.run(asked)
    assert isinstance(made, signals.ContainerMade), made


def test_no_death_of_a_creation_makes_two(world: World) -> None:
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


def test_no_death_of_the_start_starts_another(world: World) -> None:
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


def test_another_definition_replaces_what_was_created(world: World, docker_engine: PrivateDocker) -> None:
    sandbox, made = created_ahead(world)
    changed = pod(container(*OBEDIENT, working_dir="/tmp"))
    up = world.run(start(changed, sandbox, made))
    assert isinstance(up, signals.ContainerUp), up
    assert up.id != made.id
    assert docker_engine.api().inspect_container(up.id)["Config"]["WorkingDir"] == "/tmp"
    assert {one.id for one in world.ours()} == {up.id, sandbox.id}


def test_what_was_removed_meanwhile_is_created_by_the_start(world: World) -> None:
    sandbox, made = created_ahead(world)
    world.runtime.remove(made.id)
    up = world.run(start(MANIFEST, sandbox, made))
    assert isinstance(up, signals.ContainerUp), up
    assert {one.id for one in world.ours()} == {up.id, sandbox.id}


def test_nothing_is_left_of_a_sandbox_that_cannot_be_started(world: World, docker_engine: PrivateDocker) -> None:
    with docker_engine.namespace.call(lambda: socket.create_server(("0.0.0.0", 8099))):
        manifest = pod(container(*OBEDIENT, ports=(ContainerPort(container_port=80, host_port=8099),)))

        def act(sandbox_id: str) -> None:
            assert isinstance(world.run(create(manifest, sandbox_id)), signals.ContainerMade)

        answer = while_it_starts(world, manifest, act)
    assert isinstance(answer, signals.SandboxRefused), answer
    world.run(discard())
    assert world.ours() == []


def test_no_death_of_the_removal_leaves_anything_or_takes_what_ran(world: World) -> None:
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
    """It knows nothing of what the other one has created."""
    return World(world.runtime, world.root)


def test_another_process_starts_what_was_created(world: World) -> None:
    sandbox, made = created_ahead(world)
    up = another_process(world).run(start(MANIFEST, sandbox, made))
    assert isinstance(up, signals.ContainerUp), up
    assert up.id == made.id


def test_a_creation_that_another_process_repeats_with_another_definition_replaces_the_first(world: World) -> None:
    """The agent was killed before it said that the container was created, and the spec changed."""
    sandbox, made = created_ahead(world)
    changed = pod(container(*OBEDIENT, working_dir="/tmp"))
    again = another_process(world).run(create(changed, sandbox.id))
    assert isinstance(again, signals.ContainerMade), again
    assert again.id != made.id
    assert {one.id for one in world.ours()} == {again.id, sandbox.id}


def test_what_was_created_for_a_sandbox_that_died_is_removed_by_its_start(world: World) -> None:
    sandbox, made = created_ahead(world)
    world.runtime.kill(sandbox.id, "KILL")
    assert world.runtime.wait(sandbox.id, HANG_SECONDS)
    answer = world.run(start(MANIFEST, sandbox, made))
    assert isinstance(answer, signals.ContainerRefused), answer
    assert answer.reason == "CreateContainerError", "the same attempt is made again in the next sandbox"
    assert {one.id for one in world.ours()} == {sandbox.id}


@pytest.mark.parametrize("anew", [False, True])
def test_an_engine_that_is_killed_between_creation_and_start(
    world: World, docker_engine: PrivateDocker, *, anew: bool
) -> None:
    sandbox, made = created_ahead(world)
    docker_engine.kill9()
    docker_engine.start()
    up = (another_process(world) if anew else world).run(start(MANIFEST, sandbox, made))
    assert isinstance(up, signals.ContainerUp), up
    assert up.id == made.id
    assert {one.id for one in world.ours()} == {up.id, sandbox.id}


def test_the_name_of_an_image_that_is_gone_when_its_container_is_started(
    world: World, docker_engine: PrivateDocker
) -> None:
    api = docker_engine.api()
    api.tag(BUSYBOX.reference, "passing", "1")
    manifest = pod(replace(container(*OBEDIENT), image="passing:1"))
    sandbox, made = created_ahead(world, manifest)
    api.remove_image("passing:1", force=True)
    up = world.run(start(manifest, sandbox, made))
    assert isinstance(up, signals.ContainerUp), up
    assert up.id == made.id


def test_what_runs_already_is_not_created_again(world: World) -> None:
    sandbox = world.sandbox(MANIFEST)
    up = world.run(start_container(MANIFEST, sandbox.id))
    answer = world.run(create(MANIFEST, sandbox.id))
    assert isinstance(answer, signals.ContainerRefused), answer
    assert {one.id for one in world.ours()} == {up.id, sandbox.id}


def test_what_starts_in_the_moment_of_its_removal_is_left_alone(world: World) -> None:
    up, made = created_ahead(world)
    begins = Context(at={"before docker.remove": lambda: world.run(start(MANIFEST, up, made))})
    world.run(discard(), begins)
    assert world.runtime.inspect(made.id).state == "running"


def test_a_search_finds_what_starts_meanwhile_and_removes_what_never_did(world: World) -> None:
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


def test_what_was_created_counts_for_the_pace_of_creations_and_a_refusal_does_not(tmp_path: Path) -> None:
    measure = World(cast(Runtime, None), tmp_path).jobs[wanted.CreateContainer].measure
    assert measure is not None
    effect = create(MANIFEST, "sandbox")
    said = {"subject": effect.subject, "intent": effect.intent}
    refused = signals.ContainerRefused(**said, reason="CreateContainerError", message="no")
    assert measure(effect, signals.ContainerMade(**said, id="made")) == "creation"
    assert measure(effect, refused) == ""
