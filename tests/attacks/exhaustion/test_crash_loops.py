"""Many pods in endless crash loops: every attempt is counted once, and no other pod is affected."""

from __future__ import annotations

from collections import Counter

import pytest

from chronolet_schemas import pod as pods
from tests.e2e.node import Node, pod, shell

EXIT_CODE = 3
AT_A_TIME = 20
HANG = 3600


def check_crash_loops(node: Node, count: int, runs: int) -> None:
    """Start `count` crash-looping pods, kill and restart the agent, wait until each pod has had `runs` attempts, check
    their exits, and remove the pods. Another pod must not be affected.
    """
    node.write("quiet.yaml", pod("quiet"))
    node.start()
    node.wait_until_running("quiet")
    before = node.started_at("quiet")
    names = [f"loop-{number}" for number in range(count)]
    for first in range(0, count, AT_A_TIME):
        node.write(f"loops-{first}.yaml", *(looping(name) for name in names[first : first + AT_A_TIME]))
        wait_for_runs(node, names[: first + AT_A_TIME], 1)
    node.kill9()
    node.start()
    wait_for_runs(node, names, runs)
    check_counts(node, names)
    for first in range(0, count, AT_A_TIME):
        (node.folder / f"loops-{first}.yaml").unlink()
    for name in names:
        node.wait_until_gone(name)
    assert node.started_at("quiet") == before
    assert node.restarts("quiet") == [0]
    assert node.chronolet("get", "pods").out.splitlines()[1:][0].startswith("quiet")


def looping(name: str) -> dict[str, object]:
    return pod(name, shell("app", f"exit {EXIT_CODE}"))


def ends(node: Node) -> Counter[str]:
    """Return the number of recorded container exits for each pod."""
    return Counter(one.pod.removeprefix("default/") for one in node.journal.events(pods.ContainerExited))


def wait_for_runs(node: Node, names: list[str], runs: int) -> None:
    def reached() -> bool:
        found = ends(node)
        return all(found[name] >= runs for name in names)

    node.journal.wait_for(f"{runs} runs of each pod", reached, HANG)


def check_counts(node: Node, names: list[str]) -> None:
    """Check that each attempt has exactly one recorded exit, in order and with the container's exit code."""
    for name in names:
        found = node.journal.events(pods.ContainerExited, pod=f"default/{name}")
        assert [one.attempt for one in found] == list(range(len(found)))
        assert {one.exit_code for one in found} == {EXIT_CODE}
        assert len({one.id for one in found}) == len(found)


def test_pods_in_a_crash_loop(own_node: Node) -> None:
    check_crash_loops(own_node, count=8, runs=3)


@pytest.mark.long
@pytest.mark.timeout(2 * HANG)
def test_two_hundred_pods_in_a_crash_loop(own_node: Node) -> None:
    check_crash_loops(own_node, count=200, runs=5)
