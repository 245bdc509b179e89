"""`--at` on a real node: what it prints about a past moment is what was printed then, whatever happened later."""

from chronolet_schemas import pod
from tests.e2e.commands.moments import check, dump
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod


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
    check(node, dumps)
    described = node.chronolet("describe", "pod", "web", "--at", dumps[3][0])
    assert "Restart Count:  1" in described.out
    assert "not found" in node.chronolet("get", "pod", "web", "--at", dumps[0][0]).err
