"""A hundred containers that flap at once, killed again as fast as they come up; with --long two hundred, and storms in
which everything else dies, too.
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
from tests.e2e.node import Node, pod, shell
from tests.e2e.witness import Witness
from tests.support.docker.engine import PrivateDocker, private_docker
from tests.support.redis.server import PrivateRedis, private_redis
from tests.support.scratch import hang_limit

SHORT_PODS, LONG_PODS = 20, 40
NAMES = ("a", "b", "c", "d", "e")


@pytest.fixture
def doomed_node() -> Iterator[Node]:
    """A node on an engine of its own, whose end takes the containers with it: to remove them one by one takes long."""
    with private_redis() as server, private_docker() as engine:
        node = Node(engine, server.url, "flapping", server.folder / "agent")
        try:
            yield node
        finally:
            node.close(remove=False)


def many_pods(node: Node, count: int) -> int:
    """So many pods of five containers, all of which run; how many containers that are."""
    for number in range(count):
        node.write(f"p{number}.yaml", pod(f"p{number}", *(shell(name) for name in NAMES)))
    node.start()
    wanted = count * len(NAMES)
    node.journal.wait_for(f"{wanted} containers", lambda: len(running(node)) == wanted, 240)
    return wanted


def running(node: Node) -> dict[str, str]:
    """The containers of the pods that run by the log: `pod/container` by id."""
    return {
        one.id: f"{state.pod} {one.name}"
        for state in node.journal.pods.values()
        for one in state.containers
        if one.phase == "running"
    }


def storm(node: Node, engine: PrivateDocker, blows: int) -> int:
    """Kill every container's processes as soon as the log says that it runs; how many containers that hit."""
    hit: set[str] = set()
    until = time.monotonic() + hang_limit(120)
    while len(hit) < blows and time.monotonic() < until:
        there = engine.processes()
        for container in running(node).keys() & there.keys() - hit:
            hit.add(container)
            for pid in there[container]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        node.journal.read(20)
    return len(hit)


@pytest.mark.timeout(3600)
def test_a_hundred_flapping_containers_are_known_as_they_are(doomed_node: Node) -> None:
    flap(doomed_node, SHORT_PODS)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_two_hundred_flapping_containers_are_known_as_they_are(doomed_node: Node) -> None:
    flap(doomed_node, LONG_PODS)


def flap(own_node: Node, count: int) -> None:
    """Each container is killed twice at least, and every death is known once."""
    witness = Witness(own_node.engine)
    try:
        blows = 2 * many_pods(own_node, count)
        hit = storm(own_node, own_node.engine, blows)
        assert hit >= blows
        own_node.journal.wait_for("Docker's own word", lambda: len(witness.deaths(own_node.name)) == hit)
        wait_for_agreement(own_node, f"after {hit} kills")
        deaths = witness.deaths(own_node.name)
        late = lags(own_node, deaths)
        print(f"{len(late)} deaths: known after {late[len(late) // 2]:.2f} s (median), {late[-1]:.2f} s (longest)")  # noqa: T201 - asked for
        exited = {one.id for one in deaths}
        own_node.journal.wait_for(
            "the pods' own word", lambda: exited == {one.id for one in own_node.journal.events(pods.ContainerExited)}
        )
        assert own_node.runs
        assert "Traceback" not in own_node.log
    finally:
        witness.close()


def kill_agent(node: Node, _redis: PrivateRedis) -> None:
    followed = len(node.journal.events(pleg.StreamFollowed))
    node.kill9()
    node.start()
    node.journal.wait_for("the next agent", lambda: len(node.journal.events(pleg.StreamFollowed)) > followed)


def kill_docker(node: Node, _redis: PrivateRedis) -> None:
    node.engine.kill9()
    node.engine.start()


def kill_redis(_node: Node, redis: PrivateRedis) -> None:
    redis.kill9()
    redis.start()


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_storms_in_which_everything_else_dies_too(own_node: Node, redis_server: PrivateRedis) -> None:
    blows = many_pods(own_node, LONG_PODS)
    for blow in (kill_docker, kill_redis, kill_agent, kill_docker):
        own_node.journal.wait_for("the end of most back-offs", lambda: len(running(own_node)) >= blows // 2, 300)
        hit = storm(own_node, own_node.engine, blows)
        blow(own_node, redis_server)
        wait_for_agreement(own_node, f"after {hit} kills and {blow.__name__}")
    own_node.journal.wait_for("the end of all back-offs", lambda: len(running(own_node)) == blows, 400)
    wait_for_agreement(own_node, "at rest")
    assert own_node.runs
    assert "Traceback" not in own_node.log
