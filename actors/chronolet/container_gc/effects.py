"""The hands of the collector of containers: looking, and removing one dead thing.

Comes in: effects of `wanted`. Goes out: calls to the runtime and to the log folders; signals. Next: `decider`. Source:
pkg/kubelet/kuberuntime/kuberuntime_gc.go. Nothing that runs is ever removed: the runtime itself refuses to.
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
    """Either one look or at most `most` removals at a time. A look that waits keeps further removals waiting."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._changed = threading.Condition()
        self._removals = 0
        self._looks = 0
        """How many look or wait for it."""
        self._look = threading.Lock()

    @contextmanager
    def looking(self) -> Iterator[None]:
        """While nothing is being removed."""
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
        """While nobody looks, and fewer than so many others remove."""
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
    """The workers. The period in seconds. Looks and removals take turns: else a look that began in the middle of a
    removal would find what is gone when it is heard of, and the next run would remove it once more.
    """

    inventory: Inventory
    period_seconds: float
    turns: Turns = field(default_factory=lambda: Turns(1))

    def effects(self) -> Mapping[type[Effect], Job]:
        """The one-shots."""
        at_once = self.turns.most
        return {
            wanted.Look: Job(self.look, _LOOK_SECONDS, at_once=at_once),
            wanted.Remove: Job(self.remove, _REMOVE_SECONDS, at_once=at_once),
        }

    def standing(self) -> Mapping[type[Effect], Job]:
        """What runs for as long as the node lives."""
        return {wanted.LookPeriodically: Job(self.watch)}

    def watch(self, _effect: wanted.LookPeriodically, context: EffectContext) -> None:
        """What there is, now and every period."""
        while not context.cancelled.is_set():
            with self.turns.looking():
                context.send(self.inventory.look(fence=context.fence))
            context.cancelled.wait(self.period_seconds)

    def look(self, effect: wanted.Look, context: EffectContext) -> Signal:
        """The same once."""
        return self.inventory.look(effect.subject, effect.intent, context.fence)

    def remove(self, effect: wanted.Remove, context: EffectContext) -> Signal:
        """One thing. What is gone already went by an earlier try, or by somebody else: it is gone."""
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
        """Its log is gone with it. A link that stays leads to nothing, and goes as such with the next run."""
        if victim.container:
            one = ContainerLog(pod=victim.pod, uid=victim.uid, container=victim.container, id=victim.id)
            with suppress(PodLogsRefusal):
                self.inventory.logs.unlink(one)


def _stop(runtime: FencedRuntime, victim: Victim) -> None:
    """See to it that it does not run. What has come to run since it was looked at is no victim any more."""
    found = runtime.inspect(victim.id)
    if found is None or found.state in ("created", "exited"):
        return
    if found.state == "running" or found.pid:
        raise Refusal("conflict", f"{victim.name}: it runs; only dead ones are removed")
    runtime.kill(victim.id, "KILL")
    if not runtime.wait(victim.id, _STOP_SECONDS):
        raise Refusal("timeout", f"{victim.name}: it did not stop within {_STOP_SECONDS:.0f} s")
