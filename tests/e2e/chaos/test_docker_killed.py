"""Docker is killed with SIGKILL and restarted while pods change: log and Docker agree within five seconds, and all
expected pods reach their state.
"""

import random

import pytest

from tests.e2e.chaos.agreement import wait_for_agreement
from tests.e2e.chaos.churn import Churn, wait_for_changes
from tests.e2e.node import Node
from tests.integration.effects.registry import registry_in
from tests.support.docker.engine import private_docker
from tests.support.redis.server import private_redis
from tests.support.scratch import HANG_SECONDS, wait_until

KILLED = 3
"""Number of containers that are killed during each outage of Docker."""


def check_final_state(node: Node, churn: Churn) -> None:
    """Settle the churn; check that each expected pod is running or completed, and that nothing is left of others."""
    churn.settle()
    expected = {f"default/{name}" for name in churn.expected}

    def is_final() -> bool:
        pods = node.journal.pods
        if {name for name, state in pods.items() if not state.termination} != expected or len(pods) != len(expected):
            return False
        states = {name: node.container_states(name) for name in churn.expected}
        done = {name: ["Completed"] if kind == "once" else ["running"] for name, kind in churn.expected.items()}
        return {name: sorted(set(found)) for name, found in states.items()} == done

    node.journal.wait_for("the final state of all pods", is_final, 90)
    wait_for_agreement(node, "in the final state")
    assert {state.uid for state in node.journal.pods.values()} == {
        one["Labels"]["io.kubernetes.pod.uid"] for one in node.docker.containers(all=True)
    }


def check_agreement_after_kills(*, live_restore: bool, kills: int, seed: int) -> None:
    # On exit the engine ends first, and its containers with it.
    with (
        private_redis() as server,
        private_docker(live_restore=live_restore) as engine,
        registry_in(engine.namespace, slow=True) as registry,
    ):
        node = Node(engine, server.url, f"chaos-{seed}", server.folder / "agent")
        churn = Churn(node, seed, fetched=registry.reference)
        random_numbers = random.Random(seed)
        try:
            churn.start()
            wait_for_changes(node, churn, changes=40, lines=100)
            assert registry.half_sent.wait(HANG_SECONDS), "a pull is in progress, too"
            durations, killed = [], 0
            for number in range(kills):
                wait_for_changes(node, churn, changes=random_numbers.randrange(1, 20), lines=10)
                # On a slow machine the churn kills containers faster than they restart.
                wait_until(lambda: len(engine.processes()) >= KILLED, "containers to kill while Docker is down")
                engine.kill9()
                killed += churn.kill(KILLED)
                wait_for_changes(node, churn, changes=random_numbers.randrange(1, 20))
                engine.start()
                churn.pause()
                durations.append(wait_for_agreement(node, f"kill {number + 1}"))
                churn.resume()
            registry.released.set()
            check_final_state(node, churn)
            assert churn.hook_count()
            assert node.runs
            assert "Traceback" not in node.log, node.log[-3000:]
            assert killed >= kills, "containers died while Docker was down"
            counts = f"{kills} kills, {churn.changes} changes, {killed} deaths while Docker was down"
            print(f"{counts}: agreed after at most {max(durations):.2f} s")  # noqa: T201 - a measured time
        finally:
            churn.pause()
            node.close(remove=False)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("live_restore", [True, False], ids=["live-restore", "without"])
def test_log_and_docker_agree_after_docker_was_killed(live_restore: bool) -> None:
    check_agreement_after_kills(live_restore=live_restore, kills=3, seed=1)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("live_restore", [True, False], ids=["live-restore", "without"])
def test_log_and_docker_agree_after_many_kills(live_restore: bool) -> None:
    check_agreement_after_kills(live_restore=live_restore, kills=20, seed=2)
