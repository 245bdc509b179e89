"""Attacks on the log itself: it is cut short while the agent is down, and emptied while it is running.

At the end the same pods run in the same containers, the loss is reported, and the agent works.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator

import pytest

from chronolet.adapters.redis_server.server import OwnServer
from chronolet_schemas import kernel, kube_events, manifests
from chronolet_schemas import pod as pods
from tests.attacks.attacked import check_well
from tests.e2e.node import Node, pod
from tests.support import scratch
from tests.support.docker.engine import PrivateDocker

HANG_SECONDS = 60.0


@pytest.fixture
def own_log(docker_engine: PrivateDocker) -> Iterator[Node]:
    """A node that has its own Redis below its state folder; both are stopped after the test."""
    root = scratch.create("own")
    server = OwnServer(root / "agent")
    node = Node(docker_engine, server.url, root.name.removeprefix("chronolet-"), root / "agent")
    del node.environ["CHRONOLET_REDIS"]
    try:
        yield node
    finally:
        node.close()
        server.stop()
        scratch.unmount_below(root)
        shutil.rmtree(root, ignore_errors=True)


def kill_both(node: Node) -> OwnServer:
    """Send SIGKILL to the agent, then to its server."""
    server = OwnServer(node.root)
    pid = server.pid()
    assert pid is not None
    node.kill9()
    os.kill(pid, signal.SIGKILL)
    scratch.wait_until(lambda: server.pid() is None, "the server's end", HANG_SECONDS)
    return server


def errors(node: Node, text: str) -> list[str]:
    return [line for line in node.log.splitlines() if "[error" in line and text in line]


def test_a_log_cut_to_half_and_then_flushed_is_replaced(own_log: Node) -> None:
    node = own_log
    node.write("early.yaml", pod("early"))
    node.start()
    scratch.wait_until((node.root / "redis" / "redis.sock").exists, "the agent's Redis", HANG_SECONDS)
    node.wait_until_running("early")
    assert node.chronolet("apply", "-f", node.write_unwatched("applied.yaml", pod("applied"))).status == 0
    node.write("filed.yaml", pod("filed"))
    node.wait_until_running("applied", "filed")
    node.kill_process("filed", "app")
    node.journal.wait_for_event(pods.ContainerStarted, pod="default/filed", container="app", attempt=1)
    node.wait_until_running("filed")
    all_pods = ("early", "applied", "filed")
    before, end = node.started_at(*all_pods), node.journal.lines[-1].entry.position
    node.journal.wait_for("the end of the log in the state folder", lambda: _recorded_end(node) >= end.n)
    server = kill_both(node)
    (log,) = (server.folder / "appendonlydir").glob("*.incr.aof")
    os.truncate(log, log.stat().st_size // 2)

    node.start()
    node.wait_for_log("the end of the log was lost")
    node.reopen_journal()
    lost = node.journal.wait_for_event(kernel.LogLost)
    assert lost.entries > 0
    assert len(errors(node, "the end of the log was lost")) == 1
    node.journal.wait_for_event(manifests.AdoptionFinished)
    node.wait_until_running(*all_pods)
    node.journal.wait_for_event(kube_events.Recorded, reason="LogLost")
    check_well(node)
    assert node.started_at(*all_pods) == before
    assert node.journal.events(pods.StrayFound) == []
    shown = node.chronolet("get", "pods")
    assert [shown.line(one).split()[1:4] for one in all_pods] == [
        ["1/1", "Running", "0"],
        ["1/1", "Running", "0"],
        ["1/1", "Running", "1"],
    ]

    node.journal.store._queries.call("FLUSHALL")
    node.wait_for_log("the whole log was lost")
    node.reopen_journal()
    whole = node.journal.wait_for_event(kernel.LogLost)
    assert (whole.found, len(errors(node, "the whole log was lost"))) == ("0-0", 1)
    node.journal.wait_for_event(kube_events.Recorded, reason="LogLost")
    node.wait_until_running(*all_pods)
    check_well(node)
    assert node.started_at(*all_pods) == before
    assert node.chronolet("delete", "pod", "applied").status == 0
    node.wait_until_gone("applied")


def _recorded_end(node: Node) -> int:
    """Return the number of the log's last entry, according to the state folder; 0 if it records none."""
    path = node.root / "log-end"
    return int(path.read_text().rstrip().rpartition("-")[2].partition('"')[0]) if path.exists() else 0
