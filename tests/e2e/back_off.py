"""Containers that crash and wait in back-off.

Input: a node, a running container. Output: the scheduled restart, checked against the back-off rule; and a back-off
that lasts while a test inspects it, however slow the machine is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from chronolet_schemas import pod
from tests.e2e.node import Node
from tests.support.machine.frozen import stopped

FIRST_SECONDS = 10


def crash(node: Node, name: str, container: str) -> pod.RestartScheduled:
    """Kill a container's process and return the restart that follows. If the agent notices the death only after the
    back-off would have ended, it restarts the container immediately and still increases the next back-off.
    """
    state = node.journal.pods[f"default/{name}"]
    one = state.container(container)
    assert one is not None
    wait = one.back_off.seconds if one.back_off else 0
    node.kill_process(name, container)
    run: dict[str, Any] = {"uid": state.uid, "container": container, "attempt": one.attempt}
    scheduled = node.journal.wait_for_event(pod.RestartScheduled, **run)
    (exited,) = node.journal.events(pod.ContainerExited, **run)
    due = exited.finished_at + wait * 1000
    written = next(line.entry.position.milliseconds for line in node.journal.lines if line.event is scheduled)
    assert scheduled.at >= due
    assert scheduled.back_off_seconds == wait or (scheduled.back_off_seconds == 0 and written >= due), scheduled
    assert scheduled.next_back_off_seconds == (2 * wait or FIRST_SECONDS)
    return scheduled


@contextmanager
def in_back_off(
    node: Node, name: str, container: str, ready: Callable[[], None] = lambda: None
) -> Iterator[pod.RestartScheduled]:
    """Crash a container that has crashed before, once `ready` returns, and pause the agent during the block, while the
    container is in back-off. If the back-off ends before the agent is paused, crash the container again with a longer
    one.
    """
    while True:
        ready()
        scheduled = crash(node, name, container)
        with stopped([node.pid]):
            node.journal.read()
            node.journal.read(50)  # read entries that were in flight
            if "CrashLoopBackOff" in node.container_states(name):
                yield scheduled
                return
        again = scheduled.attempt + 1
        node.journal.wait_for_event(pod.ContainerStarted, uid=scheduled.uid, container=container, attempt=again)
