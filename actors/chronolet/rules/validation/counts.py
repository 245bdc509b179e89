"""Limits the number of containers, volumes and other list entries per pod. Pure.

The limits are chronolet's own: Kubernetes limits only the size of the request. Input: a pod's plain content, before
types are checked, because checking 40,000 containers one by one takes seconds. Output: problems. Next: the reader of
manifests.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from chronolet.rules.validation.problems import Problem

MAX_CONTAINERS: Final = 256
"""Maximum number of containers per pod, including init and ephemeral ones: each needs a cgroup, a log, and threads
while it starts.
"""

PER_POD: Final[Mapping[str, int]] = {"volumes": 1024}
PER_CONTAINER: Final[Mapping[str, int]] = {"env": 10_000, "volumeMounts": 1024, "ports": 1024}

_SORTS: Final = ("initContainers", "containers", "ephemeralContainers")


def problems(content: Mapping[str, Any]) -> Iterator[Problem]:
    """Report lists that are too long. Values of a wrong type are reported by the type check."""
    spec = content.get("spec")
    if not isinstance(spec, dict):
        return
    total = sum(len(_list(spec, sort)) for sort in _SORTS)
    if total > MAX_CONTAINERS:
        message = f"{total} containers, including init and ephemeral ones, are above {MAX_CONTAINERS}; split the pod"
        yield Problem("spec.containers", message)
        return
    yield from _lists("spec", spec, PER_POD)
    for sort in _SORTS:
        for index, container in enumerate(_list(spec, sort)):
            if isinstance(container, dict):
                yield from _lists(f"spec.{sort}[{index}]", container, PER_CONTAINER)


def _lists(path: str, holder: Mapping[str, Any], limits: Mapping[str, int]) -> Iterator[Problem]:
    for field, limit in limits.items():
        count = len(_list(holder, field))
        if count > limit:
            yield Problem(f"{path}.{field}", f"{count} entries are above {limit}")


def _list(holder: Mapping[str, Any], field: str) -> list[Any]:
    found = holder.get(field)
    return found if isinstance(found, list) else []
