"""Checks of a node whose wall clock is three hours ahead for a while and is then corrected: no healthy container is
restarted, no log entry and no output line is lost or out of order, and dead containers are restarted immediately.

Input: a node whose agent has not been started, and a function that sets its clock. Next: test_clock.py, which steps
only the agent's clock, and tests/setup/clock_checks.py, which steps the clock of a whole machine.
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
RESTARTS_WITHOUT_BACK_OFF = 5
"""The number of restarts without a back-off must stay below this. Two are expected, the first restart and the one after
the step ahead; the rest is tolerance.
"""


def check_steps(node: Node, step: Callable[[int], None], *, period: int, wait_for_loops: bool) -> None:
    """Check a node whose clock is three hours ahead for a while.
    `step(N)` sets the clock N seconds ahead of the right time. `period`: seconds between probes.
    `wait_for_loops`: after the step back, also wait until the crash-looping container restarts, which takes up to 20 s.
    """
    node.write("healthy.yaml", probed("served", period), pod("counts", shell("app", COUNTS)))
    node.write("loops.yaml", pod("loops", shell("app", "exit 3")))
    node.start(0, in_network=True)
    node.wait_until_running(*HEALTHY)
    wait_for_probes(node, "served", more=1)
    node.journal.wait_for_event(pods.ContainerStarted, pod="default/loops", attempt=1)  # from now on with a back-off
    before, agent = node.started_at(*HEALTHY), node.pid

    step(AHEAD_SECONDS)
    _check_work(node, "ahead")
    node.journal.wait_for_event(pods.ContainerStarted, pod="default/loops", attempt=2)
    step(0)
    _check_work(node, "right")
    # The keeper checks the clock periodically: it may have noticed one of the steps, or none.
    assert {abs(round(one / 60_000)) for one in _jumps(node)} <= {AHEAD_SECONDS // 60}
    assert node.pid == agent
    assert node.runs

    # The latest timestamps in the log are three hours ahead of the clock of the agent that starts now.
    node.kill9()
    node.start(0, in_network=True)
    _check_work(node, "anew")
    if wait_for_loops:
        node.journal.wait_for_event(pods.ContainerStarted, pod="default/loops", attempt=3)

    assert node.started_at(*HEALTHY) == before
    assert [node.restarts(name) for name in HEALTHY] == [[0]] * len(HEALTHY)
    assert not node.journal.events(pods.ContainerStopRequested, pod="default/served")
    _check_in_order(node)
    assert node.chronolet("get", "pods").line("served").split()[1:4] == ["1/1", "Running", "0"]
    assert node.runs
    assert "Traceback" not in node.log


def _check_work(node: Node, name: str) -> None:
    """Check that probes continue, a new pod starts, and a killed container is restarted, all without a long delay."""
    wait_for_probes(node, "served")
    node.write(f"{name}.yaml", pod(name))
    node.wait_until_running(name)
    node.kill_process(name, "app")
    node.journal.wait_for_event(pods.ContainerStarted, pod=f"default/{name}", container="app", attempt=1)
    node.wait_until_running(name)


def _jumps(node: Node) -> list[int]:
    """Return the clock jumps that the agent noticed, in milliseconds."""
    return [one.by_milliseconds for one in node.journal.events(kernel.ClockJumped)]


def _check_in_order(node: Node) -> None:
    """Check the order of the log, of the attempts' exits and of the lines of `counts`, that each exit and line occurs
    exactly once, and that few restarts had no back-off.
    """
    positions = [line.entry.position for line in node.journal.lines]
    assert all(one < other for one, other in itertools.pairwise(positions))
    for name in ("loops", "ahead", "right", "anew"):
        ends = node.journal.events(pods.ContainerExited, pod=f"default/{name}")
        assert [one.attempt for one in ends] == list(range(len(ends)))
        assert ends
        assert node.restarts(name) == [ends[-1].attempt + 1] or name == "loops"
    restarts = node.journal.events(pods.RestartScheduled, pod="default/loops")
    assert sum(not one.back_off_seconds for one in restarts) < RESTARTS_WITHOUT_BACK_OFF, [
        one.back_off_seconds for one in restarts
    ]
    shown = node.chronolet("logs", "counts").out.splitlines()
    assert shown == [f"line {number}" for number in range(1, len(shown) + 1)]
    assert len(shown) > 1
