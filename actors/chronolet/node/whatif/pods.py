"""Estimates what becomes of a pod after its containers are stopped or started at other times than recorded. Pure.

Input: the pod's states when the difference begins, later decisions of the record. Output: `Step`s. Next:
`history.whatif.two_runs`.

The rules, which docs/commands.md explains to users:

* Starts and stops take no time.
* A probe returns what it returned at that time, whichever run of the container that was. What the record leaves out as
  a repetition is filled in, once per period (`repeats`). Kills are not held back.
* The nth run of a container that ended by itself lasts as long, with the same exit code; so does each run after the
  last recorded one, as that one. Other runs last until they are stopped.
* Containers that do not differ, and all that ends or changes the pod itself, are as recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from chronolet.history.recorded_decisions import Recorded
from chronolet.history.whatif.change import Both, EntityName, Step
from chronolet.node.whatif.container_life import Life, Outcomes, RecordedLife, Run
from chronolet.node.whatif.repeats import left_out
from chronolet.pod.planning.actions import pod_actions
from chronolet.pod.planning.backoff import Limits
from chronolet.pod.planning.views import pod_view
from chronolet.pod.state import State
from chronolet.prober import state as prober
from chronolet.prober.signals import ProbeOutcome
from chronolet_schemas import pod
from chronolet_schemas.envelope import Event

_ENDS = (
    pod.TerminationRequested,
    pod.PodFailed,
    pod.SpecAccepted,
    pod.PodEnded,
    pod.SandboxExited,
    pod.SuccessorAwaits,
)
"""Events after which the containers' lives no longer follow from their own runs."""


class _Probe(NamedTuple):
    container: str
    probe: str


class Runs:
    """The recorded runs and probe outcomes of the containers of one pod, with one uid."""

    def __init__(self) -> None:
        self.runs: dict[str, dict[int, Run]] = {}
        """By container and attempt. A run that has not ended does not end by itself, as far as is known."""
        self.outcomes: dict[_Probe, list[tuple[int, ProbeOutcome]]] = {}
        self._last: dict[_Probe, prober.State] = {}
        self._stopped: set[tuple[str, str]] = set()

    def note(self, one: Recorded) -> None:
        """Take note of a recorded decision about the pod or one of its probes."""
        if one.kind.name == "prober":
            self._probe(one)
            return
        for event in one.events:
            match event:
                case pod.ContainerStarted():
                    self.runs.setdefault(event.container, {})[event.attempt] = Run(0, 0, own=False)
                case pod.ContainerStopRequested():
                    self._stopped.add((event.container, event.id))
                case pod.ContainerExited():
                    own = (event.container, event.id) not in self._stopped
                    lasted = max(event.finished_at - event.started_at, 0)
                    self.runs.setdefault(event.container, {})[event.attempt] = Run(lasted, event.exit_code, own)
                case _:
                    pass

    def _probe(self, one: Recorded) -> None:
        before: prober.State | None = one.known
        state: prober.State = one.after or one.known
        if one.made is None or state is None:
            return
        key = _Probe(state.container, state.probe)
        outcomes = self.outcomes.setdefault(key, [])
        message, now = one.made
        if before is not None:
            outcomes += left_out(before, self._since(outcomes, before), now)
        if isinstance(message, ProbeOutcome):
            outcomes.append((message.at, message))
        self._last[key] = state

    def all_outcomes(self, until: int) -> Mapping[str, Outcomes]:
        """Return the outcomes of each container's probes up to a time, by container and probe, in order."""
        found: dict[str, dict[str, list[tuple[int, ProbeOutcome]]]] = {}
        for key, outcomes in self.outcomes.items():
            last = self._last[key]
            rest = left_out(last, self._since(outcomes, last), until, ended=True)
            found.setdefault(key.container, {})[key.probe] = [*outcomes, *rest]
        return found

    @staticmethod
    def _since(outcomes: list[tuple[int, ProbeOutcome]], state: prober.State) -> int:
        return max(state.at, outcomes[-1][0] if outcomes else 0)


class PodEstimate:
    """The estimate for one pod. See `history.whatif.change.Estimating`."""

    def __init__(
        self,
        key: str,
        states: Mapping[EntityName, Both],
        at: int,
        runs: Runs,
        limits: Limits,
        *,
        every: bool,
    ) -> None:
        """`every`: whether all containers may differ, because the back-off was changed."""
        self._entity = ("pod", key)
        self._at = at
        self._runs = runs
        self._limits = limits
        both = states.get(self._entity, Both(None, None))
        self._state = both.changed
        self._until: int | None = None
        self._probes = {(one.changed.container, one.changed.probe): one.changed for one in _probers(states)}
        self._differ = _differing(both, states, every=every)
        self._outcomes: Mapping[str, Outcomes] | None = None
        self._why = ""

    def add(self, one: Recorded) -> Iterator[Step]:
        now = one.made.now if one.made is not None else one.first.position.milliseconds
        ends = next((event for event in one.events if isinstance(event, _ENDS)), None)
        if one.kind.name == "pod" and ends is not None and self._until is None:
            self._close(now, type(ends).__name__)
        recorded = tuple(one.events)
        changed = tuple(event for event in recorded if self._until is not None or not self._is_estimated(event))
        yield Step(now, one.first.position, (one.kind.name, one.key), recorded, changed, "estimate")

    def _is_estimated(self, event: Event) -> bool:
        return getattr(event, "container", None) in self._differ

    def _close(self, at: int, why: str) -> None:
        """End the estimate before this time."""
        self._until, self._why = at, why
        self._outcomes = self._runs.all_outcomes(at)
        self._recorded = {name: dict(found) for name, found in self._runs.runs.items()}

    def end(self, at: int) -> Iterator[Step]:
        if self._until is None:
            self._close(at + 1, "")  # what happens at the end of the range belongs to it
        assert self._until is not None and self._outcomes is not None  # noqa: PT018, S101 - set by `_close`
        if self._state is None or self._state.over or self._state.sandbox.phase != "running":
            return
        for one in self._state.containers:
            if one.name not in self._differ or one.kind not in ("app", "sidecar"):
                continue
            mine = {probe: state for (name, probe), state in self._probes.items() if name == one.name}
            recorded = RecordedLife(self._recorded.get(one.name, {}), self._outcomes.get(one.name, {}))
            life = Life(self._state, one, mine, recorded, self._limits)
            for when, event in life.events(self._at, self._until):
                yield Step(when, None, self._entity, (), (event,), "estimate")

    def unknown(self) -> Iterable[str]:
        pod_name = self._entity[1]
        if self._state is not None and _is_complete(self._state):
            return
        if self._state is None or self._state.over or self._state.sandbox.phase != "running":
            yield f"what would have become of pod/{pod_name}: its sandbox does not run when the difference begins"
        elif self._why:
            yield (
                f"what would have become of pod/{pod_name} after {self._why} in the log: from there on, as long as it "
                "has the same uid, the runs of its containers are shown as recorded"
            )
        other = [name for name in sorted(self._differ) if self._kind(name) not in ("app", "sidecar")]
        if other:
            yield f"what would have become of {', '.join(other)} of pod/{pod_name}: init containers are not estimated"

    def _kind(self, name: str) -> str:
        one = None if self._state is None else self._state.container(name)
        return "app" if one is None else str(one.kind)


def _is_complete(state: State) -> bool:
    """Whether none of the pod's containers runs again."""
    actions = pod_actions(pod_view(state))
    return actions.kill_pod and not actions.create_sandbox


def _probers(states: Mapping[EntityName, Both]) -> Iterator[Both]:
    for (kind, _), both in states.items():
        if kind == "prober" and both.changed is not None:
            yield both


def _differing(pods: Both, states: Mapping[EntityName, Both], *, every: bool) -> frozenset[str]:
    """Return the containers whose lives may differ from the record."""
    if pods.changed is None:
        return frozenset()
    names = [one.name for one in pods.changed.containers]
    if every or pods.recorded is None:
        return frozenset(names)
    found = {one.name for one in pods.changed.containers if one != pods.recorded.container(one.name)}
    for both in _all_probers(states):
        one: Any = both.changed or both.recorded
        if both.changed is None or both.recorded is None or both.changed.definition != both.recorded.definition:
            found.add(one.container)
    return frozenset(found)


def _all_probers(states: Mapping[EntityName, Both]) -> Iterator[Both]:
    yield from (both for (kind, _), both in states.items() if kind == "prober")
