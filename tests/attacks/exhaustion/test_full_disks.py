"""A full disk below the state folder, with the agent's own Redis on it: the agent releases its disk reserve and works
on.

An engine without room is in tests/integration/effects/pod/test_full_disk.py; collecting images when its disk is full,
in tests/e2e/collecting.
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
from tests.support.docker.engine import PrivateDocker, mount_disk
from tests.support.machine.frozen import stopped

MEGABYTES = 320
"""More than twice the agent's disk reserve: with less room it keeps none."""


@pytest.fixture
def node(docker_engine: PrivateDocker) -> Iterator[Node]:
    """A node whose state folder is on a disk of its own, with its own Redis."""
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
    """A file that takes all free space."""
    path = folder / "filling"
    with path.open("wb", buffering=0) as file:
        for size in (1 << 20, 4096):
            with suppress(OSError):
                while file.write(bytes(size)):
                    pass
    return path


def test_a_full_state_folder_loses_nothing(node: Node) -> None:
    """Containers that die while the disk is full are restarted and counted once, also when the reserve is used up."""
    node.write("one.yaml", pod("one"))
    node.write("two.yaml", pod("two"))
    node.start()
    node.wait_until_running("one", "two")
    assert (node.root / "ballast").stat().st_size > 0
    before = node.started_at("two")
    with stopped([node.pid]):  # otherwise it may release its reserve meanwhile, and the file would take that, too
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


def test_an_agent_works_without_room_for_its_own_log(node: Node) -> None:
    """Redis and a container die while the agent's log cannot be written: everything that would log it works, and the
    lease is renewed.

    This log must not be read: reading it would never end.
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
