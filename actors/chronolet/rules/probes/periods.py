"""Probe periods below one second, set by an annotation because Kubernetes has no field for them. Pure.

Input: a pod. Output: periods in milliseconds; problems with the annotation. Next: `pod`, which requests probes;
`validation.pods`.

    chronolet/period-milliseconds: "250"                                     all probes of the pod
    chronolet/period-milliseconds: "app/readiness=250, app/liveness=500"     two probes; others use periodSeconds
"""

from __future__ import annotations

from collections.abc import Iterator

from chronolet.rules.validation.problems import Problem
from chronolet_schemas.podspec import Container, Pod

ANNOTATION = "chronolet/period-milliseconds"
LEAST_MS = 10
LONGEST_MS = 86_400_000

_PATH = f"metadata.annotations.{ANNOTATION}"
_SHOWN = 20
_MOST_DIGITS = len(str(LONGEST_MS))


def period_milliseconds(pod: Pod, container: str, probe: str, period_seconds: int) -> int:
    """Return the period of one probe; an invalid annotation is ignored. `probe` (such as `Liveness`) is
    case-insensitive.
    """
    given = dict(_given(pod))
    return _milliseconds(given.get(f"{container}/{probe.lower()}", given.get("", ""))) or period_seconds * 1000


def problems(pod: Pod) -> Iterator[Problem]:
    """Yield the problems with the annotation."""
    known = {name for one in _probed(pod) for name in _names(one)}
    for name, text in _given(pod):
        if name and name not in known:
            listed = f"expected one of {', '.join(sorted(known))}" if known else "which has none"
            yield Problem(_PATH, f"{name} is not a probe of this pod, {listed}")
        if not _milliseconds(text):
            yield Problem(_PATH, f"{text[:_SHOWN]!r} is not a number of milliseconds from {LEAST_MS} to {LONGEST_MS}")


def _milliseconds(text: str) -> int:
    """Parse a period; 0 if it is invalid."""
    number = int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else 0
    return number if LEAST_MS <= number <= LONGEST_MS else 0


def _given(pod: Pod) -> Iterator[tuple[str, str]]:
    """Yield, for each part of the annotation, the probe's name (empty for all probes) and the period as text."""
    whole = pod.metadata.annotations.get(ANNOTATION)
    for part in whole.split(",") if whole is not None else ():
        name, equals, text = part.strip().rpartition("=")
        yield (name.strip() if equals else "", text.strip())


def _probed(pod: Pod) -> Iterator[Container]:
    yield from pod.spec.init_containers
    yield from pod.spec.containers


def _names(one: Container) -> Iterator[str]:
    for name in ("liveness", "readiness", "startup"):
        if getattr(one, f"{name}_probe") is not None:
            yield f"{one.name}/{name}"
