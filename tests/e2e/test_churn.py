"""An agent whose pods come and go: nothing that it holds grows with those that are gone."""

from tests.bench.pods.agent import on
from tests.bench.pods.churn import FILE_SLACK, PODS, THREAD_SLACK, WARM_UP_PODS, WARM_UP_ROUNDS, churn
from tests.support.docker import PrivateDocker

SECONDS = 15
LEAST_ROUNDS = 2 * WARM_UP_ROUNDS
"""Beside those that warm up, even on a machine that has much else to do."""


def test_threads_and_files_stay_flat_and_nothing_is_left_behind(docker_engine: PrivateDocker) -> None:
    with on(docker_engine, docker_engine.folder / "churn") as agent:
        found = churn(agent, SECONDS, LEAST_ROUNDS)
    assert found.rounds >= LEAST_ROUNDS + WARM_UP_ROUNDS
    assert found.pods == found.rounds * PODS + WARM_UP_PODS - PODS
    assert found.warm.agent_threads > 1
    assert found.end.agent_threads <= found.warm.agent_threads + THREAD_SLACK
    assert found.end.agent_files <= found.warm.agent_files + FILE_SLACK
    assert found.end.redis_threads <= found.warm.redis_threads + THREAD_SLACK
    assert found.end.redis_files <= found.warm.redis_files + FILE_SLACK
    assert found.left == []
