"""`--at` on a real node: what it prints about a past moment is what was printed then, whatever happened later."""

import json
from typing import Any

from chronolet_schemas import pod
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod

READINGS = (
    ("get", "pods", "-A", "-o", "json"),
    ("get", "pods,containers,images,devices", "-o", "json"),
    ("get", "events", "--all", "-o", "json"),
)
"""Commands whose output has no ages, and all the facts."""


def dump(node: Node) -> tuple[str, list[Any]]:
    """Return the position of the log's last entry, and what the commands print, while the agent is paused."""
    with node.paused_when("any moment", lambda: True):
        texts = [node.chronolet(*words) for words in READINGS]
        assert all(one.status == 0 for one in texts), texts
        found = [json.loads(one.out) for one in texts]
        positions = {one["metadata"]["resourceVersion"] for one in found}
    assert len(positions) == 1, "the log grew although the agent was paused"
    return positions.pop(), found


def test_the_past_is_shown_as_it_was_shown_then(node: Node) -> None:
    dumps = [dump(node)]
    web = node.write("web.yaml", a_pod("web", shell("app", "trap 'exit 0' TERM; sleep 3600 & wait")))
    node.journal.wait_for_event(pod.SandboxStartRequested, pod="default/web")
    dumps.append(dump(node))
    loop = node.write("loop.yaml", a_pod("loop", shell("app", "exit 3")))
    node.wait_until_running("web")
    node.journal.wait_for_event(pod.RestartScheduled, pod="default/loop", container="app", attempt=1)
    dumps.append(dump(node))
    node.kill_process("web", "app")
    node.journal.wait_for_event(pod.ContainerStarted, pod="default/web", container="app", attempt=1)
    dumps.append(dump(node))
    node.kill9()
    node.start()
    node.wait_until_running("web")
    dumps.append(dump(node))
    web.unlink()
    node.journal.wait_for_event(pod.TerminationRequested, pod="default/web")
    dumps.append(dump(node))
    loop.unlink()
    node.wait_until_gone("loop")
    dumps.append(dump(node))

    assert len({position for position, _ in dumps}) >= 6, "too few different moments"
    for position, expected in dumps:
        for words, then in zip(READINGS, expected, strict=True):
            later = node.chronolet(*words, "--at", position)
            assert json.loads(later.out) == then, (position, words)
    described = node.chronolet("describe", "pod", "web", "--at", dumps[3][0])
    assert "Restart Count:  1" in described.out
    assert "not found" in node.chronolet("get", "pod", "web", "--at", dumps[0][0]).err
