"""Docker calls that hang or fail: a container whose inspect hangs delays no other container; failing lists make the
node unhealthy.
"""

from __future__ import annotations

from typing import TypeVar

from chronolet_schemas import pleg
from tests.e2e.http_pages import status
from tests.e2e.node import Node, pod, shell
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.proxy import docker_proxy
from tests.support.scratch import wait_until

PORT = 10256
E = TypeVar("E", pleg.Unhealthy, pleg.Healthy)


def test_a_hanging_inspect_delays_no_other_container(own_node: Node, docker_engine: PrivateDocker) -> None:
    with docker_proxy(docker_engine.host) as proxy:
        own_node.environ["DOCKER_HOST"] = proxy.host
        own_node.write("stuck.yaml", pod("stuck", shell("app")))
        own_node.write("well.yaml", pod("well", shell("app")))
        own_node.environ["CHRONOLET_PLEG_RELIST_PERIOD"] = "1s"
        own_node.start()
        own_node.wait_until_running("stuck", "well")
        stuck, well = (own_node.running(name)["app"]["Id"] for name in ("stuck", "well"))
        fault = proxy.hang(f"GET .*/containers/{stuck}/json")
        wait_until(lambda: proxy.cut("/events") > 0, "a stream to cut: after a gap all containers are inspected")
        reported = own_node.journal.wait_for_event(pleg.PodUnreadable, pod="default/stuck")
        assert stuck in reported.error
        own_node.docker.kill(well)
        own_node.journal.wait_for(
            "the other pod's next container",
            lambda: own_node.running("well").get("app", {"Id": well})["Id"] != well,
        )
        assert own_node.journal.events(pleg.PodReadable, pod="default/stuck") == []
        fault.lift()
        own_node.journal.wait_for_event(pleg.PodReadable, pod="default/stuck")
        assert own_node.running("stuck")["app"]["Id"] == stuck
        assert len(own_node.journal.events(pleg.PodUnreadable, pod="default/stuck")) == 1, (
            "reported once, however many attempts fail"
        )


def test_failing_lists_make_the_node_unhealthy(own_node: Node, docker_engine: PrivateDocker) -> None:
    with docker_proxy(docker_engine.host) as proxy:
        own_node.environ["DOCKER_HOST"] = proxy.host
        own_node.write("well.yaml", pod("well", shell("app")))
        own_node.environ |= {"CHRONOLET_PLEG_RELIST_PERIOD": "1s", "CHRONOLET_PLEG_RELIST_THRESHOLD": "3s"}
        own_node.start(PORT, in_network=True)
        own_node.wait_until_running("well")
        fault = proxy.refuse("GET .*/containers/json", message="out of order")
        reported = wait_for_health(own_node, pleg.Unhealthy)
        assert reported.message.startswith("pleg was last seen active ")
        assert reported.message.endswith(" ago; threshold is 3s")
        wait_until(lambda: status(own_node, PORT, "/healthz")[0] == 500, "the status of the page")
        own_node.journal.read()
        fault.lift()
        wait_for_health(own_node, pleg.Healthy)
        wait_until(lambda: status(own_node, PORT, "/healthz")[0] == 200, "the status of the page")


def wait_for_health(node: Node, kind: type[E]) -> E:
    """Wait until the latest health event has this class, and return it. There may be earlier ones, because a stall of
    three seconds also makes the node unhealthy.
    """

    def latest() -> E | None:
        events = [line.event for line in node.journal.lines if isinstance(line.event, pleg.Unhealthy | pleg.Healthy)]
        return events[-1] if events and isinstance(events[-1], kind) else None

    found: E = node.journal.wait_for(kind.__name__, latest)
    return found
