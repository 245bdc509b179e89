"""A node whose wall clock is three hours ahead for a while, and then right again. Nothing that is healthy is restarted,
no entry of the log and no line of a container is lost or out of order, and what dies is restarted at once.

Input: a node whose agent has not been started, and how its clock is set. Next: test_clock.py for the clock of the
agent alone, and tests/setup/clock_checks.py for that of a whole machine.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from chronolet_schemas import kernel
from chronolet_schemas import pod as pods
from tests.attacks.probed_pods import probed, wait_for_probes
from tests.e2e.node import Node, pod, shell

AHEAD_SECONDS = 3 * 3600
COUNTS = "trap 'exit 0' TERM; n=0; while :; do n=$((n+1)); echo line $n; sleep 0.2; done"
HEALTHY = ("served", "counts")
AT_ONCE = 5
"""Fewer restarts than that come without a back-off: the first one, and the one after the step ahead."""


def check_steps(node: Node, step: Callable[[int], None], *, period: int, wait_for_loops: bool) -> None:
    """`step` sets the clock so many seconds ahead of the right time. `period` is that of probes, in seconds.
    `wait_for_loops`: wait for a container in its crash loop after the step back as well, for up to 20 s.
    """
    node.write("healthy.yaml", probed("served", period), pod("counts", shell("app", COUNTS)))
    node.write("loops.yaml", pod("loops", shell("app", "exit 3")))
    node.start(0, in_network=True)
    node.wait_until_running(*HEALTHY)
    wait_for_probes(node, "served", more=1)
    node.journal.wait_for_event(pods.ContainerStarted, pod="default/loops", attempt=1)  # now it is backed off
    before, agent = node.started_at(*HEALTHY), node.pid

    step(AHEAD_SECONDS)
    _check_goes_on(node, "ahead")
    node.journal.wait_for_event(pods.ContainerStarted, pod="default/loops", attempt=2)
    step(0)
    _check_goes_on(node, "right")
    # The keeper looks now and then: of both steps it may have noticed one or none.
    assert {abs(round(one / 60_000)) for one in _jumps(node)} <= {AHEAD_SECONDS // 60}
    assert node.pid == agent
    assert node.runs

    # The log's last times are three hours ahead of the clock of an agent that is started now.
    node.kill9()
    node.start(0, in_network=True)
    _check_goes_on(node, "anew")
    if wait_for_loops:
        node.journal.wait_for_event(pods.ContainerStarted, pod="default/loops", attempt=3)

    assert node.started_at(*HEALTHY) == before
    assert [node.restarts(name) for name in HEALTHY] == [[0]] * len(HEALTHY)
    assert not node.journal.events(pods.ContainerStopRequested, pod="default/served")
    _check_in_order(node)
    assert node.chronolet("get", "pods").line("served").split()[1:4] == ["1/1", "Running", "0"]
    assert node.runs
    assert "Traceback" not in node.log


def _check_goes_on(node: Node, name: str) -> None:
    """Probes go on, a new pod starts, and when its container is killed that is restarted: each of them soon."""
    wait_for_probes(node, "served")
    node.write(f"{name}.yaml", pod(name))
    node.wait_until_running(name)
    node.kill_process(name, "app")
    node.journal.wait_for_event(pods.ContainerStarted, pod=f"default/{name}", container="app", attempt=1)
    node.wait_until_running(name)


def _jumps(node: Node) -> list[int]:
    """By how many milliseconds the agent noticed its clock to jump."""
    return [one.by_milliseconds for one in node.journal.events(kernel.ClockJumped)]


def _check_in_order(node: Node) -> None:
    """Each attempt ended once, and one after the other; each line of the container that counts is there once."""
    positions = [line.entry.position for line in node.journal.lines]
    assert all(one < other for one, other in itertools.pairwise(positions))
    for name in ("loops", "ahead", "right", "anew"):
        ends = node.journal.events(pods.ContainerExited, pod=f"default/{name}")
        assert [one.attempt for one in ends] == list(range(len(ends)))
        assert ends
        assert node.restarts(name) == [ends[-1].attempt + 1] or name == "loops"
    restarts = node.journal.events(pods.RestartScheduled, pod="default/loops")
    assert sum(not one.back_off_seconds for one in restarts) < AT_ONCE, [one.back_off_seconds for one in restarts]
    shown = node.chronolet("logs", "counts").out.splitlines()
    assert shown == [f"line {number}" for number in range(1, len(shown) + 1)]
    assert len(shown) > 1
