"""Finds the fields of a Pod that chronolet does not honour. Pure.

Input: a parsed Pod. Output: findings, in field order. Next: the CLI prints them; the `pod` decider does not start a
container that has a blocking finding (CreateContainerConfigError). The verdicts are in `honoured_table`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from chronolet.rules.resources.extended_resources import is_extended
from chronolet.rules.resources.resources import HUGE_PAGES
from chronolet.rules.validation.honoured_table import HONOURED, TABLE, Verdict
from chronolet_schemas.podspec import BLOCKING, Finding, Object, Pod, plain

__all__ = ["BLOCKING", "CONTAINERS", "Finding", "blockers", "findings", "verdict_below"]

CONTAINERS: Final = {
    "init_containers": "spec.initContainers[",
    "containers": "spec.containers[",
    "ephemeral_containers": "spec.ephemeralContainers[",
}
"""The path prefix of each kind of container."""

_WHOLE_POD: Final = ""
_CONTAINER_KEYS: Final = frozenset(("initContainers", "containers", "ephemeralContainers"))


def findings(pod: Pod) -> tuple[Finding, ...]:
    """Return a finding for every field that is set but not honoured, unless its value makes no difference."""
    content = _without_enforced(plain(pod))
    return tuple(
        Finding(path=path, severity=verdict.severity, message=_message(value, verdict), pod=pod.key)
        for path, value, verdict in _walk(content, "", "", HONOURED)
        if verdict.severity is not None
    )


def blockers(pod: Pod, found: Sequence[Finding]) -> Iterator[tuple[str, Finding]]:
    """Yield the containers that must not start, each with the first blocking finding for it or for the whole pod."""
    first: dict[str, int] = {}
    blocking = [one for one in found if one.severity == BLOCKING]
    for number, one in enumerate(blocking):
        first.setdefault(_container_path(one.path), number)
    none = len(blocking)
    for field, begin in CONTAINERS.items():
        for index, container in enumerate(getattr(pod.spec, field)):
            number = min(first.get(_WHOLE_POD, none), first.get(f"{begin}{index}]", none))
            if number < none:
                yield container.name, blocking[number]


def _container_path(path: str) -> str:
    """Return the path of the container that a finding is about; `_WHOLE_POD` if it is not about a container."""
    return path[: path.index("]") + 1] if path.startswith(tuple(CONTAINERS.values())) else _WHOLE_POD


def verdict_below(pattern: str, key: str) -> Verdict | None:
    """Return the table's verdict for a key of the object at `pattern` (a path without indices); None if the key is not
    listed.

    Precedence: the key itself, then `prefix/*` for keys such as annotations, then `*/*` for an extended resource or
    `hugepages-*`, then `*`.
    """
    family = ("*/*",) if is_extended(key) else (f"{HUGE_PAGES}*",) if key.startswith(HUGE_PAGES) else ()
    for name in (key, key.partition("/")[0] + "/*", *family, "*"):
        found = TABLE.get(f"{pattern}.{name}" if pattern else name)
        if found is not None:
            return found
    return None


def _walk(value: Any, path: str, pattern: str, verdict: Verdict) -> Iterator[tuple[str, Any, Verdict]]:
    """Yield the path, value and verdict of each smallest part of `value` that has a verdict of its own, honoured or
    not, unless its value makes no difference.
    """
    if isinstance(value, dict) and verdict.inside:
        for key, held in value.items():
            below = f"{pattern}.{key}" if pattern else key
            yield from _walk(held, f"{path}.{key}" if path else key, below, verdict_below(pattern, key) or verdict)
    elif isinstance(value, list) and verdict.inside and any(isinstance(item, dict) for item in value):
        for index, item in enumerate(value):
            yield from _walk(item, f"{path}[{index}]", pattern, verdict)
    elif value not in verdict.unless:
        yield path, value, verdict


def _without_enforced(content: Object) -> Object:
    """Return the pod without the requests that equal their limit, because defaulting adds them, and without the size
    limits of in-memory volumes, because these are enforced.
    """
    spec = dict(content.get("spec", {}))
    if "volumes" in spec:
        spec["volumes"] = [_volume_without(volume) for volume in spec["volumes"]]
    for key in _CONTAINER_KEYS & spec.keys():
        spec[key] = [_container_without(container) for container in spec[key]]
    return {**content, "spec": spec}


def _volume_without(volume: Object) -> Object:
    folder = volume.get("emptyDir", {})
    if folder.get("medium") != "Memory":
        return volume
    return {**volume, "emptyDir": {key: value for key, value in folder.items() if key != "sizeLimit"}}


def _container_without(container: Object) -> Object:
    resources = container.get("resources", {})
    limits = resources.get("limits", {})
    requests = {name: text for name, text in resources.get("requests", {}).items() if limits.get(name) != text}
    return {**container, "resources": {**resources, "requests": requests}}


def _message(value: Any, verdict: Verdict) -> str:
    if isinstance(value, dict | list):
        return f"not honoured: {verdict.message}"
    shown = repr(value) if isinstance(value, str) else str(value).lower()
    return f"{shown} is not honoured: {verdict.message}"
