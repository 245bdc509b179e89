"""Pulls that take their time: in which order they come, what ends them, and an agent that is killed in one."""

from __future__ import annotations

import time
from typing import Any

import pytest

from chronolet_schemas import kube_events
from chronolet_schemas import pod as pods
from tests.e2e.node import Node, pod, shell
from tests.integration.effects.registry import Registry, registry_in
from tests.support.docker import PrivateDocker
from tests.support.registry import forget, unique_root
from tests.support.scratch import HANG_SECONDS


@pytest.fixture
def own_node(own_node: Node) -> Node:
    """Its pulls are not given up, however long a test takes."""
    own_node.environ["CHRONOLET_IMAGE_PULL_PROGRESS_DEADLINE"] = "1h"
    return own_node


def running(name: str, registry: Registry, **spec: Any) -> dict[str, Any]:
    return pod(name, shell("app", image=registry.reference), **spec)


def wait_for_pulling(node: Node, name: str) -> None:
    node.journal.wait_for_event(kube_events.Recorded, name=name, reason="Pulling")


def readied(node: Node) -> list[str]:
    """The names of pods in the order in which their images came."""
    return [one.pod.partition("/")[2] for one in node.journal.events(pods.ImageReady) if one.pulled]


def test_one_pull_at_a_time_and_what_is_there_waits_for_none(own_node: Node, slow: Registry, quick: Registry) -> None:
    own_node.start()
    own_node.write("a-slow.yaml", running("slow", slow))
    assert slow.half_sent.wait(HANG_SECONDS)
    own_node.write("b-quick.yaml", running("quick", quick))
    wait_for_pulling(own_node, "quick")
    own_node.write("c-there.yaml", pod("there"))
    own_node.wait_until_running("there")
    assert readied(own_node) == []
    assert not quick.half_sent.is_set()
    slow.released.set()
    own_node.wait_until_running("slow", "quick")
    assert readied(own_node) == ["slow", "quick"]
    (waited,) = own_node.journal.events(pods.ImageReady, pod="default/quick")
    assert waited.waited_milliseconds > 0


def test_several_pulls_at_once_by_setting(own_node: Node, slow: Registry, quick: Registry) -> None:
    own_node.environ["CHRONOLET_SERIALIZE_IMAGE_PULLS"] = "false"
    own_node.start()
    own_node.write("a-slow.yaml", running("slow", slow))
    assert slow.half_sent.wait(HANG_SECONDS)
    own_node.write("b-quick.yaml", running("quick", quick))
    own_node.wait_until_running("quick")
    assert readied(own_node) == ["quick"]
    slow.released.set()
    own_node.wait_until_running("slow")


def test_the_number_of_pulls_at_once_is_a_setting(own_node: Node, slow: Registry, quick: Registry) -> None:
    own_node.environ |= {"CHRONOLET_SERIALIZE_IMAGE_PULLS": "false", "CHRONOLET_MAX_PARALLEL_IMAGE_PULLS": "1"}
    own_node.start()
    own_node.write("a-slow.yaml", running("slow", slow))
    assert slow.half_sent.wait(HANG_SECONDS)
    own_node.write("b-quick.yaml", running("quick", quick))
    wait_for_pulling(own_node, "quick")
    slow.released.set()
    own_node.wait_until_running("slow", "quick")
    assert readied(own_node) == ["slow", "quick"]


def test_the_removal_of_a_pod_ends_its_pull(own_node: Node, slow: Registry, quick: Registry) -> None:
    own_node.start()
    file = own_node.write("slow.yaml", running("slow", slow))
    assert slow.half_sent.wait(HANG_SECONDS)
    own_node.write("quick.yaml", running("quick", quick))
    wait_for_pulling(own_node, "quick")
    file.unlink()
    own_node.wait_until_gone("slow")
    assert not slow.released.is_set()
    own_node.wait_until_running("quick")
    slow.released.set()
    own_node.write("later.yaml", running("later", quick))
    own_node.wait_until_running("later")
    assert own_node.docker.images(name=slow.reference) == [], "the engine went on with what nobody wanted"
    assert own_node.journal.events(pods.ImageFailed) == []


def test_a_pull_in_which_nothing_moves_is_given_up_and_tried_again(own_node: Node, slow: Registry) -> None:
    own_node.environ["CHRONOLET_IMAGE_PULL_PROGRESS_DEADLINE"] = "5s"
    own_node.write("slow.yaml", running("slow", slow))
    own_node.start()
    words = own_node.journal.wait_for_event(pods.ImageFailed, reason="ErrImagePull").message
    assert words.startswith(
        f'pull of image "{slow.reference}" was given up because of no progress for 5s, latest progress: "'
    )
    slow.released.set()
    own_node.wait_until_running("slow")


def test_an_agent_that_is_killed_in_a_pull_goes_on_with_it(own_node: Node, slow: Registry) -> None:
    own_node.start()
    own_node.write("slow.yaml", running("slow", slow))
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


def test_progress_is_told_now_and_then(own_node: Node, docker_engine: PrivateDocker) -> None:
    with registry_in(docker_engine.namespace, root=unique_root(), slow=True) as dripping:
        dripping.drip = 10_000
        own_node.start()
        began = time.time()
        own_node.write("slow.yaml", running("slow", dripping))
        told = own_node.journal.wait_for_event(pods.ImagePullProgress)
        assert 0 < told.done_bytes < told.total_bytes
        dripping.released.set()
        own_node.wait_until_running("slow")
        # Not looked at one by one: a stall may write one late, and the next one in time.
        told_often = len(own_node.journal.events(pods.ImagePullProgress))
        assert told_often <= (time.time() - began) / 4.9 + 1
    forget(docker_engine, dripping.address)


def test_a_registry_that_cannot_serve_is_said_to(own_node: Node, quick: Registry) -> None:
    quick.status = 503
    own_node.write("quick.yaml", running("quick", quick))
    own_node.start()
    failed = own_node.journal.wait_for_event(pods.ImageFailed)
    assert failed.reason == "RegistryUnavailable"
    assert failed.message.startswith(f"image pull failed for {quick.reference} because the registry is unavailable: ")
    own_node.wait_for_status("quick", "ImagePullBackOff")
    quick.status = 200
    own_node.wait_until_running("quick")
