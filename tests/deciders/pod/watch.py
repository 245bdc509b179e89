"""A pod's life with invariants that are checked after every decision."""

from __future__ import annotations

from collections import Counter
from typing import Any, Self

from chronolet.pod import wanted
from chronolet.pod.state import Container, State
from chronolet_schemas import pod
from chronolet_schemas.envelope import Event, Message
from tests.deciders.pod.life import Life

_IN_PLACE = ("SpecChanged", "FailedPostStartHook")


class Watched(Life):
    """A pod's life that checks the invariants of this module after every decision.

    Termination messages are not read automatically: their results, like all others, arrive in any order.
    """

    def __init__(self) -> None:
        super().__init__(reads=False)
        self.starts = Counter[str]()
        self.hooks = Counter[tuple[str, int, str, str]]()

    def when(self, message: Message, *, at: int | None = None) -> Self:
        before = self.state
        super().when(message, at=at)
        for event in self.events:
            self._see(event, before)
        if self.state is not None:
            self._look(self.state)
        return self

    def _see(self, event: Event, before: State | None) -> None:
        match event:
            case pod.PodEnded():
                self.starts.clear()
                self.hooks.clear()
            case pod.ContainerStarted():
                self.starts[event.id] += 1
            case pod.HookEvent():
                self._once(event)
            case pod.ContainerStartRequested() if self.state is not None:
                one = self.state.container(event.container)
                if one is not None and one.kind == "app":
                    initialised(self.state, one)
            case pod.ContainerStopReleased() if before is not None and self.state is not None:
                in_turn(before, self.state, event, self.at)

    def _once(self, event: pod.HookEvent) -> None:
        """Check that each hook of each run is requested, prepared and ended at most once."""
        seen = (event.id, self.starts[event.id], event.hook, type(event).__name__)
        self.hooks[seen] += 1
        assert self.hooks[seen] == 1, event

    def _look(self, state: State) -> None:
        effects = self.effects
        for one in state.containers:
            hook, own = effects.get(f"hook/{one.name}"), effects.get(f"container/{one.name}")
            assert not (hook is not None and isinstance(own, wanted.StopContainer)), "a signal during a hook"
            assert one.hook is None or one.phase in ("running", "stopping"), one
            if one.hook is not None and one.hook.hook == "PreStop":
                assert one.stop is not None
                assert one.stop.held, one


def initialised(state: State, started: Container) -> None:
    """Check that, before the first app container starts, every init container has succeeded and every sidecar is
    running.
    """
    here: Any = state.sandbox.id
    ran = [one for one in state.of_kind("app") if one is not started and (one.alive or one.exit)]
    if ran or (started.exit is not None and started.exit.sandbox_id == here):
        return  # initialisation is complete
    for one in state.of_kind("init"):
        assert one.exit is not None, one
        assert (one.exit.exit_code, one.exit.sandbox_id) == (0, here), one
    for one in state.of_kind("sidecar"):
        assert one.phase == "running", one


def in_turn(before: State, after: State, event: pod.ContainerStopReleased, now: int) -> None:
    """Check that a sidecar gets its signal only once all containers that follow it in the pod's order, other than
    ephemeral ones, have ended, or the deadline of that wait has passed. This does not apply to stops that replace the
    sidecar in place.
    """
    one = after.container(event.container)
    known = before.container(event.container)
    assert one is not None
    assert one.stop is not None
    if one.kind != "sidecar" or one.stop.reason in _IN_PLACE:
        return
    later = after.containers[after.containers.index(one) + 1 :]
    held = known.stop.deadline if known is not None and known.stop is not None else 0
    assert now >= held or not any(other.alive for other in later if other.kind != "ephemeral"), event
