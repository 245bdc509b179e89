"""The downward API: resolves references to a pod's fields and resources to text. Pure.

Input: a Pod, where it runs, a reference. Output: the text, or `UnknownReferenceError` with the kubelet's message. Next:
the environment of containers, files of downwardAPI volumes. Source: pkg/fieldpath/fieldpath.go,
pkg/api/v1/resource/helpers.go, pkg/kubelet/kubelet_pods.go (podFieldSelectorRuntimeValue).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping

import msgspec

from chronolet.rules.resources import quantities
from chronolet_schemas.podspec import Container, EnvVarSource, Pod

_KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']*)'\]")
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}

IN_ENV = frozenset(
    {
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    }
)
IN_VOLUMES = frozenset(
    {"metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations"}
)
RESOURCES = frozenset(
    f"{side}.{name}" for side in ("limits", "requests") for name in ("cpu", "memory", "ephemeral-storage")
)


class UnknownReferenceError(ValueError):
    """The referenced field does not exist; the message is the kubelet's."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pod runs: its node, its addresses, and the node's capacity, which is used in place of an unset limit."""

    node: str = ""
    host_ip: str = ""
    pod_ip: str = ""
    cpu_milli: int = 0
    memory_bytes: int = 0
    storage_bytes: int = 0
    least_oom_score_adj: int = -1000
    """The lowest oom_score_adj that the machine lets the agent set."""


def keyed(path: str) -> tuple[str, str] | None:
    """Split `metadata.labels['k']` into (`labels`, `k`); None if the path has another form."""
    found = _KEYED.fullmatch(path)
    return (found[1], found[2]) if found else None


def value(source: EnvVarSource, pod: Pod, container: Container, place: Place) -> str:
    """Resolve a reference that `container` contains. Raises UnknownReferenceError."""
    if source.field_ref is not None:
        return field(source.field_ref.field_path, pod, place)
    if source.resource_field_ref is None:
        raise UnknownReferenceError("the variable's source is not supported; expected fieldRef or resourceFieldRef")
    reference = source.resource_field_ref
    if reference.container_name:
        found = _container(pod, reference.container_name)
        if found is None:
            raise UnknownReferenceError(f"container {reference.container_name} not found")
        container = found
    return resource(reference.resource, reference.divisor, container, place)


def field(path: str, pod: Pod, place: Place) -> str:
    """Return the value of a downward API field: of the pod (`metadata.name`), or of where it runs (`status.hostIP`).
    Raises UnknownReferenceError.
    """
    key = keyed(path)
    if key is not None:
        metadata = pod.metadata
        return (metadata.labels if key[0] == "labels" else metadata.annotations).get(key[1], "")
    found = _FIELDS.get(path)
    if found is None:
        raise UnknownReferenceError(f"unsupported fieldPath: {path}")
    return found(pod, place)


def resource(name: str, divisor: str, container: Container, place: Place) -> str:
    """Return a limit or request in units of `divisor`, rounded up; if a limit is unset, return the node's capacity.
    Raises UnknownReferenceError.
    """
    if name not in RESOURCES:
        raise UnknownReferenceError(f"unsupported container resource : {name}")
    side, _, kind = name.partition(".")
    units = quantities.parse(divisor) if divisor and quantities.parse(divisor) else 1
    resources = container.resources
    written = resources.limits.get(kind) if side == "limits" else resources.requests.get(kind)
    if written is None and side == "limits":
        capacity = {"cpu": place.cpu_milli, "memory": place.memory_bytes, "ephemeral-storage": place.storage_bytes}
        written = f"{capacity[kind]}m" if kind == "cpu" else str(capacity[kind])
    return str(math.ceil(quantities.parse(written or "0") / units))


def _container(pod: Pod, name: str) -> Container | None:
    every = (*pod.spec.containers, *pod.spec.init_containers)
    return next((one for one in every if one.name == name), None)


def _lines(values: Mapping[str, str]) -> str:
    """Render one `key="value"` per line, sorted."""
    return "\n".join(f'{key}="{_escaped(values[key])}"' for key in sorted(values))


def _escaped(text: str) -> str:
    return "".join(_ESCAPES.get(one, one) for one in text)


# Evaluated lazily: a pod's annotations may take 256 KiB as text, and a manifest may reference them 50,000 times.
_FIELDS: Mapping[str, Callable[[Pod, Place], str]] = {
    "metadata.name": lambda pod, _: pod.metadata.name,
    "metadata.namespace": lambda pod, _: pod.metadata.namespace,
    "metadata.uid": lambda pod, _: pod.metadata.uid,
    "metadata.labels": lambda pod, _: _lines(pod.metadata.labels),
    "metadata.annotations": lambda pod, _: _lines(pod.metadata.annotations),
    "spec.nodeName": lambda _, place: place.node,
    "spec.serviceAccountName": lambda pod, _: pod.spec.service_account_name or pod.spec.service_account,
    "status.hostIP": lambda _, place: place.host_ip,
    "status.hostIPs": lambda _, place: place.host_ip,
    "status.podIP": lambda _, place: place.pod_ip,
    "status.podIPs": lambda _, place: place.pod_ip,
}
