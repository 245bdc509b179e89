"""A Docker Engine that is missing, dies or hangs: there is one clear error, calls are retried, and no running container
is lost.
"""

import os
import signal
from collections.abc import Callable

import pytest

from chronolet_schemas import pleg
from chronolet_schemas import pod as pods
from tests.e2e.node import Node, pod, shell
from tests.support.docker.engine import PrivateDocker


def test_the_agent_waits_for_an_engine_that_starts_later(own_node: Node, docker_engine: PrivateDocker) -> None:
    docker_engine.stop()
    try:
        own_node.write("early.yaml", pod("early"))
        own_node.start()
        failing = own_node.journal.wait_for_event(pleg.RelistFailing)
        assert docker_engine.host.removeprefix("unix://") in failing.error
        # The parent cgroup depends on the engine's driver.
        own_node.journal.wait_for_event(pods.CgroupRequested, pod="default/early")
        assert own_node.chronolet("get", "pods").line("early").split()[1:3] == ["0/1", "ContainerCreating"]
    finally:
        docker_engine.start()
    own_node.journal.wait_for_event(pleg.RelistWorking)
    own_node.wait_until_running("early")


def test_a_killed_engine_loses_no_container(own_node: Node, docker_engine: PrivateDocker) -> None:
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
        assert own_node.all_run("stays"), "an unreachable engine was taken for a death"
    finally:
        docker_engine.start()
    own_node.journal.wait_for_event(pods.ContainerStarted, pod="default/stays", container="dies", attempt=1)
    own_node.wait_until_running("stays", "later")
    assert len(before.items() & own_node.started_at("stays").items()) == 2, "sandbox or app was touched"
    assert own_node.runs


def test_the_agent_waits_for_an_engine_that_hangs_for_a_moment(own_node: Node, docker_engine: PrivateDocker) -> None:
    check_hanging_engine(
        own_node,
        docker_engine,
        until=lambda: own_node.journal.wait_for_event(pods.SandboxStartRequested, pod="default/later"),
    )


@pytest.mark.long
def test_an_engine_that_hangs_for_long_is_reported(own_node: Node, docker_engine: PrivateDocker) -> None:
    check_hanging_engine(own_node, docker_engine, until=lambda: own_node.journal.wait_for_event(pleg.RelistFailing, 90))


def check_hanging_engine(node: Node, engine: PrivateDocker, until: Callable[[], object]) -> None:
    """Pause the engine while one pod is running. Resume it once another pod has been added and `until` has returned.
    Check that the first pod is not touched and the other one starts at its first attempt.
    """
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
