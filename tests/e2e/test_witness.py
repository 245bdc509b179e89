"""The witness of other tests: what it is not told, it asks for."""

from typing import Any

import docker

from chronolet.ports.runtime import labels
from tests.e2e.node import BUSYBOX
from tests.e2e.witness import Witness
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.proxy import DockerProxy, docker_proxy
from tests.support.scratch import HANG_SECONDS, wait_until

NODE = "seen"
ONE_LIFE = ["create", "start", "die 3", "destroy"]


class Through:
    """The engine as it is reached through the proxy."""

    def __init__(self, proxy: DockerProxy) -> None:
        self._host = proxy.host

    def api(self, timeout: int = int(HANG_SECONDS)) -> docker.APIClient:
        return docker.APIClient(base_url=self._host, version="auto", timeout=timeout)


def live(engine: PrivateDocker, name: str) -> None:
    """A container that begins, ends and goes."""
    api = engine.api()
    made = api.create_container(BUSYBOX, ["sh", "-c", "exit 3"], name=name, labels={labels.NODE: NODE})["Id"]
    api.start(made)
    api.wait(made)
    api.remove_container(made)


def test_what_the_engine_did_not_tell_is_noted_all_the_same_and_once(docker_engine: PrivateDocker) -> None:
    with docker_proxy(docker_engine.host) as proxy:
        through: Any = Through(proxy)
        witness = Witness(through)
        try:
            live(docker_engine, "told")
            wait_until(lambda: witness.gone(NODE), "the first life")
            wait_until(lambda: sum("until=" in call for call in proxy.calls) >= 2, "two looks back")
            proxy.mute(r"/events\?filters")
            live(docker_engine, "untold")
            wait_until(lambda: "untold" in witness.lives(NODE) and witness.gone(NODE), "the second life")
            assert witness.lives(NODE) == {"told": ONE_LIFE, "untold": ONE_LIFE}
            assert len(witness.deaths(NODE)) == 2
        finally:
            witness.close()
