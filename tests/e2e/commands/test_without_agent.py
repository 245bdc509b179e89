"""Commands while no agent is running: they are queued in Redis and executed by the next agent; the output of containers
is available.
"""

import pytest

from chronolet_schemas import manifests
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod


def test_queued_commands_are_executed_by_the_next_agent(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("leaves", "arrives"):
        node.write_unwatched(
            f"{name}.yaml", a_pod(name, shell("app", "echo here; trap 'exit 0' TERM; sleep 3600 & wait"))
        )
    assert node.chronolet("apply", "-f", f"{node.root}/leaves.yaml").status == 0
    node.wait_until_running("leaves")
    node.wait_for_output("leaves", "app", "here")
    assert node.stop() == 0

    refused = node.chronolet("apply", "-f", f"{node.root}/arrives.yaml")
    assert (refused.status, "nothing was sent; start the agent" in refused.err) == (1, True), refused
    queued = node.chronolet("apply", "-f", f"{node.root}/arrives.yaml", "--wait=false")
    assert queued.out == "pod/arrives queued: no node agent is running; it will be applied when one starts\n", queued
    queued = node.chronolet("delete", "pod", "leaves", "--wait=false")
    assert queued.out == "pod/leaves deletion queued: no node agent is running; it will be deleted when one starts\n", (
        queued
    )
    with monkeypatch.context() as patch:
        patch.setitem(node.environ, "DOCKER_HOST", "unix:///nonexistent")
        assert node.chronolet("logs", "leaves").out == "here\n", "the engine's address comes from the log"
    assert node.all_run("leaves")

    node.start()
    node.wait_until_gone("leaves")
    node.wait_until_running("arrives")
    assert len(node.journal.events(manifests.PodApplied, pod="default/arrives")) == 1
    assert node.chronolet("delete", "pod", "arrives", "--now").out == "pod/arrives deleted\n"
