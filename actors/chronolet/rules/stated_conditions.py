"""The conditions that a pod's readiness gates refer to, read from the pod's annotation. Pure.

Input: a pod. Output: conditions by type; problems with the annotation. Next: `pod.status`, `validation.pods`. The
kubelet reads these conditions from the pod's status, where a controller sets them. There is no controller here: to
change conditions without restarting a container, apply the manifest again with a changed annotation.

    chronolet/conditions: "example.com/in-pool=False, example.com/warm=True"
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from chronolet.rules.validation.problems import Problem
from chronolet_schemas.podspec import Pod

ANNOTATION = "chronolet/conditions"
_STATUSES = ("True", "False", "Unknown")
_PATH = f"metadata.annotations.{ANNOTATION}"
_SHOWN = 80


def stated(pod: Pod) -> Mapping[str, str]:
    """Return the conditions by type. Incomplete parts of the annotation are ignored."""
    return {name: status for _, name, status in _parts(pod) if name and status}


def problems(pod: Pod) -> Iterator[Problem]:
    """Yield the problems with the annotation."""
    for part, name, status in _parts(pod):
        if not name or status not in _STATUSES:
            message = f"{part[:_SHOWN]!r} is not a condition, expected TYPE=True, TYPE=False or TYPE=Unknown"
            yield Problem(_PATH, message)


def _parts(pod: Pod) -> Iterator[tuple[str, str, str]]:
    """Yield each part of the annotation, with its type and status."""
    for part in filter(None, map(str.strip, pod.metadata.annotations.get(ANNOTATION, "").split(","))):
        name, _, status = part.partition("=")
        yield part, name.strip(), status.strip()
