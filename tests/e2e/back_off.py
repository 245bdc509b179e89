"""Containers whose processes are killed, and which are held back then.

Input: a node, a container that runs. Output: the restart that was scheduled, checked against the rule; and a
back-off that does not end while a test looks at it, however slow the machine is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from chronolet_schemas import pod
from tests.e2e.node import Node
from tests.support.frozen import stopped

FIRST_SECONDS = 10


def crash(node: Node, name: str, container: str) -> pod.RestartScheduled:
    """Kill its process; the restart that follows. An agent that comes to it after the wait is over holds nothing back,
    and counts on all the same.
    """
    state = node.journal.pods[f"default/{name}"]
    one = state.container(container)
    assert one is not None
    wait = one.back_off.seconds if one.back_off else 0
    node.kill_process(name, container)
    who: dict[str, Any] = {"uid": state.uid, "container": container, "attempt": one.attempt}
    scheduled = node.journal.wait_for_event(pod.RestartScheduled, **who)
    (exited,) = node.journal.events(pod.ContainerExited, **who)
    due = exited.finished_at + wait * 1000
    written = next(line.entry.position.milliseconds for line in node.journal.lines if line.event is scheduled)
    assert scheduled.at >= due
    assert scheduled.back_off_seconds == wait or (scheduled.back_off_seconds == 0 and written >= due), scheduled
    assert scheduled.next_back_off_seconds == (2 * wait or FIRST_SECONDS)
    return scheduled


@contextmanager
def held_back(
    node: Node, name: str, container: str, ready: Callable[[], None] = lambda: None
) -> Iterator[pod.RestartScheduled]:
    """A container that has crashed already crashes once it is `ready`, and the agent stands still while it waits for
    its restart. Where the wait was over before the agent stood still, the next one is longer.
    """
    while True:
        ready()
        scheduled = crash(node, name, container)
        with stopped([node.pid]):
            node.journal.read()
            node.journal.read(50)  # what was on its way
            if "CrashLoopBackOff" in node.words(name):
                yield scheduled
                return
        again = scheduled.attempt + 1
        node.journal.wait_for_event(pod.ContainerStarted, uid=scheduled.uid, container=container, attempt=again)
