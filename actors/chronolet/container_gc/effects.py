"""Effect workers of the collector of containers: list what exists, and remove one dead object.

Input: effects of `wanted`. Output: calls to the runtime and to the log folders; signals. Next: `decider`. Source:
pkg/kubelet/kuberuntime/kuberuntime_gc.go. A running container is never removed: the runtime itself refuses to.
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

_LOOK_SECONDS = 300.0
_REMOVE_SECONDS = 300.0
_STOP_SECONDS = 10.0


class Turns:
    """A lock for either one look or at most `most` concurrent removals. A waiting look holds back further removals."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._changed = threading.Condition()
        self._removals = 0
        self._looks = 0  # in progress or waiting
        self._look = threading.Lock()

    @contextmanager
    def looking(self) -> Iterator[None]:
        """Hold the lock for a look: no removal is in progress."""
        with self._changed:
            self._looks += 1
        try:
            with self._look:
                with self._changed:
                    self._changed.wait_for(lambda: not self._removals)
                yield
        finally:
            with self._changed:
                self._looks -= 1
                self._changed.notify_all()

    @contextmanager
    def removing(self) -> Iterator[None]:
        """Hold the lock for a removal: no look is in progress or waiting, and fewer than `most` removals are in
        progress.
        """
        with self._changed:
            self._changed.wait_for(lambda: not self._looks and self._removals < self.most)
            self._removals += 1
        try:
            yield
        finally:
            with self._changed:
                self._removals -= 1
                self._changed.notify_all()


class Collecting(Struct, frozen=True):
    """The workers. `period_seconds` is the time between looks.

    Looks and removals exclude each other. Otherwise a look that began during a removal would report the removed object
    after its removal was recorded, and the next run would remove it again.
    """

    inventory: Inventory
    period_seconds: float
    turns: Turns = field(default_factory=lambda: Turns(1))

    def effects(self) -> Mapping[type[Effect], Job]:
        """The one-shot effects."""
        limit = self.turns.most
        return {
            wanted.Look: Job(self.look, _LOOK_SECONDS, limit=limit),
            wanted.Remove: Job(self.remove, _REMOVE_SECONDS, limit=limit),
        }

    def standing(self) -> Mapping[type[Effect], Job]:
        """The standing effects."""
        return {wanted.LookPeriodically: Job(self.watch)}

    def watch(self, _effect: wanted.LookPeriodically, context: EffectContext) -> None:
        """Look immediately and after each period."""
        while not context.cancelled.is_set():
            with self.turns.looking():
                context.send(self.inventory.look(fence=context.fence))
            context.cancelled.wait(self.period_seconds)

    def look(self, effect: wanted.Look, context: EffectContext) -> Signal:
        """Look once."""
        return self.inventory.look(effect.subject, effect.intent, context.fence)

    def remove(self, effect: wanted.Remove, context: EffectContext) -> Signal:
        """Remove one object. Idempotent: an object that is already gone, by an earlier attempt or by someone else,
        counts as removed.
        """
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
        """Remove the link to the removed log. If that fails, the next run removes the link as dangling."""
        if victim.container:
            one = ContainerLog(pod=victim.pod, uid=victim.uid, container=victim.container, id=victim.id)
            with suppress(PodLogsRefusal):
                self.inventory.logs.unlink(one)


def _stop(runtime: FencedRuntime, victim: Victim) -> None:
    """Make sure that the object does not run. Refuse if it has started since the look."""
    found = runtime.inspect(victim.id)
    if found is None or found.state in ("created", "exited"):
        return
    if found.state == "running" or found.pid:
        raise Refusal("conflict", f"{victim.name} is running; only dead containers are removed")
    runtime.kill(victim.id, "KILL")
    if not runtime.wait(victim.id, _STOP_SECONDS):
        raise Refusal("timeout", f"{victim.name} did not stop within {_STOP_SECONDS:.0f} s")
