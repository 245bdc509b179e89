"""What Kubernetes fills in where a user wrote nothing. Pure.

Comes in: a Pod as written. Goes out: the Pod as the API server would store it.
Answers to: pkg/apis/core/v1/defaults.go and pkg/util/parsers.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from chronolet_schemas.podspec.actions import Probe
from chronolet_schemas.podspec.container import Container, ContainerPort, PullPolicy, ResourceRequirements
from chronolet_schemas.podspec.plain import from_plain, to_plain
from chronolet_schemas.podspec.pod import Pod, PodSpec
from chronolet_schemas.podspec.volumes import EmptyDir, Volume

DEFAULT_NAMESPACE = "default"

_AnyContainer = TypeVar("_AnyContainer", bound=Container)


def defaulted(pod: Pod, namespace: str = DEFAULT_NAMESPACE) -> Pod:
    """The pod with every default that depends on its other fields; `namespace` is for a pod that names none."""
    metadata = msgspec.structs.replace(pod.metadata, namespace=pod.metadata.namespace or namespace)
    filled = msgspec.structs.replace(pod, metadata=metadata, spec=_spec(pod.spec))
    # Once through the plain form: what was spelled out but equals a default becomes the default itself, which the
    # encoder leaves out. Two ways to write one pod are then the same bytes.
    return from_plain(to_plain(filled))


def pull_policy(image: str) -> PullPolicy:
    """When an image is pulled if nobody says: `Always` for the tag latest or for neither tag nor digest."""
    reference, _, image_digest = image.partition("@")
    _, _, tag = reference.rpartition("/")[2].partition(":")
    if not tag and not image_digest:
        return "Always"
    return "Always" if tag == "latest" else "IfNotPresent"


def _spec(spec: PodSpec) -> PodSpec:
    return msgspec.structs.replace(
        spec,
        volumes=tuple(_volume(volume) for volume in spec.volumes),
        containers=tuple(_container(one, host_network=spec.host_network) for one in spec.containers),
        init_containers=tuple(_container(one, host_network=spec.host_network) for one in spec.init_containers),
        ephemeral_containers=tuple(_container(one, host_network=False) for one in spec.ephemeral_containers),
    )


def _volume(volume: Volume) -> Volume:
    """A volume that names no source is an empty folder."""
    if volume == Volume(name=volume.name):
        return msgspec.structs.replace(volume, empty_dir=EmptyDir())
    return volume


def _container(container: _AnyContainer, *, host_network: bool) -> _AnyContainer:
    return msgspec.structs.replace(
        container,
        image_pull_policy=container.image_pull_policy or pull_policy(container.image),
        resources=_resources(container.resources),
        ports=tuple(_port(port, host_network=host_network) for port in container.ports),
        liveness_probe=_probe(container.liveness_probe),
        readiness_probe=_probe(container.readiness_probe),
        startup_probe=_probe(container.startup_probe),
    )


def _resources(resources: ResourceRequirements) -> ResourceRequirements:
    """A resource with a limit and no request asks for its limit."""
    return msgspec.structs.replace(resources, requests={**resources.limits, **resources.requests})


def _port(port: ContainerPort, *, host_network: bool) -> ContainerPort:
    """On the node's own network a container's port is the node's."""
    if host_network and not port.host_port:
        return msgspec.structs.replace(port, host_port=port.container_port)
    return port


def _probe(probe: Probe | None) -> Probe | None:
    """Zero stands for the default in every count and time of a probe except the initial delay."""
    if probe is None:
        return None
    return msgspec.structs.replace(
        probe,
        timeout_seconds=probe.timeout_seconds or 1,
        period_seconds=probe.period_seconds or 10,
        success_threshold=probe.success_threshold or 1,
        failure_threshold=probe.failure_threshold or 3,
    )
