"""Messages to a probe, for the tests, with defaults for the fields that do not matter."""

from __future__ import annotations

from typing import Any

from chronolet.prober import signals
from chronolet.prober.decider import DECIDER
from chronolet_schemas import pod, prober
from chronolet_schemas.podspec import ExecAction, Probe
from tests.deciders.given import Scene, given

REF: dict[str, Any] = {"pod": "default/web", "uid": "u1", "container": "app"}
DEFINITION = Probe(exec=ExecAction(command=("true",)))
FIELD = "spec.containers{app}"


def wanted(probe: prober.ProbeName = "Liveness", **changes: Any) -> pod.ProbingRequested:
    """Return the pod's request to probe container k0."""
    fields: dict[str, Any] = {
        "attempt": 0,
        "id": "k0",
        "digest": "d",
        "started_at": 1_000,
        "ip": "10.0.0.5",
        "restarts": "Always",
        "started": True,
        "field": FIELD,
        "probe": probe,
        "definition": DEFINITION,
        "period_milliseconds": 10_000,
        **REF,
    }
    return pod.ProbingRequested(**fields | changes)


def probed(probe: prober.ProbeName = "Liveness", **changes: Any) -> Scene:
    """Return a scene with a probe that was requested when its container started."""
    request = wanted(probe, **changes)
    return given(DECIDER).when(request, at=request.started_at)


def outcome(scene: Scene, result: prober.Outcome, *, output: str = "", at: int = 0, **changes: Any) -> Scene:
    """Send one outcome from the worker at `at`, by default now."""
    when = at or scene.at
    (effect,) = scene.effects.values()
    signal = signals.ProbeOutcome(
        intent=effect.intent, outcome=result, at=when, milliseconds=5, output=output, **changes
    )
    return scene.when(signal, at=when)


def counted(probe: prober.ProbeName, consecutive: int, threshold: int, at: int, **changes: Any) -> dict[str, Any]:
    """Return the fields of a ProbeSucceeded or ProbeFailed."""
    fields = {"id": "k0", "milliseconds": 5, "probe": probe, **REF}
    return fields | {"consecutive": consecutive, "threshold": threshold, "at": at} | changes


def changed(probe: prober.ProbeName, result: prober.ProbeResult, **changes: Any) -> prober.ResultChanged:
    """Return a ResultChanged event."""
    run = {"attempt": 0, "id": "k0", "started_at": 1_000}
    return prober.ResultChanged(**{"probe": probe, "result": result, **run, **REF} | changes)


def exited(code: int = 0) -> pod.ContainerExited:
    """Return the event of the container's exit."""
    return pod.ContainerExited(
        attempt=0, id="k0", exit_code=code, reason="Error", started_at=1_000, finished_at=2_000, **REF
    )


def stopping(reason: pod.StopReason) -> pod.ContainerStopRequested:
    """Return the event that requests the container's stop."""
    return pod.ContainerStopRequested(
        attempt=0, id="k0", grace_period_seconds=30, deadline=40_000, reason=reason, **REF
    )


def of_probe(probe: prober.ProbeName, result: prober.ProbeResult) -> pod.ContainerProbed:
    """Return the pod's event about a result of one of the container's probes."""
    return pod.ContainerProbed(attempt=0, id="k0", started_at=1_000, probe=probe, result=result, **REF)
