"""The sampler: one thread that reads what the node and its pods use, and keeps the last sample for the pages.

Input: `Running`, the kernel's files. Output: `Snapshot`s. Next: `pages`. No page waits for a sample, and none asks
Docker: a listing is asked for here, only while pleg has made none for a while. Corresponds to cAdvisor's housekeeping
(manager/container.go).
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

_PODS_AT_ONCE = 16
_BREATH_SECONDS = 0.01
"""Between batches of pods: a round is spread out, so that it delays no probe."""
_RELIST_SECONDS = 60.0
_FIRST_SECONDS = 5.0
"""How long a page waits for the first sample."""
_NEW_SECONDS = 0.05
"""How long it waits to have containers read that started since the last one."""
_END_SECONDS = 0.2
"""How long the end waits for the thread, which an engine may keep waiting."""
_FORESEEN = (Refusal, OSError, ValueError, LookupError)
"""No engine; a /proc that does not read as a kernel's."""


class Outside(NamedTuple):
    """What the sampler reads. `look` is the machine now; `list_all` asks the runtime, and may raise `Refusal`."""

    running: Running
    sources: Sources
    look: Callable[[], Machine]
    list_all: Callable[[], Sequence[ContainerState]]
    disk: Disk


class Sampler:
    """Usable from any thread."""

    def __init__(self, outside: Outside, period_seconds: float) -> None:
        self._outside = outside
        self._period = period_seconds
        self._relist_seconds = max(_RELIST_SECONDS, 2 * period_seconds)
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._pods: dict[str, TrackedPod] = {}
        self._known: frozenset[str] = frozenset()
        self._last: Snapshot | None = None
        self._asked_at = float("-inf")
        self._thread = threading.Thread(target=self._run, name="stats", daemon=True)

    def start(self) -> None:
        """Sample at once, then one to two periods after each round, as cAdvisor does: so that it falls into step with
        nothing else that comes at intervals.
        """
        self._thread.start()

    def stop(self) -> None:
        """End the thread; one that waits for the engine is left behind."""
        self._over.set()
        if self._thread.ident is not None:
            self._thread.join(_END_SECONDS)

    def latest(self) -> Snapshot:
        """The last sample, with containers that have started since. `Refusal` as long as nobody knows what runs,
        BusyError while the first sample is being taken.
        """
        last = self._last
        if last is None:
            return self._first()
        new = self._outside.running.now().keys() - self._known
        if new and self._lock.acquire(timeout=_NEW_SECONDS):
            try:
                last = self._last = self._with_new(self._last or last, new - self._known)
            finally:
                self._lock.release()
        return last

    def _first(self) -> Snapshot:
        if not self._lock.acquire(timeout=_FIRST_SECONDS):
            raise BusyError
        try:
            if self._last is None:
                self._last = self._round(breath=0)
            return self._last
        finally:
            self._lock.release()

    def sample(self, *, breath: float = 0) -> None:
        """One round. `Refusal` as `latest`; OSError and the like where /proc is not as expected."""
        with self._lock:
            self._last = self._round(breath)

    def _run(self) -> None:
        reported = ""
        while True:
            try:
                self.sample(breath=_BREATH_SECONDS)
                reported = ""
            except _FORESEEN as error:
                if str(error) != reported and not self._over.is_set():
                    reported = str(error)
                    log.warning("no sample of what pods use; trying again", error=reported)
            if self._over.wait(random.uniform(self._period, 2 * self._period)):  # noqa: S311
                return

    def _round(self, breath: float) -> Snapshot:
        outside = self._outside
        self._relist()
        running = outside.running.now()
        by_pod = _by_pod(running)
        self._pods = {uid: self._pods.get(uid) or TrackedPod(uid, offset) for offset, uid in enumerate(by_pod)}
        found = [one for one in self._sampled(by_pod, breath) if one is not None]
        outside.disk.keep(running)
        self._known = frozenset(running)
        machine = outside.look()
        before = self._last.machine.usage if self._last is not None else None
        return Snapshot(
            machine=machine,
            node=Measured(machine.usage, rate(before, machine.usage), "/"),
            pods=tuple(sorted(found)),
            images=outside.disk.images(),
            errors=sum(one.errors for one in self._pods.values()),
        )

    def _relist(self) -> None:
        """Where no pleg of this process lists: before its first listing, or in a process that stands by."""
        running, now = self._outside.running, time.monotonic()
        if min(running.age_seconds(), now - self._asked_at) <= self._relist_seconds:
            return
        self._asked_at = now if self._last is not None else self._asked_at
        try:
            running.listed(self._outside.list_all(), now)
        except Refusal:
            if self._last is None:
                raise

    def _sampled(self, by_pod: Mapping[str, list[ContainerState]], breath: float) -> Iterator[PodSample | None]:
        for number, (uid, containers) in enumerate(by_pod.items(), 1):
            found = self._pods[uid].sample(containers, self._outside.sources)
            yield None if found is None else self._outside.disk.added(found, self._pods[uid].pids())
            if breath and not number % _PODS_AT_ONCE and self._over.wait(breath):
                return

    def _with_new(self, last: Snapshot, new: set[str]) -> Snapshot:
        running = self._outside.running.now()
        by_pod, pods = _by_pod(running), {one.uid: one for one in last.pods}
        for uid in {_uid(running[one]) for one in new if one in running}:
            tracked = self._pods.setdefault(uid, TrackedPod(uid, len(self._pods)))
            found = tracked.sample_new(by_pod[uid], self._outside.sources)
            if found is not None:
                pods[uid] = self._outside.disk.added(found, tracked.pids())
        self._known |= new
        return last._replace(pods=tuple(sorted(pods.values())))


def _uid(container: ContainerState) -> str:
    """Of its pod."""
    return container.labels.get(labels.POD_UID, "")


def _by_pod(running: Mapping[str, ContainerState]) -> dict[str, list[ContainerState]]:
    found: dict[str, list[ContainerState]] = {}
    for one in running.values():
        found.setdefault(_uid(one), []).append(one)
    return found
