"""A full disk below the state folder, with the agent's own Redis on it: the agent gives up its reserve and goes on.

An engine without room is in tests/integration/effects/test_full_disk.py; collecting images when its disk is full, in
tests/e2e/collecting.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from chronolet.adapters.redis_server.server import OwnServer
from chronolet_schemas import pod as pods
from tests.e2e.node import Node, pod
from tests.support import scratch
from tests.support.docker import PrivateDocker, mount_disk
from tests.support.frozen import stopped

MEGABYTES = 320
"""More than twice the agent's reserve: with less room it keeps none."""


@pytest.fixture
def node(docker_engine: PrivateDocker) -> Iterator[Node]:
    """Its state folder is a disk of its own, and it runs its own Redis there."""
    folder = scratch.create("disk")
    mount_disk(folder / "disk-of-state", MEGABYTES)
    root = folder / "disk-of-state" / "agent"
    node = Node(docker_engine, f"unix://{root}/redis/redis.sock", "full", root)
    del node.environ["CHRONOLET_REDIS"]
    try:
        yield node
    finally:
        node.close()
        OwnServer(root).stop()
        scratch.unmount_below(folder)
        shutil.rmtree(folder, ignore_errors=True)


def fill(folder: Path) -> Path:
    """A file that takes all the room there is."""
    path = folder / "filling"
    with path.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096):
            with suppress(OSError):
                while file.write(bytes(size)):
                    pass
    return path


def test_a_full_state_folder_loses_nothing(node: Node) -> None:
    """Containers that die while it is full, and after the reserve is used up too, are restarted and counted once."""
    node.write("one.yaml", pod("one"))
    node.write("two.yaml", pod("two"))
    node.start()
    node.wait_until_running("one", "two")
    assert (node.root / "ballast").stat().st_size > 0
    before = node.started_at("two")
    with stopped([node.pid]):  # else it may make room in the middle of it, and that would be taken as well
        first = fill(node.root)
    node.wait_for_log("disk reserve released")
    node.kill_process("one", "app")
    node.journal.wait_for("the restart on the reserve", lambda: node.restarts("one") == [1])
    first.unlink()
    node.wait_until_running("one", "two")
    assert len(node.journal.events(pods.ContainerExited, pod="default/one")) == 1
    assert node.started_at("two") == before
    node.kill9()
    node.start()
    node.kill_process("one", "app")
    node.journal.wait_for("the next restart", lambda: node.restarts("one") == [2])
    assert node.started_at("two") == before


def test_an_agent_whose_log_has_no_room_does_its_work(node: Node) -> None:
    """Redis and a container die while no line can be written: all that would report it goes on, the lease is renewed.

    Nothing reads this log: it would never end.
    """
    (node.root / "agent.log").symlink_to("/dev/full")
    node.write("one.yaml", pod("one"))
    node.start()
    node.wait_until_running("one")
    server = OwnServer(node.root).pid()
    assert server is not None
    os.kill(server, signal.SIGKILL)
    node.kill_process("one", "app")
    node.journal.wait_for("the restart", lambda: node.restarts("one") == [1])
    assert len(node.journal.events(pods.ContainerExited, pod="default/one")) == 1
    assert node.stop() == 0
