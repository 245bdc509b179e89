"""Metrics of the kernel: steps, waiting messages, effects, ownership, recovery. All names begin with `chronolet_`.

Input: the calls of the kernel's `Observer`; when the page is rendered, the backlogs of the hosts. Output: metrics in a
registry. Next: `metrics`, which adds the kubelet's metrics.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from prometheus_client.metrics import Counter, Gauge, Histogram
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector, CollectorRegistry

from chronolet.kernel.observer import Backlog, Observer, Outcome, Queue
from chronolet_schemas import kernel
from chronolet_schemas.envelope import Event
from chronolet_schemas.keys import Shard

_STEP_BUCKETS = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
_SIZE_BUCKETS = (1, 2, 5, 10, 20, 50, 100, 200, 500)
_MILLI = 1000


class Ownership(NamedTuple):
    """What the process knows about its lease and its shards, read when the page is rendered."""

    valid: Callable[[], bool]
    """Whether the lease is valid."""
    lapses: Callable[[], int]
    """How many times the lease has lapsed."""
    quarantined: Callable[[], int]
    """How many shards cannot be hosted."""


class KernelMetrics(Observer):
    """Implements the kernel's `Observer`. Its methods are called on many threads."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._steps_and_messages(registry)
        self._effects(registry)
        self._shards(registry)
        self._live = LiveMetrics()
        registry.register(self._live)

    def watch(self, ownership: Ownership) -> None:
        """From now on, show the lease and the quarantined shards as they are at each scrape. The kernel reports the
        lease only between its calls to the store, any of which may hang.
        """
        self._live.ownership = ownership
        self.lease.set_function(lambda: float(ownership.valid()))

    def _steps_and_messages(self, registry: CollectorRegistry) -> None:
        self.steps = Counter("chronolet_steps_total", "Steps committed", ["shard"], registry=registry)
        self.refused_steps = Counter(
            "chronolet_steps_refused_total", "Steps that the store refused", ["shard", "reason"], registry=registry
        )
        self.step_seconds = Histogram(
            "chronolet_step_duration_seconds", "Duration of a commit", buckets=_STEP_BUCKETS, registry=registry
        )
        self.batches = Histogram(
            "chronolet_turn_messages",
            "Messages that a host took at a time, for one step",
            buckets=_SIZE_BUCKETS,
            registry=registry,
        )
        self.step_events = Histogram(
            "chronolet_step_events", "Events of one step", buckets=_SIZE_BUCKETS, registry=registry
        )
        self.events = Counter("chronolet_events_total", "Events written to the log", ["kind"], registry=registry)
        self.dead_letters = Counter(
            "chronolet_dead_letters_total", "Messages moved to the dead letters", ["kind"], registry=registry
        )

    def _effects(self, registry: CollectorRegistry) -> None:
        self.effects_running = Gauge(
            "chronolet_effects_running", "Effects running now", ["kind", "effect"], registry=registry
        )
        self.effects = Counter(
            "chronolet_effects_total", "Effects that ended", ["kind", "effect", "outcome"], registry=registry
        )
        self.effect_seconds = Histogram(
            "chronolet_effect_duration_seconds", "Duration of effects", ["kind"], registry=registry
        )
        self.effect_waits = Histogram(
            "chronolet_effect_wait_seconds", "Time that effects waited in a queue", ["kind"], registry=registry
        )

    def _shards(self, registry: CollectorRegistry) -> None:
        self.restarts = Counter("chronolet_host_restarts_total", "Host restarts", ["shard"], registry=registry)
        self.shards = Gauge("chronolet_shards_owned", "Shards hosted by this process", registry=registry)
        self.acquired = Counter(
            "chronolet_shards_acquired_total", "Hosts started, restarts included", ["kind"], registry=registry
        )
        self.left = Counter(
            "chronolet_shards_left_total", "Hosts stopped, for whatever reason", ["kind"], registry=registry
        )
        self.taken = Counter(
            "chronolet_shards_taken_total", "Hosted shards found to have another owner", ["kind"], registry=registry
        )
        self.moved = Counter(
            "chronolet_shards_moved_total", "Shards handed over to other processes", ["kind"], registry=registry
        )
        self.lease = Gauge("chronolet_lease_valid", "1 while this process may run effects", registry=registry)
        self.recoveries = Counter("chronolet_recoveries_total", "Recoveries", registry=registry)
        self.recovery_seconds = Gauge(
            "chronolet_recovery_duration_seconds", "Duration of the last recovery", registry=registry
        )
        self.replay_seconds = Counter(
            "chronolet_replay_seconds_total", "Time spent on recoveries, cumulative", registry=registry
        )
        self.recovered_events = Counter(
            "chronolet_recovered_events_total", "Log entries read by recoveries", registry=registry
        )

    # -- steps -----------------------------------------------------------------------------------------------------
    def step_done(self, shard: Shard, events: Sequence[Event], seconds: float) -> None:
        """Count a step, its events, and the log entries that it quarantined."""
        self.steps.labels(str(shard)).inc()
        self.step_seconds.observe(seconds)
        self.step_events.observe(len(events))
        if events:
            self.events.labels(shard.kind).inc(len(events))
            for event in events:
                if isinstance(event, kernel.EntryQuarantined):
                    self.dead_letters.labels(shard.kind).inc()

    def turn_taken(self, shard: Shard, messages: int) -> None:  # noqa: ARG002 - one series for all shards
        """Record how many messages a host took."""
        self.batches.observe(messages)

    def step_refused(self, shard: Shard, reason: Literal["fenced", "conflict"]) -> None:
        """Count a step that the store refused."""
        self.refused_steps.labels(str(shard), reason).inc()

    def dead_lettered(self, kind: str) -> None:
        """Count a message or an effect that was given up. `step_done` counts entries that cannot be decoded."""
        self.dead_letters.labels(kind).inc()

    # -- effects ---------------------------------------------------------------------------------------------------
    def effect_queued(self, kind: str, entity: str, cause: str, queue: Queue) -> None:
        """Record nothing: the wait is recorded when it is over."""

    def effect_waited(self, kind: str, entity: str, cause: str, seconds: float) -> None:  # noqa: ARG002
        """Record how long an effect waited in its queue."""
        self.effect_waits.labels(kind).observe(seconds)

    def effect_started(self, kind: str, effect: str, *, began: float = 0.0, standing: bool = False) -> None:
        """Count a running effect."""
        self.effects_running.labels(kind, effect).inc()
        if not standing:
            self._live.began(kind, effect, began)

    def effect_done(
        self, kind: str, effect: str, seconds: float, outcome: Outcome, *, began: float = 0.0, standing: bool = False
    ) -> None:
        """Count a finished effect and its duration."""
        self.effects.labels(kind, effect, outcome).inc()
        self.effect_seconds.labels(kind).observe(seconds)
        if began:
            self.effects_running.labels(kind, effect).dec()
        if not standing:
            self._live.ended(kind, effect, began)

    # -- ownership -------------------------------------------------------------------------------------------------
    def host_restarted(self, shard: Shard) -> None:
        """Count a host restart."""
        self.restarts.labels(str(shard)).inc()

    def shards_owned(self, count: int) -> None:
        """Set the number of shards hosted by this process."""
        self.shards.set(count)

    def shard_acquired(self, shard: Shard, states: Mapping[str, Any], backlog: Callable[[], Backlog]) -> None:  # noqa: ARG002
        """Count a started host, and show its backlog from now on. Starts the other series of the shard and its kind at
        0, because Prometheus does not see an increase in a series that begins at 1.
        """
        self.acquired.labels(shard.kind).inc()
        self.restarts.labels(str(shard))
        for counter in (self.dead_letters, self.left, self.taken, self.moved):
            counter.labels(shard.kind)
        self._live.hosts(shard, backlog)

    def shard_taken(self, shard: Shard) -> None:
        """Count a hosted shard that was found to have another owner."""
        self.taken.labels(shard.kind).inc()

    def shard_moved(self, shard: Shard) -> None:
        """Count a shard that was handed over."""
        self.moved.labels(shard.kind).inc()

    def shard_lost(self, shard: Shard, keys: Collection[str]) -> None:  # noqa: ARG002 - for subclasses
        """Count a stopped host."""
        self.left.labels(shard.kind).inc()
        self._live.leaves(shard)

    def lease_valid(self, valid: bool) -> None:
        """Set whether the lease is valid."""
        self.lease.set(int(valid))

    def recovered(self, shards: int, events: int, seconds: float) -> None:  # noqa: ARG002 - see `shards_owned`
        """Count a recovery, its log entries and its duration."""
        self.recoveries.inc()
        self.recovered_events.inc(events)
        self.recovery_seconds.set(seconds)
        self.replay_seconds.inc(seconds)


class LiveMetrics(Collector):
    """Values that exist only at the time of a scrape: ages and backlogs."""

    def __init__(self) -> None:
        self.ownership = Ownership(lambda: False, lambda: 0, lambda: 0)
        self._lock = threading.Lock()
        self._backlogs: dict[Shard, Callable[[], Backlog]] = {}
        self._began: dict[tuple[str, str], list[float]] = {}

    def hosts(self, shard: Shard, backlog: Callable[[], Backlog]) -> None:
        """Show the backlog of a shard."""
        with self._lock:
            self._backlogs[shard] = backlog

    def leaves(self, shard: Shard) -> None:
        """Stop showing the backlog of a shard."""
        with self._lock:
            self._backlogs.pop(shard, None)

    def began(self, kind: str, effect: str, began: float) -> None:
        """Record the start of a one-shot effect. `began`: when it started, by `time.monotonic`."""
        with self._lock:
            self._began.setdefault((kind, effect), []).append(began)

    def ended(self, kind: str, effect: str, began: float) -> None:
        """Record the end of an effect by the time at which it began. An effect that never began is ignored."""
        with self._lock:
            running = self._began.get((kind, effect), [])
            if began in running:
                running.remove(began)

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics. Called for each scrape."""
        with self._lock:
            backlogs = sorted(self._backlogs.items(), key=lambda one: str(one[0]))
            oldest = {name: min(running) for name, running in self._began.items() if running}
        yield from _waiting([(str(shard), backlog()) for shard, backlog in backlogs])
        ages = GaugeMetricFamily(
            "chronolet_effect_oldest_seconds",
            "Age of the longest-running one-shot effect; no series if none is running",
            labels=["kind", "effect"],
        )
        now = time.monotonic()
        for name, began in sorted(oldest.items()):
            ages.add_metric(name, now - began)
        yield ages
        yield CounterMetricFamily("chronolet_lease_lapses", "How often the lease has lapsed", self.ownership.lapses())
        yield GaugeMetricFamily(
            "chronolet_shards_quarantined",
            "Shards that this process cannot host, see /readyz",
            self.ownership.quarantined(),
        )
        yield GaugeMetricFamily("chronolet_threads", "Threads of this process", threading.active_count())


def _waiting(backlogs: Sequence[tuple[str, Backlog]]) -> Iterator[Metric]:
    counts = GaugeMetricFamily(
        "chronolet_messages_waiting",
        "Messages that wait for a host: log entries, commands, and others (results of effects, timers)",
        labels=["shard", "source"],
    )
    ages = GaugeMetricFamily(
        "chronolet_message_oldest_seconds",
        "Age of the oldest message that waits for a host, 0 if none waits",
        labels=["shard", "source"],
    )
    stuck = GaugeMetricFamily(
        "chronolet_host_stuck_seconds",
        "Time since a host last took messages while some are waiting, 0 if none waits",
        labels=["shard"],
    )
    now = time.time_ns() // 1_000_000
    for shard, one in backlogs:
        for source, count in (("log", one.log_entries), ("mailbox", one.commands), ("other", one.others)):
            counts.add_metric([shard, source], count)
        for source, at in (("log", one.oldest_entry_at), ("mailbox", one.oldest_command_at)):
            ages.add_metric([shard, source], max(0, now - at) / _MILLI if at else 0)
        stuck.add_metric([shard], one.seconds_waiting)
    yield from (counts, ages, stuck)
