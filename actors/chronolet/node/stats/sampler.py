"""The sampler: one thread that reads the usage of the node and its pods, and keeps the last sample for the pages.

Input: `Running`, the kernel's files. Output: `Snapshot`s. Next: `pages`. After the first sample, pages do not call
Docker, and wait only briefly for a round: the sampler lists containers itself, and only if pleg has not done so for a
while. Corresponds to cAdvisor's housekeeping (manager/container.go).
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import structlog

from chronolet.adapters.machine.usage import Machine
from chronolet.node.http.fresh import BusyError
from chronolet.node.stats.disk import Disk
from chronolet.node.stats.running import Running
from chronolet.node.stats.samples import Measured, PodSample, Snapshot, rate
from chronolet.node.stats.tracked import Sources, TrackedPod
from chronolet.ports.runtime import labels
from chronolet.ports.runtime.runtime import ContainerState, Refusal

log = structlog.get_logger("chronolet.stats")

_BATCH_PODS = 16
_PAUSE_SECONDS = 0.01
"""Pause between batches of pods: a round is spread out so that it delays no probe."""
_RELIST_SECONDS = 60.0
_EXPECTED = (Refusal, OSError, ValueError, LookupError)
"""Errors raised if the engine does not answer, or if /proc has an unexpected format."""


class Waits(NamedTuple):
    """Maximum waiting times in seconds. `first`: how long a page waits for the first sample; `new`: how long a page
    waits for a sample of containers started since the last round; `end`: how long `stop` waits for the thread, because
    a slow engine may block it.
    """

    first: float = 5.0
    new: float = 0.05
    end: float = 0.2


WAITS = Waits()


class StatsSources(NamedTuple):
    """The sampler's data sources. `measure` reads the machine's usage; `list_all` calls the runtime and may raise
    `Refusal`.
    """

    running: Running
    sources: Sources
    measure: Callable[[], Machine]
    list_all: Callable[[], Sequence[ContainerState]]
    disk: Disk


class Sampler:
    """Samples the usage of the node and its pods periodically. Usable from any thread."""

    def __init__(self, sources: StatsSources, period_seconds: float, waits: Waits = WAITS) -> None:
        self._sources = sources
        self._waits = waits
        self._period = period_seconds
        self._relist_seconds = max(_RELIST_SECONDS, 2 * period_seconds)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._pods: dict[str, TrackedPod] = {}
        self._known: frozenset[str] = frozenset()
        self._last: Snapshot | None = None
        self._listed_at = float("-inf")
        self._thread = threading.Thread(target=self._run, name="stats", daemon=True)

    def start(self) -> None:
        """Sample immediately, then again one to two periods after each round, as cAdvisor does: the jitter keeps
        sampling out of step with other periodic work.
        """
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread; waits at most `Waits.end` for it."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join(self._waits.end)

    def latest(self) -> Snapshot:
        """Return the last sample, plus containers that have started since, unless a round takes longer than
        `Waits.new`. If there is no sample yet, take the first one: raises `Refusal` if the running containers cannot be
        listed, BusyError if another thread needs longer than `Waits.first` for it, and the errors in `_EXPECTED` if
        /proc is malformed.
        """
        last = self._last
        if last is None:
            return self._first()
        new = self._sources.running.now().keys() - self._known
        if new and self._lock.acquire(timeout=self._waits.new):
            try:
                last = self._last = self._with_new(self._last or last, new - self._known)
            finally:
                self._lock.release()
        return last

    def _first(self) -> Snapshot:
        if not self._lock.acquire(timeout=self._waits.first):
            raise BusyError
        try:
            if self._last is None:
                self._last = self._round(pause=0)
            return self._last
        finally:
            self._lock.release()

    def sample(self, *, pause: float = 0) -> None:
        """Run one round, with a pause of `pause` seconds after each batch of pods. Before the first sample, raises
        `Refusal` if the running containers cannot be listed; raises the other errors in `_EXPECTED` if /proc is
        malformed.
        """
        with self._lock:
            self._last = self._round(pause)

    def _run(self) -> None:
        reported = ""
        while True:
            try:
                self.sample(pause=_PAUSE_SECONDS)
                reported = ""
            except _EXPECTED as error:
                if str(error) != reported and not self._over.is_set():
                    reported = str(error)
                    log.warning("cannot sample resource usage, retrying", error=reported)
            if self._over.wait(random.uniform(self._period, 2 * self._period)):  # noqa: S311
                return

    def _round(self, pause: float) -> Snapshot:
        sources = self._sources
        self._relist()
        running = sources.running.now()
        by_pod = _by_pod(running)
        self._pods = {uid: self._pods.get(uid) or TrackedPod(uid, offset) for offset, uid in enumerate(by_pod)}
        found = [one for one in self._sampled(by_pod, pause) if one is not None]
        sources.disk.keep(running)
        self._known = frozenset(running)
        machine = sources.measure()
        before = self._last.machine.usage if self._last is not None else None
        return Snapshot(
            machine=machine,
            node=Measured(machine.usage, rate(before, machine.usage), "/"),
            pods=tuple(sorted(found)),
            images=sources.disk.images(),
            errors=sum(one.errors for one in self._pods.values()),
        )

    def _relist(self) -> None:
        """List the containers if this process's pleg does not: before its first relist, or in a standby process."""
        running, now = self._sources.running, time.monotonic()
        if min(running.age_seconds(), now - self._listed_at) <= self._relist_seconds:
            return
        self._listed_at = now if self._last is not None else self._listed_at
        try:
            running.listed(self._sources.list_all(), now)
        except Refusal:
            if self._last is None:
                raise

    def _sampled(self, by_pod: Mapping[str, list[ContainerState]], pause: float) -> Iterator[PodSample | None]:
        for number, (uid, containers) in enumerate(by_pod.items(), 1):
            found = self._pods[uid].sample(containers, self._sources.sources)
            yield None if found is None else self._sources.disk.added(found, self._pods[uid].pids())
            if pause and not number % _BATCH_PODS and self._over.wait(pause):
                return

    def _with_new(self, last: Snapshot, new: set[str]) -> Snapshot:
        running = self._sources.running.now()
        by_pod, pods = _by_pod(running), {one.uid: one for one in last.pods}
        for uid in {_uid(running[one]) for one in new if one in running}:
            tracked = self._pods.setdefault(uid, TrackedPod(uid, len(self._pods)))
            found = tracked.sample_new(by_pod[uid], self._sources.sources)
            if found is not None:
                pods[uid] = self._sources.disk.added(found, tracked.pids())
        self._known |= new
        return last._replace(pods=tuple(sorted(pods.values())))


def _uid(container: ContainerState) -> str:
    """Return the uid of the container's pod."""
    return container.labels.get(labels.POD_UID, "")


def _by_pod(running: Mapping[str, ContainerState]) -> dict[str, list[ContainerState]]:
    found: dict[str, list[ContainerState]] = {}
    for one in running.values():
        found.setdefault(_uid(one), []).append(one)
    return found
