"""A Docker Engine that is not there, dies or hangs: one clear line, tried again, and nothing that runs is lost."""

import os
import signal
from collections.abc import Callable

import pytest

from chronolet_schemas import pleg
from chronolet_schemas import pod as pods
from tests.e2e.node import Node, pod, shell
from tests.support.docker import PrivateDocker


def test_an_engine_that_is_not_there_yet_is_waited_for(own_node: Node, docker_engine: PrivateDocker) -> None:
    docker_engine.stop()
    try:
        own_node.write("early.yaml", pod("early"))
        own_node.start()
        failing = own_node.journal.wait_for_event(pleg.RelistFailing)
        assert docker_engine.host.removeprefix("unix://") in failing.error
        # Beneath which cgroup a pod begins is a matter of the engine's driver.
        own_node.journal.wait_for_event(pods.CgroupRequested, pod="default/early")
        assert own_node.chronolet("get", "pods").line("early").split()[1:3] == ["0/1", "ContainerCreating"]
    finally:
        docker_engine.start()
    own_node.journal.wait_for_event(pleg.RelistWorking)
    own_node.wait_until_running("early")


def test_an_engine_that_is_killed_loses_no_container(own_node: Node, docker_engine: PrivateDocker) -> None:
    own_node.write("stays.yaml", pod("stays", shell("app"), shell("dies")))
    own_node.start()
    own_node.wait_until_running("stays")
    before = own_node.started_at("stays")
    pid = own_node.running("stays")["dies"]["State"]["Pid"]
    docker_engine.kill9()
    try:
        own_node.journal.wait_for_event(pleg.StreamLost)
        os.kill(pid, signal.SIGKILL)
        own_node.write("later.yaml", pod("later"))
        own_node.journal.wait_for_event(pods.SandboxStartFailed, pod="default/later")
        assert own_node.all_run("stays"), "absence is no death"
    finally:
        docker_engine.start()
    own_node.journal.wait_for_event(pods.ContainerStarted, pod="default/stays", container="dies", attempt=1)
    own_node.wait_until_running("stays", "later")
    assert len(before.items() & own_node.started_at("stays").items()) == 2, "sandbox and app were to be left alone"
    assert own_node.runs


def test_an_engine_that_hangs_for_a_moment_is_waited_for(own_node: Node, docker_engine: PrivateDocker) -> None:
    with_a_hanging_engine(
        own_node,
        docker_engine,
        until=lambda: own_node.journal.wait_for_event(pods.SandboxStartRequested, pod="default/later"),
    )


@pytest.mark.long
def test_an_engine_that_hangs_for_long_is_said_to_and_waited_for(own_node: Node, docker_engine: PrivateDocker) -> None:
    with_a_hanging_engine(
        own_node, docker_engine, until=lambda: own_node.journal.wait_for_event(pleg.RelistFailing, 90)
    )


def with_a_hanging_engine(node: Node, engine: PrivateDocker, until: Callable[[], object]) -> None:
    """It is stopped with one pod running, and goes on when another one was asked for and `until` has come."""
    node.write("stays.yaml", pod("stays"))
    node.start()
    node.wait_until_running("stays")
    before = node.started_at("stays")
    engine.pause()
    try:
        node.write("later.yaml", pod("later"))
        until()
        assert node.chronolet("get", "pods").line("stays").split()[1:3] == ["1/1", "Running"]
    finally:
        engine.resume()
    node.wait_until_running("later", "stays")
    assert node.started_at("stays") == before
    started = node.journal.events(pods.SandboxStarted, pod="default/later")
    assert [one.attempt for one in started] == [0]
