"""Every row of a transition table describes what `evolve` does: the event leads from its source to its target phase.

The events are the samples in the golden files, with other values in the fields that determine the next phase.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import immutables
import pytest
from msgspec.structs import replace

from chronolet.devices.decider import DECIDER as DEVICES
from chronolet.devices.state import State as Devices
from chronolet.kube_events.decider import DECIDER as SINKS
from chronolet.kube_events.state import Sink
from chronolet.kube_events.state import State as Sinks
from chronolet.pod.decider import DECIDER as PODS
from chronolet.pod.state import Cleanup, Container, Failure, Sandbox, Stop, Termination
from chronolet.pod.state import State as PodState
from chronolet.prober.decider import DECIDER as PROBES
from chronolet.prober.state import State as ProbeState
from chronolet_schemas import devices, kube_events, pod, prober, registry
from chronolet_schemas.envelope import Event
from scripts.diagrams.__main__ import ROOT
from scripts.diagrams.tables import NOTHING, Row, found
from tests.golden.samples import least, sample

UID, CONTAINER, SINK = "uid-value", "container-value", "sink-value"
"""The values that the samples have in the fields of these names."""
KINDS = {
    "pod": "pod",
    "container": "pod",
    "sandbox": "pod",
    "claim": "devices",
    "probe": "prober",
    "sink": "kube_events",
}
TABLES = {table.subject: table for table in found(ROOT / "actors" / "chronolet")}


@dataclass(frozen=True)
class Subject:
    """Functions that make states of a subject in a phase, apply an event, and return the resulting phase."""

    states: Callable[[str], Iterator[Any]]
    """Yields states in a phase; NOTHING counts as a phase."""
    after: Callable[[Any, Event], Any]
    phase: Callable[[Any], str]


# -- pods, containers and sandboxes --------------------------------------------------------------------------------
def pod_states(phase: str) -> Iterator[PodState]:
    if phase == NOTHING:
        yield PodState()
        return
    ends = phase in ("ending", "cleaning_up")
    yield PodState(
        pod="default/web",
        uid=UID,
        failure=Failure(reason="DeadlineExceeded", message="") if phase == "failed" else None,
        termination=Termination(reason="Deleted", grace_period_seconds=30, deadline=30_000) if ends else None,
        cleanup=Cleanup() if phase == "cleaning_up" else None,
    )


def pod_phase(state: PodState | None) -> str:
    if state is None or not state.uid:
        return NOTHING
    if state.termination is not None:
        return "ending" if state.cleanup is None else "cleaning_up"
    return "active" if state.failure is None else "failed"


def container_states(phase: str) -> Iterator[PodState]:
    stop = Stop(grace_period_seconds=30, deadline=30_000, reason="Deleted")
    one = Container(name=CONTAINER, phase=phase, stop=stop)  # type: ignore[arg-type]
    yield PodState() if phase == NOTHING else PodState(uid=UID, containers=(one,))


def container_phase(state: PodState) -> str:
    return state.containers[0].phase if state.containers else NOTHING


# -- claims ------------------------------------------------------------------------------------------------------
BEFORE: Mapping[str, tuple[type[Event], ...]] = {
    NOTHING: (),
    "waiting": (devices.DevicesPending,),
    "preferring": (devices.PreferenceAsked,),
    "allocating": (devices.DevicesChosen,),
    "granted": (devices.DevicesChosen, devices.DevicesAllocated),
}
"""The events that bring a claim into each phase."""


def claim_states(phase: str) -> Iterator[Devices]:
    state = Devices()
    for cls in BEFORE[phase]:
        after = DEVICES.evolve(state, least(cls))
        assert after is not None
        state = after
    yield state


def claim_phase(state: Devices) -> str:
    claim = state.claims.get(f"{UID}/{CONTAINER}")
    return claim.phase if claim is not None else NOTHING


# -- probes ------------------------------------------------------------------------------------------------------
def probe_states(phase: str) -> Iterator[ProbeState]:
    """Yield the states of a liveness probe and of a startup probe in this phase; for NOTHING, only the empty state."""
    if phase == NOTHING:
        yield ProbeState()
        return
    for probe in ("Liveness", "Startup"):
        started = (probe == "Liveness") == (phase != "gated")
        flags = {"asked": phase == "asked", "held": phase == "held", "running": phase != "idle", "started": started}
        yield ProbeState(uid=UID, probe=probe, **flags)  # type: ignore[arg-type]


def probe_phase(state: ProbeState | None) -> str:
    if state is None or not state.uid:
        return NOTHING
    if not state.running or state.held:
        return "held" if state.running else "idle"
    if state.started == (state.probe == "Startup"):
        return "gated"
    return "asked" if state.asked else "probed"


# -- sinks -------------------------------------------------------------------------------------------------------
def sink_states(phase: str) -> Iterator[Sinks]:
    post = sample(kube_events.Post)
    retry_at, tries = (1000, 1) if phase == "pausing" else (0, 0)
    sinks = {} if phase == NOTHING else {SINK: Sink(cursor=5, retry_at=retry_at, tries=tries)}
    head = 5 if phase in (NOTHING, "idle") else 7
    yield Sinks(sinks=sinks, head=head, posts=immutables.Map(dict.fromkeys(range(6, head + 1), post)))


def sink_phase(state: Sinks) -> str:
    sink = state.sinks.get(SINK)
    if sink is None:
        return NOTHING
    if sink.retry_at:
        return "pausing"
    return "delivering" if sink.waiting(state.head) else "idle"


SUBJECTS: Mapping[str, Subject] = {
    "pod": Subject(pod_states, PODS.evolve, pod_phase),
    "container": Subject(container_states, PODS.evolve, container_phase),
    "sandbox": Subject(
        lambda phase: iter((PodState(uid=UID, sandbox=Sandbox(phase=phase)),)),  # type: ignore[arg-type]
        PODS.evolve,
        lambda state: state.sandbox.phase,
    ),
    "claim": Subject(claim_states, DEVICES.evolve, claim_phase),
    "probe": Subject(probe_states, PROBES.evolve, probe_phase),
    "sink": Subject(sink_states, SINKS.evolve, sink_phase),
}
ROWS = [(subject, row) for subject in SUBJECTS for row in TABLES[subject].rows]


def events(subject: str, row: Row, state: Any) -> Iterator[Event]:
    """Yield variants of a row's event that the subject may encounter in this state."""
    cls = registry.class_of(f"{KINDS[subject]}.{row.event}")
    assert cls is not None
    assert issubclass(cls, Event)
    for event in (sample(cls), least(cls)):
        yield from _variants(event, state)


def _variants(event: Event, state: Any) -> Iterator[Event]:
    match event:
        case devices.DevicesFreed():
            yield replace(event, devices={CONTAINER: {}})
        case pod.ContainerStopRequested():
            yield replace(event, reason="Deleted")
        case devices.DevicesRefused():
            yield from (replace(event, reason=reason) for reason in ("plugin_error", "request_changed"))
        case kube_events.SinksChanged():
            yield from (replace(event, sinks=sinks) for sinks in ((), (SINK,)))
        case kube_events.Correlated():
            yield replace(event, first_number=state.head + 1)
        case kube_events.Delivered():
            yield from (replace(event, upto=upto) for upto in (6, 7))
        case kube_events.GivenUp():
            yield from (replace(event, first=6, last=last, reason="refused") for last in (6, 7))
            yield replace(event, first=7, last=7, reason="backlog")
        case prober.ProbeAdded():
            yield from (replace(event, probe=state.probe, uid=uid) for uid in (UID, "another"))
        case prober.ResultChanged():
            yield from (replace(event, result=result) for result in ("success", "failure"))
        case _:
            yield event


def name_of(value: object) -> str:
    return f"{value.source}, {value.event}, {value.target}" if isinstance(value, Row) else str(value)


@pytest.mark.parametrize(("subject", "row"), ROWS, ids=name_of)
def test_a_row_is_what_evolve_does(subject: str, row: Row) -> None:
    tools = SUBJECTS[subject]
    states = list(tools.states(row.source))
    assert {tools.phase(state) for state in states} == {row.source}
    reached = {
        tools.phase(after)
        for state in states
        for event in events(subject, row, state)
        if (after := tools.after(state, event)) is not None or row.target == NOTHING
    }
    assert row.target in reached


@pytest.mark.parametrize("subject", SUBJECTS)
def test_every_phase_leads_on(subject: str) -> None:
    rows = TABLES[subject].rows
    assert {row.target for row in rows} - {NOTHING} <= {row.source for row in rows}
