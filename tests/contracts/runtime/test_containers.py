"""The contract of the runtime: containers, sandboxes and images."""

import threading

import pytest

from chronolet.ports.runtime.runtime import (
    PortMapping,
    Refusal,
    Runtime,
    SandboxSpec,
)
from tests.contracts.runtime.harness import EXIT_3, IGNORES_TERM, MISSING, NODE, STOPS_ON_TERM, Harness, new_name
from tests.support.docker.images import BUSYBOX, PAUSE
from tests.support.scratch import HANG_SECONDS


def test_a_container_is_created_runs_and_exits(harness: Harness) -> None:
    sandbox = harness.sandbox()
    container = harness.container(sandbox, STOPS_ON_TERM)
    created = harness.detail(container)
    assert (created.state, created.started_at, created.finished_at) == ("created", 0, 0)
    harness.runtime.start(container)
    running = harness.detail(container)
    assert (running.state, running.finished_at, running.pid > 0) == ("running", 0, True)
    assert running.started_at >= running.created_at > 0
    harness.ready(container)
    harness.runtime.kill(container, running.stop_signal)
    assert harness.runtime.wait(container, HANG_SECONDS)
    dead = harness.detail(container)
    assert (dead.state, dead.exit_code, dead.oom_killed, dead.pid) == ("exited", 4, False, 0)
    assert dead.finished_at >= dead.started_at == running.started_at
    assert dead.labels == {**NODE, "role": "app"}
    assert dead.image == BUSYBOX.reference


def test_a_running_sandbox_has_an_address(harness: Harness) -> None:
    assert harness.detail(harness.sandbox()).ip.count(".") == 3


def test_names_are_unique_and_identify_containers(harness: Harness) -> None:
    sandbox = harness.sandbox()
    first = harness.container(sandbox, STOPS_ON_TERM, name="contract-twice")
    with pytest.raises(Refusal, match="contract-twice") as refusal:
        harness.container(sandbox, STOPS_ON_TERM, name="contract-twice")
    assert refusal.value.kind == "conflict"
    assert harness.detail("contract-twice").id == first


def test_a_missing_image_is_not_found(harness: Harness) -> None:
    spec = SandboxSpec(name=new_name(), labels=NODE, image="chronolet/absent:1", hostname="web")
    with pytest.raises(Refusal, match="chronolet/absent:1") as refusal:
        harness.runtime.create_sandbox(spec)
    assert refusal.value.kind == "not_found"
    assert harness.runtime.image("chronolet/absent:1") is None


def test_a_present_image_has_an_id(harness: Harness) -> None:
    found = harness.runtime.image(BUSYBOX.reference)
    assert found is not None
    assert found.id.startswith("sha256:")
    assert found.size_bytes > 0


def test_a_failed_pull_is_a_refusal(harness: Harness) -> None:
    with pytest.raises(Refusal) as refusal:
        harness.runtime.pull("127.0.0.1:1/absent:1", lambda _: None)
    assert "\n" not in str(refusal.value)


def test_a_missing_command_fails_the_start_and_leaves_the_container_created(harness: Harness) -> None:
    container = harness.container(harness.sandbox(), MISSING)
    with pytest.raises(Refusal, match="no such file or directory") as refusal:
        harness.runtime.start(container)
    assert refusal.value.kind == "failed"
    left = harness.detail(container)
    assert (left.state, left.exit_code, left.started_at) == ("created", 127, 0)
    assert "no such file or directory" in left.error


def test_a_container_cannot_join_a_sandbox_that_does_not_run(harness: Harness) -> None:
    container = harness.container(harness.sandbox(start=False), STOPS_ON_TERM)
    with pytest.raises(Refusal, match="non running container"):
        harness.runtime.start(container)


def test_a_host_port_can_be_bound_once(harness: Harness) -> None:
    harness.sandbox(PortMapping(host_port=8085, container_port=80))
    second = harness.sandbox(PortMapping(host_port=8085, container_port=80), start=False)
    with pytest.raises(Refusal, match="port is already allocated") as refusal:
        harness.runtime.start(second)
    assert refusal.value.kind == "failed"


def test_starting_a_running_container_changes_nothing(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), STOPS_ON_TERM)
    before = harness.detail(container)
    harness.runtime.start(container)
    assert harness.detail(container) == before


def test_a_container_that_ignores_term_runs_until_killed(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), IGNORES_TERM)
    harness.ready(container)
    harness.runtime.kill(container, "TERM")
    assert not harness.runtime.wait(container, 0.3)
    harness.runtime.kill(container)
    assert harness.runtime.wait(container, HANG_SECONDS)
    assert harness.detail(container).exit_code == 137


def test_kill_sends_the_given_signal(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), STOPS_ON_TERM)
    harness.ready(container)
    harness.runtime.kill(container, "TERM")
    assert harness.dead(container).exit_code == 4


def test_wait_kill_and_remove_accept_dead_and_absent_containers(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), EXIT_3)
    assert harness.dead(container).exit_code == 3
    for name in (container, "0" * 64):
        assert harness.runtime.wait(name, HANG_SECONDS)
        harness.runtime.kill(name)
        harness.runtime.remove(name)
        assert harness.runtime.inspect(name) is None


def test_a_running_container_can_be_removed(harness: Harness) -> None:
    container = harness.run(harness.sandbox(), IGNORES_TERM)
    harness.runtime.remove(container)
    assert harness.runtime.inspect(container) is None


def test_remove_dead_refuses_running_containers(harness: Harness) -> None:
    sandbox = harness.sandbox()
    running, dead, fresh = (
        harness.run(sandbox, IGNORES_TERM),
        harness.run(sandbox, EXIT_3),
        harness.container(sandbox, IGNORES_TERM),
    )
    harness.dead(dead)
    with pytest.raises(Refusal) as caught:
        harness.runtime.remove_dead(running)
    assert caught.value.kind == "conflict"
    assert harness.detail(running).state == "running"
    for container in (dead, fresh, "0" * 64):
        harness.runtime.remove_dead(container)
        assert harness.runtime.inspect(container) is None


def test_a_frozen_container_is_not_listed_as_running_and_not_removed_as_dead(harness: Harness) -> None:
    frozen = harness.run(harness.sandbox(), IGNORES_TERM)
    harness.freeze(frozen)
    assert next(one.state for one in harness.runtime.list(NODE) if one.id == frozen) == "unknown"
    found = harness.detail(frozen)
    assert (found.state, found.pid > 0) == ("unknown", True)
    with pytest.raises(Refusal) as caught:
        harness.runtime.remove_dead(frozen)
    assert caught.value.kind == "conflict"
    assert harness.detail(frozen).pid == found.pid


def test_a_container_names_the_sandbox_whose_network_it_shares(harness: Harness) -> None:
    sandbox = harness.sandbox()
    container = harness.container(sandbox, IGNORES_TERM)
    listed = {one.id: one.sandbox_id for one in harness.runtime.list(NODE)}
    assert listed == {sandbox: "", container: sandbox}
    assert harness.detail(container).sandbox_id == sandbox


def refusals_of_removers(runtime: Runtime, container: str, count: int) -> list[Refusal]:
    """Remove a container from `count` threads at the same time; return the refusals."""
    together = threading.Barrier(count)
    refusals: list[Refusal] = []

    def remove() -> None:
        together.wait(HANG_SECONDS)
        try:
            runtime.remove(container)
        except Refusal as refusal:
            refusals.append(refusal)

    removers = [threading.Thread(target=remove) for _ in range(count)]
    for one in removers:
        one.start()
    for one in removers:
        one.join(HANG_SECONDS)
    return refusals


def test_concurrent_removals_all_succeed(harness: Harness) -> None:
    sandbox = harness.sandbox()
    for _ in range(3):
        container = harness.run(sandbox, IGNORES_TERM)
        assert refusals_of_removers(harness.runtime, container, 4) == []
        assert harness.runtime.inspect(container) is None


def test_a_listing_shows_which_sandbox_uses_the_host_network(harness: Harness) -> None:
    spec = SandboxSpec(name=new_name(), labels=NODE, image=PAUSE.reference, hostname="", host_network=True)
    on_host, own = harness.runtime.create_sandbox(spec), harness.sandbox(start=False)
    joining = harness.container(own, STOPS_ON_TERM)
    listed = {one.id: one.host_network for one in harness.runtime.list(NODE)}
    assert [listed[one] for one in (on_host, own, joining)] == [True, False, False]
    assert harness.detail(on_host).host_network


def test_a_listing_includes_dead_containers_and_is_filtered_by_labels(harness: Harness) -> None:
    sandbox = harness.sandbox()
    dead = harness.run(sandbox, EXIT_3)
    harness.dead(dead)
    fresh = harness.container(sandbox, STOPS_ON_TERM)
    everything = {one.id: one for one in harness.runtime.list(NODE)}
    assert {key: one.state for key, one in everything.items()} == {
        sandbox: "running",
        dead: "exited",
        fresh: "created",
    }
    assert not any(one.detailed for one in everything.values())
    assert everything[dead].labels == {**NODE, "role": "app"}
    assert everything[dead].name == harness.detail(dead).name
    assert {one.id for one in harness.runtime.list({"role": "app"})} == {dead, fresh}
    assert harness.runtime.list({"role": "other"}) == []
