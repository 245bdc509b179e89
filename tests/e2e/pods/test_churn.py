"""Pods are constantly added and removed: the agent's threads and files do not grow with the number of past pods."""

from tests.bench.pods.agent import on
from tests.bench.pods.churn import (
    FILE_SLACK,
    PODS,
    THREAD_SLACK,
    WARM_UP_PODS,
    WARM_UP_ROUNDS,
    Held,
    churn,
    held,
    leavings,
)
from tests.support.docker.engine import PrivateDocker
from tests.support.scratch import wait_until

SECONDS = 15
LEAST_ROUNDS = 2 * WARM_UP_ROUNDS
"""Minimum number of rounds after the warm-up, even on a busy machine."""


def test_threads_and_files_do_not_grow_with_past_pods(docker_engine: PrivateDocker) -> None:
    with on(docker_engine, docker_engine.folder / "churn") as agent:
        found = churn(agent, SECONDS, LEAST_ROUNDS)
        assert found.rounds >= LEAST_ROUNDS + WARM_UP_ROUNDS
        assert found.pods == found.rounds * PODS + WARM_UP_PODS - PODS
        assert found.warm.agent_threads > 1
        # A slow machine may still be at work; a leak would stay however long the test waits.
        wait_until(
            lambda: is_flat(held(agent), found.warm),
            f"what is held to be as after the warm-up: {found.warm}; in the last rounds it was {found.end}",
        )
        left = set(found.left)
        wait_until(lambda: not left & set(leavings(agent)), f"the removal of what is left: {found.left}")


def is_flat(now: Held, warm: Held) -> bool:
    return (
        now.agent_threads <= warm.agent_threads + THREAD_SLACK
        and now.agent_files <= warm.agent_files + FILE_SLACK
        and now.redis_threads <= warm.redis_threads + THREAD_SLACK
        and now.redis_files <= warm.redis_files + FILE_SLACK
    )
