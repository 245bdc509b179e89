"""Metrics of the kernel: backlogs, ages of effects, lapses of the lease, shards, dead letters, steps, recovery."""

import time

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from chronolet.kernel.observer import Backlog
from chronolet.node.metrics.kernel import KernelMetrics, Ownership
from chronolet_schemas import kernel, pod
from chronolet_schemas.keys import Shard

POD = Shard("pod", 2)


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def metrics(registry: CollectorRegistry) -> KernelMetrics:
    return KernelMetrics(registry)


def lines(registry: CollectorRegistry, name: str) -> dict[str, float]:
    """Return the values of a metric by their labels, as written on the page."""
    found: dict[str, float] = {}
    for line in generate_latest(registry).decode().splitlines():
        series, _, value = line.rpartition(" ")
        if series.partition("{")[0] == name:
            found[series.removeprefix(name)] = float(value)
    return found


def test_backlogs_of_hosted_shards(registry: CollectorRegistry, metrics: KernelMetrics) -> None:
    old = time.time_ns() // 1_000_000 - 60_000
    backlog = Backlog(log_entries=3, commands=1, others=2, oldest_entry_at=old, seconds_waiting=7.5)
    metrics.shard_acquired(POD, {}, lambda: backlog)
    waiting = {
        f'{{shard="pod/2",source="{name}"}}': count for name, count in (("log", 3), ("mailbox", 1), ("other", 2))
    }
    assert lines(registry, "chronolet_messages_waiting") == waiting
    ages = lines(registry, "chronolet_message_oldest_seconds")
    assert ages['{shard="pod/2",source="log"}'] >= 60
    assert ages['{shard="pod/2",source="mailbox"}'] == 0, "no age is known, as in a mailbox without commands"
    assert lines(registry, "chronolet_shards_acquired_total") == {'{kind="pod"}': 1}
    assert lines(registry, "chronolet_host_stuck_seconds") == {'{shard="pod/2"}': 7.5}
    metrics.shard_lost(POD, ())
    assert not lines(registry, "chronolet_messages_waiting")
    assert lines(registry, "chronolet_shards_left_total") == {'{kind="pod"}': 1}


def test_a_message_from_the_future_has_no_negative_age(registry: CollectorRegistry, metrics: KernelMetrics) -> None:
    """The server's clock may be ahead of this machine's."""
    later = time.time_ns() // 1_000_000 + 3_600_000
    metrics.shard_acquired(POD, {}, lambda: Backlog(commands=1, oldest_command_at=later))
    assert lines(registry, "chronolet_message_oldest_seconds")['{shard="pod/2",source="mailbox"}'] == 0


def test_the_age_of_the_oldest_effect(registry: CollectorRegistry, metrics: KernelMetrics) -> None:
    now = time.monotonic()
    metrics.effect_started("pod", "EnsureImage", began=now - 100)
    metrics.effect_started("pod", "EnsureImage", began=now - 10)
    metrics.effect_started("prober", "RunProbe", began=now - 1000, standing=True)
    (labels,) = lines(registry, "chronolet_effect_oldest_seconds")
    assert labels == '{effect="EnsureImage",kind="pod"}', "a standing effect has no age"
    assert lines(registry, "chronolet_effect_oldest_seconds")[labels] >= 100
    metrics.effect_done("pod", "EnsureImage", 100, "done", began=now - 100)
    assert 10 <= lines(registry, "chronolet_effect_oldest_seconds")[labels] < 100
    metrics.effect_done("pod", "EnsureImage", 10, "failed", began=now - 10)
    metrics.effect_done("pod", "EnsureImage", 10, "timed_out", began=0.0)
    assert not lines(registry, "chronolet_effect_oldest_seconds")
    running = lines(registry, "chronolet_effects_running")
    assert running == {'{effect="EnsureImage",kind="pod"}': 0, '{effect="RunProbe",kind="prober"}': 1}


def test_ownership_and_threads(registry: CollectorRegistry, metrics: KernelMetrics) -> None:
    assert lines(registry, "chronolet_lease_lapses_total") == {"": 0}
    metrics.lease_valid(True)
    assert lines(registry, "chronolet_lease_valid") == {"": 1}
    metrics.watch(Ownership(valid=lambda: False, lapses=lambda: 3, quarantined=lambda: 2))
    assert lines(registry, "chronolet_lease_valid") == {"": 0}
    assert lines(registry, "chronolet_lease_lapses_total") == {"": 3}
    assert lines(registry, "chronolet_shards_quarantined") == {"": 2}
    assert lines(registry, "chronolet_threads")[""] >= 1
    metrics.shard_taken(POD)
    assert lines(registry, "chronolet_shards_taken_total") == {'{kind="pod"}': 1}
    metrics.shard_moved(POD)
    assert lines(registry, "chronolet_shards_moved_total") == {'{kind="pod"}': 1}


def test_an_entry_that_cannot_be_decoded_is_a_dead_letter(registry: CollectorRegistry, metrics: KernelMetrics) -> None:
    event = kernel.EntryQuarantined(message="x", source="mailbox", at="1-1", error="no such type")
    metrics.step_done(POD, (event,), 0.001)
    metrics.dead_lettered("pod")
    assert lines(registry, "chronolet_dead_letters_total") == {'{kind="pod"}': 2}


def test_batches_steps_and_replay(registry: CollectorRegistry, metrics: KernelMetrics) -> None:
    metrics.turn_taken(POD, 7)
    ended = pod.PodEnded(pod="default/web", uid="u")
    metrics.step_done(POD, (ended, ended), 0.001)
    metrics.recovered(2, 100, 0.5)
    metrics.recovered(1, 50, 0.25)
    assert lines(registry, "chronolet_turn_messages_sum") == {"": 7}
    assert lines(registry, "chronolet_step_events_sum") == {"": 2}
    assert lines(registry, "chronolet_replay_seconds_total") == {"": 0.75}
    assert lines(registry, "chronolet_recovery_duration_seconds") == {"": 0.25}
