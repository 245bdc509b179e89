"""Commands of a person against a real node, beyond those that tests/e2e/test_pod_life.py walks through."""

from chronolet_schemas import pod
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod

DEAF = "trap '' TERM; echo deaf; while :; do sleep 3600 & wait $!; done"


def test_a_pod_that_ends_slowly_is_asked_to_end_sooner(node: Node) -> None:
    file = node.aside("slow.yaml", a_pod("slow", shell("app", DEAF), terminationGracePeriodSeconds=600))
    node.chronolet("apply", "-f", file)
    node.wait_until_running("slow")
    first = node.chronolet("delete", "pod", "slow", "--timeout", "1s")
    assert (first.status, first.err) == (1, "error: timed out waiting for the end of pod/slow\n")
    # Within the minute that a command has here, not after a grace of ten.
    assert node.chronolet("delete", "pod", "slow", "--now").out == "pod/slow deleted\n"
    node.wait_until_gone("slow")
    ends = node.journal.events(pod.TerminationRequested, pod="default/slow")
    assert [one.grace_period_seconds for one in ends] == [600, 2]
    assert node.running("slow") == {}
    assert "not found" in node.chronolet("delete", "pod", "slow", "--now").err
