"""The time from a container's death to its line in `events -w`, on a Docker Engine.

Input: options. Output: the median. The container's process is killed with SIGKILL; the line reports the back-off of the
restart. The engine's share, from the kill to Docker's event, is reported next to it.
"""

from __future__ import annotations

import os
import queue
import signal
import statistics
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.bench.figures import Figure
from tests.e2e.node import Node, pod, running_node, shell
from tests.support.docker.engine import private_docker
from tests.support.redis.server import private_redis

GOAL_MILLISECONDS = 50.0


def figures(quick: bool) -> list[Figure]:
    """Let each container of a pod die once and restart immediately, and measure its second death."""
    names = [f"c{number}" for number in range(4 if quick else 15)]
    with (
        private_docker() as engine,
        private_redis() as server,
        running_node(engine, server.url, "bench", server.folder / "agent") as node,
    ):
        _crash_once(node, names)
        with _lines(node) as lines, _notices(node) as notices:
            found = [_measured(node, name, lines, notices) for name in names]
    whole = [line for line, _ in found]
    return [
        Figure(
            name="a container's death to the line in `events -w`, median",
            ours=statistics.median(whole),
            unit="ms",
            goal=GOAL_MILLISECONDS,
            note=f"at most {max(whole):.0f} ms; to Docker's own notice of it, median:"
            f" {statistics.median(notice for _, notice in found):.0f} ms",
        )
    ]


def _crash_once(node: Node, names: list[str]) -> None:
    script = "trap 'exit 0' TERM; sleep 1000000 & wait"
    containers = [shell(name, script) for name in names]
    node.write("many.yaml", pod("many", *containers, terminationGracePeriodSeconds=1))
    node.journal.wait_for("all to run", lambda: len(node.restarts("many")) == len(names) and node.all_run("many"), 60)
    for name in names:
        node.kill_process("many", name)
    done = [1] * len(names)
    node.journal.wait_for("all to run again", lambda: node.restarts("many") == done and node.all_run("many"), 60)


def _measured(
    node: Node, name: str, lines: queue.Queue[tuple[float, str]], notices: queue.Queue[float]
) -> tuple[float, float]:
    """Kill the container's process; return the milliseconds until its line in `events -w` and until Docker's event."""
    process = node.running("many")[name]["State"]["Pid"]
    time.sleep(0.3)  # the previous container has been handled by then
    while not notices.empty():
        notices.get()
    killed = time.monotonic()
    os.kill(process, signal.SIGKILL)
    while True:
        at, text = lines.get(timeout=10)
        if f"container {name} in pod" in text:
            return (at - killed) * 1000, (notices.get(timeout=10) - killed) * 1000


@contextmanager
def _lines(node: Node) -> Iterator[queue.Queue[tuple[float, str]]]:
    """Yield a queue with the lines of `events -w`, each with the time at which it was read."""
    found: queue.Queue[tuple[float, str]] = queue.Queue()
    with node.running_command("events", "-w", "--types", "Warning") as process:
        threading.Thread(target=_read, args=(process, found), daemon=True).start()
        # The command waits for new events once it has shown the known ones: record an event that it cannot miss.
        node.write("bad.yaml", pod("bad", {"name": "app", "image": "none:1", "imagePullPolicy": "Never"}))
        while "ErrImageNeverPull" not in found.get(timeout=20)[1]:
            pass
        yield found


def _read(process: subprocess.Popen[bytes], found: queue.Queue[tuple[float, str]]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        found.put((time.monotonic(), line.decode()))


@contextmanager
def _notices(node: Node) -> Iterator[queue.Queue[float]]:
    """Yield a queue with the times at which Docker's `die` events arrive."""
    found: queue.Queue[float] = queue.Queue()
    stream = node.docker.events(filters={"event": "die"}, decode=True)

    def read() -> None:
        for _ in stream:
            found.put(time.monotonic())

    threading.Thread(target=read, daemon=True).start()
    try:
        yield found
    finally:
        stream.close()
