"""Two hundred containers that flap at once, killed again as fast as they come up."""

import os
import signal
import time
from contextlib import suppress

import pytest

from chronolet_schemas import pleg
from chronolet_schemas import pod as pods
from tests.e2e.chaos.agreement import lags, wait_for_agreement
from tests.e2e.node import Node, pod, shell
from tests.e2e.witness import Witness
from tests.support.docker import PrivateDocker
from tests.support.redis import PrivateRedis
from tests.support.scratch import hang_limit

PODS = 40
NAMES = ("a", "b", "c", "d", "e")


def many_pods(node: Node) -> None:
    """Forty pods of five containers, all of which run."""
    for number in range(PODS):
        node.write(f"p{number}.yaml", pod(f"p{number}", *(shell(name) for name in NAMES)))
    node.start()
    node.journal.wait_for("two hundred containers", lambda: len(running(node)) == PODS * len(NAMES), 240)


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


@pytest.mark.timeout(900)
def test_two_hundred_flapping_containers_are_known_as_they_are(own_node: Node, docker_engine: PrivateDocker) -> None:
    witness = Witness(docker_engine)
    try:
        many_pods(own_node)
        hit = storm(own_node, docker_engine, 2 * PODS * len(NAMES))
        assert hit >= 2 * PODS * len(NAMES)
        own_node.journal.wait_for("Docker's own word", lambda: len(witness.deaths(own_node.name)) == hit)
        wait_for_agreement(own_node, f"after {hit} kills")
        deaths = witness.deaths(own_node.name)
        late = lags(own_node, deaths)
        print(f"{len(late)} deaths: known after {late[len(late) // 2]:.2f} s (median), {late[-1]:.2f} s (longest)")  # noqa: T201 - asked for
        exited = {one.id for one in deaths}
        own_node.journal.wait_for(
            "the pods' own word", lambda: exited == {one.id for one in own_node.journal.events(pods.ContainerExited)}, 5
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
@pytest.mark.timeout(1800)
def test_storms_in_which_everything_else_dies_too(own_node: Node, redis_server: PrivateRedis) -> None:
    many_pods(own_node)
    blows = PODS * len(NAMES)
    for blow in (kill_docker, kill_redis, kill_agent, kill_docker):
        own_node.journal.wait_for("the end of most back-offs", lambda: len(running(own_node)) >= blows // 2, 300)
        hit = storm(own_node, own_node.engine, blows)
        blow(own_node, redis_server)
        wait_for_agreement(own_node, f"after {hit} kills and {blow.__name__}")
    own_node.journal.wait_for("the end of all back-offs", lambda: len(running(own_node)) == blows, 400)
    wait_for_agreement(own_node, "at rest")
    assert own_node.runs
    assert "Traceback" not in own_node.log
