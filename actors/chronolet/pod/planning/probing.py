"""A pod's side of probing: the probes that its containers need, and their results. Pure.

Input: State; `prober.ResultChanged`. Output: `pod.ProbingRequested`, `pod.ProbingWithdrawn`, `pod.ProbingSkipped`,
`pod.ContainerProbed`. Next: `decider`; `views` and `status` read the results. Source:
pkg/kubelet/prober/prober_manager.go (AddPod, UpdatePodStatus), prober.go (runProbe).

A probe is requested once its container is running and its postStart hook has ended, and again when the pod's spec
changes; the prober recognises a repeated request. Plain init containers and ephemeral containers are not probed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple, get_args

from msgspec.structs import replace

from chronolet.pod.state import Container, Probing, State, field_path
from chronolet.rules.probes.results import UNPROBED
from chronolet.rules.refs import AttemptRef
from chronolet_schemas import pod, prober
from chronolet_schemas.envelope import Event
from chronolet_schemas.podspec import Container as Definition
from chronolet_schemas.podspec import Probe


class Flags(NamedTuple):
    """The fields `started` and `ready` of a container's status."""

    started: bool
    ready: bool


def flags(
    probes: Collection[prober.ProbeName], results: Mapping[prober.ProbeName, prober.ProbeResult], *, runs: bool
) -> Flags:
    """Return `started` and `ready` of a container with these probes; a missing result counts as not successful. Both
    are False unless it `runs`.
    """
    started = runs and ("Startup" not in probes or results.get("Startup") == "success")
    ready = started and ("Readiness" not in probes or results.get("Readiness") == "success")
    return Flags(started=started, ready=ready)


def probes_of(definition: Definition) -> dict[prober.ProbeName, Probe]:
    """Return the probes that a definition contains, whatever the container's kind."""
    every: tuple[tuple[prober.ProbeName, Probe | None], ...] = (
        ("Startup", definition.startup_probe),
        ("Readiness", definition.readiness_probe),
        ("Liveness", definition.liveness_probe),
    )
    return {name: probe for name, probe in every if probe is not None}


def wanted(state: State, one: Container) -> dict[prober.ProbeName, Probe]:
    """Return the probes that a container needs; only app containers and sidecars are probed."""
    return probes_of(state.definition(one.name)) if one.kind in ("app", "sidecar") else {}


def result(one: Container, probe: prober.ProbeName) -> prober.ProbeResult | None:
    """Return the latest result of a probe for the current run; None if there is none."""
    known = next((each for each in one.probing if each.probe == probe), None)
    return known.result or None if known is not None and _is_of_run(known, one) else None


def results(one: Container) -> dict[prober.ProbeName, prober.ProbeResult]:
    """Return the latest results for the current run, by probe."""
    names: tuple[prober.ProbeName, ...] = get_args(prober.ProbeName)
    return {name: found for name in names if (found := result(one, name)) is not None}


KIND = "prober"


def steps(state: State, participants: Collection[str]) -> Sequence[Event]:
    """Return requests and withdrawals of probes for running containers. If no prober is hosted, the requests are
    replaced by ProbingSkipped.
    """
    if state.over:
        return ()
    running = (one for one in state.containers if one.phase == "running" and not one.in_post_start)
    return tuple(event for one in running for event in _changes(state, one, skips=KIND not in participants))


def _changes(state: State, one: Container, *, skips: bool) -> Iterator[Event]:
    probes = wanted(state, one)
    here = [each for each in one.probing if _is_of_run(each, one) and each.digest == state.digest]
    done = {each.probe for each in here if skips or not each.skipped}
    for each in one.probing:
        if each.probe not in probes:
            yield _withdrawn(state, one, each.probe)
    for name, definition in probes.items():
        if name not in done:
            yield _skip(state, one, name) if skips else _request(state, one, name, definition)


def withdrawals(state: State, names: Collection[str] | None = None) -> Iterator[Event]:
    """Withdraw all probes, except those of the containers in `names`."""
    for one in state.containers:
        if names is None or one.name not in names:
            for each in one.probing:
                yield _withdrawn(state, one, each.probe)


def result_changed(state: State, message: prober.ResultChanged) -> Iterator[Event]:
    """Yield the event for a new result, if it is about the current run and differs from the known one. A container that
    is restarted from outside keeps its id, so results of its previous run may still arrive.
    """
    one = state.container(message.container) if message.uid == state.uid else None
    if one is None or not _is_of_run(message, one) or one.phase not in ("running", "stopping"):
        return
    if message.result != (result(one, message.probe) or UNPROBED[message.probe]):
        yield pod.ContainerProbed(
            id=one.id, started_at=one.started_at, probe=message.probe, result=message.result, **_ref(state, one)
        )


def failed(one: Container) -> pod.StopReason | None:
    """Return the reason to stop a container because of its probes; None if there is none."""
    if result(one, "Liveness") == "failure":
        return "LivenessFailed"
    return "StartupFailed" if result(one, "Startup") == "failure" else None


def grace_seconds(state: State, one: Container, reason: pod.StopReason) -> int | None:
    """Return the grace period that the failed probe itself defines, in seconds; None if it defines none."""
    probes = wanted(state, one)
    probe = probes.get("Liveness" if reason == "LivenessFailed" else "Startup")
    return probe.termination_grace_period_seconds if probe is not None and reason in FAILED else None


FAILED: frozenset[pod.StopReason] = frozenset(("LivenessFailed", "StartupFailed"))


def with_request(known: tuple[Probing, ...], event: pod.ProbingRequested) -> tuple[Probing, ...]:
    """Return the probes of a container after a request; a result of the same run is kept, unless it stands for a
    skipped probe.
    """
    before = next((each for each in known if each.probe == event.probe), None)
    same = before is not None and (before.id, before.started_at) == (event.id, event.started_at)
    now = Probing(
        probe=event.probe,
        id=event.id,
        started_at=event.started_at,
        digest=event.digest,
        result=before.result if before is not None and same and not before.skipped else "",
    )
    return (*without(known, event.probe), now)


def with_skip(known: tuple[Probing, ...], event: pod.ProbingSkipped) -> tuple[Probing, ...]:
    """Return the probes of a container after a skip, which counts as success."""
    now = Probing(
        probe=event.probe,
        id=event.id,
        started_at=event.started_at,
        digest=event.digest,
        result="success",
        skipped=True,
    )
    return (*without(known, event.probe), now)


def without(known: tuple[Probing, ...], probe: prober.ProbeName) -> tuple[Probing, ...]:
    """Return the probes of a container, without `probe`."""
    return tuple(each for each in known if each.probe != probe)


def with_result(known: tuple[Probing, ...], event: pod.ContainerProbed) -> tuple[Probing, ...]:
    """Return the probes of a container after a new result."""
    return tuple(replace(each, result=event.result) if each.probe == event.probe else each for each in known)


def _is_of_run(each: Probing | prober.ResultChanged, one: Container) -> bool:
    return (each.id, each.started_at) == (one.id, one.started_at)


def _request(state: State, one: Container, probe: prober.ProbeName, definition: Probe) -> Event:
    from chronolet.rules.probes.periods import period_milliseconds  # noqa: PLC0415 - not needed to read results

    manifest = state.manifest
    period = period_milliseconds(manifest, one.name, probe, definition.period_seconds)
    return pod.ProbingRequested(
        id=one.id,
        digest=state.digest,
        started_at=one.started_at,
        ip=state.reached_at,
        restarts="Always" if one.kind == "sidecar" else manifest.spec.restart_policy,
        started=flags(wanted(state, one), results(one), runs=True).started,
        field=field_path(one.kind, one.name),
        probe=probe,
        definition=resolved(state.definition(one.name), definition),
        period_milliseconds=period,
        **_ref(state, one),
    )


def _skip(state: State, one: Container, probe: prober.ProbeName) -> Event:
    return pod.ProbingSkipped(
        id=one.id, digest=state.digest, started_at=one.started_at, probe=probe, **_ref(state, one)
    )


def resolved(container: Definition, probe: Probe) -> Probe:
    """Return the probe with port names resolved to numbers, as far as the container has such ports, and with its
    command expanded with the variables whose values are in the spec itself.
    """
    from chronolet.rules.names.ports import port_number  # noqa: PLC0415 - not needed to read results

    if probe.exec is not None:
        variables = {one.name: one.value for one in container.env}
        return replace(probe, exec=replace(probe.exec, command=_expanded(probe.exec.command, variables)))
    if probe.http_get is not None:
        port = port_number(probe.http_get.port, container.ports) or probe.http_get.port
        return replace(probe, http_get=replace(probe.http_get, port=port))
    if probe.tcp_socket is not None:
        port = port_number(probe.tcp_socket.port, container.ports) or probe.tcp_socket.port
        return replace(probe, tcp_socket=replace(probe.tcp_socket, port=port))
    return probe


def _expanded(command: Sequence[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the expanded command; unexpanded if it would be too large, because the container then never starts
    (`size_findings`).
    """
    from chronolet.rules.expansion import expand_all  # noqa: PLC0415 - not needed to read results
    from chronolet.rules.validation.expanded_sizes import TooLargeError, check_words, text_bytes  # noqa: PLC0415

    try:
        check_words("command", command, {name: text_bytes(value) for name, value in variables.items()})
    except TooLargeError:
        return tuple(command)
    return expand_all(command, variables)


def _withdrawn(state: State, one: Container, probe: prober.ProbeName) -> Event:
    return pod.ProbingWithdrawn(probe=probe, **_ref(state, one))


def _ref(state: State, one: Container) -> AttemptRef:
    return AttemptRef(pod=state.pod, uid=state.uid, container=one.name, attempt=one.attempt)
