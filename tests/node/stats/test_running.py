"""The running containers, derived from listings and from this process's own starts and removals."""

import time

from chronolet.node.stats.running import Running
from chronolet.ports.runtime.runtime import ContainerSpec, SandboxSpec
from tests.node.stats.nodes import state

BOX, APP = state(0, "POD"), state(0, "app")
BOX_SPEC = SandboxSpec(name=BOX.name, labels=BOX.labels, image=BOX.image, hostname="h", host_network=True)
APP_SPEC = ContainerSpec(name=APP.name, labels=APP.labels, sandbox_id=BOX.id, image=APP.image)


def test_a_started_container_runs_until_it_is_removed() -> None:
    running = Running()
    assert running.age_seconds() == float("inf")
    running.created(BOX.id, BOX_SPEC)
    running.created(APP.id, APP_SPEC)
    assert running.now() == {}
    running.started(BOX.id)
    running.started(APP.id)
    running.started("of another process")
    found = running.now()
    assert found.keys() == {BOX.id, APP.id}
    assert (found[BOX.id].host_network, found[APP.id].host_network) == (True, False)
    assert (found[APP.id].labels, found[APP.id].sandbox_id) == (APP.labels, BOX.id)
    running.removed(APP.id)
    assert running.now().keys() == {BOX.id}


def test_a_listing_replaces_all_but_later_starts() -> None:
    running = Running()
    running.created(BOX.id, BOX_SPEC)
    running.started(BOX.id)
    began = time.monotonic()
    running.created(APP.id, APP_SPEC)
    running.started(APP.id)
    other, dead = state(1, "app"), state(2, "app")
    running.listed([other, type(dead)(id=dead.id, name="n", labels={}, state="exited")], began)
    assert running.now().keys() == {APP.id, other.id}
    running.listed([other], time.monotonic())
    assert running.now().keys() == {other.id}
    assert running.age_seconds() < 60


def test_a_created_container_is_forgotten_when_it_is_removed() -> None:
    running = Running()
    running.created(APP.id, APP_SPEC)
    running.listed([type(APP)(id=APP.id, name="n", labels={}, state="created")], time.monotonic())
    running.started(APP.id)
    assert running.now().keys() == {APP.id}
    running.created(BOX.id, BOX_SPEC)
    running.listed([], time.monotonic())
    running.started(BOX.id)
    assert running.now() == {}
