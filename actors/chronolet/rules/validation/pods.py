"""Validates a Pod as the API server does: names, numbers, references, duplicates; types are already checked. Pure.

Input: a defaulted Pod. Output: all problems, each with its path. Next: the reader of manifests.
Source: pkg/apis/core/validation/validation.go (ValidatePodCreate).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import NamedTuple, TypeVar

from chronolet.rules import node_affinity, stated_conditions
from chronolet.rules.names import names
from chronolet.rules.probes import periods
from chronolet.rules.validation.containers import amount_problems, container_problems, resource_problems
from chronolet.rules.validation.network import network_problems
from chronolet.rules.validation.problems import Problem, at_least, name_problems, repeated
from chronolet.rules.validation.rights import rights_problems
from chronolet.rules.validation.use import use_problems
from chronolet_schemas.podspec import Container, ObjectMeta, Pod, PodSpec, Volume, plain

ANNOTATIONS_BYTES = 256 * 1024

_PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
_MISPLACED = {
    "initContainers": frozenset(("lifecycle", *_PROBES)),
    "ephemeralContainers": frozenset(("lifecycle", *_PROBES, "ports", "resources", "resizePolicy", "restartPolicy")),
}
_WHY_MISPLACED = {
    "initContainers": "may not be set for an init container, unless its restartPolicy is Always",
    "ephemeralContainers": "may not be set for an ephemeral container",
}

_Key = TypeVar("_Key", bound=Hashable)


class _Group(NamedTuple):
    """One of a pod's three container lists."""

    field: str
    containers: tuple[Container, ...]


def problems(pod: Pod) -> tuple[Problem, ...]:
    """Return all problems for which Kubernetes would reject the pod, and problems with our annotations."""
    annotated = (*periods.problems(pod), *stated_conditions.problems(pod))
    return (*_metadata("metadata", pod.metadata), *annotated, *_spec("spec", pod.spec))


def _metadata(path: str, metadata: ObjectMeta) -> Iterator[Problem]:
    if not metadata.name:
        hint = "; names are not generated here" if metadata.generate_name else ""
        yield Problem(f"{path}.name", f"missing, expected the pod's name{hint}")
    else:
        yield from name_problems(f"{path}.name", metadata.name, names.subdomain_problem)
    yield from name_problems(f"{path}.namespace", metadata.namespace, names.label_problem)
    for key, value in metadata.labels.items():
        yield from name_problems(f"{path}.labels", key, names.qualified_problem, "key ")
        yield from name_problems(f"{path}.labels.{key}", value, names.label_value_problem)
    for key in metadata.annotations:
        yield from name_problems(f"{path}.annotations", key.lower(), names.qualified_problem, "key ")
    size = sum(len(key.encode()) + len(value.encode()) for key, value in metadata.annotations.items())
    if size > ANNOTATIONS_BYTES:
        yield Problem(f"{path}.annotations", f"{size} bytes are above {ANNOTATIONS_BYTES}")


def _spec(path: str, spec: PodSpec) -> Iterator[Problem]:
    yield from at_least(f"{path}.terminationGracePeriodSeconds", spec.termination_grace_period_seconds, 0)
    if spec.active_deadline_seconds is not None:
        yield from at_least(f"{path}.activeDeadlineSeconds", spec.active_deadline_seconds, 1)
    yield from _spec_names(path, spec)
    for name, text in spec.overhead.items():
        yield from amount_problems(f"{path}.overhead.{name}", name, text)
    if spec.resources is not None:
        yield from resource_problems(f"{path}.resources", spec.resources)
    yield from _volumes(f"{path}.volumes", spec.volumes)
    yield from _containers(path, spec)


def _spec_names(path: str, spec: PodSpec) -> Iterator[Problem]:
    """Validate the fields that contain names, the node selector, and the node affinity."""
    for field, value, check in (
        ("hostname", spec.hostname, names.label_problem),
        ("subdomain", spec.subdomain, names.label_problem),
        ("nodeName", spec.node_name, names.subdomain_problem),
        ("serviceAccountName", spec.service_account_name, names.subdomain_problem),
        ("priorityClassName", spec.priority_class_name, names.subdomain_problem),
        ("runtimeClassName", spec.runtime_class_name, names.subdomain_problem),
    ):
        if value:
            yield from name_problems(f"{path}.{field}", value, check)
    for key, value in spec.node_selector.items():
        yield from name_problems(f"{path}.nodeSelector", key, names.qualified_problem, "key ")
        yield from name_problems(f"{path}.nodeSelector.{key}", value, names.label_value_problem)
    yield from (Problem(f"{path}.{where}", what) for where, what in node_affinity.problems(spec))


def _volumes(path: str, volumes: tuple[Volume, ...]) -> Iterator[Problem]:
    for index, volume in enumerate(volumes):
        here = f"{path}[{index}]"
        yield from name_problems(f"{here}.name", volume.name, names.label_problem)
        sources = [key for key in plain(volume) if key != "name"]
        if len(sources) > 1:
            yield Problem(here, f"names {len(sources)} sources ({', '.join(sorted(sources))}), expected one")
        if volume.empty_dir is not None and volume.empty_dir.size_limit:
            yield from amount_problems(f"{here}.emptyDir.sizeLimit", "memory", volume.empty_dir.size_limit)
        if volume.host_path is not None:
            yield from _host_path(f"{here}.hostPath.path", volume.host_path.path)
    yield from repeated(path, "name", [volume.name for volume in volumes])


def _host_path(path: str, value: str) -> Iterator[Problem]:
    if not value:
        yield Problem(path, "missing, expected a path of the node")
    elif ".." in value.split("/"):
        yield Problem(path, f"{value!r} contains '..', expected a path without it")
    elif not value.startswith("/"):
        yield Problem(path, f"{value!r} is relative, expected an absolute path")


def _containers(path: str, spec: PodSpec) -> Iterator[Problem]:
    if not spec.containers:
        yield Problem(f"{path}.containers", "missing, expected at least one container")
    volumes = frozenset(volume.name for volume in spec.volumes)
    groups = (
        _Group("initContainers", spec.init_containers),
        _Group("containers", spec.containers),
        _Group("ephemeralContainers", spec.ephemeral_containers),
    )
    for group in groups:
        for index, container in enumerate(group.containers):
            here = f"{path}.{group.field}[{index}]"
            yield from container_problems(here, container, volumes)
            yield from _misplaced(here, group.field, container)
    with_paths = [
        (f"{path}.{group.field}[{index}]", container)
        for group in groups
        for index, container in enumerate(group.containers)
    ]
    yield from use_problems(path, spec, with_paths)
    yield from rights_problems(path, spec, with_paths)
    yield from network_problems(path, spec, with_paths)
    yield from _unique_names(path, groups)
    # Init containers run one after the other, so only app containers can conflict.
    yield from _unique_host_ports(f"{path}.containers", spec.containers)


def _misplaced(path: str, field: str, container: Container) -> Iterator[Problem]:
    """Report the fields that must not be set for this kind of container."""
    if field == "initContainers" and container.restart_policy == "Always":
        return
    for name in sorted(_MISPLACED.get(field, frozenset()) & plain(container).keys()):
        yield Problem(f"{path}.{name}", _WHY_MISPLACED[field])


def _unique_names(path: str, groups: Iterable[_Group]) -> Iterator[Problem]:
    """Report containers of any kind that share a name."""
    named = (
        (f"{path}.{group.field}[{index}].name", container.name)
        for group in groups
        for index, container in enumerate(group.containers)
        if container.name
    )
    yield from _unique(named, lambda name, first: f"{name!r} is already the name of {first.removesuffix('.name')}")


def _unique_host_ports(path: str, containers: tuple[Container, ...]) -> Iterator[Problem]:
    """Report containers that run together and publish the same host port."""
    published = (
        (f"{path}[{index}].ports[{number}].hostPort", (port.host_port, port.protocol, port.host_ip))
        for index, container in enumerate(containers)
        for number, port in enumerate(container.ports)
        if port.host_port
    )
    yield from _unique(published, lambda port, first: f"{port[0]}/{port[1]} is already taken by {first}")


def _unique(named: Iterable[tuple[str, _Key]], message: Callable[[_Key, str], str]) -> Iterator[Problem]:
    first: dict[_Key, str] = {}
    for path, key in named:
        if key in first:
            yield Problem(path, message(key, first[key]))
        first.setdefault(key, path)
