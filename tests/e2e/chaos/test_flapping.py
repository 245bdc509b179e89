"""A hundred containers are killed repeatedly as soon as they run; with --long, two hundred, and storms in which agent,
Redis and Docker are killed, too.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from chronolet_schemas import pleg
from chronolet_schemas import pod as pods
from tests.e2e.chaos.agreement import lags, wait_for_agreement
from tests.e2e.docker_events import DockerEvents
from tests.e2e.node import Node, pod, shell
from tests.support.docker.engine import PrivateDocker, private_docker
from tests.support.redis.server import PrivateRedis, private_redis
from tests.support.scratch import hang_limit

SHORT_PODS, LONG_PODS = 20, 40
NAMES = ("a", "b", "c", "d", "e")


@pytest.fixture
def node_of_own_engine() -> Iterator[Node]:
    """A node on a private engine, whose removal also removes all containers: faster than removing each of them."""
    with private_redis() as server, private_docker() as engine:
        node = Node(engine, server.url, "flapping", server.folder / "agent")
        try:
            yield node
        finally:
            node.close(remove=False)


def many_pods(node: Node, count: int) -> int:
    """Start the agent and `count` pods of five containers each; wait until all containers are running, and return their
    number.
    """
    for number in range(count):
        node.write(f"p{number}.yaml", pod(f"p{number}", *(shell(name) for name in NAMES)))
    node.start()
    expected = count * len(NAMES)
    node.journal.wait_for(f"{expected} containers", lambda: len(running(node)) == expected, 240)
    return expected


def running(node: Node) -> dict[str, str]:
    """Return the pods' running containers according to the log: `pod container` by id."""
    return {
        one.id: f"{state.pod} {one.name}"
        for state in node.journal.pods.values()
        for one in state.containers
        if one.phase == "running"
    }


def storm(node: Node, engine: PrivateDocker, kills: int) -> int:
    """Kill each container as soon as the log shows it as running, until `kills` containers are killed or the time is
    up; return the number of containers killed.
    """
    killed: set[str] = set()
    until = time.monotonic() + hang_limit(120)
    while len(killed) < kills and time.monotonic() < until:
        processes = engine.processes()
        for container in running(node).keys() & processes.keys() - killed:
            killed.add(container)
            for pid in processes[container]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        node.journal.read(20)
    return len(killed)


@pytest.mark.timeout(3600)
def test_each_death_of_a_hundred_flapping_containers_is_recorded_once(node_of_own_engine: Node) -> None:
    check_flapping(node_of_own_engine, SHORT_PODS)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_each_death_of_two_hundred_flapping_containers_is_recorded_once(node_of_own_engine: Node) -> None:
    check_flapping(node_of_own_engine, LONG_PODS)


def check_flapping(own_node: Node, count: int) -> None:
    """Check that every death is recorded once, with on average at least two kills per container."""
    docker_events = DockerEvents(own_node.engine)
    try:
        kills = 2 * many_pods(own_node, count)
        killed = storm(own_node, own_node.engine, kills)
        assert killed >= kills
        own_node.journal.wait_for("the deaths by Docker", lambda: len(docker_events.deaths(own_node.name)) == killed)
        wait_for_agreement(own_node, f"after {killed} kills")
        deaths = docker_events.deaths(own_node.name)
        delays = lags(own_node, deaths)
        median, longest = delays[len(delays) // 2], delays[-1]
        print(f"{len(delays)} deaths: recorded after {median:.2f} s (median), {longest:.2f} s (longest)")  # noqa: T201 - measured times
        exited = {one.id for one in deaths}
        own_node.journal.wait_for(
            "the deaths by the pods",
            lambda: exited == {one.id for one in own_node.journal.events(pods.ContainerExited)},
        )
        assert own_node.runs
        assert "Traceback" not in own_node.log
    finally:
        docker_events.close()


def kill_agent(node: Node, _redis: PrivateRedis) -> None:
    followed = len(node.journal.events(pleg.StreamFollowed))
    node.kill9()
    node.start()
    node.journal.wait_for(
        "the next agent's event stream", lambda: len(node.journal.events(pleg.StreamFollowed)) > followed
    )


def kill_docker(node: Node, _redis: PrivateRedis) -> None:
    node.engine.kill9()
    node.engine.start()


def kill_redis(_node: Node, redis: PrivateRedis) -> None:
    redis.kill9()
    redis.start()


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_log_and_docker_agree_after_storms_with_kills_of_everything(own_node: Node, redis_server: PrivateRedis) -> None:
    count = many_pods(own_node, LONG_PODS)
    for kill in (kill_docker, kill_redis, kill_agent, kill_docker):
        own_node.journal.wait_for("the end of most back-offs", lambda: len(running(own_node)) >= count // 2, 300)
        killed = storm(own_node, own_node.engine, count)
        kill(own_node, redis_server)
        wait_for_agreement(own_node, f"after {killed} kills and {kill.__name__}")
    own_node.journal.wait_for("the end of all back-offs", lambda: len(running(own_node)) == count, 400)
    wait_for_agreement(own_node, "in the final state")
    assert own_node.runs
    assert "Traceback" not in own_node.log
