"""A node lives on one machine and one engine, even if two hosts with its name use one Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from chronolet_schemas import kernel, pleg
from chronolet_schemas.keys import Keys
from tests.e2e.node import Node, shell
from tests.e2e.node import pod as a_pod
from tests.e2e.recovery.hosts import NAME, STAYS, Host, started_with
from tests.support.docker.engine import PrivateDocker, private_docker
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import start_time, wait_until


def phase_of(node: Node, pod: str) -> str:
    status = node.journal.status(pod)
    return status.phase if status is not None else ""


@pytest.fixture
def second_engine() -> Iterator[PrivateDocker]:
    with private_docker() as engine:
        yield engine


@pytest.fixture
def hosts(
    docker_engine: PrivateDocker, second_engine: PrivateDocker, redis_server: PrivateRedis
) -> Iterator[tuple[Host, Host]]:
    one = Host(docker_engine, redis_server.url, redis_server.folder / "one", "1" * 32)
    two = Host(second_engine, redis_server.url, redis_server.folder / "two", "2" * 32)
    try:
        yield one, two
    finally:
        for host in (one, two):
            host.node.close()


def test_a_second_host_is_refused_until_the_node_is_moved(hosts: tuple[Host, Host]) -> None:
    """The containers of the first host keep running untouched, even after its agent is killed. After the move, `web`
    starts on the second host, and `once`, which must not restart, fails.
    """
    one, two = hosts
    one.start()
    pods = (a_pod("web", shell("app", STAYS)), a_pod("once", shell("app", STAYS), restartPolicy="Never"))
    assert one.node.chronolet("apply", "-f", one.node.write_unwatched("p.yaml", *pods)).status == 0
    one.node.wait_until_running("web", "once")
    before = one.node.started_at("web")
    (recorded,) = one.node.journal.events(kernel.SiteRecorded)
    assert (recorded.machine_id, recorded.former_machine_id) == ("1" * 32, "")
    assert recorded.engine_root == str(one.node.engine.data)

    two.start()
    text = two.wait_for_readiness("[-]site failed")
    assert f"node {NAME} lives on machine {'1' * 32}" in text
    assert f"found machine {'2' * 32}" in text
    assert "chronolet node move" in text
    early = two.move("--yes")
    assert early.status == 1
    assert "is alive and hosts container_gc, devices, image_gc, keeper, pleg, pod, prober, qos" in early.err

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
    assert "pod default/web: 2 of its 2 containers are not in this engine; is started again here" in moved.out
    assert "pod default/once: 2 of its 2 containers are not in this engine; fails, because" in moved.out
    wait_until(lambda: bool(two.node.running("web")), f"the pod on the second host; {two.node.log[-3000:]}", 60)
    assert "[+]site ok" in two.wait_for_readiness("[+]site ok")
    one.node.journal.wait_for("a failed pod", lambda: phase_of(one.node, "default/once") == "Failed")
    one.node.journal.wait_for("a restarted container", lambda: one.node.restarts("web") == [1])
    one.node.wait_until_running("web")
    assert two.node.running("once") == {}
    assert one.node.started_at("web") == before

    one.start()
    text = one.wait_for_readiness("[-]site failed")
    assert f"lives on machine {'2' * 32}" in text
    assert one.node.started_at("web") == before


@pytest.mark.long
def test_an_engine_that_is_replaced_under_a_running_agent_is_refused(
    second_engine: PrivateDocker, redis_server: PrivateRedis
) -> None:
    """With another --data-root, dockerd has the same id and socket, but none of the containers. No container counts as
    dead; once the former data root is back, the agent continues.
    """
    host = Host(second_engine, redis_server.url, redis_server.folder / "one", "1" * 32)
    node, engine = host.node, second_engine
    try:
        host.start()
        probe = {"exec": {"command": ["true"]}, "periodSeconds": 1, "failureThreshold": 1}
        node.write("p.yaml", a_pod("web", shell("app", STAYS, livenessProbe=probe)))
        node.wait_until_running("web")
        before = node.started_at("web")
        lives = {pid: start_time(pid) for one in node.running("web").values() if (pid := one["State"]["Pid"])}
        engine.stop()
        started_with(engine, engine.folder / "other")
        text = host.wait_for_readiness("[-]site failed")
        assert f"found engine {node.docker.info()['ID']} ({engine.data}) on that machine" in text
        assert host.readiness().count("[+]pleg ok") == 1, "relists are not due here"
        node.wait_for_log("its kind is refused here")
        assert lives == {pid: start_time(pid) for pid in lives}

        engine.stop()
        started_with(engine, engine.folder)
        assert "[+]site ok" in host.wait_for_readiness("[+]site ok")
        node.journal.wait_for_event(pleg.StreamFollowed, first=False)
        wait_until(lambda: node.started_at("web") == before, "the same containers under the former engine")
        assert lives == {pid: start_time(pid) for pid in lives}
        node.journal.catch_up()
        assert not node.journal.events(pleg.ContainerDied)
        assert node.restarts("web") == [0]
        node.write("later.yaml", a_pod("later", shell("app", STAYS)))
        node.wait_until_running("later")
    finally:
        node.close()


@pytest.mark.long
def test_the_log_of_an_older_release_belongs_to_the_engine_with_its_containers(
    hosts: tuple[Host, Host], redis_server: PrivateRedis
) -> None:
    """After an upgrade with a running pod, a host without its containers cannot claim the node; nothing restarts."""
    one, two = hosts
    one.start()
    one.node.write("p.yaml", a_pod("web", shell("app", STAYS)))
    one.node.wait_until_running("web")
    before = one.node.started_at("web")
    one.node.stop()
    redis_server.client().hdel(Keys(NAME).meta, "site")

    two.start()
    text = two.wait_for_readiness("[-]site failed")
    assert "names 2 containers, and this engine has none of them" in text
    one.start()
    one.wait_for_readiness("[+]site ok")
    two.wait_for_readiness(f"lives on machine {'1' * 32}")
    one.node.journal.catch_up()
    assert [event.machine_id for event in one.node.journal.events(kernel.SiteRecorded)] == ["1" * 32] * 2
    assert one.node.started_at("web") == before
    assert not one.node.journal.events(pleg.ContainerDied)
