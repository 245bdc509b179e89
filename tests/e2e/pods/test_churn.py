"""An agent whose pods come and go: nothing that it holds grows with those that are gone."""

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
from tests.support.docker import PrivateDocker
from tests.support.scratch import wait_until

SECONDS = 15
LEAST_ROUNDS = 2 * WARM_UP_ROUNDS
"""Beside those that warm up, even on a machine that has much else to do."""


def test_threads_and_files_stay_flat_and_nothing_is_left_behind(docker_engine: PrivateDocker) -> None:
    with on(docker_engine, docker_engine.folder / "churn") as agent:
        found = churn(agent, SECONDS, LEAST_ROUNDS)
        assert found.rounds >= LEAST_ROUNDS + WARM_UP_ROUNDS
        assert found.pods == found.rounds * PODS + WARM_UP_PODS - PODS
        assert found.warm.agent_threads > 1
        # A slow machine may be at work still; what is held without use stays, however long it is waited for.
        wait_until(
            lambda: is_flat(held(agent), found.warm),
            f"what is held to be what it was: {found.warm}; in the last rounds it was {found.end}",
        )
        left = set(found.left)
        wait_until(lambda: not left & set(leavings(agent)), f"the end of what is left: {found.left}")


def is_flat(now: Held, warm: Held) -> bool:
    return (
        now.agent_threads <= warm.agent_threads + THREAD_SLACK
        and now.agent_files <= warm.agent_files + FILE_SLACK
        and now.redis_threads <= warm.redis_threads + THREAD_SLACK
        and now.redis_files <= warm.redis_files + FILE_SLACK
    )
