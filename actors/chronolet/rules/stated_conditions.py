"""The conditions of a pod that its readiness gates name, as the pod's annotation states them. Pure.

Input: a pod. Output: the conditions by type; what the annotation says that it cannot say. Next: `pod.status`,
`validation`. A kubelet reads such conditions from the pod's status, where a controller writes them. No controller is
here to do so: applying the manifest again with another annotation changes them, and no container is restarted for it.

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
    """The conditions by type. A part that states nothing is left out."""
    return {name: status for _, name, status in _parts(pod) if name and status}


def problems(pod: Pod) -> Iterator[Problem]:
    """What is wrong with the annotation."""
    for part, name, status in _parts(pod):
        if not name or status not in _STATUSES:
            yield Problem(_PATH, f"{part[:_SHOWN]!r} is no condition, expected TYPE=True, TYPE=False or TYPE=Unknown")


def _parts(pod: Pod) -> Iterator[tuple[str, str, str]]:
    """Each part with the type and the status in it."""
    for part in filter(None, map(str.strip, pod.metadata.annotations.get(ANNOTATION, "").split(","))):
        name, _, status = part.partition("=")
        yield part, name.strip(), status.strip()
