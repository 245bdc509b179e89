"""DockerEvents, on which other tests rely: it queries the events that it did not receive."""

from typing import Any

import docker

from chronolet.ports.runtime import labels
from tests.e2e.docker_events import DockerEvents
from tests.e2e.node import BUSYBOX
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.proxy import DockerProxy, docker_proxy
from tests.support.scratch import HANG_SECONDS, wait_until

NODE = "node"
ACTIONS = ["create", "start", "die 3", "destroy"]


class ProxiedEngine:
    """The engine as seen through the proxy."""

    def __init__(self, proxy: DockerProxy) -> None:
        self._host = proxy.host

    def api(self, timeout: int = int(HANG_SECONDS)) -> docker.APIClient:
        return docker.APIClient(base_url=self._host, version="auto", timeout=timeout)


def run_container(engine: PrivateDocker, name: str) -> None:
    """Create, run and remove a container."""
    api = engine.api()
    made = api.create_container(BUSYBOX, ["sh", "-c", "exit 3"], name=name, labels={labels.NODE: NODE})["Id"]
    api.start(made)
    api.wait(made)
    api.remove_container(made)


def test_an_event_that_was_not_received_is_queried_and_counts_once(docker_engine: PrivateDocker) -> None:
    with docker_proxy(docker_engine.host) as proxy:
        engine: Any = ProxiedEngine(proxy)
        docker_events = DockerEvents(engine)
        try:
            run_container(docker_engine, "received")
            wait_until(lambda: docker_events.gone(NODE), "the events of the first container")
            wait_until(lambda: sum("until=" in call for call in proxy.calls) >= 2, "two queries")
            proxy.mute(r"/events\?filters")
            run_container(docker_engine, "missed")
            wait_until(
                lambda: "missed" in docker_events.actions(NODE) and docker_events.gone(NODE),
                "the events of the second container",
            )
            assert docker_events.actions(NODE) == {"received": ACTIONS, "missed": ACTIONS}
            assert len(docker_events.deaths(NODE)) == 2
        finally:
            docker_events.close()
