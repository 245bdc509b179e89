"""Docker killed -9 and started again in the middle of everything: the log and the runtime agree within five seconds,
and what is wanted comes to be.
"""

import random

import pytest

from tests.e2e.chaos.agreement import wait_for_agreement
from tests.e2e.chaos.churn import Churn, moved
from tests.e2e.node import Node
from tests.integration.effects.registry import registry_in
from tests.support.docker.engine import private_docker
from tests.support.redis.server import private_redis
from tests.support.scratch import HANG_SECONDS, wait_until

KILLED = 3
"""Containers that die while Docker is away, each time."""


def check_rest(node: Node, churn: Churn) -> None:
    """Every pod that is wanted runs or is done, and nothing is left of the others."""
    churn.settle()
    wanted = {f"default/{name}" for name in churn.wanted}

    def at_rest() -> bool:
        pods = node.journal.pods
        if {name for name, state in pods.items() if not state.termination} != wanted or len(pods) != len(wanted):
            return False
        words = {name: node.words(name) for name in churn.wanted}
        done = {name: ["Completed"] if kind == "once" else ["running"] for name, kind in churn.wanted.items()}
        return {name: sorted(set(found)) for name, found in words.items()} == done

    node.journal.wait_for("the end of all that is under way", at_rest, 90)
    wait_for_agreement(node, "at rest")
    assert {state.uid for state in node.journal.pods.values()} == {
        one["Labels"]["io.kubernetes.pod.uid"] for one in node.docker.containers(all=True)
    }


def killed_again_and_again(*, live_restore: bool, kills: int, seed: int) -> None:
    # The engine ends first: it takes the containers with it.
    with (
        private_redis() as server,
        private_docker(live_restore=live_restore) as engine,
        registry_in(engine.namespace, slow=True) as registry,
    ):
        node = Node(engine, server.url, f"chaos-{seed}", server.folder / "agent")
        churn = Churn(node, seed, fetched=registry.reference)
        dice = random.Random(seed)
        try:
            churn.begin()
            moved(node, churn, moves=40, lines=100)
            assert registry.half_sent.wait(HANG_SECONDS), "a pull is in the middle, too"
            took, hit = [], 0
            for number in range(kills):
                moved(node, churn, moves=dice.randrange(1, 20), lines=10)
                # On a slow machine the churn kills faster than containers come back.
                wait_until(lambda: len(engine.processes()) >= KILLED, "containers to kill while Docker is away")
                engine.kill9()
                hit += churn.kill(KILLED)
                moved(node, churn, moves=dice.randrange(1, 20))
                engine.start()
                churn.pause()
                took.append(wait_for_agreement(node, f"kill {number + 1}"))
                churn.go()
            registry.released.set()
            check_rest(node, churn)
            assert churn.hooks_run()
            assert node.runs
            assert "Traceback" not in node.log, node.log[-3000:]
            assert hit >= kills, "containers died while Docker was away"
            print(f"{kills} kills, {churn.moves} moves, {hit} deaths unseen: agreed after at most {max(took):.2f} s")  # noqa: T201 - asked for
        finally:
            churn.pause()
            node.close(remove=False)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("live_restore", [True, False], ids=["live-restore", "without"])
def test_killed_in_the_middle_of_everything(live_restore: bool) -> None:
    killed_again_and_again(live_restore=live_restore, kills=3, seed=1)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("live_restore", [True, False], ids=["live-restore", "without"])
def test_killed_again_and_again(live_restore: bool) -> None:
    killed_again_and_again(live_restore=live_restore, kills=20, seed=2)
