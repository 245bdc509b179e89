"""Effect workers of the container collector: list everything that can be collected, and remove one dead object.

Input: effects from `wanted`. Output: calls to the runtime and changes to the log folders; signals. Next: `decider`.
Source: pkg/kubelet/kuberuntime/kuberuntime_gc.go. A running container is never removed: the runtime itself refuses to
remove one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress

from msgspec import Struct, field

from chronolet.container_gc import signals, wanted
from chronolet.container_gc.inventory import Inventory
from chronolet.kernel.kind import Effect, EffectContext, Job
from chronolet.ports.pods.pod_logs import ContainerLog, PodLogsRefusal
from chronolet.ports.runtime.fenced import FencedRuntime
from chronolet.ports.runtime.runtime import Refusal
from chronolet_schemas.container_gc import Victim
from chronolet_schemas.envelope import Signal

_SCAN_SECONDS = 300.0
_REMOVE_SECONDS = 300.0
_STOP_SECONDS = 10.0


class Turns:
    """A lock that is held either by one scan or by at most `most` removals at a time. A waiting scan holds back further
    removals.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._changed = threading.Condition()
        self._removals = 0
        self._scans = 0  # in progress or waiting
        self._scan = threading.Lock()

    @contextmanager
    def scanning(self) -> Iterator[None]:
        """Hold the lock for a scan, which starts once no removal is in progress."""
        with self._changed:
            self._scans += 1
        try:
            with self._scan:
                with self._changed:
                    self._changed.wait_for(lambda: not self._removals)
                yield
        finally:
            with self._changed:
                self._scans -= 1
                self._changed.notify_all()

    @contextmanager
    def removing(self) -> Iterator[None]:
        """Hold the lock for a removal, which starts once no scan is in progress or waiting and fewer than `most`
        removals are in progress.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._scans and self._removals < self.most)
            self._removals += 1
        try:
            yield
        finally:
            with self._changed:
                self._removals -= 1
                self._changed.notify_all()


class Collecting(Struct, frozen=True):
    """The workers of the container collector. `period_seconds` is the time between periodic scans.

    Scans and removals exclude each other. Otherwise a scan that began during a removal could report the removed object
    after its removal was recorded, and the next run would remove it again.
    """

    inventory: Inventory
    period_seconds: float
    turns: Turns = field(default_factory=lambda: Turns(1))

    def effects(self) -> Mapping[type[Effect], Job]:
        """Return the workers of the one-shot effects."""
        limit = self.turns.most
        return {
            wanted.Look: Job(self.scan, _SCAN_SECONDS, limit=limit),
            wanted.Remove: Job(self.remove, _REMOVE_SECONDS, limit=limit),
        }

    def standing(self) -> Mapping[type[Effect], Job]:
        """Return the workers of the standing effects."""
        return {wanted.LookPeriodically: Job(self.watch)}

    def watch(self, _effect: wanted.LookPeriodically, context: EffectContext) -> None:
        """Scan immediately, then every `period_seconds`."""
        while not context.cancelled.is_set():
            with self.turns.scanning():
                context.send(self.inventory.scan(fence=context.fence))
            context.cancelled.wait(self.period_seconds)

    def scan(self, effect: wanted.Look, context: EffectContext) -> Signal:
        """Scan once, for a requested run."""
        return self.inventory.scan(effect.subject, effect.intent, context.fence)

    def remove(self, effect: wanted.Remove, context: EffectContext) -> Signal:
        """Remove one object. Idempotent: an object that no longer exists counts as removed, whatever removed it."""
        try:
            with self.turns.removing():
                self._remove(effect.victim, context)
        except (Refusal, PodLogsRefusal) as refusal:
            return signals.RemovalRefused(subject=effect.subject, intent=effect.intent, error=str(refusal))
        return signals.RemovalDone(subject=effect.subject, intent=effect.intent)

    def _remove(self, victim: Victim, context: EffectContext) -> None:
        match victim.what:
            case "log_folder":
                context.fence("logs.remove")
                self.inventory.logs.remove_folder(victim.id)
                context.done("logs.remove")
            case "log_link":
                context.fence("logs.remove")
                self.inventory.logs.remove_link(victim.id)
                context.done("logs.remove")
            case _:
                runtime = FencedRuntime(self.inventory.runtime, context)
                if victim.stop:
                    _stop(runtime, victim)
                runtime.remove_dead(victim.id)
                self._unlink(victim)

    def _unlink(self, victim: Victim) -> None:
        """Remove the link to the removed container's log. If that fails, a later run removes it as a dangling link."""
        if victim.container:
            one = ContainerLog(pod=victim.pod, uid=victim.uid, container=victim.container, id=victim.id)
            with suppress(PodLogsRefusal):
                self.inventory.logs.unlink(one)


def _stop(runtime: FencedRuntime, victim: Victim) -> None:
    """Make sure that the object is not running: refuse if it has started since the scan, kill it if its state is
    uncertain.
    """
    found = runtime.inspect(victim.id)
    if found is None or found.state in ("created", "exited"):
        return
    if found.state == "running" or found.pid:
        raise Refusal("conflict", f"{victim.name} is running; only dead containers are removed")
    runtime.kill(victim.id, "KILL")
    if not runtime.wait(victim.id, _STOP_SECONDS):
        raise Refusal("timeout", f"{victim.name} did not stop within {_STOP_SECONDS:.0f} s")
