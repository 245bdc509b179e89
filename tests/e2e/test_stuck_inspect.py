"""A container whose inspect hangs stops nobody; a Docker that cannot be listed makes the node unhealthy."""

from __future__ import annotations

from chronolet_schemas import pleg
from tests.e2e.node import Node, pod, shell
from tests.e2e.test_pages import free_port, status
from tests.support.docker import PrivateDocker
from tests.support.docker_proxy import docker_proxy


def test_others_crash_and_come_back_while_one_cannot_be_inspected(own_node: Node, docker_engine: PrivateDocker) -> None:
    with docker_proxy(docker_engine.host) as proxy:
        own_node.environ["DOCKER_HOST"] = proxy.host
        own_node.write("stuck.yaml", pod("stuck", shell("app")))
        own_node.write("well.yaml", pod("well", shell("app")))
        own_node.environ["CHRONOLET_PLEG_RELIST_PERIOD"] = "1s"
        own_node.start()
        own_node.wait_until_running("stuck", "well")
        stuck, well = (own_node.running(name)["app"]["Id"] for name in ("stuck", "well"))
        fault = proxy.hang(f"GET .*/containers/{stuck}/json")
        assert proxy.cut("/events"), "after a gap in the stream everything is inspected"
        told = own_node.journal.wait_for_event(pleg.PodUnreadable)
        assert (told.pod, stuck in told.error) == ("default/stuck", True)
        own_node.docker.kill(well)
        own_node.journal.wait_for(
            "the other pod's next container",
            lambda: own_node.running("well").get("app", {"Id": well})["Id"] != well,
        )
        assert own_node.journal.events(pleg.PodReadable) == []
        fault.lift()
        assert own_node.journal.wait_for_event(pleg.PodReadable).pod == "default/stuck"
        assert own_node.running("stuck")["app"]["Id"] == stuck
        assert len(own_node.journal.events(pleg.PodUnreadable)) == 1, "said once, however often it was tried"


def test_a_docker_that_cannot_be_listed_is_told_of(own_node: Node, docker_engine: PrivateDocker) -> None:
    with docker_proxy(docker_engine.host) as proxy:
        own_node.environ["DOCKER_HOST"] = proxy.host
        own_node.write("well.yaml", pod("well", shell("app")))
        own_node.environ |= {"CHRONOLET_PLEG_RELIST_PERIOD": "1s", "CHRONOLET_PLEG_RELIST_THRESHOLD": "3s"}
        port = free_port()
        own_node.start(port)
        own_node.wait_until_running("well")
        fault = proxy.refuse("GET .*/containers/json", message="out of order")
        told = own_node.journal.wait_for_event(pleg.Unhealthy)
        assert told.message.startswith("pleg was last seen active ")
        assert told.message.endswith(" ago; threshold is 3s")
        assert status(port, "/healthz")[0] == 500
        fault.lift()
        own_node.journal.wait_for_event(pleg.Healthy)
        assert status(port, "/healthz")[0] == 200
