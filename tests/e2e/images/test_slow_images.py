"""Slow pulls: their order, what ends them, and an agent that is killed during one of them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from chronolet_schemas import kube_events
from chronolet_schemas import pod as pods
from tests.e2e.node import Node, pod, shell
from tests.integration.effects.registry import Registry, registry_in
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.registry import forget, unique_root
from tests.support.scratch import HANG_SECONDS


@pytest.fixture
def own_node(own_node: Node) -> Node:
    """A node whose pulls do not time out, however long a test takes."""
    own_node.environ["CHRONOLET_IMAGE_PULL_PROGRESS_DEADLINE"] = "1h"
    return own_node


def pod_of(name: str, registry: Registry, **spec: Any) -> dict[str, Any]:
    return pod(name, shell("app", image=registry.reference), **spec)


def wait_for_pulling(node: Node, name: str) -> None:
    node.journal.wait_for_event(kube_events.Recorded, name=name, reason="Pulling")


def pulled_pods(node: Node) -> list[str]:
    """Return the names of pods in the order in which their images were pulled."""
    return [one.pod.partition("/")[2] for one in node.journal.events(pods.ImageReady) if one.pulled]


def test_one_pull_at_a_time_and_a_present_image_does_not_wait(own_node: Node, slow: Registry, quick: Registry) -> None:
    own_node.start()
    own_node.write("a-slow.yaml", pod_of("slow", slow))
    assert slow.half_sent.wait(HANG_SECONDS)
    own_node.write("b-quick.yaml", pod_of("quick", quick))
    wait_for_pulling(own_node, "quick")
    own_node.write("c-there.yaml", pod("there"))
    own_node.wait_until_running("there")
    assert pulled_pods(own_node) == []
    assert not quick.half_sent.is_set()
    slow.released.set()
    own_node.wait_until_running("slow", "quick")
    assert pulled_pods(own_node) == ["slow", "quick"]
    (waited,) = own_node.journal.events(pods.ImageReady, pod="default/quick")
    assert waited.waited_milliseconds > 0


def test_concurrent_pulls_by_setting(own_node: Node, slow: Registry, quick: Registry) -> None:
    own_node.environ["CHRONOLET_SERIALIZE_IMAGE_PULLS"] = "false"
    own_node.start()
    own_node.write("a-slow.yaml", pod_of("slow", slow))
    assert slow.half_sent.wait(HANG_SECONDS)
    own_node.write("b-quick.yaml", pod_of("quick", quick))
    own_node.wait_until_running("quick")
    assert pulled_pods(own_node) == ["quick"]
    slow.released.set()
    own_node.wait_until_running("slow")


def test_the_number_of_concurrent_pulls_is_a_setting(own_node: Node, slow: Registry, quick: Registry) -> None:
    own_node.environ |= {"CHRONOLET_SERIALIZE_IMAGE_PULLS": "false", "CHRONOLET_MAX_PARALLEL_IMAGE_PULLS": "1"}
    own_node.start()
    own_node.write("a-slow.yaml", pod_of("slow", slow))
    assert slow.half_sent.wait(HANG_SECONDS)
    own_node.write("b-quick.yaml", pod_of("quick", quick))
    wait_for_pulling(own_node, "quick")
    slow.released.set()
    own_node.wait_until_running("slow", "quick")
    assert pulled_pods(own_node) == ["slow", "quick"]


def test_the_removal_of_a_pod_cancels_its_pull(own_node: Node, slow: Registry, quick: Registry) -> None:
    own_node.start()
    file = own_node.write("slow.yaml", pod_of("slow", slow))
    assert slow.half_sent.wait(HANG_SECONDS)
    own_node.write("quick.yaml", pod_of("quick", quick))
    wait_for_pulling(own_node, "quick")
    file.unlink()
    own_node.wait_until_gone("slow")
    assert not slow.released.is_set()
    own_node.wait_until_running("quick")
    slow.released.set()
    own_node.write("later.yaml", pod_of("later", quick))
    own_node.wait_until_running("later")
    assert own_node.docker.images(name=slow.reference) == [], "the engine continued a cancelled pull"
    assert own_node.journal.events(pods.ImageFailed) == []


def test_a_pull_without_progress_times_out_and_is_retried(own_node: Node, slow: Registry) -> None:
    own_node.environ["CHRONOLET_IMAGE_PULL_PROGRESS_DEADLINE"] = "5s"
    own_node.write("slow.yaml", pod_of("slow", slow))
    own_node.start()
    message = own_node.journal.wait_for_event(pods.ImageFailed, reason="ErrImagePull").message
    assert message.startswith(
        f'pull of image "{slow.reference}" was given up because of no progress for 5s, latest progress: "'
    )
    slow.released.set()
    own_node.wait_until_running("slow")


def test_a_pull_is_repeated_after_a_kill_of_the_agent(own_node: Node, slow: Registry) -> None:
    own_node.start()
    own_node.write("slow.yaml", pod_of("slow", slow))
    assert slow.half_sent.wait(HANG_SECONDS)
    wait_for_pulling(own_node, "slow")
    own_node.kill9()
    own_node.start()
    pulling = {"name": "slow", "reason": "Pulling"}
    own_node.journal.wait_for(
        "the next pull", lambda: len(own_node.journal.events(kube_events.Recorded, **pulling)) == 2
    )
    slow.released.set()
    own_node.wait_until_running("slow")
    for kind in (pods.ImageEnsureRequested, pods.ImageReady, pods.ContainerStartRequested, pods.ContainerStarted):
        assert len(own_node.journal.events(kind)) == 1, kind
    assert len(own_node.running("slow")) == 2


def test_pull_progress_is_reported_periodically(own_node: Node, docker_engine: PrivateDocker) -> None:
    with registry_in(docker_engine.namespace, root=unique_root(), slow=True) as trickling:
        trickling.drip = 10_000
        own_node.start()
        began = time.time()
        own_node.write("slow.yaml", pod_of("slow", trickling))
        progress = own_node.journal.wait_for_event(pods.ImagePullProgress)
        assert 0 < progress.done_bytes < progress.total_bytes
        trickling.released.set()
        own_node.wait_until_running("slow")
        # The intervals are not checked one by one: a stall may delay one report while the next one is on time.
        count = len(own_node.journal.events(pods.ImagePullProgress))
        assert count <= (time.time() - began) / 4.9 + 1
    forget(docker_engine, trickling.address)


def test_an_unavailable_registry_is_reported(own_node: Node, quick: Registry) -> None:
    quick.status = 503
    own_node.write("quick.yaml", pod_of("quick", quick))
    own_node.start()
    failed = own_node.journal.wait_for_event(pods.ImageFailed)
    assert failed.reason == "RegistryUnavailable"
    assert failed.message.startswith(f"image pull failed for {quick.reference} because the registry is unavailable: ")
    own_node.wait_for_status("quick", "ImagePullBackOff")
    quick.status = 200
    own_node.wait_until_running("quick")
