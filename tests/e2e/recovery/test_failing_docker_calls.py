"""A container whose inspect hangs stops nobody; a Docker that cannot be listed makes the node unhealthy."""

from __future__ import annotations

from typing import TypeVar

from chronolet_schemas import pleg
from tests.e2e.http_pages import status
from tests.e2e.node import Node, pod, shell
from tests.support.docker import PrivateDocker
from tests.support.docker_proxy import docker_proxy
from tests.support.scratch import wait_until

PORT = 10256
E = TypeVar("E", pleg.Unhealthy, pleg.Healthy)


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
        wait_until(lambda: proxy.cut("/events") > 0, "a stream: after a gap in it everything is inspected")
        told = own_node.journal.wait_for_event(pleg.PodUnreadable, pod="default/stuck")
        assert stuck in told.error
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
            "said once, however often it was tried"
        )


def test_a_docker_that_cannot_be_listed_is_told_of(own_node: Node, docker_engine: PrivateDocker) -> None:
    with docker_proxy(docker_engine.host) as proxy:
        own_node.environ["DOCKER_HOST"] = proxy.host
        own_node.write("well.yaml", pod("well", shell("app")))
        own_node.environ |= {"CHRONOLET_PLEG_RELIST_PERIOD": "1s", "CHRONOLET_PLEG_RELIST_THRESHOLD": "3s"}
        own_node.start(PORT, in_network=True)
        own_node.wait_until_running("well")
        fault = proxy.refuse("GET .*/containers/json", message="out of order")
        told = wait_for_health(own_node, pleg.Unhealthy)
        assert told.message.startswith("pleg was last seen active ")
        assert told.message.endswith(" ago; threshold is 3s")
        wait_until(lambda: status(own_node, PORT, "/healthz")[0] == 500, "the page to say so")
        own_node.journal.read()
        fault.lift()
        wait_for_health(own_node, pleg.Healthy)
        wait_until(lambda: status(own_node, PORT, "/healthz")[0] == 200, "the page to say so")


def wait_for_health(node: Node, word: type[E]) -> E:
    """Until this is the last word: a machine that stands still for three seconds makes its node unhealthy, too."""

    def last() -> E | None:
        said = [line.event for line in node.journal.lines if isinstance(line.event, pleg.Unhealthy | pleg.Healthy)]
        return said[-1] if said and isinstance(said[-1], word) else None

    found: E = node.journal.wait_for(word.__name__, last)
    return found
