"""A real agent sends the trace of a pod's start to an OTLP receiver."""

from __future__ import annotations

from tests.e2e.node import Node, pod
from tests.node.tracing.collector import attributes, collector


def test_the_start_of_a_pod_is_traced(own_node: Node) -> None:
    node = own_node
    with collector(node.engine.namespace.call) as received:
        node.environ["CHRONOLET_TRACING_ENDPOINT"] = received.endpoint
        node.start(in_network=True)
        node.write("web.yaml", pod("web"))
        node.wait_until_running("web")
        root = received.wait_for("start default/web")
        steps = received.below(root)
        assert any("sandbox" in step.name for step in steps), [step.name for step in steps]
        calls = [call for step in steps for call in received.below(step)]
        assert any(call.name.startswith("docker.") for call in calls), [call.name for call in calls]
        assert attributes(root)["k8s.pod.uid"] == node.journal.pods["default/web"].uid
        node.kill_process("web", "app")
        node.write("other.yaml", pod("other"))
        received.wait_for("start default/other")
        assert [span.name for span in received.spans].count("start default/web") == 1, "a restart is no start"
        assert node.stop() == 0
