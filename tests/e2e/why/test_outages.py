"""`chronolet why` after agent, Redis or Docker were killed, an image or a log was lost, or a disk was full."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chronolet_schemas import image_gc, kernel, pleg
from chronolet_schemas import pod as pods
from tests.e2e.node import Node, pod, shell
from tests.e2e.recovery.lost_log import wait_for_new_log
from tests.e2e.why.asking import HUNG, first_sentence, forget, wrong
from tests.support.docker.engine import PrivateDocker, private_docker
from tests.support.docker.registry import PrivateRegistry, private_registry
from tests.support.machine.full_disk import fill
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import wait_until

LATE_SECONDS = 1.1
"""A little more than the shortest delay that an answer mentions."""
DISK_MEGABYTES = 64


@pytest.fixture
def registry(docker_engine: PrivateDocker, tmp_path: Path) -> Iterator[PrivateRegistry]:
    with private_registry(docker_engine, tmp_path / "r") as found:
        yield found


def dies_unseen(node: Node, name: str, container: str = "app") -> None:
    """Kill a container's process on the host, and wait until its end is too long ago to be noticed at once."""
    container_id = node.running(name)[container]["Id"]
    node.kill_process(name, container)
    node.docker.wait(container_id)
    until = time.monotonic() + LATE_SECONDS
    wait_until(lambda: time.monotonic() > until, "the end of the delay")


def wait_for_restart(node: Node, name: str, attempt: int = 1) -> None:
    node.journal.wait_for_event(pods.ContainerStarted, 60, pod=f"default/{name}", container="app", attempt=attempt)


def test_the_agent_or_redis_was_down_when_a_container_died(own_node: Node, redis_server: PrivateRedis) -> None:
    node = own_node
    for name in ("unseen", "unwritten"):
        node.write(f"{name}.yaml", pod(name, shell("app", HUNG)))
    node.start()
    node.wait_until_running("unseen", "unwritten")
    node.kill9()
    dies_unseen(node, "unseen")
    node.start()
    wait_for_restart(node, "unseen")
    node.journal.wait_for("the agent", lambda: len(node.journal.events(pleg.StreamFollowed)) > 1)
    redis_server.kill9()
    dies_unseen(node, "unwritten")
    redis_server.start()
    wait_for_restart(node, "unwritten")
    forget(node)
    unseen = first_sentence(node, "unseen")
    expected = ("exit code 137", "`kill -9`", "`docker kill`", "because the agent was not running")
    assert wrong(unseen, expected) == [], unseen
    unwritten = first_sentence(node, "unwritten")
    lost = ("exit code 137", "`kill -9`", "nothing was written to the log meanwhile: Redis or the agent")
    assert wrong(unwritten, lost) == [], unwritten


def test_docker_was_killed_or_stopped_and_took_the_pod_with_it(redis_server: PrivateRedis, tmp_path: Path) -> None:
    with private_docker(live_restore=False) as engine:
        node = Node(engine, redis_server.url, "dockerless", tmp_path / "agent")
        try:
            node.write("web.yaml", pod("web", shell("app", HUNG)))
            node.start()
            node.wait_until_running("web")
            engine.kill9()
            node.journal.wait_for_event(pleg.StreamLost)
            engine.start()
            wait_for_restart(node, "web")
            lost = len(node.journal.events(pleg.StreamLost))
            engine.stop()
            node.journal.wait_for("the end of Docker", lambda: len(node.journal.events(pleg.StreamLost)) > lost)
            engine.start()
            wait_for_restart(node, "web", attempt=2)
            forget(node)
            expected = ("Docker Engine stopped or was killed", "was back after", "containers ended with it")
            for number in ("1", "2"):
                sentence = first_sentence(node, "web", "--nth", number)
                assert wrong(sentence, expected) == [], sentence
        finally:
            node.close(remove=False)


def test_an_image_had_to_be_pulled_again(own_node: Node, registry: PrivateRegistry) -> None:
    node, image = own_node, registry.push().tag
    node.agent_environ |= {"CHRONOLET_IMAGE_USAGE_PERIOD": "100ms"}
    node.write("web.yaml", pod("web", shell("app", HUNG, image=image)))
    node.start()
    node.wait_until_running("web")
    image_id = node.journal.wait_for_event(pods.ImageReady, pod="default/web").image_id

    def seen(*, named: bool) -> bool:
        changes = node.journal.events(image_gc.ImagesChanged)
        known = [one for event in changes for one in event.seen if one.id == image_id]
        return bool(known) and bool(known[-1].names) == named

    node.journal.wait_for("the image", lambda: seen(named=True))
    registry.forget()
    node.journal.wait_for("the image without names", lambda: seen(named=False))
    node.docker.kill(node.running("web")["app"]["Id"])
    wait_for_restart(node, "web")
    forget(node)
    sentence = first_sentence(node, "web")
    expected = ("`docker kill`", "someone removed it", f"image {image} had to be pulled again")
    assert wrong(sentence, expected) == [], sentence


def test_a_lost_log_is_named(own_node: Node, redis_server: PrivateRedis) -> None:
    node = own_node
    node.write("web.yaml", pod("web"))
    node.start()
    node.wait_until_running("web")
    assert node.stop() == 0  # it notes the end of the log
    redis_server.client().flushall()
    node.start()
    wait_for_new_log(node)
    node.journal.wait_for_event(kernel.LogLost)
    sentence = first_sentence(node, "web")
    assert wrong(sentence, ("was running when this log began", "Redis lost")) == [], sentence


def test_a_full_disk_is_named(redis_server: PrivateRedis, tmp_path: Path) -> None:
    with private_docker(disk_megabytes=DISK_MEGABYTES) as engine:
        node = Node(engine, redis_server.url, "full", tmp_path / "agent")
        try:
            node.start()
            node.journal.wait_for_event(pleg.StreamFollowed)
            fill(engine.data)
            node.write("web.yaml", pod("web", shell("app", HUNG)))
            node.journal.wait_for("the failure", lambda: _has_no_space(node))
            forget(node)
            sentence = first_sentence(node, "web")
            expected = ("does not start because", "no space left on device", "disk of the node is full")
            assert wrong(sentence, expected) == [], sentence
        finally:
            node.close(remove=False)


def _has_no_space(node: Node) -> bool:
    sandboxes = [one.message for one in node.journal.events(pods.SandboxStartFailed)]
    containers = [one.message for one in node.journal.events(pods.ContainerStartFailed)]
    return any("no space left on device" in message for message in (*sandboxes, *containers))
