"""The event stream is cut repeatedly while containers die: log and Docker agree within five seconds."""

import pytest

from chronolet_schemas import pleg
from tests.e2e.chaos.agreement import differences, wait_for_agreement
from tests.e2e.chaos.churn import Churn, wait_for_changes
from tests.e2e.node import Node, pod, shell
from tests.support.docker.engine import PrivateDocker
from tests.support.docker.proxy import DockerProxy, Fault, docker_proxy
from tests.support.redis.server import PrivateRedis
from tests.support.scratch import wait_until


def test_differences_between_log_and_docker_are_found(own_node: Node) -> None:
    own_node.write("two.yaml", pod("two", shell("app"), shell("other")))
    own_node.start()
    own_node.wait_until_running("two")
    own_node.journal.wait_for("agreement", lambda: not differences(own_node))
    own_node.kill9()
    dead = own_node.running("two")["app"]["Id"]
    own_node.docker.kill(dead)
    wait_until(lambda: "app" not in own_node.running("two"), "its end, which follows the answer")
    found = [line.partition(" ")[2] for line in differences(own_node)]
    assert found == [f"{dead} dead for Docker, for pleg runs", f"{dead} gone for Docker, for pod runs"]
    own_node.docker.remove_container(own_node.running("two")["other"]["Id"], force=True)
    assert len(differences(own_node)) == 4


def cut(node: Node, proxy: DockerProxy) -> Fault:
    """Cut the stream and prevent it from being opened again. Wait until the log contains the loss and the agent has
    tried again; return the fault, which lasts until the caller lifts it.
    """
    node.journal.wait_for("a stream that is followed", lambda: is_followed(node) and proxy.under_way("/events"))
    closed = proxy.drop("/events")
    assert proxy.cut("/events")
    node.journal.wait_for("attempts to follow again", lambda: not is_followed(node) and len(closed.met) >= 2)
    return closed


def is_followed(node: Node) -> bool:
    """Return whether the stream is followed, according to the last entry about it."""
    events = [
        line.event for line in node.journal.lines if isinstance(line.event, pleg.StreamFollowed | pleg.StreamLost)
    ]
    return bool(events) and isinstance(events[-1], pleg.StreamFollowed)


def check_agreement_after_cuts(node: Node, proxy: DockerProxy, cuts: int) -> None:
    node.environ["DOCKER_HOST"] = proxy.host
    churn = Churn(node, seed=3)
    try:
        churn.start()
        durations, killed = [], 0
        for number in range(cuts):
            wait_for_changes(node, churn, changes=5)
            closed = cut(node, proxy)
            churn.pause()
            killed += churn.kill(4)
            closed.lift()
            durations.append(wait_for_agreement(node, f"cut {number + 1}"))
            churn.resume()
        churn.pause()
        lost = node.journal.events(pleg.StreamLost)
        assert len(lost) >= cuts
        assert killed >= 2 * cuts
        print(f"{cuts} cuts, {killed} deaths: agreed after at most {max(durations):.2f} s")  # noqa: T201 - a measured time
        assert "Traceback" not in node.log, node.log[-3000:]
    finally:
        churn.pause()


@pytest.mark.timeout(1800)
def test_a_cut_stream_is_followed_again(own_node: Node, docker_engine: PrivateDocker) -> None:
    with docker_proxy(docker_engine.host) as proxy:
        check_agreement_after_cuts(own_node, proxy, 5)


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_stream_cut_many_times_is_followed_again(
    own_node: Node, docker_engine: PrivateDocker, redis_server: PrivateRedis
) -> None:
    with docker_proxy(docker_engine.host) as proxy:
        check_agreement_after_cuts(own_node, proxy, 60)
