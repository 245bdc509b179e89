"""Runs the deciders of `pod` and `prober` for one pod, to find out which of its probes are running.

The pod's events reach its probes as the node routes them; the pod's effects are answered immediately.

Input: a manifest's containers. Output: the running probes. Next: `decisions`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chronolet.pod import wanted as pod_effects
from chronolet.prober.actor import kind
from chronolet.prober.decider import DECIDER
from chronolet.prober.state import State
from chronolet_schemas import pleg
from chronolet_schemas.envelope import Event
from chronolet_schemas.podspec import Container, Probe
from tests.conformance.outcome import Case
from tests.deciders.pod.answering import good_answer
from tests.deciders.pod.life import POD, Life, manifest

_KIND = kind()


class Probes:
    """The probes of one pod; `states` maps entity keys to states."""

    def __init__(self) -> None:
        self.states: dict[str, State] = {}

    def hear(self, event: Event, now: int) -> None:
        """Send an event of the pod to each probe that subscribes to it."""
        keys = _KIND.subscribes.get(type(event))
        for key in keys(event) if keys else ():
            if key not in self.states and type(event) not in _KIND.creates:
                continue
            state: State | None = self.states.pop(key, DECIDER.initial)
            for one in DECIDER.decide(state or DECIDER.initial, event, now):
                state = DECIDER.evolve(state or DECIDER.initial, one)
            if state is not None:
                self.states[key] = state

    def workers(self) -> Iterator[State]:
        """Yield the states of the probes whose container is running and must be probed."""
        return (state for state in self.states.values() if state.running)


class ProbedPod:
    """One pod of the node, from its manifest to its removal."""

    def __init__(self, described: Case) -> None:
        self.uid: str = described["uid"]
        self._probes = Probes()
        self._life = Life()
        self._heard = 0
        self.add(described)

    def add(self, described: Case) -> None:
        """Apply the manifest, and start every container."""
        init = tuple(_container(one) for one in described.get("init_containers", ()))
        apps = tuple(_container(one) for one in described.get("containers", ()))
        self._life.apply(manifest(*apps, init_containers=init), uid=self.uid)
        self._settle()

    def stop(self) -> None:
        """Begin the termination; nothing has stopped yet."""
        self._life.withdraw(self.uid)
        self._hear()

    def remove(self) -> None:
        """Complete the termination."""
        self.stop()
        self._settle()
        assert self._life.state is None, "the pod has not ended"

    def workers(self) -> set[str]:
        """Return the workers, with the names that the cases use."""
        return {f"{self.uid}/{one.container}/{one.probe.lower()}" for one in self._probes.workers()}

    def _settle(self) -> None:
        """Answer the pod's effects until none is outstanding. Init containers, but not sidecars, exit with 0 as soon as
        they have started.
        """
        self._hear()
        while effects := list(self._life.effects.values()):
            effect = effects[0]
            self._life.when(good_answer(effect, self._life.at))
            if isinstance(effect, pod_effects.StartContainer) and self._is_init(effect.container):
                self._complete(effect.container)
            self._hear()

    def _is_init(self, name: str) -> bool:
        return any(one.name == name and one.kind == "init" for one in self._life.state.containers)

    def _complete(self, name: str) -> None:
        one = self._life.state.container(name)
        self._life.when(
            pleg.ContainerDied(
                pod=POD,
                uid=self.uid,
                container=name,
                attempt=one.attempt,
                id=one.id,
                exit_code=0,
                reason="Completed",
                started_at=one.started_at,
                finished_at=self._life.at,
            )
        )

    def _hear(self) -> None:
        for event in self._life.history[self._heard :]:
            self._probes.hear(event, self._life.at)
        self._heard = len(self._life.history)


def _container(one: Case) -> Container:
    fields: dict[str, Any] = {f"{name}_probe": Probe() for name in one["probes"]}
    if one.get("restartable"):
        fields["restart_policy"] = "Always"
    return Container(name=one["name"], image="busybox:1", **fields)
