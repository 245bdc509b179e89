"""Records in which condition each container was when, and what happened to it. Pure.

Input: the states of pods along the log, with their times; outcomes of probes. Output: a `Row` per container: spans of
one condition each, and marks. Next: `chart`, which draws them.

Rows are in the order of the log. Times are as recorded: after a clock step, a span may end before it begins.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from chronolet.pod.planning import probing
from chronolet.pod.state import Container, ContainerKind, State

Condition = Literal["starting", "backing_off", "running", "ready", "completed", "failed"]
"""`running`: not ready, as a probe has not succeeded. `completed` and `failed`: ended, and not about to be restarted.
"""
What = Literal["oom", "probe_kill", "error", "restart", "probe_failed", "probe_unjudged"]
"""What happened: killed for lack of memory; stopped by a liveness or startup probe; ended with an error; restarted; a
probe failed; a probe had no verdict.
"""

_BACKING_OFF = ("image_failed", "image_back_off", "start_failed", "backing_off")
_PROBE_KILLS = ("LivenessFailed", "StartupFailed")
_OOM = "OOMKilled"


class Span(NamedTuple):
    """The time during which a container was in one condition, in milliseconds since the epoch."""

    condition: Condition
    begin: int
    end: int


class Mark(NamedTuple):
    """Something that happened to a container; `detail` is an exit code, a number of restarts or the name of a probe."""

    what: What
    at: int
    detail: str


class Row(NamedTuple):
    """One container of one pod (namespace/name)."""

    pod: str
    container: str
    kind: ContainerKind
    spans: tuple[Span, ...]
    marks: tuple[Mark, ...]

    @property
    def restarts(self) -> int:
        """How often the container was restarted in the recorded time."""
        return sum(one.what == "restart" for one in self.marks)


@dataclass(slots=True)
class _Track:
    """A row in the making. `condition` is None while the container does not exist."""

    kind: ContainerKind
    condition: Condition | None = None
    since: int = 0
    spans: list[Span] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)

    def turn(self, condition: Condition | None, at: int) -> None:
        if condition == self.condition:
            return
        if self.condition is not None:
            self.spans.append(Span(self.condition, self.since, at))
        self.condition, self.since = condition, at


class Recorder:
    """Rows in the making. `states`: the pods at the moment `at`, where the rows begin."""

    def __init__(self, states: Mapping[str, State], at: int) -> None:
        self._tracks: dict[tuple[str, str], _Track] = {}
        self._states: dict[str, State] = {}
        for key, state in sorted(states.items()):
            self._compare(key, {}, state, at)

    def changed(self, pod: str, state: State | None, at: int) -> None:
        """Record the pod's next state; None: it is gone."""
        former = self._states.get(pod)
        known = {one.name: one for one in former.containers} if former is not None else {}
        self._compare(pod, known, state, at)

    def probed(self, key: str, what: What, at: int) -> None:
        """Record an outcome of the probe with this key of `prober`. Ignored if its container has no row."""
        below, _, probe = key.rpartition("/")
        pod, _, container = below.rpartition("/")
        if track := self._tracks.get((pod, container)):
            track.marks.append(Mark(what, at, probe))

    def rows(self, end: int) -> list[Row]:
        """Return the rows up to now, whose last spans end at `end`; those of a pod follow each other."""
        return [
            Row(pod, container, track.kind, (*track.spans, *_open(track, end)), tuple(track.marks))
            for (pod, container), track in sorted(self._tracks.items(), key=lambda one: one[0][0])
        ]

    def _compare(self, pod: str, known: Mapping[str, Container], state: State | None, at: int) -> None:
        now = {one.name: one for one in state.containers} if state is not None and state.uid else {}
        for name in (*known, *(one for one in now if one not in known)):
            one = now.get(name)
            if (pod, name) not in self._tracks and one is not None:
                self._tracks[pod, name] = _Track(one.kind)
            track = self._tracks[pod, name]
            if name in known and one is not None:
                track.marks += _marks(known[name], one, at)
            track.turn(None if one is None or state is None else _condition(state, one), at)
        if state is None:
            self._states.pop(pod, None)
        else:
            self._states[pod] = state


def _open(track: _Track, end: int) -> tuple[Span, ...]:
    return () if track.condition is None else (Span(track.condition, track.since, end),)


def _condition(state: State, one: Container) -> Condition:
    if one.phase in ("running", "stopping"):
        flags = probing.flags(probing.wanted(state, one), probing.results(one), runs=not one.in_post_start)
        return "ready" if flags.ready else "running"
    if one.phase == "exited" and one.exit is not None:
        return "failed" if one.exit.exit_code else "completed"
    return "backing_off" if one.phase in _BACKING_OFF else "starting"


def _marks(former: Container, one: Container, at: int) -> list[Mark]:
    found: list[Mark] = []
    if one.exit is not None and one.exit is not former.exit:
        again = former.exit is not None and (former.exit.attempt, former.exit.id) == (one.exit.attempt, one.exit.id)
        what = _end(former, one)
        if what is not None and (not again or (former.exit is not None and former.exit.reason != one.exit.reason)):
            found.append(Mark(what, at, str(one.exit.exit_code)))
    if one.phase == "running" and former.phase != "running" and one.attempt > 0:
        found.append(Mark("restart", at, str(one.attempt)))
    return found


def _end(former: Container, one: Container) -> What | None:
    """Return what a container's end means; None if it ended as it should, or was stopped on request."""
    assert one.exit is not None  # noqa: S101 - the caller has checked
    if one.exit.reason == _OOM:
        return "oom"
    if former.stop is not None:
        return "probe_kill" if former.stop.reason in _PROBE_KILLS else None
    return "error" if one.exit.exit_code else None
