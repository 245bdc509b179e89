"""Estimates the further life of one container: its runs, their ends, and the restarts. Pure.

Input: the container and its probes when the difference begins, recorded runs and outcomes. Output: events with their
times. Next: `pods`, which has the rules.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from chronolet.pod.planning import probing
from chronolet.pod.planning.backoff import Limits, advanced, wait_seconds
from chronolet.pod.state import BackOff, Container, State
from chronolet.prober.decider import DECIDER
from chronolet.prober.signals import ProbeOutcome
from chronolet.prober.state import State as ProbeState
from chronolet.rules.probes.results import UNPROBED
from chronolet.rules.refs import ProbeRef
from chronolet_schemas import pod, prober
from chronolet_schemas.envelope import Event

Outcomes = Mapping[str, Sequence[tuple[int, ProbeOutcome]]]
"""The outcomes of a container's probes with their times, in order, by probe."""

_KILLED = 137
"""Stands for any exit code of a container that was stopped for a failed probe: it is restarted whatever the code is,
except with the policy Never.
"""
_DEFAULT_GRACE_SECONDS = 30


class Run(NamedTuple):
    """A recorded run; `own`: whether it has ended by itself."""

    milliseconds: int
    exit_code: int
    own: bool


class RecordedLife(NamedTuple):
    """What the record says of a container: its runs by attempt, and the outcomes of its probes."""

    runs: Mapping[int, Run]
    outcomes: Outcomes


class _End(NamedTuple):
    at: int
    exit_code: int


class Life:
    """The life of one container from the moment on at which it begins to differ from the record."""

    def __init__(
        self, state: State, one: Container, probes: Mapping[str, ProbeState], recorded: RecordedLife, limits: Limits
    ) -> None:
        self._pod = state
        self._one = one
        self._probes = dict(probes)
        self._runs, self._outcomes = recorded
        self._limits = limits
        self._attempt = one.attempt
        self._started_at = one.started_at
        self._back_off = one.back_off

    def events(self, now: int, until: int) -> Iterator[tuple[int, Event]]:
        """Yield what happens before a time, each event with its time (milliseconds)."""
        since, end = now, self._end(now)
        if end is None and self._one.phase != "running":  # it waits for its start, or is being started
            waits = self._one.phase == "backing_off"
            since = max(self._one.retry_at, now) if waits else now
            if since >= until:
                return
            self._attempt += waits
            yield from self._start(since)
        while True:
            if end is None:
                end = yield from self._running(since, until)
            again = None if end is None else (yield from self._restart(end, until))
            if again is None:
                return
            since, end = again, None

    def _end(self, now: int) -> _End | None:
        """Return the end of the present run, if it is over or about to be."""
        match self._one.phase:
            case "stopping":
                return _End(now, _KILLED)
            case "exited" if self._one.exit is not None:
                return _End(now, self._one.exit.exit_code)
            case _:
                return None

    # -- one run -------------------------------------------------------------------------------------------------
    def _running(self, since: int, until: int) -> Generator[tuple[int, Event], None, _End | None]:
        """Yield what happens during a run; return its end, or None if there is none."""
        end = self._own_end()
        last = until if end is None else min(end.at, until)
        for at, name, outcome in self._during(since, last):
            for event in self._probed(name, outcome):
                yield at, event
                if not isinstance(event, prober.ResultChanged):
                    continue
                if event.result == "failure" and name != "Readiness":
                    yield at, self._stop("LivenessFailed" if name == "Liveness" else "StartupFailed", at)
                    return _End(at, _KILLED)
                yield from self._counts(at, name, event)
        return end if end is not None and end.at < until else None

    def _own_end(self) -> _End | None:
        """Return when this run ends by itself: like the recorded run of this number, or like the last recorded one."""
        run = self._runs.get(self._attempt)
        if run is None and self._runs and self._attempt > max(self._runs):
            run = self._runs[max(self._runs)]
        return _End(self._started_at + run.milliseconds, run.exit_code) if run is not None and run.own else None

    def _during(self, since: int, until: int) -> Iterator[tuple[int, str, ProbeOutcome]]:
        found = [
            (at, name, outcome)
            for name, outcomes in self._outcomes.items()
            if name in self._probes
            for at, outcome in outcomes
            if since < at < until
        ]
        yield from sorted(found, key=lambda each: each[0])

    def _probed(self, name: str, outcome: ProbeOutcome) -> Sequence[Event]:
        """Decide an outcome, if the probe runs now; return the events."""
        state = self._probes[name]
        worker = next(iter(DECIDER.outstanding(state)), None)
        if worker is None or outcome.at < state.from_at:
            return ()
        events = DECIDER.decide(state, replace(outcome, intent=worker.intent, short_of=()), outcome.at)
        for event in events:
            self._probes[name] = DECIDER.evolve(self._probes[name], event) or state
        return events

    def _counts(self, at: int, name: str, event: prober.ResultChanged) -> Iterator[tuple[int, Event]]:
        """Yield what the pod makes of a result that does not stop the container."""
        if name == "Startup":
            for other, state in self._probes.items():
                gate = prober.GateOpened(
                    pod=state.pod,
                    uid=state.uid,
                    container=state.container,
                    probe=state.probe,
                    id=state.id,
                    from_at=max(state.from_at, at),
                )
                self._probes[other] = DECIDER.evolve(state, gate) or state
        elif name == "Readiness":
            yield (
                at,
                pod.ContainerProbed(
                    pod=self._pod.pod,
                    uid=self._pod.uid,
                    container=self._one.name,
                    attempt=self._attempt,
                    id=event.id,
                    started_at=self._started_at,
                    probe="Readiness",
                    result=event.result,
                ),
            )

    def _stop(self, reason: pod.StopReason, at: int) -> Event:
        spec = self._pod.manifest.spec
        own = probing.grace_seconds(self._pod, self._one, reason)
        usual = spec.termination_grace_period_seconds
        grace = own if own is not None else _DEFAULT_GRACE_SECONDS if usual is None else usual
        return pod.ContainerStopRequested(
            pod=self._pod.pod,
            uid=self._pod.uid,
            container=self._one.name,
            attempt=self._attempt,
            id=self._one.id,
            grace_period_seconds=grace,
            deadline=at + grace * 1000,
            reason=reason,
        )

    # -- between two runs ----------------------------------------------------------------------------------------
    def _restart(self, end: _End, until: int) -> Generator[tuple[int, Event], None, int | None]:
        """Yield the restart after an end; return when the next run begins, or None if there is none."""
        policy = "Always" if self._one.kind == "sidecar" else self._pod.manifest.spec.restart_policy
        if policy == "Never" or (policy == "OnFailure" and end.exit_code == 0):
            return None
        waited = wait_seconds(self._back_off, end.at, self._limits)
        at = end.at + waited * 1000
        self._back_off = advanced(self._back_off, end.at, at, self._limits)
        yield (
            end.at,
            pod.RestartScheduled(
                pod=self._pod.pod,
                uid=self._pod.uid,
                container=self._one.name,
                attempt=self._attempt,
                at=at,
                back_off_seconds=waited,
                next_back_off_seconds=self._back_off.seconds,
            ),
        )
        if at >= until:
            return None
        self._attempt += 1
        yield from self._start(at)
        return at

    def _start(self, at: int) -> Iterator[tuple[int, Event]]:
        self._started_at = at
        if self._back_off is not None:
            self._back_off = BackOff(seconds=self._back_off.seconds, updated_at=at)
        name = f"estimated-{self._attempt}"
        for probe, state in self._probes.items():
            self._probes[probe] = self._probing_anew(state, name, at)
        yield (
            at,
            pod.ContainerStarted(
                pod=self._pod.pod,
                uid=self._pod.uid,
                container=self._one.name,
                attempt=self._attempt,
                id=name,
                started_at=at,
            ),
        )

    def _probing_anew(self, state: ProbeState, name: str, at: int) -> ProbeState:
        ref = ProbeRef(pod=state.pod, uid=state.uid, container=state.container, probe=state.probe)
        began = prober.ProbingBegan(
            attempt=self._attempt,
            id=name,
            started_at=at,
            ip=state.ip,
            from_at=at + state.definition.initial_delay_seconds * 1000,
            started="Startup" not in self._probes,
            **ref,
        )
        first = prober.ResultChanged(attempt=self._attempt, id=name, started_at=at, result=UNPROBED[state.probe], **ref)
        for event in (began, first):
            state = DECIDER.evolve(state, event) or state
        return state
