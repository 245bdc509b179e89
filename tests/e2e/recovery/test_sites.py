"""A node lives on one machine and one engine: two hosts with the same node name and one Redis."""

from __future__ import annotations

import http.client
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronolet_schemas import kernel, pleg
from tests.e2e.node import CommandResult, Node, shell
from tests.e2e.node import pod as a_pod
from tests.support.docker.engine import PrivateDocker, private_docker
from tests.support.ports import free_port
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import wait_until

STAYS = "trap 'exit 0' TERM; while :; do sleep 1; done"
NAME = "sited"


class Host:
    """One machine with its own engine and its own machine id, and its agent of the shared node."""

    def __init__(self, engine: PrivateDocker, server: PrivateRedis, root: Path, machine_id: str) -> None:
        self.node = Node(engine, server.url, NAME, root)
        self.machine_id = root / "machine-id"
        self.machine_id.write_text(f"{machine_id}\n")
        self.node.environ["CHRONOLET_MACHINE_ID_FILE"] = str(self.machine_id)
        self.port = 0

    def start(self) -> None:
        self.port = free_port()
        self.node.start(self.port)

    def readiness(self) -> str:
        """Return the page /readyz; empty while nothing is served."""
        try:
            return _page(self.port, "/readyz?verbose")
        except OSError:
            return ""

    def wait_for_readiness(self, text: str) -> str:
        wait_until(lambda: text in self.readiness(), f"{text!r} in /readyz; {self.node.log[-2000:]}", 60)
        return self.readiness()

    def move(self, *flags: str) -> CommandResult:
        return self.node.chronolet("node", "move", *flags)


def _page(port: int, path: str) -> str:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path)
        return connection.getresponse().read().decode()
    finally:
        connection.close()


@pytest.fixture
def second_engine() -> Iterator[PrivateDocker]:
    with private_docker() as engine:
        yield engine


@pytest.fixture
def hosts(
    docker_engine: PrivateDocker, second_engine: PrivateDocker, redis_server: PrivateRedis
) -> Iterator[tuple[Host, Host]]:
    one = Host(docker_engine, redis_server, redis_server.folder / "one", "1" * 32)
    two = Host(second_engine, redis_server, redis_server.folder / "two", "2" * 32)
    try:
        yield one, two
    finally:
        for host in (one, two):
            host.node.close()


def test_a_second_host_is_refused_until_the_node_is_moved(hosts: tuple[Host, Host]) -> None:
    """The containers of the first host run on untouched, also after its agent was killed; then the move starts the pods
    on the second host.
    """
    one, two = hosts
    one.start()
    one.node.write("p.yaml", a_pod("web", shell("app", STAYS)))
    two.node.write("p.yaml", a_pod("web", shell("app", STAYS)))
    one.node.wait_until_running("web")
    before = one.node.started_at("web")
    (recorded,) = one.node.journal.events(kernel.SiteRecorded)
    assert (recorded.machine_id, recorded.former_machine_id) == ("1" * 32, "")
    assert recorded.engine_root == str(one.node.engine.data)

    two.start()
    text = two.wait_for_readiness("[-]site failed")
    assert f"node {NAME} lives on machine {'1' * 32}" in text
    assert f"found machine {'2' * 32}" in text
    assert "chronolet node move" in text
    assert two.move("--yes").status == 1
    assert "is alive" in two.move("--yes").err

    one.node.kill9()
    refused = two.move()
    assert refused.status == 1
    assert "--yes" in refused.err
    text = two.wait_for_readiness("[-]site failed")
    assert two.node.running("web") == {}
    assert one.node.started_at("web") == before
    one.node.journal.catch_up()
    assert not one.node.journal.events(pleg.ContainerDied)

    moved = two.move("--yes")
    assert moved.status == 0, moved
    assert "default/web" in moved.out
    wait_until(lambda: bool(two.node.running("web")), f"the pod on the second host; {two.node.log[-3000:]}", 60)
    assert "[+]site ok" in two.wait_for_readiness("[+]site ok")
    assert one.node.started_at("web") == before

    one.start()
    text = one.wait_for_readiness("[-]site failed")
    assert f"lives on machine {'2' * 32}" in text
    assert one.node.started_at("web") == before
